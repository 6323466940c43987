"""The readings per class, and how metrics and the per-class table combine them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from detmap.core.curves import aggregation
from detmap.core.curves import counts as counting
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.core.protocol.metric_rows import MetricRow
from detmap.errors import ProtocolError, few
from detmap.kernels import curves as curve_kernels
from detmap.kernels.resampling.replicates import Readings


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The metrics of a result and of each class, in terms of S readings.

    Parameters
    ----------
    matches : the match results
    ranked, image : their rows, or those of a swapped detector
    metrics : metrics averaged over classes; classes : metrics reported per class
    readings : the S values per class; of_metric, of_class : the reading that each row uses
    members : (Q, K) bool, the classes that each metric averages
    positives : (K, A) float64, denominators of recall; counts (G, A), 1 for each object in them
    n_images : (K,) float64, images with an object of the class
    of_all, places : the number of classes of the result, and the positions of the K classes among
        them; `occurring` leaves out the others
    """

    matches: Matches
    ranked: curve_kernels.Ranked
    image: NDArray[np.int32]
    metrics: tuple[MetricRow, ...]
    classes: tuple[MetricRow, ...]
    readings: Readings
    of_metric: tuple[int, ...]
    of_class: tuple[int, ...]
    members: NDArray[np.bool_]
    positives: NDArray[np.float64]
    counts: NDArray[np.float64]
    n_images: NDArray[np.float64]
    of_all: int
    places: NDArray[np.int64]

    @property
    def protocol(self) -> Protocol:
        """The rules."""
        return self.matches.protocol

    def has_objects(self) -> NDArray[np.bool_]:
        """(Q, K) the averaged classes with an object in the area of each metric."""
        areas = self.readings.area[list(self.of_metric)]
        return (self.positives[:, areas].T > 0) & self.members

    def averaged(self) -> NDArray[np.bool_]:
        """(Q, K) the classes in the mean; the protocol decides about classes without objects."""
        return self.has_objects() if self.protocol.mean.undefined == "skip" else self.members

    def shares(self) -> NDArray[np.float64]:
        """(Q, K) the weight of each class in a mean."""
        weight = np.where(self.averaged(), 1.0, 0.0)
        if self.protocol.mean.weights == "images":
            weight = weight * self.n_images
        shares: NDArray[np.float64] = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1.0)
        return shares


INTEGRATORS = ("eleven_point", "all_points", "grid_envelope", "step")
"""Supported by `detmap.kernels.resampling.influence` and `detmap.kernels.resampling.replicates`."""


def plan(matches: Matches, metrics: Sequence[MetricRow], classes: Sequence[MetricRow]) -> Plan:
    """Collect the readings of the metrics and of the per-class table."""
    protocol = matches.protocol
    protocol.require("intervals")
    strange = [row.name for row in metrics if not row.metric.influence]
    if protocol.ap.integrator not in INTEGRATORS:
        strange.append(f"ap.integrator {protocol.ap.integrator!r}")
    if strange:  # a metric added later must not get the influence function of another
        what = f"no influence function for {few(strange)}"
        raise ProtocolError(f"protocol {protocol.name}", what, "see docs/CONTRIBUTING.md")
    distinct: dict[tuple[int, int, int], int] = {}

    def place(row: MetricRow) -> int:
        everything = (1 << len(protocol.thresholds())) - 1
        word = everything if row.iou is None else 1 << protocol.threshold(row.iou, where=row.name)
        limit = row.max_dets if row.kind == "AR" else -1
        return distinct.setdefault((protocol.subset(row.subset), word, limit), len(distinct))

    of_metric, of_class = (tuple(map(place, rows)) for rows in (metrics, classes))
    area, words, limits = (list(column) for column in zip(*distinct, strict=True))
    n_classes = len(matches.categories)
    members = np.ones((len(metrics), n_classes), dtype=bool)
    for q, row in enumerate(metrics):
        if row.group:
            members[q] = False
            members[q, aggregation.classes_of(row.group, protocol, matches.categories)] = True
    every = protocol.ap.recall_over != "counted"
    counts = np.ones(matches.counted.shape) if every else matches.counted.astype(np.float64)
    total = np.zeros((len(counts) + 1, counts.shape[1]))
    np.cumsum(counts, axis=0, out=total[1:])
    return Plan(
        matches,
        curve_kernels.Ranked(matches.off, matches.tp, matches.ignored, matches.rank),
        matches.image,
        tuple(metrics),
        tuple(classes),
        Readings(np.array(area), np.array(words, np.uint64), np.array(limits)),
        of_metric,
        of_class,
        members,
        total[matches.obj_off[1:]] - total[matches.obj_off[:-1]],
        counts,
        counting.n_images(matches).astype(np.float64),
        n_classes,
        np.arange(n_classes),
    )


def occurring(plans: Sequence[Plan]) -> list[Plan]:
    """Returns the plans without the classes that have no object and no detection.

    Replicates of thousands of such classes would take gigabytes. The numbers of the other classes
    and of the metrics keep their bits. Nothing is left out if the mean counts such classes.

    Parameters
    ----------
    plans : of detectors on the same ground truth
    """
    first = plans[0]
    there = np.zeros(first.of_all, dtype=bool)
    for each in plans:
        there |= (np.diff(each.ranked.off) > 0) | (np.diff(each.matches.obj_off) > 0)
    if first.protocol.mean.undefined != "skip" or there.all() or not there.any():
        return list(plans)
    return [_take_classes(each, np.flatnonzero(there)) for each in plans]


def _take_classes(plan: Plan, places: NDArray[np.int64]) -> Plan:
    """The plan of some classes, which have all rows and objects."""
    matches, ends = plan.matches, np.append(0, places + 1)
    taken = replace(
        matches,
        categories=matches.categories.take(places),
        off=matches.off[ends],
        obj_off=matches.obj_off[ends],
        taken=None,
    )
    return replace(
        plan,
        matches=taken,
        ranked=plan.ranked._replace(off=taken.off),
        members=plan.members[:, places],
        positives=plan.positives[places],
        n_images=plan.n_images[places],
        places=places,
    )
