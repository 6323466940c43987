"""The tables of a protocol for benchmarks with files or evaluation rules of their own."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from detmap.protocol.key_checks import Check, Key, choice

RULES = ("matching", "wholebody", "motion")
"""How detections are evaluated. Rules other than `matching` are modules of `detmap.benchmarks`."""
EXTRA: tuple[str, ...] = ("olrp", "crowd_index", "as_given", "first_recalls", "JI")
"""Metrics that are computed beside those of the curves, by `detmap.benchmarks`."""
FORMAT_NAME = re.compile(r"[a-z0-9-]*")


def _format(value: Any) -> str:
    if not isinstance(value, str) or not FORMAT_NAME.fullmatch(value):
        raise ValueError
    return value


def _extra(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(each in EXTRA for each in value):
        raise ValueError
    return tuple(value)


FORMAT = Check(_format, 'the name of a format, as docs/formats.md lists them; "" for any')


@dataclass(frozen=True, slots=True)
class Files:
    """The formats of the benchmark's files. They do not change a number and are not signed."""

    truth: Annotated[
        str, Key('format of the ground truth; "": detected from the path', FORMAT, "detmap", "")
    ]
    detections: Annotated[
        str, Key('format of the detections; "": detected from the path', FORMAT, "detmap", "")
    ]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How the metrics are computed."""

    rule: Annotated[
        str,
        Key(
            "`matching`: the rules of this protocol; any other: a rule of a benchmark that these "
            "keys cannot express",
            choice(*RULES),
            "detmap",
            "matching",
        ),
    ]
    extra: Annotated[
        tuple[str, ...],
        Key(
            "metrics beside those of the curves",
            Check(_extra, f"a list of {', '.join(EXTRA) or 'none yet'}"),
            "detmap",
            [],
        ),
    ]
