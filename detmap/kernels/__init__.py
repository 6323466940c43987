"""The compiled loops. The only folder that imports numba, and the machine code that numba made.

A kernel is only the loop: it takes checked arrays, writes preallocated output, and knows no
file, thread or error. It allocates nothing. numba compiles it on its first call ever and `store`
keeps the object code; from then on the code is loaded without numba, whose import would cost
more time and memory than most evaluations.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from detmap.kernels import store

P = ParamSpec("P")
R = TypeVar("R")

PLAIN_PYTHON = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Kernels run as plain Python: slow, but a debugger and a coverage tool can look inside."""


class Kernel(Generic[P, R]):
    """A loop that is compiled for the types of its first arguments, and for further ones as they
    come.

    From Python its arguments are C-contiguous arrays, named tuples of them, and numbers; inside
    another kernel it is called like any function.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.__doc__, self.__name__, self.__module__ = (
            function.__doc__,
            function.__name__,
            function.__module__,
        )
        self._entries: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._dispatcher: Any = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the loop; the GIL is released meanwhile."""
        if PLAIN_PYTHON:
            return self.function(*args, **kwargs)
        shape: list[Any] = []
        flat: list[Any] = []
        for arg in args:
            _flatten(arg, shape, flat)
        key = tuple(shape)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = store.entry(self, args, key)
        return cast(R, entry(*flat))

    def is_ready(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Whether a call with such arguments would not have to be compiled."""
        shape: list[Any] = []
        for arg in args:
            _flatten(arg, shape, [])
        key = tuple(shape)
        return PLAIN_PYTHON or key in self._entries or store.path_of(self, key).exists()

    def dispatcher(self) -> Any:
        """The numba function, with the kernels that it calls as numba functions too.

        nogil: classes run on a thread pool. fastmath stays off, so additions keep their order
        and no multiply-add is fused: the results are those of the reference, bit for bit.
        error_model numpy: a division by zero is an inf, not a branch. Without numba's runtime
        (_nrt) a kernel cannot allocate, and its machine code stands on its own. It needs no
        wrapper: Python calls the C function that `store` puts around it.
        """
        if self._dispatcher is None:
            import numba

            plain = cast(FunctionType, self.function)
            names = {name: plain.__globals__.get(name) for name in plain.__code__.co_names}
            inner = {
                name: value.dispatcher()
                for name, value in names.items()
                if isinstance(value, Kernel)
            }
            copy = FunctionType(plain.__code__, {**plain.__globals__, **inner}, plain.__name__)
            options: dict[str, Any] = {
                "nogil": True,
                "fastmath": False,
                "error_model": "numpy",
                "_nrt": False,
                "no_cpython_wrapper": True,
                "no_cfunc_wrapper": True,
            }
            self._dispatcher = numba.njit(**options)(copy)
        return self._dispatcher


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Make a kernel of a function."""
    return Kernel(function)


def _flatten(arg: Any, shape: list[Any], flat: list[Any]) -> None:
    """Append what decides the machine code to `shape`, and what is passed to it to `flat`."""
    if isinstance(arg, np.ndarray):
        if not arg.flags.c_contiguous:
            raise ValueError("a kernel takes C-contiguous arrays only")
        shape.append((arg.dtype.char, arg.ndim))
        flat.append(_address(arg))
        flat.extend(arg.shape)
    elif isinstance(arg, tuple):
        shape.append(type(arg))
        for inner in arg:
            _flatten(inner, shape, flat)
    elif isinstance(arg, float):
        shape.append("f")
        flat.append(arg)
    else:
        shape.append("i")
        flat.append(int(arg))


def _address(array: np.ndarray[Any, Any]) -> int:
    """Where an array's numbers lie; by the buffer protocol where that is allowed, which takes a
    fifth of the time.
    """
    if array.flags.writeable and array.size:
        return ctypes.addressof(ctypes.c_char.from_buffer(cast(Any, array)))
    return int(array.ctypes.data)
