"""The machine code of the kernels: a shared library beside this file, opened with ctypes.

`tools/build_native.py` builds it. Two lines follow the library: a description of its sources, and
the digest of all bytes before it. They are checked once; afterwards the library is trusted like the
code beside it. A library that does not fit is skipped with a message, and numba compiles the
kernels. A library still fits after a change of docstrings and comments.

Environment
-----------
DETMAP_KERNELS : ``native`` raises an error if the library lacks a kernel; ``numba`` does not use
    the library
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from detmap.core.base.sha import sha256
from detmap.errors import DetmapError
from detmap.version import __version__

FOLDER = Path(__file__).parent
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY = FOLDER / f"_native{SUFFIX}"
MACHINERY = "__init__.py", "native.py", "jit.py"
MODES = ("", "native", "numba")
HINT = "in a checkout `python tools/build_native.py` makes the library"
COMPILING = "compiling kernels, once on this machine (`detmap warmup` does it ahead of time)"
LETTERS = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "f": ctypes.c_double}
RESULTS = {"None": None, "float": ctypes.c_double, "int": ctypes.c_int64}

Key = tuple[Any, ...]
"""The types that determine the machine code: types and layout of arrays, types of tuples."""


def entry(module: str, name: str, result: str, key: Key) -> Callable[..., Any] | None:
    """The C function of a kernel for arguments of these types; None if numba must run it.

    Raises
    ------
    DetmapError : DETMAP_KERNELS is ``native`` and there is no such function
    """
    mode = os.environ.get("DETMAP_KERNELS", "")
    if mode not in MODES:
        raise DetmapError("DETMAP_KERNELS", f"{mode!r} is not known", "native or numba")
    if mode == "numba" or not module.startswith("detmap.kernels."):
        return None
    opened, reason = library()
    wanted = symbol(module, name, key)
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
def library() -> tuple[ctypes.CDLL | None, str]:
    """The library, or None and the reason; a file that cannot be opened is reported."""
    if not LIBRARY.is_file():
        return None, f"there is no {LIBRARY.name} (no linker at installation, or another platform)"
    try:
        if stale := fault(LIBRARY.read_bytes()):
            return None, stale
        try:
            return ctypes.CDLL(str(LIBRARY)), ""
        except OSError as error:  # the system calls a file for another processor missing
            raise OSError(f"the system cannot load it ({error})") from None
    except OSError as error:
        _warn("detmap: %s is not used: %s", LIBRARY, error)
        return None, str(error)


def _warn(text: str, *words: object) -> None:
    import logging  # takes 3 ms, and a run that fits warns of nothing

    logging.getLogger("detmap").warning(text, *words)


@cache
def tell() -> None:
    """Report once that numba compiles; on stderr unless the program configures logging."""
    reason = library()[1] or "DETMAP_KERNELS, or a kernel that the library lacks"
    _warn("detmap: %s: %s; %s", COMPILING, reason, HINT)


def seal(code: bytes, compilers: str) -> bytes:
    """The bytes of a library with the description and digest that `fault` checks."""
    body = code + f"\n{description()}; sources {sources_digest()}; {compilers}".encode()
    return body + b"\n" + sha256(body).hexdigest().encode()


def fault(data: bytes) -> str:
    """Why a file does not fit these sources; "" if it fits.

    Raises
    ------
    OSError : it is damaged
    """
    body, _, sum_ = data.rpartition(b"\n")
    if sha256(body).hexdigest().encode() != sum_:
        raise OSError("it is damaged")
    made = body.rpartition(b"\n")[2].decode()
    version, _, rest = made.partition(", kernels ")
    if version == f"detmap {__version__}" and f"; sources {sources_digest()};" in rest:
        return ""  # the usual case, which parses nothing
    if made.startswith(description() + ";"):
        return ""
    return f"the kernels changed since {LIBRARY.name} was made ({made[:40]})"


def description() -> str:
    """The expected description of a library."""
    return f"detmap {__version__}, kernels {digest()}"


@cache
def digest() -> str:
    """The digest of the code of all kernels: their sources without docstrings and comments."""
    return _digest(_code)


@cache
def sources_digest() -> str:
    """The digest of the sources of all kernels, which takes less time."""
    return _digest(lambda source: source)


def _digest(part: Callable[[bytes], bytes]) -> str:
    """The digest of a part of each source, independent of line endings."""
    found = sha256()
    for path in sorted(FOLDER.rglob("*.py")):
        if path.name not in MACHINERY:
            text = part(path.read_bytes().replace(b"\r\n", b"\n"))
            found.update(f"{path.relative_to(FOLDER).as_posix()} {len(text)}\n".encode() + text)
    return found.hexdigest()


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
