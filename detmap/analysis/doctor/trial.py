"""AP50 of repaired rows: on a sample of the images to look for a repair, on all to state it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.clock import Clock
from detmap.analysis.doctor.raw_rows import Raw, best_objects, joinable, joined, restricted, table
from detmap.analysis.row_overlaps import Met
from detmap.core.base.locks import cached_property
from detmap.core.curves import aggregation
from detmap.core.curves import scores as curves
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.overlaps import kind_of
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.protocol import Protocol
from detmap.core.protocol.default_protocol import choose_protocol
from detmap.core.tables import Categories, Shapes, Truth
from detmap.errors import DataError

MOST_IMAGES = 600  # of a sample
MOST_ROWS = 30_000  # of the detections on a sample, about
MOST_ROWS_QUICKLY = 10_000  # the same where time is limited
CROWDED = 1_000_000  # pairs of an image from which on they are counted
LABELED = 0.5  # share of the points of an object
LEAST_IMAGES = 60  # that a sample has, however many detections are on them
AT_HALF = {"iou.thresholds": [0.5], "metrics": ["AP50"], "iou.classes": {}}
"""Settings of a protocol."""


class Outcome(NamedTuple):
    """What comes of rows: AP50, a fraction, and how many objects are found."""

    ap50: float
    found: int


@dataclass(frozen=True, eq=False)
class Trial:
    """A ground truth, and the rules by which rows are tried.

    Parameters
    ----------
    truth : the whole of it
    rules : of boxes at the one overlap of 0.5
    clock : stops the search when its time is over
    asked : the protocol of the evaluation; its rule may be another one
    shaped_truth : the ground truth with its shapes, as the evaluation compares them
    """

    truth: Truth
    rules: Protocol
    clock: Clock
    asked: Protocol
    shaped_truth: Truth

    @property
    def is_own_rule(self) -> bool:
        """Whether AP50 of `rules` is a number of the evaluation."""
        return self.asked.evaluation.rule == "matching"

    def evaluated(self) -> NDArray[np.bool_]:
        """(K,) the classes that the evaluation reads."""
        names = self.truth.categories.names
        if self.asked.evaluation.rule != "kitti":
            return np.ones(len(names), dtype=bool)
        wanted = {name.lower() for name, _ in self.asked.iou.classes}
        return np.array([name.lower() in wanted for name in names], dtype=bool)

    @property
    def compares_shapes(self) -> bool:
        """Whether the evaluation compares masks, keypoints or corners."""
        return self.is_own_rule and self.asked.iou.of != "boxes"

    def stated(self, raw: Raw) -> float:
        """AP50 of the shapes on all images, by the protocol of the evaluation; 0 where the shapes
        cannot be read.
        """
        matches = self.match_shapes(self.shaped_truth, raw)
        if matches is None:
            return 0.0
        scores, rules = curves.scores(matches), matches.protocol
        ap50 = aggregation.mean(scores, rules.rows()[0][0], rules, matches.categories)
        return 0.0 if np.isnan(ap50) else float(ap50)

    def match_shapes(
        self, truth: Truth, raw: Raw, change: Callable[[Shapes], Shapes] = lambda shapes: shapes
    ) -> Matches | None:
        """The shapes of rows, changed, matched at the overlap of 0.5; None where there are none, or
        they cannot be read.
        """
        from detmap.analysis.doctor.shaped_rows import shapes_of

        rules = self.asked.override(AT_HALF)
        rows, image, label = joinable(truth, raw)
        some = raw.take(rows)
        if not len(some):
            return None
        try:
            shapes = shapes_of(some, truth)
            shapes = None if shapes is None else change(shapes)
            found = table(truth, some, np.arange(len(some)), image, label)
            return match(truth, replace(found, shapes=shapes), rules)
        except DataError:
            return None

    def whole(self, raw: Raw) -> float:
        """AP50 on all images; 0 where nothing can be read."""
        return self.outcome(raw).ap50

    def whole_ap(self, raw: Raw) -> float:
        """AP at the thresholds of the evaluation, of boxes on all images."""
        thresholds = self.asked.iou.thresholds.values().tolist()
        rules = self.rules.override({"iou.thresholds": thresholds, "metrics": ["AP"]})
        return replace(self, rules=rules).whole(raw)

    def outcome(self, raw: Raw) -> Outcome:
        """AP50 and the objects found on all images."""
        rows, pairs = len(self.truth) + len(raw), _crowd_pairs(self.truth, raw)
        if self.rules.boxes.aspect or self.rules.detections.margins:  # matched subset by subset
            pairs *= len(self.rules.subsets)
        with self.clock.trial(len(self.truth.images), rows, pairs):
            return self._outcome(raw)

    def _outcome(self, raw: Raw) -> Outcome:
        detections = joined(self.truth, raw)
        if not len(detections) or not len(self.truth):
            return Outcome(0.0, 0)
        threads = 1 if len(detections) <= 2 * MOST_ROWS else None  # a sample: threads cost more
        matches = match(self.truth, detections, self.rules, threads=threads)
        scores = curves.scores(matches, threads=threads)
        ap50 = aggregation.mean(scores, self.rules.rows()[0][0], self.rules, matches.categories)
        found = aggregation.count(scores, self.rules, None).tp.sum()
        return Outcome(0.0 if np.isnan(ap50) else ap50, int(found))

    def agnostic(self) -> Trial:
        """The same where every object is of one class."""
        return replace(self, truth=merged(self.truth))


def _crowd_pairs(truth: Truth, raw: Raw) -> int:
    """The pairs of detections and objects in crowded images, of any classes."""
    image, _ = raw.places(truth)
    n_rows = np.bincount(image[image >= 0], minlength=len(truth.images))
    n_pairs = n_rows * np.bincount(truth.image, minlength=len(truth.images))
    return int(n_pairs[n_pairs >= CROWDED].sum())


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of the images, on which a repair is looked for.

    Parameters
    ----------
    trial : on the ground truth of these images alone
    raw : the rows as they are, of all images
    positions : (S,) of these images in the whole truth, ascending
    whole : that truth
    """

    trial: Trial
    raw: Raw
    positions: NDArray[np.int64]
    whole: Truth

    @cached_property
    def rows(self) -> Raw:
        """The rows as they are, on these images."""
        image, _ = self.raw.places(self.whole)
        return restricted(self.raw, self.whole, image, self.positions)

    @property
    def truth(self) -> Truth:
        """The ground truth of these images."""
        return self.trial.truth

    @cached_property
    def met(self) -> Met:
        """The rows with the objects that they lie on."""
        return best_objects(self.rows, self.truth)

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """(n,) which rows overlap an object of their class."""
        _, label = self.rows.places(self.truth)
        right = np.zeros(len(self.rows), dtype=bool)
        right[self.met.row] = label[self.met.row] == self.truth.label[self.met.place]
        return right

    @cached_property
    def agnostic(self) -> Sample:
        """The same where every object and every row is of one class."""
        return Sample(self.trial.agnostic(), self.raw.classless(), self.positions, self.whole)


