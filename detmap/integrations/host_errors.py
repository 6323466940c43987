"""Errors of detmap in the type that hosts raise for bad input, `ValueError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from detmap.errors import DetmapError
from detmap.protocol.default_protocol import prepare


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


def require_protocol(place: str, protocol: Any) -> None:
    """Raises `HostError` for an unknown protocol, before an epoch is lost. None is the default."""
    if protocol is not None:
        with value_errors(place):
            prepare(protocol)
