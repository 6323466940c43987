"""The time that an examination may take, and what it left out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

CROWD_PAIRS = 500_000_000  # of detections and objects in crowded images, of all trials


class OutOfTimeError(Exception):
    """The time is over: what is being tried is left out."""


class Clock:
    """Time for trials.

    Parameters
    ----------
    seconds : of processor time from now on, so that a busy machine changes little; unlimited when
        left out
    rows : objects and detections that trials may match before the time matters: small files are
        examined in full, and alike on every machine
    """

    def __init__(self, seconds: float | None = None, rows: int = 0) -> None:
        self.end = None if seconds is None else time.process_time() + seconds
        self.rows = rows
        self.pairs = CROWD_PAIRS
        self.left_out: list[str] = []
        self._cost: dict[int, float] = {0: 0.0}  # seconds of the longest trial by its images

    @contextmanager
    def trial(self, size: int, rows: int, pairs: int = 0) -> Iterator[None]:
        """Measure a trial on so many images and rows; an `OutOfTimeError` where it would probably
        end too late, or would leave too little time for the trials on all images that confirm it.
        `pairs` of crowded images are limited even without a time.
        """
        if pairs > self.pairs:
            raise OutOfTimeError
        self.pairs -= pairs
        begin = time.process_time()
        confirming = 2 * self._cost[max(self._cost)] if size < max(self._cost) else 0.0
        late = self.end is not None and begin + self._cost.get(size, 0.0) + confirming > self.end
        if late and rows > self.rows:
            raise OutOfTimeError
        self.rows -= rows
        yield
        self._cost[size] = max(self._cost.get(size, 0.0), time.process_time() - begin)
