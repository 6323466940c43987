"""Ranked lists with some errors removed or fixed: as curves for AP, as matches for replicates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.diagnosis.analysis import BEYOND, TP, Diagnosis
from detmap.core.base.immutable import blank
from detmap.core.curves import scores as curves
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol
from detmap.core.protocol.integrators import Integrator, terms_of_curves
from detmap.core.protocol.metric_rows import NO_LIMIT
from detmap.core.tables.grouping import group
from detmap.core.tables.grouping import group_images as group_classes


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Rows of detections by class and descending score, and the counted objects.

    Parameters
    ----------
    diagnosis : the source of the rows
    rows : (n,) int32; off : (K + 1,) int64, where each class begins
    right : (n,) bool, whether a row is a true positive
    objects : (G,) bool, the counted objects
    """

    diagnosis: Diagnosis
    rows: NDArray[np.int32]
    off: NDArray[np.int64]
    right: NDArray[np.bool_]
    objects: NDArray[np.bool_]

    def kept(
        self,
        some: NDArray[np.bool_],
        *,
        right: NDArray[np.bool_] | None = None,
        objects: NDArray[np.bool_] | None = None,
    ) -> Ranked:
        """Some of the rows; optionally with other true positives or counted objects."""
        places = np.flatnonzero(some)
        right = self.right if right is None else right
        objects = self.objects if objects is None else objects
        off = np.searchsorted(places, self.off)
        return Ranked(self.diagnosis, self.rows[places], off, right[places], objects)

    def n_changed(self, other: Ranked) -> int:
        """Number of images on which two lists of one diagnosis differ."""
        truth, image = self.diagnosis.truth, self.diagnosis.detections.image
        states = np.zeros((2, len(image)), dtype=np.int8)  # of the detections
        for state, each in zip(states, (self, other), strict=True):
            state[each.rows] = 1 + each.right
        changed = np.zeros(len(truth.images), dtype=bool)
        changed[image[states[0] != states[1]]] = True
        changed[truth.image[self.objects != other.objects]] = True
        return int(np.count_nonzero(changed))

    def n_objects(self) -> NDArray[np.int64]:
        """(K,) counted objects."""
        label = self.diagnosis.truth.label[self.objects]
        return np.bincount(label, minlength=len(self.off) - 1)

    def n_images(self) -> NDArray[np.int64]:
        """(K,) images with a counted object."""
        truth, n_images = self.diagnosis.truth, len(self.diagnosis.truth.images)
        cell = truth.label[self.objects].astype(np.int64) * n_images + truth.image[self.objects]
        return np.bincount(np.unique(cell) // max(n_images, 1), minlength=len(self.off) - 1)

    def score(self) -> NDArray[np.float64]:
        """(n,) of the rows."""
        return self.diagnosis.detections.score[self.rows]

    def average_precision(
        self, rule: Integrator, points_of_recall: NDArray[np.float64], epsilon: float
    ) -> NDArray[np.float64]:
        """(K,) AP of each class; NaN where it has no object.

        Parameters
        ----------
        rule, points_of_recall : the integrator and its recall points
        epsilon : added to TP + FP before the division
        """
        n_objects = self.n_objects()
        places = np.flatnonzero(self.right)  # between true positives no rule looks
        off = np.searchsorted(places, self.off)
        label = np.repeat(np.arange(len(off) - 1), np.diff(off))
        tp = np.arange(1, len(places) + 1) - off[label]
        fp = places + 1 - self.off[label] - tp
        points = curves.Points(tp.astype(float), fp.astype(float), np.zeros(len(tp)), off)
        recall, precision = curves.recall_precision(points, n_objects.astype(float), epsilon)
        terms = terms_of_curves(np.nan_to_num(recall), precision, off, rule, points_of_recall)
        return np.where(n_objects > 0, terms.mean(axis=1), np.nan)

    def until_last_hit(self) -> Ranked:
        """The list without the false positives after the last true positive of each class, which no
        rule of AP reads. A class without any keeps one row: some means ask whether it has rows.
        """
        hits = np.append(-1, np.flatnonzero(self.right))
        last = hits[np.searchsorted(hits, self.off[1:]) - 1]
        size = np.diff(self.off)
        n_kept = np.minimum(np.maximum(last + 1 - self.off[:-1], 1), size)
        place = np.arange(len(self.rows)) - np.repeat(self.off[:-1], size)
        return self.kept(place < np.repeat(n_kept, size))

    def digest(self) -> bytes:
        """Identifies the list among those of one diagnosis, as far as AP reads it."""
        short, digest = self.until_last_hit(), blake2b(digest_size=16)
        for column in (short.rows, short.off, short.right, short.objects):
            digest.update(column.tobytes())
        return digest.digest()

    def matches(self, *, undefined: str | None = None) -> Matches:
        """Matches whose AP is that of the list.

        Parameters
        ----------
        undefined : what a class without objects is in the mean; the protocol's rule when left out
        """
        return self.until_last_hit()._to_matches(undefined)

    def _to_matches(self, undefined: str | None) -> Matches:
        truth, detections = self.diagnosis.truth, self.diagnosis.detections
        n_images, n_classes, n = len(truth.images), len(truth.categories), len(self.rows)
        order, obj_off = group(
            truth.image,
            truth.label,
            n_images,
            n_classes,
            np.flatnonzero(self.objects).astype(np.int32),
        )
        image, score = blank(n, np.int32), blank(n, np.float64)
        tp = blank((n, 1), np.uint16)
        np.take(detections.image, self.rows, out=image)
        np.take(detections.score, self.rows, out=score)
        tp[:, 0] = self.right
        none = blank(n_images, np.int32)
        return Matches(
            _protocol(self.diagnosis.protocol, undefined),
            truth.categories,
            image_ids=np.arange(n_images),
            digest=blank((n_images, 2), np.uint64),
            beyond=none,
            off=self.off.astype(np.int64),
            image=image,
            rank=blank(n, np.int32),
            position=blank(n, np.int32),
            score=score,
            tp=tp,
            ignored=blank((n, 1), np.uint16),
            obj_off=obj_off,
            obj_image=truth.image[order],
            counted=np.ones((len(order), 1), dtype=bool),
            unjudged=none,
        )


def tie_order(diagnosis: Diagnosis) -> NDArray[np.int32]:
    """(n,) int32, detections within the limit, of equal scores the one that ranks first before the
    other.
    """
    rows = diagnosis.order()
    if diagnosis.protocol.ranking.ties == "input":
        rows = np.arange(len(rows), dtype=np.int32)
    listed: NDArray[np.int32] = rows[diagnosis.kind[rows] != BEYOND]
    return listed


def ranked(
    diagnosis: Diagnosis,
    rows: NDArray[np.int32],
    *,
    label: NDArray[np.int32] | None = None,
    right: NDArray[np.bool_] | None = None,
) -> Ranked:
    """Rows that are in the order of ties, by class and score.

    Parameters
    ----------
    label, right : (n,) their class, and whether they are true positives, where not as they are
    """
    detections = diagnosis.detections
    label = detections.label[rows] if label is None else label
    right = diagnosis.kind[rows] == TP if right is None else right
    order, off = group_classes(np.ascontiguousarray(label), len(diagnosis.truth.categories))
    lists = curves.Lists(detections.score[rows[order]], right, curves.NO_WEIGHT, off)
    order = order[curves.order_of(lists)]
    return Ranked(diagnosis, rows[order], off, right[order], diagnosis.to_find)


@lru_cache(maxsize=4)
def _protocol(rules: Protocol, undefined: str | None) -> Protocol:
    """The rules of AP alone, for rows that were judged and chosen already."""
    main = rules.subset()
    return replace(
        rules,
        metrics=("AP",),
        subsets=(rules.subsets[main],),
        groups=(),
        limits=replace(rules.limits, max_dets=(NO_LIMIT,), order="input"),
        ap=replace(rules.ap, recall_over="counted"),
        mean=replace(rules.mean, undefined=undefined or rules.mean.undefined),
        changes=(),
    )
