"""Parallel work in a thread pool: the kernels release the GIL."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

WORTH_A_THREAD = 20_000  # rows; fewer are done before a thread has started
CHUNK = 1 << 16  # rows: their columns fit a cache


def default_threads() -> int:
    """Returns the number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(wanted: int | None) -> int:
    """Returns the number of threads to use. Raises `DataError` unless it is a whole number >= 1."""
    if wanted is None:
        return default_threads()
    if not isinstance(wanted, int | np.integer) or isinstance(wanted, bool) or wanted < 1:
        raise DataError("threads", f"{wanted!r}", "a whole number >= 1; None for all processors")
    return int(wanted)


class Workers:
    """Threads for one job on so many rows; none for few rows. Use it in a ``with`` statement.

    Parameters
    ----------
    n_rows : rows of the job
    threads : number of threads (default: all processors)
    """

    def __init__(self, n_rows: int, threads: int | None = None) -> None:
        self.threads, self.few = n_threads(threads), n_rows < WORTH_A_THREAD
        self._pool = None if self.few or self.threads == 1 else _pool(self.threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def start(self, work: Callable[[], Outcome]) -> Callable[[], Outcome]:
        """Starts `work` and returns a function that waits for its result.

        Without threads that function does the work.
        """
        return work if self._pool is None else _begun(self._pool, work)[0]

    def each_batch(
        self, work: Callable[[NDArray[np.int32]], None], sizes: NDArray[np.int64]
    ) -> None:
        """Does `each_batch`."""
        if self.few:
            if len(sizes):
                work(np.arange(len(sizes), dtype=np.int32))
            return
        batches = (np.array(each, dtype=np.int32) for each in _batches(sizes, self.threads))
        for wait in [self.start(partial(work, batch)) for batch in batches]:
            wait()


def each_batch(
    work: Callable[[NDArray[np.int32]], None], sizes: NDArray[np.int64], threads: int | None = None
) -> None:
    """Calls `work` with batches of the classes 0 to len(sizes) - 1.

    The largest classes run first and alone; small ones share a call. The order does not affect
    results: each class has its own slice of the output.
    """
    with Workers(int(sizes.sum()), threads) as workers:
        workers.each_batch(work, sizes)


def _pool(threads: int) -> ThreadPoolExecutor | None:
    """A pool; None while the interpreter ends, when no thread can start any more."""
    try:
        from concurrent.futures import ThreadPoolExecutor  # imports logging, which few data need
    except RuntimeError:
        return None
    return ThreadPoolExecutor(threads)


def _begun(
    pool: ThreadPoolExecutor, work: Callable[..., Outcome], *given: Any
) -> tuple[Callable[[], Outcome], Callable[[], object]]:
    """Starts `work`; returns functions that wait for its result and cancel it. While the
    interpreter ends, the first one does the work.
    """
    try:
        future = pool.submit(work, *given)
    except RuntimeError:
        return partial(work, *given), lambda: None
    return future.result, future.cancel


def _batches(sizes: NDArray[np.int64], threads: int) -> Iterator[list[int]]:
    enough = sizes.sum() / (8 * threads)
    batch, total = [], 0
    for k in np.argsort(-sizes, kind="stable").tolist():
        batch.append(k)
        total += int(sizes[k])
        if total >= enough:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def map_chunks(
    work: Callable[[slice], Outcome], n_rows: int, threads: int | None = None
) -> list[Outcome]:
    """Returns ``work(rows)`` for consecutive slices of the rows."""
    slices = [slice(begin, begin + CHUNK) for begin in range(0, n_rows, CHUNK)]
    if len(slices) < 2:
        return [work(rows) for rows in slices]
    return list(map_ordered(work, slices, threads))


def map_ordered(
    work: Callable[[Item], Outcome], items: Iterable[Item], threads: int | None = None
) -> Iterator[Outcome]:
    """Yields ``work(item)`` for every item, in order, with a bounded number of pending calls."""
    alone = isinstance(items, Sized) and len(items) < 2
    threads = 1 if alone and threads is None else n_threads(threads)
    pool = None if alone or threads == 1 else _pool(threads)
    if pool is None:
        yield from map(work, items)
        return
    under_way: deque[tuple[Callable[[], Outcome], Callable[[], object]]] = deque()
    with pool:
        try:
            for item in items:
                under_way.append(_begun(pool, work, item))
                if len(under_way) > threads + 1:
                    yield under_way.popleft()[0]()
            while under_way:
                yield under_way.popleft()[0]()
        finally:
            for _, cancel in under_way:
                cancel()
