"""What machine code says of itself, and the file that says it.

A file is a line, a digest over the rest, a header of JSON in one line, and an object file. It is
used only if its header is exactly what is wanted.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from detmap.kernels.object_code import machine
from detmap.version import __version__

if TYPE_CHECKING:
    from detmap.kernels import Kernel, Key
    from detmap.kernels.compiler import Entry

MAGIC = b"detmap kernel\n"


def identity(
    kernel: Kernel[Any, Any], key: Key, system: str, processor: str, compiled_by: str = ""
) -> dict[str, str]:
    """What machine code has to say of itself to be used."""
    return {
        "kernel": f"{kernel.__module__}.{kernel.__qualname__}",
        "types": spelled(key),
        "parameters": letters(key),
        "result": kernel.result,
        "source": source_digest(kernel),
        "detmap": __version__,
        "platform": system,
        "processor": processor,
        "compilers": compiled_by,
    }


def file_name(wanted: dict[str, str]) -> str:
    """The file of a kernel, which is not trusted: what counts is inside."""
    name = wanted["kernel"].rpartition(".")[2]
    return f"{name}-{hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:24]}.kernel"


def pack(entry: Entry, is_: dict[str, str], **further: str) -> bytes:
    """The content of a file; `further` is for readers only."""
    header = {**is_, "symbol": entry.symbol, "further": further}
    content = json.dumps(header).encode() + b"\n" + entry.machine_code
    return MAGIC + hashlib.sha256(content).digest() + content


def unpack(data: bytes, wanted: dict[str, str]) -> Entry:
    """The object code of a file that is whole and says that it is what is wanted.

    Raises
    ------
    BadCodeError : it is not
    """
    from detmap.kernels.compiler import Entry
    from detmap.kernels.linker import BadCodeError

    begin = len(MAGIC) + 32
    content = data[begin:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(content).digest() != data[begin - 32 : begin]:
        raise BadCodeError("it is damaged")
    head, _, machine_code = content.partition(b"\n")
    try:
        header = json.loads(head)
        symbol, said = header["symbol"], {name: header[name] for name in wanted}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadCodeError("it does not say what it is") from None
    if not isinstance(symbol, str) or not symbol.startswith("cfunc."):
        raise BadCodeError("it does not say what it is")
    if said != wanted:
        other = next(name for name in wanted if said[name] != wanted[name])
        raise BadCodeError(f"its {other} is {str(said[other])[:80]!r}")
    return Entry(symbol, wanted["result"], wanted["parameters"], machine_code)


def letters(key: Key) -> str:
    """The parameters of the C function, as in `Entry`."""
    spelled = []
    for part in key:
        if isinstance(part, tuple):
            spelled.append("p" + "i" * part[1])
        elif isinstance(part, str):
            spelled.append(part)
    return "".join(spelled)


def spelled(key: Key) -> str:
    """The types of arguments in words that mean the same in every process."""
    words = []
    for part in key:
        if isinstance(part, type):
            words.append(f"{part.__name__}({', '.join(getattr(part, '_fields', ()))})")
        elif isinstance(part, tuple):
            dtype, sides = part
            words.append(f"{np.dtype(dtype).str}:{sides}")
        else:
            words.append(str(part))
    return " ".join(words)


def platform() -> str:
    """System and processor, and the width of a pointer where it is not the usual."""
    return f"{sys.platform} {machine()}" + ("" if sys.maxsize > 1 << 32 else " 32 bit")


def source_digest(kernel: Kernel[Any, Any]) -> str:
    """Over the source of every module that the loop takes a kernel from, and the constants that
    they name. Without sources (a frozen program) over Python's own code of the loops.
    """
    modules: dict[str, Kernel[Any, Any]] = {}
    constants: set[str] = set()
    todo, seen = [kernel], {kernel}
    while todo:
        each = todo.pop()
        modules.setdefault(each.__module__, each)
        scope = each.function.__globals__
        for name in each.function.__code__.co_names:
            if isinstance(scope.get(name), (bool, int, float, str, bytes, tuple)):
                constants.add(f"{name} = {scope[name]!r}")
        new = [inner for inner in each.calls().values() if inner not in seen]
        seen.update(new)
        todo += new
    digest = hashlib.sha256()
    for name in sorted(modules):
        source = _module_digest(name)
        if source is None:
            code = sorted(_spelled_code(k.function.__code__) for k in seen if k.__module__ == name)
            source = f"{sys.implementation.cache_tag} {code}"
        digest.update(f"{name}\n{source}\n".encode())
    digest.update("\n".join(sorted(constants)).encode())
    return digest.hexdigest()


@cache
def _module_digest(name: str) -> str | None:
    """Of a module's source, wherever it was imported from; None where there is none."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    origin, read = getattr(spec, "origin", None), getattr(spec and spec.loader, "get_data", None)
    if read is None or not str(origin).endswith(".py"):
        return None
    with suppress(OSError):
        return hashlib.sha256(read(origin)).hexdigest()
    return None


def _spelled_code(code: CodeType) -> str:
    constants = [
        _spelled_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts
    ]
    return repr((code.co_name, code.co_varnames, code.co_names, constants, code.co_code.hex()))


@cache
def compilers() -> str:
    """Versions of numba, llvmlite and numpy, without importing numba."""
    from importlib.util import find_spec

    from detmap.kernels.linker import version

    numba = ""
    spec = find_spec("numba")
    with suppress(OSError, TypeError):
        text = Path(str(spec and spec.origin)).with_name("_version.py").read_text(encoding="utf-8")
        numba = "".join(re.findall(r'"version": *"([^"]+)"', text)[:1])
    if not numba:
        from importlib.metadata import version as installed

        numba = installed("numba")
    return f"numba {numba}, llvmlite {version()}, numpy {np.__version__}"
