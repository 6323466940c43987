"""Errors of detmap in the type that hosts raise for bad input, `ValueError`; in a training run,
a warning.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import prepare
from detmap.errors import DetmapError


class HostError(DetmapError, ValueError):
    """Bad input from a host, with place, cause and fix."""


@contextmanager
def value_errors(place: str = "") -> Iterator[None]:
    """Raises a `DetmapError` of the block as `HostError`; `place` comes before its place."""
    try:
        yield
    except DetmapError as error:
        where = f"{place}: {error.where}" if place else error.where
        raise HostError(where, error.what, error.fix) from error


class TrainingGuard:
    """Keeps errors of detmap out of somebody's training run.

    In a training run, an error becomes one warning, and `failed` is True from then on. Elsewhere
    it is raised, a `DetmapError` as `HostError`.

    Parameters
    ----------
    place : what is evaluating, for messages
    warn : prints a message: the host's own logger
    """

    def __init__(self, place: str, warn: Callable[[str], Any]) -> None:
        self.place, self._warn, self.failed = place, warn, False

    @contextmanager
    def running(self, training: bool) -> Iterator[None]:
        """Runs a block; `training` says whether it belongs to a training run."""
        try:
            with value_errors(self.place):
                yield
        except Exception as error:
            if not training:
                raise
            if not self.failed:
                known = isinstance(error, DetmapError)  # whose text begins with the place
                text = str(error) if known else f"{self.place}: {error!r:.500}"
                self._warn(f"detmap computes no numbers in this training run: {text}")
            self.failed = True


def is_training(host: str) -> bool:
    """Whether the caller runs inside a function ``train`` of the package `host`: a training run.

    Hosts do not pass this to a metric.
    """
    frame = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if frame.f_code.co_name == "train" and package == host:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def require_protocol(place: str, protocol: Any) -> None:
    """Raises `HostError` for an unknown protocol, before an epoch is lost. None is the default."""
    if protocol is not None:
        with value_errors(place):
            prepare(protocol)


def undefined_metrics(protocol: str | Protocol) -> dict[str, float]:
    """The metrics of a protocol, all NaN: what an evaluation that failed in a training run
    returns. A host that reads a metric by name finds it.
    """
    rows, _ = prepare(protocol).rows()
    return {row.name: float("nan") for row in rows}
