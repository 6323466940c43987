"""Threads for one job: results and errors are the same with and without them."""

import gc
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

from detmap.core.base import parallel
from detmap.core.base.parallel import Workers, map_ordered
from detmap.errors import DataError


@pytest.mark.parametrize(("few", "threads"), [(True, 2), (False, 1), (False, 2)])
def test_workers(monkeypatch: pytest.MonkeyPatch, few: bool, threads: int) -> None:
    monkeypatch.setattr(parallel, "WORTH_A_THREAD", 100 if few else 0)
    sizes, done = np.array([3, 50, 1, 7]), np.zeros(4, dtype=int)

    def work(batch: np.ndarray) -> None:
        done[batch] += 1

    with Workers(61, threads) as workers:
        beside = workers.start(lambda: "beside")
        workers.each_batch(work, sizes)
        assert beside() == "beside"
    assert done.tolist() == [1, 1, 1, 1]


@pytest.mark.filterwarnings("error")  # of an object that was half made
def test_a_number_of_threads_that_is_none() -> None:
    with pytest.raises(DataError, match="threads: 0"):
        Workers(100_000, 0)
    gc.collect()


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_of_workers(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(parallel, "WORTH_A_THREAD", 0)

    def fail(*_: object) -> None:
        raise ValueError("no")

    with Workers(10, threads) as workers:
        wait = workers.start(fail)
        with pytest.raises(ValueError, match="no"):
            wait()
        with pytest.raises(ValueError, match="no"):
            workers.each_batch(fail, np.array([1, 2]))


@pytest.mark.parametrize("can_start", [True, False], ids=["threads", "none can start"])
def test_the_caller_is_one_of_the_threads(monkeypatch: pytest.MonkeyPatch, can_start: bool) -> None:
    """None can start while Python ends (3.12)."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    if not can_start:
        monkeypatch.setattr(threading.Thread, "start", refuse)
    used = set[int]()

    def square(k: int) -> int:
        used.add(threading.get_ident())
        time.sleep(0.001)
        return k * k

    assert list(map_ordered(square, iter(range(50)), 3)) == [k * k for k in range(50)]
    assert threading.get_ident() in used
    assert len(used) <= (3 if can_start else 1)


def test_an_interrupt_of_the_caller_does_not_wait_for_the_call_that_it_came_in() -> None:
    def work(_: int) -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.05)

    results = map_ordered(work, range(9), 2)
    with pytest.raises(KeyboardInterrupt):
        next(results)


@pytest.mark.parametrize("which", [1, 2, 3])
def test_an_interrupt_while_a_thread_starts_leaves_none(
    monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """The thread runs, and nobody has heard of it."""
    start, starts = threading.Thread.start, iter(range(1, 9))

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if next(starts) == which:
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(map_ordered(time.sleep, [0.01] * 20, 4))
    end = time.monotonic() + 30
    while any(each.name == "detmap" for each in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_iterator_that_ends_early_leaves_the_rest() -> None:
    done = list[int]()
    results = map_ordered(lambda k: done.append(k) or k, range(1000), 2)
    assert [next(results), next(results)] == [0, 1]
    results.close()
    assert len(done) < 10
    assert not [each for each in threading.enumerate() if each.name == "detmap"]


def test_an_iterator_that_somebody_keeps_does_not_hold_up_the_end_of_python() -> None:
    code = (
        "import detmap.core.base.parallel as parallel\n"
        "kept = parallel.map_ordered(str, range(9), 2)\n"
        "print(next(kept))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0\n", "")


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_keeps_no_memory(threads: int) -> None:
    class Buffer:
        pass

    def failing() -> "weakref.ref[Buffer]":
        buffer = Buffer()

        def fail(_: int) -> None:
            assert buffer
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            list(map_ordered(fail, range(9), threads))
        return weakref.ref(buffer)

    gc.disable()
    try:
        assert failing()() is None
    finally:
        gc.enable()
