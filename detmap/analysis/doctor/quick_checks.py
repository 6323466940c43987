"""Quick checks of tables that were read without an error: whether the doctor should look closer.

They look at whole columns and at the images of a small sample: some milliseconds where an
evaluation takes hundreds. `CHECKS` lists them, cheap ones first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor import truth_polygons
from detmap.analysis.doctor.box_layouts import FRACTION, SHARE
from detmap.analysis.doctor.duplicates import doubled
from detmap.analysis.doctor.repeated_rows import SHARE as REPEATED
from detmap.analysis.doctor.repeated_rows import repeated, tail_repeats
from detmap.analysis.doctor.truth_checks import contradicts, is_many, shape_boxes
from detmap.analysis.row_overlaps import Met, best_overlaps
from detmap.core.base.locks import cached_property
from detmap.core.base.sums import add_integers
from detmap.core.tables import Detections, Truth, apart, boxes_as

BEYOND = 1.0 + 1e-6  # a score above is no probability
LEAST_ROWS = 20  # from which equal scores are no accident
DOUBLES = 0.15  # share of rows that a better row of their class lies on
LOOKED_AT = 2048  # rows
PIECES = 8  # of the table that these come from
BEYOND_SIDE = 1.02  # of an image's side, from which a box reaches out of it
REACHING = 0.25  # share of boxes that reach out of their images
BARE = 0.3  # share of images, or of objects by their class, without detections
MOST_IMAGES = 150  # of the sample
MOST_ROWS = 10_000  # of the detections on it, about
DROPPED = 0.2  # share of the rows that the reader dropped
NEAR = 0.1  # overlap from which a row may be meant for an object
DOUBTFUL = 0.1  # share of the highest-scoring rows that are right
MIXED, LEAST_MIXED = 0.12, 3  # share and number of images whose highest-scoring rows are all wrong
ONE_SIDED = 0.8  # share of the boxes that lie on the same side of their objects
TURNED = 0.4  # chance of the right order under which the order of scores is doubtful
CUT = 0.1  # a lowest score from here on may be a threshold
MISSING = 10.0  # rows that have to be missing below it
STEEP = 0.55  # rows just above the lowest score per row further up, below which scores fade out
EDGE = 0.2  # share of the lower half of scores within which the lowest three of few rows lie
RIGHT, LEAST_RIGHT = 0.15, 5  # share and number of the lowest fifth that are right
RECALL = 0.9  # objects found, from which a threshold costs little
UNLABELED = 0.5  # share of images without objects
MEANT = 0.5  # share of the highest-scoring rows that have to be on objects elsewhere
LIKE_LABELED = 0.7  # detections on these, per detection on the others
EXACT = 0.26  # pixels
LEAST_EXACT = 10  # boxes that are exactly a pixel off,
SHARE_EXACT = 0.03  # of those on an object,
SHARE_NARROW = 0.1  # where one axis alone is a pixel off,
TIMES_EXACT = 3  # times as many as are exactly right


@dataclass(eq=False, repr=False)
class View:
    """Two tables, and some rows of theirs."""

    truth: Truth
    detections: Detections

    @cached_property
    def some(self) -> NDArray[np.int64]:
        """Rows of a few pieces of the table: rows of an image are mostly neighbors."""
        n_rows = len(self.detections)
        if n_rows <= LOOKED_AT:
            return np.arange(n_rows)
        begins = np.linspace(0, n_rows - LOOKED_AT // PIECES, PIECES).astype(np.int64)
        return (begins[:, None] + np.arange(LOOKED_AT // PIECES)).ravel()

    @cached_property
    def boxes(self) -> NDArray[np.float64]:
        """These rows' boxes: x, y, width, height."""
        return boxes_as(self.detections.boxes[self.some], self.detections.box_format, "xywh")

    @cached_property
    def sampled(self) -> NDArray[np.int64]:
        """Rows on a few images with objects, spread evenly."""
        n_images = len(self.truth.images)
        there = np.zeros(n_images, dtype=bool)
        there[self.truth.image] = True
        full = np.flatnonzero(there)
        mean = max(1.0, len(self.detections) / max(1, n_images))
        wanted = int(min(MOST_IMAGES, len(full), max(20.0, MOST_ROWS / mean)))
        chosen = np.zeros(n_images, dtype=bool)
        chosen[full[np.linspace(0, len(full) - 1, wanted).astype(np.int64)]] = True
        return np.flatnonzero(chosen[self.detections.image])

    @cached_property
    def n_objects(self) -> int:
        """Objects on the images of the sample that have detections."""
        on = np.zeros(len(self.truth.images), dtype=bool)
        on[self.detections.image[self.sampled]] = True
        return int(on[self.truth.image].sum())

    @cached_property
    def met(self) -> Met:
        """The sample's rows with the objects that they overlap most, of their class."""
        rows = self.detections
        met = best_overlaps(rows, rows.image, self.sampled, self.truth, NEAR)
        same = rows.label[met.row] == self.truth.label[met.place]
        return Met(met.row[same], met.place[same], met.iou[same])

    @cached_property
    def right(self) -> NDArray[np.bool_]:
        """Which of the sample's rows are on an object of their class."""
        return np.isin(self.sampled, self.met.row[self.met.iou >= 0.5])


