"""Machine code on disk: one file a kernel and types of arguments, compiled once for a machine and a
version of the loops.

The folder is $DETMAP_CACHE_DIR, else detmap in the user's cache folder. Files appear whole or
not at all, and a process that compiles a kernel leaves a claim beside its place, so processes
that start at once share the work; a damaged file is compiled anew. Where no folder can be
written, kernels are compiled in every process, and a warning says so.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from detmap.kernels import Kernel

LOG = logging.getLogger("detmap")
COMPILING = "compiling kernels, once on this machine (`detmap warmup` does it ahead of time)"
_lock = threading.RLock()
_said: set[str] = set()


def entry(
    kernel: Kernel[Any, Any], args: tuple[Any, ...], key: tuple[Any, ...]
) -> Callable[..., Any]:
    """The C function of a kernel for arguments of these types: from disk, or compiled now and
    kept there.
    """
    with _lock:
        path = path_of(kernel, key)
        code = _load(path) or _from_other(path)
        if code is None:
            share_the_work()
            with _claimed(path):
                code = _compile(kernel, args)
                _save(path, *code)
        header, machine_code = code
        return _link(header, machine_code)


def path_of(kernel: Kernel[Any, Any], key: tuple[Any, ...]) -> Path:
    """The file of a kernel for arguments of these types."""
    identity = repr((kernel.__module__, kernel.__name__, _spelled(key), fingerprint()))
    return (
        folder() / f"{kernel.__name__}-{hashlib.sha256(identity.encode()).hexdigest()[:24]}.kernel"
    )


def folder() -> Path:
    """Where machine code is kept."""
    if own := os.environ.get("DETMAP_CACHE_DIR"):
        return Path(own)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "") or "~/.cache"
    return Path(base).expanduser() / "detmap"


@cache
def fingerprint() -> str:
    """What machine code depends on beside the types: the loops' source, the compilers, the
    processor.
    """
    from importlib.metadata import version

    binding = _binding()
    source = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        source.update(path.read_bytes())
    return "|".join(
        (
            source.hexdigest(),
            version("numba"),
            version("llvmlite"),
            version("numpy"),
            binding.get_host_cpu_name(),
            binding.get_host_cpu_features().flatten(),
            sys.platform,
        )
    )


# --- compiling ------------------------------------------------------------------------------------


def _compile(kernel: Kernel[Any, Any], args: tuple[Any, ...]) -> tuple[dict[str, Any], bytes]:
    """A C function around the kernel, as object code: each array is a pointer and its sides,
    each number itself.
    """
    _say(COMPILING)
    numba: Any = import_module(
        "numba"
    )  # untyped where it matters: the typed part stops at the dispatcher
    types: Any = import_module("numba.core.types")

    names: dict[str, Any] = {"carray": numba.carray, "kernel": kernel.dispatcher()}
    parameters: list[str] = []
    c_types: list[Any] = []

    def spell(arg: Any) -> str:
        """The expression that rebuilds an argument from the C function's parameters."""
        place = len(parameters)
        if isinstance(arg, np.ndarray):
            sides = [f"p{place + 1 + i}" for i in range(arg.ndim)]
            parameters.extend([f"p{place}", *sides])
            c_types.extend([types.CPointer(numba.from_dtype(arg.dtype)), *[types.int64] * arg.ndim])
            return f"carray(p{place}, ({', '.join(sides)},))"
        if isinstance(arg, tuple):
            names[type(arg).__name__] = type(arg)
            return f"{type(arg).__name__}({', '.join([spell(inner) for inner in arg])})"
        parameters.append(f"p{place}")
        c_types.append(types.float64 if isinstance(arg, float) else types.int64)
        return f"p{place}"

    call = f"kernel({', '.join([spell(arg) for arg in args])})"
    source = f"def entry({', '.join(parameters)}):\n    return {call}\n"
    exec(source, names)
    result = str(kernel.function.__annotations__["return"])
    c_result = {"None": types.void, "float": types.float64, "int": types.int64}[result]
    compiled = numba.cfunc(c_result(*c_types), nopython=True, error_model="numpy")(names["entry"])
    letters = "".join(
        "f" if c_type is types.float64 else "i" if c_type is types.int64 else "p"
        for c_type in c_types
    )
    outside = {
        f.name
        for f in compiled._library._final_module.functions
        if f.is_declaration and f.name[:5] != "llvm."
    }
    strange = sorted(
        name for name in outside - {*C_FUNCTIONS, *NEVER_CALLED} if not name.startswith("Py")
    )
    if strange:
        raise AssertionError(
            f"kernel {kernel.__name__} calls {', '.join(strange)}, which is not there without numba"
        )
    header = {"symbol": compiled.native_name, "result": result, "parameters": letters}
    return header, compiled._library._get_compiled_object()


