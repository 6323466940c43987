"""A result as one flat dict of numbers, with names that experiment trackers accept."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_FORBIDDEN = re.compile(r"[^\w./ -]")
"""MLflow accepts letters, digits, _ - . : / and space; W&B and TensorBoard accept more."""

LONGEST = 180
"""Bytes of the name of a class; MLflow accepts names of 250 characters."""


def flat(
    metrics: Mapping[str, float],
    per_class: Sequence[Mapping[str, Any]],
    prefix: str,
    intervals: Mapping[str, Any] | None,
) -> dict[str, float]:
    """Returns metrics, class metrics and interval bounds by name; undefined ones are left out.

    Parameters
    ----------
    metrics : by name
    per_class : rows with a name and numbers; their AP is taken
    prefix : of every name
    intervals : of the metrics, with ``low`` and ``high``
    """
    found = dict(metrics)
    for row in per_class:
        numbers = [key for key in row if key in metrics or f"m{key}" in metrics]
        own = _component(row["name"])
        for key in numbers:
            found[_unused(f"per_class/{key}/{own}", found)] = row[key]
    for name, interval in (intervals or {}).items():
        found |= {f"{name}_low": interval.low, f"{name}_high": interval.high}
    return {
        _accepted(prefix + name): float(value) for name, value in found.items() if value == value
    }


def _component(name: str) -> str:
    """The name of a class as the last part of a path: without ``/``, not empty, not ``..``."""
    accepted = _accepted(name).replace("/", "_").strip()
    shortened = accepted.encode()[:LONGEST].decode(errors="ignore")
    return shortened if shortened.strip(".") else "_"


def _unused(name: str, found: Mapping[str, float]) -> str:
    """The name, with a number if another class has it already."""
    number, free = 2, name
    while free in found:
        free, number = f"{name}_{number}", number + 1
    return free


def _accepted(name: str) -> str:
    """The name with ``@`` as ``_at_`` and other characters that MLflow refuses as ``_``."""
    return _FORBIDDEN.sub("_", name.replace("@", "_at_"))
