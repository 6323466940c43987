"""The result of a comparison with a tool, as a value and as tables."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from detmap.core.output.cell_text import or_none
from detmap.core.output.table import Table
from detmap.errors import few
from detmap.reproducibility.peers import Peer


@dataclass(frozen=True, slots=True)
class Number:
    """A number of both, for all classes or for one; NaN if undefined."""

    name: str
    ours: float
    theirs: float
    of_class: str = ""

    @property
    def difference(self) -> float:
        """The absolute difference; infinite if only one is defined."""
        undefined = math.isnan(self.ours), math.isnan(self.theirs)
        if any(undefined):
            return 0.0 if all(undefined) else math.inf
        return 0.0 if self.ours == self.theirs else abs(self.ours - self.theirs)

    def __str__(self) -> str:
        return f"{self.name} of {self.of_class}" if self.of_class else self.name


@dataclass(frozen=True, slots=True)
class Array:
    """Cells of an array: how many there are, how many differ, the largest difference."""

    name: str
    cells: int
    different: int
    largest: float

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Parity:
    """A comparison with one tool.

    Parameters
    ----------
    peer, version : the tool and its installed version
    protocol : that restates it
    numbers, arrays : common to both
    seconds : of detmap and of the tool, from files to numbers
    remarks : explanations of differences
    """

    peer: Peer
    version: str
    protocol: str
    numbers: tuple[Number, ...]
    arrays: tuple[Array, ...]
    seconds: tuple[float, float]
    remarks: list[str] = field(default_factory=list)

    @property
    def largest(self) -> float:
        """The largest difference."""
        apart = [each.difference for each in self.numbers]
        return max([*apart, *(each.largest for each in self.arrays)], default=0.0)

    @property
    def identical(self) -> bool:
        """Whether all bits are equal."""
        return self.largest == 0

    @property
    def equal(self) -> bool:
        """Whether all differences are within the tool's tolerance."""
        return self.largest <= self.peer.tolerance

    @property
    def verdict(self) -> str:
        """The result as text."""
        if self.identical:
            return "identical in every bit"
        if self.equal:
            return f"equal within {self.peer.tolerance:g}: {self.peer.why}"
        limit = self.peer.tolerance
        apart: list[object] = [each for each in self.numbers if each.difference > limit]
        apart += [each for each in self.arrays if each.largest > limit]
        return f"the numbers differ: {few(apart)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None for undefined values and infinite differences."""
        return {
            "tool": self.peer.name,
            "version": self.version,
            "protocol": self.protocol,
            "verdict": "identical" if self.identical else "equal" if self.equal else "differs",
            "largest_difference": _finite(self.largest),
            "tolerance": self.peer.tolerance,
            "why": self.peer.why,
            "arrays": [
                {
                    "array": each.name,
                    "cells": each.cells,
                    "different": each.different,
                    "largest_difference": _finite(each.largest),
                }
                for each in self.arrays
            ],
            "numbers": [_plain(each) for each in self.numbers if not each.of_class],
            "classes": [_plain(each) for each in self.numbers if each.of_class],
            "seconds": dict(zip(("detmap", "tool"), self.seconds, strict=True)),
            "notes": self.remarks,
        }


def _plain(number: Number) -> dict[str, Any]:
    of = {"class": number.of_class} if number.of_class else {}
    return {
        **of,
        "number": number.name,
        "detmap": or_none(number.ours),
        "tool": or_none(number.theirs),
        "difference": _finite(number.difference),
    }


def _finite(difference: float) -> float | None:
    return None if math.isinf(difference) else difference


def tables(found: Sequence[Parity], of_classes: bool = False) -> list[Table]:
    """Tables of all comparisons: ``tools``, ``arrays``, ``seconds``, ``classes`` (optional),
    ``numbers``.
    """
    head = tuple((each.peer.name, each.version, each.protocol, each.verdict) for each in found)
    arrays = tuple(
        (*_peer_name(each), array.name, array.cells, array.different, _apart(array.largest))
        for each in found
        for array in each.arrays
    )
    seconds = tuple(
        (*_peer_name(each), *(f"{value:.3f}" for value in each.seconds), _ratio(*each.seconds))
        for each in found
    )
    made = [
        Table("detmap and tools", ("tool", "version", "protocol", "verdict"), head, name="tools"),
        Table(
            "arrays",
            ("tool", "array", "cells", "different", "largest difference"),
            arrays,
            name="arrays",
        ),
        Table(
            "seconds, files to numbers in this process",
            ("tool", "detmap", "the tool", "ratio"),
            seconds,
            name="seconds",
        ),
        Table(
            "classes",
            ("tool", "class", "number", "detmap", "the tool", "difference"),
            tuple(_rows(found, True)) if of_classes else (),
            name="classes",
        ),
        Table(
            "numbers",
            ("tool", "number", "detmap", "the tool", "difference"),
            tuple(_rows(found, False)),
            name="numbers",
        ),
    ]
    return [table for table in made if table.rows]


def _peer_name(each: Parity) -> tuple[str]:
    return (each.peer.name,)


def _rows(found: Iterable[Parity], of_classes: bool) -> Iterable[tuple[str | float, ...]]:
    for each in found:
        for number in each.numbers:
            if bool(number.of_class) == of_classes:
                of = (number.of_class,) if of_classes else ()
                values = number.ours, number.theirs, _apart(number.difference)
                yield (*_peer_name(each), *of, number.name, *values)


def _apart(difference: float) -> str:
    return "one undefined" if math.isinf(difference) else f"{difference:.3g}"


def _ratio(ours: float, theirs: float) -> str:
    return f"{theirs / ours:.1f}x" if ours else ""
