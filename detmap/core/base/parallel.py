"""Parallel work in threads: the kernels release the GIL."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import AbstractContextManager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

WORTH_A_THREAD = 20_000  # rows; fewer are done before a thread has started
CHUNK = 1 << 16  # rows: their columns fit a cache


def default_threads() -> int:
    """Returns the number of processors available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(wanted: int | None) -> int:
    """Returns the number of threads to use. Raises `DataError` unless it is a whole number >= 1."""
    wanted = default_threads() if wanted is None else wanted
    if not isinstance(wanted, int | np.integer) or isinstance(wanted, bool) or wanted < 1:
        raise DataError("threads", f"{wanted!r}", "a whole number >= 1; None for all processors")
    return int(wanted)


class _Call(Generic[Outcome]):
    """A call that one thread does and another waits for."""

    def __init__(self, work: Callable[[], Outcome]) -> None:
        self._work, self.pending = work, Lock()
        self._error: BaseException | None = None
        self.pending.acquire()

    def do(self) -> None:
        """Does the work."""
        try:
            self._outcome = self._work()
        except BaseException as error:  # for who waits
            self._error = error
            if not isinstance(error, Exception):  # an interrupt of the caller: perhaps nobody waits
                raise
        finally:
            self.pending.release()
            del self  # whom the traceback of the error keeps

    def wait(self) -> Outcome:
        """Returns the outcome, or raises the error, once the work is done."""
        with self.pending:
            try:
                if self._error is not None:
                    raise self._error
                return self._outcome
            finally:
                self._error = None  # whose traceback keeps the call


def _work_off(calls: SimpleQueue[_Call[Any] | None]) -> None:
    while call := calls.get():
        call.do()
        del call  # with what it holds
    calls.put(None)  # for the next thread


class Workers(AbstractContextManager["Workers"]):
    """Threads for one job, the caller among them: it does calls while it waits. Use ``with``.

    Not `concurrent.futures`, whose caller is one thread more, and which takes 5 ms to import. The
    others are daemons: an iterator that somebody keeps must not hold up the end of Python.

    Parameters
    ----------
    n_rows : rows of the job; the caller does few of them alone
    threads : number of threads (default: all processors)
    """

    def __init__(self, n_rows: int, threads: int | None = None) -> None:
        self._calls = SimpleQueue[_Call[Any] | None]()
        self._others = list[Thread]()
        self.few, self.threads = n_rows < WORTH_A_THREAD, n_threads(threads)

    def __exit__(self, *error: object) -> None:
        with suppress(Empty):
            while True:  # after an error, nobody waits for the others
                self._calls.get_nowait()
        self._calls.put(None)
        for thread in self._others if not sys.is_finalizing() else ():  # they can end no more
            thread.join()

    def __del__(self) -> None:
        self._calls.put(None)  # an interrupt may have come before

    def start(self, work: Callable[[], Outcome]) -> Callable[[], Outcome]:
        """Puts a call behind the others; returns a function that waits for its outcome."""
        call = _Call(work)
        self._calls.put(call)
        if not self.few and len(self._others) < self.threads - 1:
            thread = Thread(target=_work_off, args=(self._calls,), name="detmap", daemon=True)
            with suppress(RuntimeError):  # Python ends: the caller does all
                thread.start()
                self._others.append(thread)
        return partial(self._wait, call)

    def _wait(self, call: _Call[Outcome]) -> Outcome:
        """Does other calls until this one is done or none is left."""
        with suppress(Empty):
            while call.pending.locked():
                if other := self._calls.get_nowait():
                    other.do()
        return call.wait()

    def each_batch(
        self, work: Callable[[NDArray[np.int32]], None], sizes: NDArray[np.int64]
    ) -> None:
        """Does `each_batch`."""
        n = len(sizes)
        batches = [list(range(n))][:n] if self.few else _batches(sizes, self.threads)
        for wait in [self.start(partial(work, np.array(each, dtype=np.int32))) for each in batches]:
            wait()


def each_batch(
    work: Callable[[NDArray[np.int32]], None], sizes: NDArray[np.int64], threads: int | None = None
) -> None:
    """Calls `work` with batches of the classes 0 to len(sizes) - 1.

    Large classes run first and alone, small ones share a call: each has its own part of the output.
    """
    with Workers(int(sizes.sum()), threads) as workers:
        workers.each_batch(work, sizes)


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
    return list(map_ordered(work, [slice(b, b + CHUNK) for b in range(0, n_rows, CHUNK)], threads))


def map_ordered(
    work: Callable[[Item], Outcome], items: Iterable[Item], threads: int | None = None
) -> Generator[Outcome, None, None]:
    """Yields ``work(item)`` for every item, in order, with a bounded number of pending calls."""
    alone = isinstance(items, Sized) and len(items) < 2
    under_way = deque[Callable[[], Outcome]]()
    with Workers(0 if alone else WORTH_A_THREAD, threads) as workers:
        for item in items:
            under_way.append(workers.start(partial(work, item)))
            if len(under_way) > workers.threads + 1:
                yield under_way.popleft()()
        while under_way:
            yield under_way.popleft()()
