"""Kernels compiled by numba if the library lacks them: the same bits, a slower start."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

from detmap.kernels import intrinsics, native

if TYPE_CHECKING:
    from detmap.kernels import Kernel

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy"}
"""nogil: classes run on a thread pool. fastmath stays off, so additions keep their order and no
multiply-add is fused: the results are those of the reference, bit for bit. error_model numpy: a
division by zero is an inf, not a branch."""


folders: dict[str, str] = {}
"""The folder where numba saves each kernel that it runs in this process; "" if it cannot."""


def _renew_lock() -> None:
    """Replaces numba's compiler lock in a forked process: another thread may have held it."""
    caching = sys.modules.get("numba.core.compiler_lock")
    if caching is not None:
        caching.global_compiler_lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@cache
def compiled(kernel: Kernel[Any, Any], **options: Any) -> Any:
    """The numba function of a kernel; the functions that it calls are numba functions too."""
    import numba

    if instructions := intrinsics.instructions(kernel):
        return instructions
    inner = {name: compiled(each, **options) for name, each in kernel.calls().items()}
    scope = {**kernel.function.__globals__, **inner}
    function = FunctionType(kernel.function.__code__, scope, kernel.__name__)
    return numba.njit(**OPTIONS, forceinline=kernel.inline, **options)(function)


@cache
def cached(kernel: Kernel[Any, Any]) -> Callable[..., Any]:
    """The numba function with numba's file cache, if a folder is writable.

    Numba only checks the file of the kernel itself; the digest covers the kernels that it calls.
    """
    from numba.core.caching import FunctionCache

    class Cache(FunctionCache):
        def _index_key(self, *args: Any) -> tuple[Any, ...]:
            return (*super()._index_key(*args), native.digest())  # type: ignore[no-untyped-call]

        def load_overload(self, *args: Any) -> Any:
            try:
                found = super().load_overload(*args)  # type: ignore[no-untyped-call]
            except (AttributeError, ImportError):  # of a version with other types of arguments
                self.flush()  # type: ignore[no-untyped-call]
                found = None
            if found is None:
                native.tell()
            return found

    dispatcher = compiled(kernel)
    folders[kernel.__name__] = ""
    with suppress(RuntimeError):  # no folder can be written
        dispatcher._cache = Cache(dispatcher.py_func)  # type: ignore[no-untyped-call]
        folders[kernel.__name__] = str(dispatcher._cache.cache_path)
    return dispatcher  # type: ignore[no-any-return]
