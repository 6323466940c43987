"""Sets with an empty axis under every protocol: no detections, no objects, a perfect detector,
nothing matched, one image, one class, no image.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

import detmap
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from detmap.core.statistics import subsets
from detmap.core.tables import Detections, Truth, selection
from tests.support.weighted_images import draw, shaped

Tables = tuple[Truth, Detections]
NONE = np.zeros(0, dtype=np.int64)


@cache
def whole(name: str) -> Tables:
    """A set without an empty axis."""
    return draw(name, np.random.default_rng(5), ties=False)


def perfect(name: str, tables: Tables) -> Tables:
    """The objects as detections of score 1."""
    truth, _ = tables
    found = detmap.detections_from_arrays(
        truth,
        truth.images.ids[truth.image],
        truth.categories.ids[truth.label],
        truth.boxes,
        np.ones(len(truth)),
    )
    return truth, shaped(name, found)


def far(name: str, tables: Tables) -> Tables:
    """Detections that overlap no object."""
    truth, found = tables
    moved = found.boxes + np.array([3000.0, 3000, 0, 0])
    return truth, shaped(name, replace(found, boxes=moved, shapes=None))


def plain(tables: Tables) -> Tables:
    """Objects without any role, so that a perfect detector leaves nothing unmatched."""
    truth, found = tables
    return replace(
        truth, roles={each: column & False for each, column in truth.roles.items()}
    ), found


def part(tables: Tables, images: Any) -> Tables:
    truth, found = tables
    at = np.asarray(images, dtype=np.int64)
    return truth.select_images(at), found.select_images(at)


def of_class(tables: Tables) -> Tables:
    return selection.part(*tables, None, ["person"])


CONDITIONS: dict[str, Callable[[str], Tables]] = {
    "no detections": lambda name: (whole(name)[0], whole(name)[1].take(NONE)),
    "no objects": lambda name: (whole(name)[0].take(NONE), whole(name)[1]),
    "nothing": lambda name: (whole(name)[0].take(NONE), whole(name)[1].take(NONE)),
    "perfect": lambda name: perfect(name, whole(name)),
    "perfect, no roles": lambda name: perfect(name, plain(whole(name))),
    "nothing matched": lambda name: far(name, whole(name)),
    "one image": lambda name: part(whole(name), [2]),
    "one perfect image": lambda name: perfect(name, part(whole(name), [2])),
    "one class": lambda name: of_class(whole(name)),
    "no image": lambda name: part(whole(name), []),
}


# ---- routes: each computes and renders a result


def shown(result: Any) -> None:
    """Everything that a result prints."""
    result.metrics, result.per_class, result.counts(), result.notes, result.signature
    str(result), result.to_dict()


def batch(truth: Truth, found: Detections, at: int) -> dict[str, Any]:
    """The detections of an image as an `Evaluator` takes them."""
    mine = found.select_images(np.array([at]))
    row: dict[str, Any] = {"image_id": truth.images.ids[at].item(), "boxes": mine.boxes}
    row |= {"scores": mine.score, "labels": truth.categories.ids[mine.label]}
    if isinstance(mine.shapes, Keypoints):
        row["keypoints"] = mine.shapes.points
    elif isinstance(mine.shapes, RotatedBoxes):
        row["polygons"] = mine.shapes.values
    elif mine.shapes is not None:
        x, y, w, h = mine.boxes.T
        corners = np.stack([x, y, x + w, y, x + w, y + h, x, y + h], axis=1).tolist()
        row |= {"segmentation": [[each] for each in corners], "orig_size": (400, 400)}
    return row


def evaluated(name: str, truth: Truth, found: Detections) -> None:
    shown(detmap.evaluate(truth, found, name, threads=1))


def streamed(name: str, truth: Truth, found: Detections) -> None:
    evaluator = detmap.Evaluator(name, truth=truth, box_format="xywh")
    for at in range(len(truth.images)):
        evaluator.update([batch(truth, found, at)])
    shown(evaluator.compute())


def merged(name: str, truth: Truth, found: Detections) -> None:
    ids = truth.images.ids
    parts = [detmap.match(truth, found, name, images=some) for some in (ids[:2], ids[2:])]
    both = parts[1].merge(parts[0])
    shown(detmap.summarize(detmap.Matches.from_bytes(both.to_bytes())))


def sliced(name: str, truth: Truth, found: Detections) -> None:
    ids = truth.images.ids
    result = detmap.evaluate(truth, found, name, threads=1)
    for part_of in result.slices({"one": ids[:1], "none": ids[:0]}).values():
        shown(part_of)


def weighed(name: str, truth: Truth, found: Detections) -> None:
    matches = detmap.match(truth, found, name, threads=1)
    shown(detmap.summarize(matches, weights=np.arange(matches.n_images) % 3 + 1, threads=1))


def uncertain(name: str, truth: Truth, found: Detections) -> None:
    with patch.object(subsets, "SPLITS", 1):  # as many evaluations as there are images, and two
        str(detmap.evaluate(truth, found, name, threads=1).intervals(threads=1))


def tied(name: str, truth: Truth, found: Detections) -> None:
    str(detmap.evaluate(truth, found, name, threads=1).ties(orders=3))


def at_thresholds(name: str, truth: Truth, found: Detections) -> None:
    result = detmap.evaluate(truth, found, name, threads=1)
    result.per_image(), result.operating_point(0.5), result.best_f_beta()
    result.threshold_for_recall(0.5), result.threshold_for_precision(0.5), result.integrators()


def diagnosed(name: str, truth: Truth, found: Detections) -> None:
    from detmap.analysis.diagnosis.summary import summary

    summary(detmap.diagnose(truth, found, name))


ROUTES = (
    *(evaluated, streamed, merged, sliced, weighed),
    *(uncertain, tied, at_thresholds, diagnosed),
)
