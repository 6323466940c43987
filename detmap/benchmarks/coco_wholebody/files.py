"""Reads COCO-WholeBody: COCO JSON with keypoints of feet, face and hands beside those of the body.

All points of a person are one row of shapes, in the order of `PARTS`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import shapes as coco_shapes
from detmap.core.adapters.coco import tool_results
from detmap.core.adapters.coco.records import Records, objects
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.base.sums import add_integers
from detmap.core.overlaps.keypoints import KeypointReader, Keypoints
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the body in COCO-WholeBody: its name, number of points, field, and score."""

    name: str
    n: int
    field: str
    score: str = "score"


PARTS = (
    Part("body", 17, "keypoints"),
    Part("foot", 6, "foot_kpts", "foot_score"),
    Part("face", 68, "face_kpts", "face_score"),
    Part("lefthand", 21, "lefthand_kpts", "lefthand_score"),
    Part("righthand", 21, "righthand_kpts", "righthand_score"),
)
"""The parts in the order of their points. Source: xtcocotools cocoeval.py, _prepare."""
READER = KeypointReader()
FIELDS = tuple(part.field for part in PARTS)
SCORES = (*(part.score for part in PARTS[1:]), "wholebody_score")
"""Scores of parts, which records may have beside ``score``."""


def read_truth(
    path: Path, shapes: str = "keypoints", roles: Sequence[str] = (), attributes: Sequence[str] = ()
) -> Truth:
    """Reads an annotation file; parameters as in `detmap.core.adapters.coco.shapes.read_truth`.

    Raises `DataError` for a part that is missing or has another number of points.
    """
    truth = coco_shapes.read_truth(path, shapes, roles, attributes)
    if shapes != "keypoints":
        return truth
    records = objects(path, truth, FIELDS)
    return replace(truth, shapes=Keypoints(_points(records, len(truth)), truth.area))


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a results file. Its scores of parts become attributes; a missing one is the score.

    The area of a detection is that of its box, or of the extent of its body points.
    """
    given = truth.shapes
    n_points = add_integers(part.n for part in PARTS)
    if not isinstance(given, Keypoints) or given.points.shape[1] != n_points:
        what = f"the ground truth does not have the {n_points} keypoints of COCO-WholeBody"
        raise DataError(shown(path), what, "read the ground truth in the format coco-wholebody")
    body = replace(truth, shapes=Keypoints(given.points[:, : PARTS[0].n].copy(), given.area))
    text = tool_results.results(path, truth, policy)
    more = (*FIELDS[1:], *SCORES)
    found, records = coco_shapes.read_shaped(path, text, body, policy, READER, more)
    assert found.shapes is not None
    return replace(
        found,
        shapes=Keypoints(_points(records, len(found)), found.shapes.area),
        attributes=_scores(records, found.score),
    )


def _points(records: Records, n: int) -> NDArray[np.float64]:
    """(n, 133, 3) the points of all parts."""
    columns = []
    for part in PARTS:
        place = records.place(part.field)
        points = READER.read(records.values[part.field], np.zeros((n, 2)), place).points
        if n and points.shape[1] != part.n:
            what = f"{points.shape[1]} points, where COCO-WholeBody has {part.n}"
            raise DataError(place(0), what, "give x, y and visibility of each point")
        columns.append(points if n else np.zeros((0, part.n, 3)))
    return np.concatenate(columns, axis=1)


def _scores(records: Records, score: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """The scores of parts that a record has."""
    columns = {}
    for name in SCORES:
        values = records.values[name]
        for i, value in enumerate(values):
            if value is not None and (type(value) not in (int, float) or abs(value) > 1e300):
                fix = "a score is a number; leave it out to use the score of the person"
                raise DataError(records.place(name)(i), "is not a finite number", fix)
        if any(value is not None for value in values):
            own = zip(values, score.tolist(), strict=True)
            columns[name] = np.array([other if value is None else value for value, other in own])
    return {name: column.astype(np.float64) for name, column in columns.items()}