def _rows_are_repeated(view: View) -> bool:
    """The last rows are some of the first ones, or many rows of a few images are there twice."""
    rows: Any = view.detections
    n_again = int(repeated(rows, view.sampled).sum())
    return tail_repeats(rows) or n_again > REPEATED * len(view.sampled)


def is_suspicious(truth: Truth, detections: Detections) -> bool:
    """Whether one quick check fails, the reader dropped many rows, or there is no object or no
    detection at all.
    """
    if not len(truth) or not len(detections):
        return len(truth) != len(detections)
    dropped = add_integers(
        note.count for note in detections.notes if note.code.endswith("-unknown")
    )
    if dropped > DROPPED * (len(detections) + dropped):
        return True
    if len(detections) < LEAST_ROWS:
        return False
    view = View(truth, detections)
    return any(check(view) for check in CHECKS)


def _scale_is_odd(view: View) -> bool:
    score = view.detections.score
    low, high = float(score.min()), float(score.max())
    return low < 0 or high > BEYOND or low == high


def _boxes_are_odd(view: View) -> bool:
    """Fractions; or many boxes end outside of their image."""
    if (np.abs(view.boxes) <= FRACTION).mean() >= SHARE:
        return True
    images = view.truth.images
    size = np.column_stack([images.width, images.height])[view.detections.image[view.some]]
    beyond = (view.boxes[:, :2] + view.boxes[:, 2:] > BEYOND_SIDE * size + 1).any(axis=1)
    return bool(beyond.mean() > REACHING)


def _some_is_bare(view: View) -> bool:
    """Many images, or objects by their class, are without detections."""
    truth = view.truth
    images = np.zeros(len(truth.images), dtype=bool)
    classes = np.zeros(len(truth.categories), dtype=bool)
    images[view.detections.image], classes[view.detections.label] = True, True
    return bool(images[truth.image].mean() < 1 - BARE or classes[truth.label].mean() < 1 - BARE)


def _masks_are_elsewhere(view: View) -> bool:
    """Masks do not lie in the box beside them: of their records, or of the tables."""
    around = shape_boxes(view.detections.shapes)
    return around is not None and is_many(apart(around[view.some], view.boxes))


def _is_wrong(view: View) -> bool:
    """The highest-scoring rows are wrong, or the order of scores is doubtful."""
    rows = np.argsort(-view.detections.score[view.sampled], kind="stable")
    right = view.right[rows]
    if len(right) < LEAST_ROWS:
        return False
    if right[: max(1, view.n_objects)].mean() < DOUBTFUL:
        return True
    return order_of(view.detections.score[view.sampled], view.right) < TURNED


def _is_mixed_up(view: View) -> bool:
    """Some images have several of the highest-scoring rows, and all of them are wrong."""
    rows = np.argsort(-view.detections.score[view.sampled], kind="stable")[: view.n_objects]
    image = view.detections.image[view.sampled[rows]]
    n_rows, n_right = np.bincount(image), np.bincount(image, weights=view.right[rows])
    several = n_rows >= 2
    wrong = int((several & (n_right == 0)).sum())
    return wrong >= max(LEAST_MIXED, MIXED * int(several.sum()))


def _is_cut(view: View) -> bool:
    found = np.bincount(view.met.place[view.met.iou >= 0.5])  # np.unique would import numpy.ma
    recall = np.count_nonzero(found) / max(1, view.n_objects)
    return is_cut(view.detections.score[view.sampled], view.right, recall) is not None


