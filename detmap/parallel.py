"""Class-wise work on a plain thread pool: the kernels release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import ArrayLike


def default_threads() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each_largest_first(work: Callable[[int], None], sizes: ArrayLike, threads: int | None = None) -> None:
    """Call ``work(k)`` for every k, the largest first, so that no thread is left with a long tail.

    The order of the calls never shows in a result: each writes its own slice.
    """
    order = np.argsort(-np.asarray(sizes), kind="stable").tolist()
    threads = min(threads or default_threads(), len(order))
    if threads <= 1:
        for k in order:
            work(k)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, order):
            pass
