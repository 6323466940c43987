"""The compiled loops. The only folder that imports numba.

A kernel is only the loop: it takes checked arrays, writes preallocated output, and knows no file, thread or error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop on its first call and keep the machine code on disk.

    nogil: classes run on a thread pool. fastmath stays off, so additions keep their order and no multiply-add is fused:
    the results are those of the reference, bit for bit. error_model numpy: a division by zero is an inf, not a branch.
    """
    return cast(F, numba.njit(nogil=True, cache=True, fastmath=False, error_model="numpy")(function))
