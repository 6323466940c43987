"""AP of the images of each degree of crowding, as CrowdPose prints it beside AP of all images."""

import math

import numpy as np

from detmap.core.curves import aggregation
from detmap.core.curves.scores import scores
from detmap.core.matching import engine
from detmap.core.protocol import Protocol
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

DEGREES = {"easy": (-math.inf, 0.2), "medium": (0.2, 0.8), "hard": (0.8, math.inf)}
"""The range of an image's crowdIndex, the upper end excluded."""
DIGITS = 4


def crowd_index_metrics(
    truth: Truth, detections: Detections, protocol: Protocol
) -> dict[str, float]:
    """Returns AP of easy, medium and hard images, to four digits; NaN without objects.

    Source: crowdposetools cocoeval.py, get_type_result and split, which print -1 without objects.

    Raises
    ------
    DataError : an image without crowdIndex
    """
    n_images = len(truth.images)
    index = truth.images.attributes.get("crowdIndex", np.full(n_images, np.nan))
    if np.isnan(index).any():
        image = truth.images.ids[np.argmax(np.isnan(index))].item()
        raise DataError(
            f"{truth.source}: images",
            f"image {image!r} has no crowdIndex, which the AP of easy, medium and hard images uses",
            "take CrowdPose's own file, or set evaluation.extra=[]",
        )
    rules = protocol.override({"metrics": ["AP"]})
    (row,) = rules.rows()[0]
    metrics = {}
    for degree, (low, high) in DEGREES.items():
        images = np.flatnonzero((low <= index) & (index < high))
        part = truth.select_images(images), detections.select_images(images)
        ap = aggregation.mean(scores(engine.match(*part, rules)), row, rules, truth.categories)
        metrics[f"AP-{degree}"] = float(np.round(ap, DIGITS))
    return metrics
