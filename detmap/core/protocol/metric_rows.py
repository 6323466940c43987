"""Metric rows: the named metrics of a result, and the syntax in which a protocol requests them.

A row is ``AP`` or ``AR``, then an IoU in percent, then a subset or a group of classes, then ``@``
and a limit: ``AP50``, ``APs``, ``APr``, ``AR@300``, ``AP75-tiny``. A subset is ``-name``; three of
them have COCO's letters, ``APs`` for ``AP-small``. ``@subset``, ``@group``, ``@max_dets`` and
``@limit`` give one row per value. Defaults: mean over all thresholds, main subset, all classes,
highest limit. ``AP@100`` uses the detections within that limit. ``P``, ``R`` and ``F1`` are
precision, recall and F1 at the score threshold of the protocol's ``operating`` rule, at IoU 0.5,
else the first threshold, or ``P75``. ``MR`` is the log-average miss rate: ``MR``, ``MR75``,
``MR@subset``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from detmap.core.base.immutable import Value
from detmap.errors import ProtocolError, few

NO_LIMIT = 2**31 - 1  # more than the detections of any image
SHORT = {"small": "s", "medium": "m", "large": "l"}  # suffixes of COCO and LVIS
LETTERS = {f"-{name}": letter for name, letter in SHORT.items()}


class Metric(NamedTuple):
    """A kind of metric rows.

    Parameters
    ----------
    name : what its rows begin with; capital letters and digits
    title : for messages
    unit : "fraction", or what the number counts; only fractions are shown in percent
    higher_is_better : the direction, for `--fail-under` and the report
    stock : whether COCO and VOC have it; functions for these rules alone refuse other rows
    module : of `detmap.core.curves`, or of a wing by its whole name, with the functions that
        `own_terms` describes; "" for metrics of `detmap.core.curves.aggregation`
    """

    name: str
    title: str
    unit: str = "fraction"
    higher_is_better: bool = True
    stock: bool = False
    module: str = ""


METRICS = (
    Metric("AP", "average precision", stock=True),
    Metric("AR", "average recall", stock=True),
    Metric("P", "precision at one score"),
    Metric("R", "recall at one score"),
    Metric("F1", "F1 at one score"),
    Metric(
        "MR",
        "log-average miss rate",
        higher_is_better=False,
        module="detmap.benchmarks.shared.miss_rate",
    ),
)
BY_NAME = {metric.name: metric for metric in METRICS}
OWN = tuple(metric for metric in METRICS if metric.module)
"""Metrics with terms of their own."""
LRP = ("oLRP", "oLRP-Loc", "oLRP-FP", "oLRP-FN")
"""Metrics beside the rows (``evaluation.extra``) of which a lower value is better."""
GRAMMAR = re.compile(
    rf"(?P<kind>mAP|{'|'.join(BY_NAME)})(?P<iou>[0-9]+(?:\.[0-9]+)?)?(?P<of>[a-z]|-[A-Za-z0-9_-]+)?"
    r"(?P<axes>(?:@(?:[a-z_]+|[0-9]+))*)"
)
POINT = ("P", "R", "F1")
"""Rows that are read at one score."""
RENAMED_MISS_RATE = re.compile(r"^[^:]+: (?=MR)")
"""The own name of a row of the miss rate."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_@.-]{0,39}")
"""What a row may be called instead."""
LEGAL = (
    "legal: AP, AP50 (any IoU in percent), APs, AP-tiny (a subset or a group of classes), AR@100 "
    "(a limit), mAP; with @subset, @group or @limit, AR also with @max_dets, for one row each; "
    "P, R, F1 (at one score); "
    + "".join(f"{m.name}, {m.name}75, {m.name}@subset ({m.title}); " for m in OWN)
    + "NAME: ROW calls a row by a name of its own; in NAME_*: AR@max_dets each limit takes the "
    "place of *"
)


@dataclass(slots=True, eq=False, repr=False)
class MetricRow(Value):
    """One metric of a result and its axes.

    Parameters
    ----------
    name : AP, AP50, APs, APr, AR100, AR@300, mAP ...
    kind : "AP", "AR", "MR", "P", "R" or "F1": the name of its `Metric`
    iou : the threshold; None for the mean over all
    subset : name of the subset of objects
    group : name of the group of classes; "" for all classes
    max_dets : detection limit, `NO_LIMIT` for none
    """

    name: str
    kind: str
    iou: float | None
    subset: str
    group: str
    max_dets: int

    @property
    def metric(self) -> Metric:
        """Its unit, its direction, and what is known of it."""
        return BY_NAME[self.kind]


class Axes(NamedTuple):
    """The labels of each axis, in the order of the protocol."""

    thresholds: tuple[float, ...]
    subsets: tuple[str, ...]
    groups: tuple[str, ...]
    limits: tuple[int, ...]

    @property
    def main(self) -> str:
        """The default subset: ``all``, else the first."""
        return "all" if "all" in self.subsets else self.subsets[0]

    def threshold(self, iou: float) -> int | None:
        """Index of a threshold, to 1e-9; None if it is not evaluated."""
        near = [t for t, value in enumerate(self.thresholds) if abs(value - iou) < 1e-9]
        return near[0] if near else None

    def point_iou(self) -> float:
        """The default IoU threshold of the rows of `POINT`."""
        return 0.5 if self.threshold(0.5) is not None else self.thresholds[0]

    def suffixes(self) -> dict[str, tuple[str, str]]:
        """Suffixes of each (subset, group) other than the main subset of all classes."""
        others = [name for name in self.subsets if name != self.main]
        written = [(SHORT.get(name, f"-{name}"), (name, "")) for name in others]
        written += [
            (name if re.fullmatch(r"[a-z]", name) else f"-{name}", (self.main, name))
            for name in self.groups
        ]
        suffixes = dict(written)
        if len(suffixes) < len(written):
            twice = {suffix for suffix, _ in written if [s for s, _ in written].count(suffix) > 1}
            raise ProtocolError(
                "groups",
                f"{', '.join(sorted(twice))} names both a subset and a group",
                "give the group another name",
            )
        return suffixes