def _is_moved(view: View) -> bool:
    """Most boxes lie on the same side of their objects, or are a pixel off."""
    boxes, wanted = best_pairs(view.met, view.detections, view.truth)
    if len(boxes) < LEAST_ROWS:
        return False
    off = boxes[:, :2] + boxes[:, 2:] / 2 - wanted[:, :2] - wanted[:, 2:] / 2
    far = wanted[:, :2] >= np.sort(wanted[:, :2], axis=0)[len(wanted) // 2]
    for axis in (0, 1):
        sides = off[far[:, axis], axis]
        if max((sides > 0.75).mean(), (sides < -0.75).mean()) >= ONE_SIDED:
            return True
    return bool(narrow_axes(boxes, wanted).any())


CHECKS: tuple[Callable[[View], bool], ...] = (
    _rows_are_repeated,
    _scale_is_odd,
    _boxes_are_odd,
    _some_is_bare,
    lambda view: doubled(view.detections.take(view.some)) > DOUBLES,
    _masks_are_elsewhere,
    lambda view: lacks_labels(view.truth, view.detections.image, view.detections.score),
    _is_wrong,
    _is_mixed_up,
    _is_cut,
    _is_moved,
    lambda view: contradicts(view.truth),
    lambda view: any(True for _ in truth_polygons.facts(view.truth)),
)


# --- shared with the doctor -----------------------------------------------------------------------


def is_cut(
    score: NDArray[np.float64], right: NDArray[np.bool_], recall: float
) -> tuple[float, float] | None:
    """The lowest score and the share of the lowest rows that are right, where a threshold took
    detections of which many would be right; else None. A result has a lowest score anyway: below
    it many rows must be missing, scores must not fade out towards it, and objects must be missed.
    """
    if len(score) < LEAST_ROWS or recall >= RECALL:
        return None
    order = np.argsort(score, kind="stable")
    low, middle = float(score[order[0]]), float(score[order[len(score) // 2]])
    if not (CUT <= low < middle <= BEYOND):
        return None
    half = len(score) // 2
    if score[order[2]] - low > EDGE * (middle - low):
        return None
    below = int((score < (low + middle) / 2).sum())
    worst = right[order[: max(10, len(score) // 5)]]
    expected = low * half / (middle - low)  # rows below, if there were as many per score as above
    fades = below < STEEP * (half - below)
    if expected < MISSING or fades or worst.sum() < LEAST_RIGHT or worst.mean() < RIGHT:
        return None
    return low, float(worst.mean())


def order_of(score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """The chance that a row on an object of its class has a higher score than one that is not; 0.5
    where there are too few of either.
    """
    n_right = int(right.sum())
    n_wrong = len(right) - n_right
    if min(n_right, n_wrong) < LEAST_ROWS:
        return 0.5
    ranked = np.sort(score)  # of equal scores the mean rank
    first = np.searchsorted(ranked, score[right], side="left")
    last = np.searchsorted(ranked, score[right], side="right")
    ranks = ((first + last + 1) / 2).sum()
    return float((ranks - n_right * (n_right + 1) / 2) / (n_right * n_wrong))


def lacks_labels(
    truth: Truth,
    image: NDArray[np.integer],
    score: NDArray[np.float64],
    on_object: NDArray[np.bool_] | None = None,
) -> bool:
    """Whether most images have no objects, and about as many high-scoring detections as the
    others have: probably their label files are missing. With `on_object` (rows that overlap an
    object of any class) only if high scores mean objects where there are labels.
    """
    labeled = np.zeros(len(truth.images), dtype=bool)
    labeled[truth.image] = True
    n_labeled = int(labeled.sum())
    n_others = len(labeled) - n_labeled
    if not n_labeled or n_others < UNLABELED * len(labeled):
        return False
    on = labeled[image]
    rows = np.flatnonzero(on)
    best = rows[np.argsort(-score[rows], kind="stable")[: len(truth)]]
    if not len(best) or (on_object is not None and on_object[best].mean() < MEANT):
        return False
    others = int((score[~on] >= score[best].min()).sum())
    per_labeled = len(best) / n_labeled
    return others >= LEAST_ROWS and others / n_others >= LIKE_LABELED * per_labeled


def best_pairs(
    met: Met, rows: Any, truth: Truth
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n, 4) boxes x, y, width, height of the best row of each object, and of these objects."""
    order = np.lexsort((-met.iou, met.place))
    place = met.place[order]
    best = order[np.flatnonzero(np.diff(place, prepend=-1))]
    boxes = boxes_as(rows.boxes[met.row[best]], rows.box_format, "xywh")
    return boxes, boxes_as(truth.boxes[met.place[best]], truth.box_format, "xywh")


def narrow_axes(boxes: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(2,) whether widths, or heights, are exactly one pixel too small, where the others are not:
    both may be a convention, or a detector's own.
    """
    off = boxes[:, 2:] - wanted[:, 2:]
    exact, short = ((np.abs(off - by) < EXACT).sum(axis=0) for by in (0, -1))
    enough = max(LEAST_EXACT, SHARE_NARROW * len(off))
    shows = (short >= enough) & (short > TIMES_EXACT * exact)
    is_exact = (exact >= enough) & (exact >= short)
    return np.asarray(shows & is_exact[::-1])
