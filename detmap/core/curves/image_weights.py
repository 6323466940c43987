"""Image weights: whole ones count as copies of the image, 0 leaves it out."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.core.matching.matches import Matches
from detmap.core.matching.row_order import TOGETHER, depends_on_other_images
from detmap.core.protocol import AveragePrecision, Protocol
from detmap.core.protocol.metric_rows import OWN, POINT
from detmap.core.tables.grouping import labels, offsets
from detmap.errors import DataError

Floats = NDArray[np.float64]
ROW = 64
"""Bytes of a match row, about."""


def require_order(matches: Matches) -> None:
    """Refuses weights where the copies of an image may order or limit others.

    Raises
    ------
    DataError : an unstable sort of tied scores, a limit or a scale over the whole data set
    """
    if depends_on_other_images(matches):
        what = f"{matches.protocol.name} {TOGETHER}: copies of an image would order other ties"
        raise DataError("weights", what, "repeat the images in the files, without weights")


def reads_copies(protocol: Protocol, ap: AveragePrecision) -> bool:
    """Whether a metric reads its curve between the copies of a detection."""
    kinds = {row.kind for row in protocol.rows()[0]}
    best = protocol.operating.rule == "best_mean_f1" and not kinds.isdisjoint(POINT)
    return ap.rule.kernel < 0 or best or not kinds.isdisjoint(metric.name for metric in OWN)


def weighted(
    matches: Matches, weight: Floats, ap: AveragePrecision
) -> tuple[Matches, Floats | None]:
    """Returns the images of weights above 0 with their weights, or copies without weights if a
    metric reads its curve between them.

    Raises
    ------
    DataError : a weight that is not whole for such a metric, or too many copies
    """
    there = weight > 0
    if not there.all():
        matches, weight = matches.select(matches.image_ids[there]), weight[there]
    if not reads_copies(matches.protocol, ap):
        return matches, weight
    other = np.flatnonzero(weight != np.floor(weight))
    if len(other):
        what = f"{weight[other[0]]:g} is not whole: {matches.protocol.name} reads every rank"
        image = matches.image_ids[other[0]].item()
        raise DataError("weights", f"image {image!r}: {what}", "give whole numbers")
    return repeated(matches, weight.astype(np.int64)), None


def repeated(matches: Matches, times: NDArray[np.int64]) -> Matches:
    """Returns the images as often as told, copies of a row in its place."""
    n_rows = int(times[matches.image].sum() + times[matches.obj_image].sum())
    memory.require(ROW * n_rows, "weights", f"{n_rows:,} rows", "divide the weights")
    begin = np.concatenate([[0], np.cumsum(times)])
    n_images, n_classes = int(begin[-1]), len(matches.categories)

    def copies(image: NDArray[np.int32]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """The row of each copy, and its image."""
        of_row = times[image]
        rows = np.repeat(np.arange(len(image)), of_row)
        first = np.repeat(np.cumsum(of_row) - of_row, of_row)
        return rows, (begin[image][rows] + np.arange(len(rows)) - first).astype(np.int32)

    rows, image = copies(matches.image)
    obj_rows, obj_image = copies(matches.obj_image)
    label = labels(matches.obj_off)[obj_rows]
    order = np.lexsort((obj_image, label))
    each = np.repeat(np.arange(matches.n_images), times)
    return replace(
        matches,
        image_ids=np.arange(n_images),
        digest=matches.digest[each],
        beyond=matches.beyond[each],
        unjudged=matches.unjudged[each],
        off=offsets(labels(matches.off)[rows], n_classes),
        image=image,
        rank=matches.rank[rows],
        position=matches.position[rows],
        score=matches.score[rows],
        tp=matches.tp[rows],
        ignored=matches.ignored[rows],
        obj_off=offsets(label, n_classes),
        obj_image=obj_image[order],
        counted=matches.counted[obj_rows[order]],
        taken=None,
    )
