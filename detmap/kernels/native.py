"""The machine code of the kernels: one library beside this file, opened by the system's linker.

`tools/build_native.py` makes it. After the library proper come a line that says what it was made
from, and the digest of everything before. Both are compared once; then the library is trusted as
the code beside it is. One that does not fit is passed over with a line, and numba compiles.

Environment
-----------
DETMAP_KERNELS : ``native`` makes it an error where the library lacks a kernel; ``numba`` passes
    the library over
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from detmap.errors import DetmapError
from detmap.version import __version__

LOG = logging.getLogger("detmap")
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
"""What decides the machine code: types of numbers and sides of arrays, types of tuples."""


def entry(module: str, name: str, result: str, key: Key) -> Callable[..., Any] | None:
    """The C function of a kernel for arguments of these types; None where numba has to run it.

    Raises
    ------
    DetmapError : DETMAP_KERNELS asks for what does not exist
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
    try:
        stale = fault(LIBRARY.read_bytes())
        return (None, stale) if stale else (ctypes.CDLL(str(LIBRARY)), "")
    except FileNotFoundError:
        return None, f"there is no {LIBRARY.name} for this platform"
    except OSError as error:
        LOG.warning("detmap: %s is passed over: %s", LIBRARY, error)
        return None, str(error)


@cache
def tell() -> None:
    """Tell the user once that numba compiles; shown on stderr unless the program configures
    logging otherwise.
    """
    reason = library()[1] or "DETMAP_KERNELS, or a kernel that the library lacks"
    LOG.warning("detmap: %s: %s; %s", COMPILING, reason, HINT)


def seal(code: bytes, compilers: str) -> bytes:
    """A library with what `fault` reads."""
    body = code + f"\n{description()}; {compilers}".encode()
    return body + b"\n" + hashlib.sha256(body).hexdigest().encode()


def fault(data: bytes) -> str:
    """Why a file is the library of other sources; empty where it is that of these.

    Raises
    ------
    OSError : it is damaged
    """
    body, _, sum_ = data.rpartition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != sum_:
        raise OSError("it is damaged")
    made = body.rpartition(b"\n")[2].decode()
    if made.startswith(description() + ";"):
        return ""
    return f"the kernels changed since {LIBRARY.name} was made ({made[:40]})"


def description() -> str:
    """What a library must say that it was made from."""
    return f"detmap {__version__}, kernels {digest()}"


@cache
def digest() -> str:
    """Of the sources of all kernels, whatever their line ends."""
    found = hashlib.sha256()
    for path in sorted(FOLDER.rglob("*.py")):
        if path.name not in MACHINERY:
            text = path.read_bytes().replace(b"\r\n", b"\n")
            found.update(f"{path.relative_to(FOLDER).as_posix()} {len(text)}\n".encode() + text)
    return found.hexdigest()


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
