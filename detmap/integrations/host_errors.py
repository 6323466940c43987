"""Errors of detmap in the type that hosts raise for bad input, `ValueError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
