"""The machine code of the kernels: a shared library beside this file, opened with ctypes.

`tools/build_native.py` builds it. Two lines follow the library: a description of its sources, and
the digest of all bytes before it. They are checked once; afterwards the library is trusted like the
code beside it. A damaged one is skipped with a message. Kernels whose code changed since it was
made, or who use such code, are not taken from it: numba compiles them, until the library is made
anew. Docstrings and comments may change.

Environment
-----------
DETMAP_KERNELS : ``native`` raises an error if the library lacks a kernel; ``numba`` does not use
    the library
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from detmap.core.base.sha import sha256
from detmap.errors import DetmapError
from detmap.version import __version__

FOLDER = Path(__file__).parent
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY = FOLDER / f"_native{SUFFIX}"
MACHINERY = "__init__.py", "native.py", "jit.py"
MODES = ("", "native", "numba")
HINT = "in a checkout `python tools/build_native.py --compile` makes the library"
COMPILING = "compiling kernels, once on this machine (`detmap warmup` does it ahead of time)"
LETTERS = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "f": ctypes.c_double}
RESULTS = {"None": None, "float": ctypes.c_double, "int": ctypes.c_int64}

NAMED = r"detmap\.(?:\w+\.)?kernels\b"
"""The start of the name of a module of kernels: of the core, or of a wing."""

IMPORTS = rf"(?m)^from ({NAMED}[\w.]*) import (\([^)]*\)|.*)$"

Key = tuple[Any, ...]
"""The types that determine the machine code: types and layout of arrays, types of tuples."""


class Library(NamedTuple):
    """The library, or None and the reason; the modules whose kernels it has in an older form."""

    opened: ctypes.CDLL | None
    reason: str
    changed: frozenset[str] = frozenset()

    def age(self) -> str:
        """Which modules changed; "" if none did."""
        names = [
            name.removeprefix("detmap.").removeprefix("kernels.") for name in sorted(self.changed)
        ]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        told = f"kernels of {', '.join(names[:3])}{more} changed since {LIBRARY.name} was made"
        return told if names else ""


def entry(module: str, name: str, result: str, key: Key) -> Callable[..., Any] | None:
    """The C function of a kernel for arguments of these types; None if numba must run it.

    Raises
    ------
    DetmapError : DETMAP_KERNELS is ``native`` and there is no such function
    """
    mode = os.environ.get("DETMAP_KERNELS", "")
    if mode not in MODES:
        raise DetmapError("DETMAP_KERNELS", f"{mode!r} is not known", "native or numba")
    if mode == "numba" or not re.match(NAMED, module):
        return None
    opened, reason, changed = library()
    wanted = symbol(module, name, key)
    if module in changed:
        opened, reason = None, library().age()
    try:
        function = getattr(opened, wanted)
    except AttributeError:
        if mode == "native":
            reason = reason or f"{LIBRARY.name} has no {wanted}"
            raise DetmapError(f"kernel {name}", reason, f"unset DETMAP_KERNELS; {HINT}") from None
        return None
    function.restype = RESULTS[result]
    function.argtypes = [LETTERS[letter] for letter in letters(key)]
    return function  # type: ignore[no-any-return]


@cache
def library() -> Library:
    """What there is; a file that cannot be opened is reported."""
    if not LIBRARY.is_file():
        none = f"there is no {LIBRARY.name} (no linker at installation, or another platform)"
        return Library(None, none)
    try:
        changed = fault(LIBRARY.read_bytes())
        try:
            return Library(ctypes.CDLL(str(LIBRARY)), "", changed)
        except OSError as error:  # the system calls a file for another processor missing
            raise OSError(f"the system cannot load it ({error})") from None
    except OSError as error:
        _warn("detmap: %s is not used: %s", LIBRARY, error)
        return Library(None, str(error))


def _warn(text: str, *words: object) -> None:
    import logging  # takes 3 ms, and a run that fits warns of nothing

    logging.getLogger("detmap").warning(text, *words)


@cache
def tell() -> None:
    """Report once that numba compiles; on stderr unless the program configures logging."""
    found = library()
    reason = found.reason or found.age() or "DETMAP_KERNELS, or a kernel that the library lacks"
    _warn("detmap: %s: %s; %s", COMPILING, reason, HINT)


def seal(code: bytes, made_of: str) -> bytes:
    """The bytes of a library with the `description` of its sources and the digest."""
    body = code + f"\ndetmap {__version__}; {made_of}".encode()
    return body + b"\n" + sha256(body).hexdigest().encode()


def fault(data: bytes) -> frozenset[str]:
    """The modules whose kernels a library has in an older form.

    Raises
    ------
    OSError : it is damaged
    """
    body, _, sum_ = data.rpartition(b"\n")
    if sha256(body).hexdigest().encode() != sum_:
        raise OSError("it is damaged")
    return changed_since(body.rpartition(b"\n")[2].decode())


def changed_since(described: str) -> frozenset[str]:
    """The modules of kernels whose code is not that of a description, or which import such code."""
    if f"sources {sources_digest()};" in described:
        return frozenset()  # the usual case, which parses nothing
    made = dict(pair.split("=") for pair in described.split() if "=" in pair)
    texts = sources()
    found = {name for name, text in texts.items() if not _equal(text, made.get(name, ""))}
    while True:
        more = {name for name, text in texts.items() if imported(text) & found} - found
        if not more:
            return frozenset(found)
        found |= more


def imported(source: bytes) -> set[str]:
    """The modules of kernels that a module may import from."""
    lines = re.findall(IMPORTS, source.decode())
    packages = {package for package, _ in lines}
    names = {f"{package}.{name}" for package, rest in lines for name in re.findall(r"\w+", rest)}
    return packages | names


def _equal(source: bytes, made: str) -> bool:
    """Whether a module is what a library was made of; "" is none."""
    plain, _, code = made.partition(":")
    return _short(source) == plain or (bool(code) and _short(_code(source)) == code)


def description() -> str:
    """What `changed_since` reads: the digest of all sources, and of each module as it is and
    without docstrings and comments.
    """
    parts = [f"{name}={_short(x)}:{_short(_code(x))}" for name, x in sources().items()]
    return f"sources {sources_digest()}; {' '.join(parts)}"


def sources() -> dict[str, bytes]:
    """The text of each module of kernels, also of wings, independent of line endings."""
    paths = [*FOLDER.rglob("*.py"), *FOLDER.parent.glob("*/kernels/*.py")]
    named = {".".join(path.parts[len(FOLDER.parts) - 1 :])[:-3]: path for path in paths}
    return {
        f"detmap.{name}": named[name].read_bytes().replace(b"\r\n", b"\n")
        for name in sorted(named)
        if named[name].name not in MACHINERY
    }


@cache
def digest() -> str:
    """The digest of the code of all kernels: their sources without docstrings and comments."""
    return _digest(_code)


@cache
def sources_digest() -> str:
    """The digest of the sources of all kernels, which takes less time."""
    return _digest(lambda source: source)


def _digest(part: Callable[[bytes], bytes]) -> str:
    found = sha256()
    for name, source in sources().items():
        text = part(source)
        found.update(f"{name} {len(text)}\n".encode() + text)
    return found.hexdigest()


def _short(text: bytes) -> str:
    return sha256(text).hexdigest()[:16]


def _code(source: bytes) -> bytes:
    """A source without docstrings, comments and blank lines; the same under each Python."""
    import ast
    import io
    import tokenize

    lines = source.split(b"\n")
    words = [
        (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            begin = len(token.line[:column].encode())
            words.append((row, begin, row, len(lines[row - 1])))
    for first, begin, last, end in sorted(words, reverse=True):
        lines[first - 1 : last] = [lines[first - 1][:begin] + lines[last - 1][end:]]
    return b"\n".join(line.rstrip() for line in lines if line.strip())


def symbol(module: str, name: str, key: Key) -> str:
    """The name of a kernel in the library, the same on every platform."""
    words = [
        f"{part[0].kind}{part[0].itemsize}x{part[1]}"
        if isinstance(part, tuple)
        else str(getattr(part, "__name__", part))
        for part in key
    ]
    return "_".join([module.rpartition(".")[2], name, "", *words])


def letters(key: Key) -> str:
    """The parameters of the C function: p pointer, i int64, f float64."""
    words = [part for part in key if not isinstance(part, type)]
    return "".join("p" + "i" * word[1] if isinstance(word, tuple) else word for word in words)
