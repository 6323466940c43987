"""From a kernel to object code, by numba. The only module that touches numba's inner parts.

Around the kernel goes a C function whose parameters are pointers, sides and numbers; its object
code needs nothing of numba when it runs. Where numba's inner parts have moved, `Unsupported` is
raised and `fallback` gives the kernel as an ordinary numba function: slower to start, same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from detmap.kernels import Kernel

OPTIONS: dict[str, object] = {"nogil": True, "fastmath": False, "error_model": "numpy"}
"""nogil: classes run on a thread pool. fastmath stays off, so additions keep their order and no
multiply-add is fused: the results are those of the reference, bit for bit. error_model numpy: a
division by zero is an inf, not a branch."""

STANDING_ALONE: dict[str, object] = {
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""Without numba's runtime (_nrt) a kernel cannot allocate, and its machine code stands on its own.
It needs no wrapper: Python calls the C function around it."""

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


Parameter = tuple[str, np.dtype[Any] | None]
"""A letter as in `Entry`, and of a pointer the type of number that it points to."""


class Unsupported(Exception):  # noqa: N818  (it is caught where it matters, and never shown)
    """Numba cannot be made to give object code in the way that this module knows."""


class Entry(NamedTuple):
    """A C function around a kernel.

    Parameters
    ----------
    symbol : its name in the object code
    result : the kernel's return annotation, "None", "int" or "float"
    parameters : a letter each: p pointer, i int64, f float64
    machine_code : an object file
    """

    symbol: str
    result: str
    parameters: str
    machine_code: bytes


class Built(NamedTuple):
    """A compiled kernel as numba holds it.

    Parameters
    ----------
    symbol, result, parameters : as in `Entry`
    library : numba's code library, with LLVM's module in it
    """

    symbol: str
    result: str
    parameters: str
    library: Any

    def entry(self) -> Entry:
        """With the object code for this machine."""
        try:
            code = bytes(self.library._get_compiled_object())
        except (AttributeError, TypeError) as error:
            raise Unsupported(str(error)) from error
        return Entry(self.symbol, self.result, self.parameters, code)


def build(kernel: Kernel[Any, Any], args: Sequence[object]) -> Built:
    """Compile a kernel for arguments of these types.

    Raises
    ------
    Unsupported : numba's inner parts are not where they were
    AssertionError : the kernel allocates or raises
    """
    try:
        numba, types = import_module("numba"), import_module("numba.core.types")
        dispatcher = kernel.dispatcher(**OPTIONS, **STANDING_ALONE)
        names: dict[str, Any] = {"carray": numba.carray, "kernel": dispatcher}
        source, parameters = _wrapper(args, names)
        exec(source, names)
        c_types = {"f": types.float64, "i": types.int64}
        signature = {"None": types.void, "float": types.float64, "int": types.int64}[kernel.result](
            *(
                c_types[letter] if dtype is None else types.CPointer(numba.from_dtype(dtype))
                for letter, dtype in parameters
            )
        )
        compiled = numba.cfunc(signature, nopython=True, error_model="numpy")(names["entry"])
        library, symbol = compiled._library, str(compiled.native_name)
        outside = {
            function.name
            for function in library._final_module.functions
            if function.is_declaration and not function.name.startswith("llvm.")
        }
    except (AttributeError, ImportError, KeyError, TypeError) as error:
        raise Unsupported(f"{type(error).__name__}: {error}") from error
    strange = sorted(
        name for name in outside - {*C_FUNCTIONS, *NEVER_CALLED} if not name.startswith("Py")
    )
    if strange:
        raise AssertionError(
            f"kernel {kernel.__name__} calls {', '.join(strange)}, which is not there without numba"
        )
    letters = "".join(letter for letter, _ in parameters)
    return Built(symbol, kernel.result, letters, library)


def fallback(kernel: Kernel[Any, Any]) -> Callable[..., Any]:
    """The kernel as an ordinary numba function, called with the kernel's own arguments."""
    return kernel.dispatcher(**OPTIONS)  # type: ignore[no-any-return]


def dispatcher(function: FunctionType, inner: dict[str, Any], **options: object) -> Any:
    """A numba function of a kernel's function, in which names mean the `inner` numba functions."""
    scope = {**function.__globals__, **inner}
    njit = import_module("numba").njit
    return njit(**options)(FunctionType(function.__code__, scope, function.__name__))


def _wrapper(args: Sequence[object], names: dict[str, Any]) -> tuple[str, list[Parameter]]:
    """The source of the C function, and its parameters; types of tuples are added to `names`."""
    parameters: list[Parameter] = []

    def spell(arg: object) -> str:
        """The expression that rebuilds an argument from the parameters."""
        place = len(parameters)
        if isinstance(arg, np.ndarray):
            sides = [f"p{place + 1 + i}" for i in range(arg.ndim)]
            parameters.extend([("p", arg.dtype), *[("i", None)] * arg.ndim])
            return f"carray(p{place}, ({', '.join(sides)},))"
        if isinstance(arg, tuple):
            names[type(arg).__name__] = type(arg)
            return f"{type(arg).__name__}({', '.join([spell(inner) for inner in arg])})"
        parameters.append(("f" if isinstance(arg, float) else "i", None))
        return f"p{place}"

    call = f"kernel({', '.join([spell(arg) for arg in args])})"
    listed = ", ".join(f"p{i}" for i in range(len(parameters)))
    return f"def entry({listed}):\n    return {call}\n", parameters
