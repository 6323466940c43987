"""Compiled loops. Only this package imports numba.

A kernel is only a loop: it takes checked arrays, writes preallocated output, and uses no files,
threads or exceptions. It allocates nothing. Its machine code comes from the library beside this
file (`native`), at the first call with arguments of some types, without numba: importing numba
takes more time and memory than most evaluations. Without a library numba compiles it (`jit`).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from detmap.kernels import jit, native
from detmap.kernels.native import RESULTS, Key

P = ParamSpec("P")
R = TypeVar("R")

PLAIN_PYTHON = (
    os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    and os.environ.get("DETMAP_KERNELS") != "native"
)
"""Run kernels as plain Python: slow, but debuggers and coverage tools work."""

INNER_RESULTS = ("Any", "bool", "np.", "tuple[")
"""The start of the return annotation of kernels that only other kernels call."""


class Kernel(Generic[P, R]):
    """A loop, compiled for each combination of argument types.

    Python calls it with C-contiguous arrays, named tuples of arrays, and numbers, all positional.
    Other kernels call it like any function.

    Parameters
    ----------
    function : the loop
    inline : whether the machine code is copied to where other kernels call it

    Raises
    ------
    TypeError : the function has no return annotation
    """

    def __init__(self, function: Callable[P, R], *, inline: bool = False) -> None:
        self.function, self.inline = cast(FunctionType, function), inline
        self.__doc__, self.__module__ = function.__doc__, function.__module__
        self.__name__, self.__qualname__ = self.function.__name__, self.function.__qualname__
        result = function.__annotations__.get("return", "nothing")
        self.result = result.__name__ if isinstance(result, type) else str(result)
        if self.result not in RESULTS and not self.result.startswith(INNER_RESULTS):
            raise TypeError(
                f"kernel {self.__name__} is annotated to return {self.result}: None, int or float"
                " where Python calls it (Any, bool, np..., tuple[...] where only kernels do)"
            )
        self.entries: dict[Key, Callable[..., Any] | None] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the loop without the GIL.

        Raises
        ------
        TypeError : keyword argument, unsupported type, or wrong number of arguments
        ValueError : an array is not C-contiguous
        """
        if kwargs:
            raise TypeError(
                f"kernel {self.__name__} takes no arguments by name: {', '.join(kwargs)}"
            )
        if PLAIN_PYTHON:
            with np.errstate(all="ignore"):  # as compiled: integers wrap, 0/0 is NaN
                return cast(R, self.function(*args))
        shape: list[object] = []
        flat: list[int | float] = []
        self._flatten(args, shape, flat)
        key = tuple(shape)
        if key not in self.entries:
            self.entries[key] = self._find(args, key)
        entry = self.entries[key]
        if entry is None:
            return jit.cached(self)(*map(_plain, args))  # type: ignore[no-any-return]
        return entry(*flat)  # type: ignore[no-any-return]

    def calls(self) -> dict[str, Kernel[Any, Any]]:
        """The kernels that it calls, by name."""
        scope = self.function.__globals__
        named = {name: scope.get(name) for name in self.function.__code__.co_names}
        return {name: value for name, value in named.items() if isinstance(value, Kernel)}

    def _find(self, args: tuple[object, ...], key: Key) -> Callable[..., Any] | None:
        """The C function for arguments of these types; None if numba runs the loop."""
        if len(args) != self.function.__code__.co_argcount:
            raise TypeError(
                f"kernel {self.__name__} takes {self.function.__code__.co_argcount} arguments,"
                f" not {len(args)}"
            )
        if self.result not in RESULTS:
            raise TypeError(
                f"kernel {self.__name__} is annotated to return {self.result}: only kernels can"
                " call it (Python, where it is None, int or float)"
            )
        for part in key:
            if isinstance(part, tuple) and not (part[0].isnative and part[0].kind in "biuf"):
                raise TypeError(f"kernel {self.__name__} takes no arrays of {part[0]}")
        return native.entry(self.__module__, self.__name__, self.result, key)

    def _flatten(
        self, args: tuple[object, ...], shape: list[object], flat: list[int | float]
    ) -> None:
        """Append the types that determine the machine code to `shape`, and the passed values to
        `flat`.
        """
        for arg in args:
            if isinstance(arg, np.ndarray):
                if not arg.flags.c_contiguous:
                    raise ValueError(
                        f"kernel {self.__name__} takes C-contiguous arrays only, not one of"
                        f" shape {arg.shape} with strides {arg.strides}"
                    )
                shape.append((arg.dtype, arg.ndim))
                flat.append(_address(arg))
                flat.extend(arg.shape)
            elif isinstance(arg, tuple):
                shape.append(type(arg))
                self._flatten(arg, shape, flat)
            elif isinstance(arg, float):
                shape.append("f")
                flat.append(arg)
            elif isinstance(arg, (int, np.integer, np.bool_)):
                shape.append("i")
                flat.append(int(arg))
            else:
                raise TypeError(
                    f"kernel {self.__name__} takes arrays, tuples of them and numbers,"
                    f" not {type(arg).__name__}"
                )


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Make a kernel of a function."""
    return Kernel(function)


def inline_kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Make a kernel of a small function that another one calls for each number it reads."""
    return Kernel(function, inline=True)


def _plain(arg: object) -> object:
    """An argument with the types of the C function: every integer is an int64."""
    if isinstance(arg, tuple):
        return cast(Any, type(arg))(*map(_plain, arg))
    return int(arg) if isinstance(arg, (int, np.integer, np.bool_)) else arg


def _address_by_ctypes(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's data."""
    return int(array.ctypes.data)


def _address_by_layout(array: np.ndarray[Any, Any]) -> int:
    """The same in a tenth of the time: the pointer is the first field of numpy's `PyArrayObject`,
    after the header of every object. A kernel has 10 to 40 arrays.
    """
    return ctypes.c_size_t.from_address(id(array) + object.__basicsize__).value


_SAMPLE = np.arange(6)[2:]
_address = (
    _address_by_layout
    if sys.implementation.name == "cpython"
    and _address_by_layout(_SAMPLE) == _address_by_ctypes(_SAMPLE)
    else _address_by_ctypes
)