def metric_rows(texts: Sequence[str], axes: Axes) -> tuple[list[MetricRow], list[str]]:
    """Parse metric rows. Returns the rows, and the names of rows whose IoU or limit is not
    evaluated.

    ``mAP`` is VOC's name at a single threshold; several thresholds give ``AP``, ``AP50`` and
    ``AP75`` instead.

    Raises
    ------
    ProtocolError : invalid syntax, or two rows with one name
    """
    rows, left_out = _parsed(tuple(texts), axes)
    return list(rows), list(left_out)


@lru_cache(maxsize=128)  # asked for many times in an evaluation
def _parsed(texts: tuple[str, ...], axes: Axes) -> tuple[list[MetricRow], list[str]]:
    rows: list[MetricRow] = []
    left_out: list[str] = []
    named: dict[str, MetricRow] = {}
    for text in _spelled_out(texts, axes):
        for row in _rows_of(text, axes):
            if named.setdefault(row.name, row) != row:
                raise ProtocolError(
                    "metrics",
                    f"two numbers would be called {row.name}",
                    "call one otherwise, NAME: ROW, or give the subset another name",
                )
            known = row.iou is None or axes.threshold(row.iou) is not None
            if not known or row.max_dets not in axes.limits:
                left_out.append(row.name)
            elif row not in rows:
                rows.append(row)
    if not rows:
        what = f"no metric is left: the IoU or limit of {few(left_out)} is not evaluated"
        raise ProtocolError(
            "metrics", what, "name others, or add to iou.thresholds or limits.max_dets"
        )
    return rows, left_out


def _spelled_out(texts: Sequence[str], axes: Axes) -> Iterator[str]:
    for text in texts:
        if text == "mAP" and len(axes.thresholds) > 1:
            yield from ("AP", "AP50", "AP75")
        else:
            yield text


def _renamed_rows(text: str, axes: Axes) -> list[MetricRow]:
    """The rows of ``NAME: ROW``."""
    name, _, row = text.partition(": ")
    named = _rows_of(row, axes) if ": " not in row else []
    names = [name.replace("*", str(each.max_dets)) for each in named]
    many = name.count("*") == 1 and row.endswith("@max_dets")
    if not (many or (len(named) == 1 and "*" not in name)) or not all(map(NAME.fullmatch, names)):
        raise ProtocolError("metrics", f"no metric {text!r}", LEGAL)
    return [replace(each, name=own) for each, own in zip(named, names, strict=True)]


def _rows_of(text: str, axes: Axes) -> list[MetricRow]:
    if ": " in text:
        return _renamed_rows(text, axes)
    match = GRAMMAR.fullmatch(text)
    if not match or (match["kind"] == "mAP" and match["iou"]):
        raise ProtocolError("metrics", f"no metric {text!r}", LEGAL)
    if match["kind"] in POINT and (match["of"] or match["axes"]):
        fix = "write P, R or F1, with an IoU in percent at most"
        raise ProtocolError("metrics", f"{text!r} is read of all objects alone", fix)
    suffixes = axes.suffixes()
    of, limits = [match["of"] or ""], [("", axes.limits[-1])]
    for axis in match["axes"].split("@")[1:]:
        numbers = [(str(n) if n < NO_LIMIT else "", n) for n in axes.limits]
        if axis in ("subset", "group") and of == [""]:
            of = [
                suffix
                for suffix, (_, group) in suffixes.items()
                if bool(group) == (axis == "group")
            ]
        elif axis == "max_dets":
            limits = numbers
        elif axis == "limit":
            limits = [(number and f"@{number}", n) for number, n in numbers]
        elif axis.isdigit() and len(axis) < 10:
            limits = [(f"@{axis}", int(axis))]
        else:
            fix = "areas are subsets: write @subset" if axis == "area" else LEGAL
            raise ProtocolError("metrics", f"no metric {text!r}", fix)
    places = {"": (axes.main, ""), **suffixes}
    of = [suffix if suffix in places else LETTERS.get(suffix, suffix) for suffix in of]
    for suffix in of:
        if suffix not in places:
            known = ", ".join(suffixes) or "there is none"
            raise ProtocolError(
                "metrics", f"no subset or group {suffix!r} for {text!r}", f"they are: {known}"
            )
    kind = match["kind"].removeprefix("m")
    if BY_NAME[kind].module and any(limit != axes.limits[-1] for _, limit in limits):
        what = f"{text!r}: {kind} is that of the highest limit"
        fix = f"write {kind}, and set limits.max_dets to the limit alone"
        raise ProtocolError("metrics", what, fix)
    if kind == "AP" and len(axes.limits) > 1 and match["axes"].endswith("@max_dets"):
        what = f"{text!r}: the number behind AP is an IoU"
        raise ProtocolError("metrics", what, "write AP@limit, which gives AP@100")
    iou = float(match["iou"]) / 100 if match["iou"] else None
    if kind in POINT and iou is None:
        iou = axes.point_iou()
    stem = match["kind"] + (match["iou"] or "")
    return [
        MetricRow(stem + suffix + number, kind, iou, *places[suffix], limit)
        for suffix in of
        for number, limit in limits
    ]
