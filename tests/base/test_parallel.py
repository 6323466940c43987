"""Threads for one job: results and errors are the same with and without them."""

import threading

import numpy as np
import pytest

from detmap.core.base import parallel
from detmap.core.base.parallel import Workers


@pytest.mark.parametrize(("few", "threads"), [(True, 2), (False, 1), (False, 2)])
def test_workers(monkeypatch: pytest.MonkeyPatch, few: bool, threads: int) -> None:
    monkeypatch.setattr(parallel, "WORTH_A_THREAD", 100 if few else 0)
    sizes, done = np.array([3, 50, 1, 7]), np.zeros(4, dtype=int)
    main = threading.get_ident()

    def work(batch: np.ndarray) -> None:
        done[batch] += 1

    with Workers(61, threads) as workers:
        beside = workers.start(threading.get_ident)
        workers.each_batch(work, sizes)
        assert (beside() == main) == (few or threads == 1)
    assert done.tolist() == [1, 1, 1, 1]


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