def trial_of(
    truth: Truth, protocol: Protocol | str | None = None, clock: Clock | None = None
) -> Trial:
    """The rules of a protocol, or of the ground truth's own benchmark, at the one overlap of
    0.5.
    """
    asked = rules = choose_protocol(protocol, truth)
    if rules.iou.of != "boxes" or rules.evaluation.rule != "matching":
        rules = choose_protocol(None, replace(truth, shapes=None))
    settings: dict[str, Any] = dict(AT_HALF)
    if rules.boxes.reversed == "refuse":  # its fix swaps the corners of boxes that are read
        settings["boxes.reversed"] = "no_overlap"
    if len(rules.max_dets()) > 1:
        settings["limits.max_dets"] = [rules.max_dets()[-1]]
    clock = clock or Clock()
    return Trial(around_points(truth), rules.override(settings), clock, asked, truth)


def around_points(truth: Truth) -> Truth:
    """The ground truth without shapes; its boxes are around the keypoints of objects of which most
    are labeled, as those of detections are.
    """
    shapes, plain = truth.shapes, replace(truth, shapes=None)
    if not isinstance(shapes, Keypoints) or truth.box_format != "xywh" or not len(truth):
        return plain
    labeled = (shapes.points[:, :, 2] > 0).mean(axis=1) >= LABELED
    reader = kind_of("keypoints").reader
    around = reader.around_objects(shapes) if reader is not None else truth.boxes
    return replace(plain, boxes=np.where(labeled[:, None], around, truth.boxes))


@lru_cache(maxsize=4)  # an examination clears this at its end
def sample(whole: Trial, raw: Raw) -> Sample:
    """Images with objects, and with detections if many have both, spread evenly over the ids."""
    truth = whole.truth
    image, _ = raw.places(truth)
    n_rows = np.bincount(image[image >= 0], minlength=len(truth.images))
    n_objects = np.bincount(truth.image, minlength=len(truth.images))
    some = np.flatnonzero((n_rows > 0) & (n_objects > 0))
    if len(some) < LEAST_IMAGES:
        some = np.flatnonzero(n_objects > 0)
    mean = max(1.0, len(raw) / max(1, len(raw.images)))
    most_rows = MOST_ROWS if whole.clock.end is None else MOST_ROWS_QUICKLY
    wanted = int(min(MOST_IMAGES, max(LEAST_IMAGES, most_rows / mean), len(some)))
    chosen = some[np.unique(np.linspace(0, max(len(some) - 1, 0), wanted).astype(np.int64))]
    return Sample(replace(whole, truth=truth.select_images(chosen)), raw, chosen, truth)


def merged(truth: Truth) -> Truth:
    """The ground truth with all objects in one class."""
    return replace(
        truth,
        categories=Categories(np.array([1], dtype=np.int64), ("object",)),
        label=np.zeros(len(truth), dtype=np.int32),
        scope=None,
    )
