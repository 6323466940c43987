"""From object code to a function that Python can call, by our own loader or by llvmlite: importing
numba would cost more time and memory than most evaluations.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from detmap.kernels import loader
from detmap.kernels.compiler import C_FUNCTIONS, NEVER_CALLED, Entry
from detmap.kernels.object_code import fault

LETTERS = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "f": ctypes.c_double}
RESULTS = {"None": None, "float": ctypes.c_double, "int": ctypes.c_int64}
MODEL = "/sys/devices/system/cpu/modalias"  # in Linux' words; LLVM need not be loaded to read them
_engines: list[Any] = []  # an engine owns the code that it has linked


class BadCodeError(Exception):
    """Bytes that are no object code of this machine."""


def link(entry: Entry, checked: bool = False, together: bool = False) -> Callable[..., Any]:
    """The C function, ready to be called; it releases the GIL while it runs.

    Parameters
    ----------
    entry : from disk, or fresh from the compiler
    checked : it is fresh or came with detmap, and its tables need no look
    together : with others of the same build, where no name has two meanings; an engine for each
        takes five times as long

    Raises
    ------
    BadCodeError : the object code cannot be linked
    """
    if not checked:
        reason = fault(entry.machine_code, entry.symbol, {*C_FUNCTIONS, *NEVER_CALLED})
        if reason:
            raise BadCodeError(reason)
    address = _loaded(entry) if loader.HERE else None
    prototype = ctypes.CFUNCTYPE(
        RESULTS[entry.result], *(LETTERS[letter] for letter in entry.parameters)
    )
    return prototype(address or _linked(entry, together))


def _loaded(entry: Entry) -> int | None:
    """Where our own loader put it; None where it leaves that to LLVM."""
    try:
        return loader.load(entry.machine_code, entry.symbol, *_addresses())
    except OSError as error:
        raise BadCodeError(str(error)) from error


def _linked(entry: Entry, together: bool) -> int:
    """Where LLVM put it."""
    engine = _shared_engine() if together else _engine()
    try:
        engine.add_object_file(_binding().ObjectFileRef.from_data(entry.machine_code))
        engine.finalize_object()
        address = int(engine.get_function_address(entry.symbol))
    except RuntimeError as error:
        raise BadCodeError(str(error)) from error
    if not address:
        raise BadCodeError("it does not define its kernel")
    _engines.append(engine)
    return address


def _engine() -> Any:
    machine = _binding().Target.from_default_triple().create_target_machine(jit=True)
    return _binding().create_mcjit_compiler(_binding().parse_assembly(""), machine)


@cache
def _shared_engine() -> Any:
    return _engine()


@cache
def _addresses() -> tuple[dict[str, int], int]:
    """Of the C functions that kernels call, and of what stands in for those that they never do."""
    library = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
    addresses = {
        name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        for name in (*C_FUNCTIONS, "abort")
    }
    return addresses, addresses["abort"]


@cache
def _binding() -> Any:
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    called, never_called = _addresses()
    for name, address in {**dict.fromkeys(NEVER_CALLED, never_called), **called}.items():
        binding.add_symbol(name, address)
    return binding


@cache
def processor() -> str:
    """What decides which code suits this machine: model and features of its processor."""
    if loader.HERE:
        with suppress(OSError), open(MODEL, encoding="ascii") as file:
            return file.read().strip()
    binding = _binding()
    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def version() -> str:
    """Of llvmlite."""
    import llvmlite

    return str(llvmlite.__version__)