# --- files ----------------------------------------------------------------------------------------


def _save(path: Path, header: dict[str, Any], machine_code: bytes) -> None:
    content = json.dumps(header).encode() + b"\n" + machine_code
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=path.parent, suffix=".draft")
        with os.fdopen(descriptor, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(draft, path)
    except OSError as error:
        _say(
            f"compiled kernels cannot be kept: {error}; set DETMAP_CACHE_DIR to a folder that can be written"
        )


def _load(path: Path) -> tuple[dict[str, Any], bytes] | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None
    header, machine_code = content[32:].split(b"\n", 1)
    return json.loads(header), machine_code


# --- several processes that compile at once
# ------------------------------------------------------------------------------

PATIENCE = 120.0  # seconds after which the claim of another process is not believed any more


@contextmanager
def _claimed(path: Path) -> Iterator[None]:
    """Tell other processes that this kernel is being compiled, where the folder can be written."""
    claim = path.with_suffix(".claim")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        claim.write_text(str(os.getpid()))
    try:
        yield
    finally:
        with suppress(OSError):
            claim.unlink()


def _from_other(path: Path) -> tuple[dict[str, Any], bytes] | None:
    """The kernel that another process is compiling, once it is there; None where nobody is, or
    it gave up.
    """
    claim = path.with_suffix(".claim")
    while True:
        try:
            owner, age = int(claim.read_text()), time.time() - claim.stat().st_mtime
        except (OSError, ValueError):
            return _load(path)  # it may have been finished just now
        if age > PATIENCE or not _lives(owner):
            return None
        time.sleep(0.01)


def _lives(process: int) -> bool:
    if sys.platform == "win32":
        return True  # its claim grows old
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def share_the_work() -> bool:
    """Have other processes compile the kernels of an evaluation, while this one goes on; False
    where it is alone.

    One begins with the matching, which takes longest, one with what comes before and after it.
    `detmap.warmup` knows what there is.
    """
    if os.environ.get("DETMAP_COMPILE_ALONE") or len(_processors()) < 2:
        return False
    if "helpers" not in _said:
        _said.add("helpers")
        _say(COMPILING)
        for first in ("match", "small"):
            with suppress(OSError):
                helper = subprocess.Popen(
                    [sys.executable, "-m", "detmap.warmup", first],
                    env={**os.environ, "DETMAP_COMPILE_ALONE": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                threading.Thread(target=helper.wait, daemon=True).start()
    return True


def _processors() -> set[int] | range:
    return (
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )


def _say(text: str) -> None:
    """Tell the user, once a process; shown on stderr unless the program configures logging
    otherwise.
    """
    if text not in _said:
        _said.add(text)
        LOG.warning("detmap: %s", text)


# --- linking --------------------------------------------------------------------------------------


@cache
def _binding() -> Any:
    import llvmlite.binding as binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    library = ctypes.CDLL(None)
    for name in C_FUNCTIONS:
        binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    for name in NEVER_CALLED:
        binding.add_symbol(name, ctypes.cast(library.abort, ctypes.c_void_p).value)
    return binding


C_FUNCTIONS = ("memset", "memcpy", "memmove")
NEVER_CALLED = (  # by kernels, which raise nothing and allocate nothing
    "NRT_Free",
    "NRT_MemInfo_call_dtor",
    "numba_do_raise",
    "numba_gil_ensure",
    "numba_gil_release",
    "numba_runtime_build_excinfo_struct",
    "numba_unpickle",
)

_engines: list[Any] = []  # an engine owns the code that it has linked


def _link(header: dict[str, Any], machine_code: bytes) -> Callable[..., Any]:
    binding = _binding()
    machine = binding.Target.from_default_triple().create_target_machine(jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    engine.add_object_file(binding.ObjectFileRef.from_data(machine_code))
    engine.finalize_object()
    _engines.append(engine)
    letters = {"p": ctypes.c_void_p, "i": ctypes.c_int64, "f": ctypes.c_double}
    result = {"None": None, "float": ctypes.c_double, "int": ctypes.c_int64}[header["result"]]
    prototype = ctypes.CFUNCTYPE(result, *(letters[letter] for letter in header["parameters"]))
    return prototype(engine.get_function_address(header["symbol"]))


def _spelled(key: tuple[Any, ...]) -> str:
    return repr([part.__name__ if isinstance(part, type) else part for part in key])
