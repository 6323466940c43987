"""COCO-WholeBody: the keypoint evaluation of COCO for each part of the body and for all of it.

Source: xtcocotools cocoeval.py, iouType keypoints_body, _foot, _face, _lefthand, _righthand and
_wholebody.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.coco_wholebody.files import PARTS
from detmap.benchmarks.shared.benchmark_result import Numbers
from detmap.core.base.sums import add_integers
from detmap.core.curves import aggregation
from detmap.core.curves.scores import scores
from detmap.core.matching import engine
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.protocol import Protocol
from detmap.core.results.result_tables import overlaps
from detmap.core.tables import Columns, Detections, Note, Truth
from detmap.errors import DataError

READS = (
    *("metrics", "boxes", "iou", "matching", "subsets", "groups", "detections", "scope"),
    *("limits", "ranking", "ap", "mean", "operating"),
)
N_POINTS = add_integers(part.n for part in PARTS)


def evaluate(truth: Truth, detections: Detections, protocol: Protocol) -> Numbers:
    """Evaluates the six kinds: ``AP-body``, ..., ``AP-all`` and the like.

    Raises
    ------
    DataError : tables without the points of all parts
    """
    for table in (truth, detections):
        if not isinstance(table.shapes, Keypoints) or table.shapes.points.shape[1] != N_POINTS:
            what = f"has not the {N_POINTS} keypoints of COCO-WholeBody"
            raise DataError(table.source, what, "read the files in the format coco-wholebody")
    metrics, definitions, notes = {}, {}, []
    classes: list[dict[str, Any]] = [
        {"name": name, "id": int(i)}
        for name, i in zip(truth.categories.names, truth.categories.ids, strict=True)
    ]
    for name, points, score in _kinds():
        objects, found, dropped = _part(truth, detections, points, score)
        sigmas = list(protocol.iou.sigmas[points])
        own = {"evaluation.rule": "matching", "iou.sigmas": sigmas}
        rules = protocol.override(own)
        result = scores(engine.match(objects, found, rules))
        for row in rules.rows()[0]:
            value = aggregation.mean(result, row, rules, truth.categories)
            metrics[f"{row.name}-{name}"] = value
            definitions[f"{row.name}-{name}"] = (
                overlaps(rules, row),
                row.subset,
                str(row.max_dets),
            )
        for row in aggregation.class_rows(rules):
            for record, value in zip(
                classes, aggregation.per_class(result, row, rules), strict=True
            ):
                record[f"{row.name}-{name}"] = float(value)
        if dropped:
            text = f"detections have no point of the {name} above 0 and are not evaluated there"
            notes.append(Note("part-empty", text, dropped, detections.source))
    return Numbers(metrics, definitions, classes, notes)


def _kinds() -> Iterator[tuple[str, slice, str]]:
    """Name, points and score of each kind."""
    begin = 0
    for part in PARTS:
        yield part.name, slice(begin, begin + part.n), part.score
        begin += part.n
    yield "all", slice(0, begin), "wholebody_score"


def _part(
    truth: Truth, detections: Detections, points: slice, score: str
) -> tuple[Truth, Detections, int]:
    """The tables with the points of a kind, and how many detections are left out.

    An object without a labelled point is ignored, a detection without one is left out. The areas
    stay those of the person and of the body points.
    """
    own, found = _points(truth, points), _points(detections, points)
    labelled: NDArray[np.bool_] = np.any(own[:, :, 2] > 0, axis=1)
    shown = (found[:, :, 2] > 0).any(axis=1)
    assert truth.shapes is not None
    assert detections.shapes is not None
    detections = replace(
        detections,
        score=detections.attributes.get(score, detections.score),
        shapes=Keypoints(found, detections.shapes.area),
    )
    truth = replace(
        truth,
        roles=Columns({**truth.roles, "unlabelled": ~labelled}),
        shapes=Keypoints(own, truth.shapes.area),
    )
    return truth, detections.take(np.flatnonzero(shown)), int((~shown).sum())


def _points(table: Truth | Detections, points: slice) -> NDArray[np.float64]:
    """(n, k, 3) the points of a kind."""
    assert isinstance(table.shapes, Keypoints)
    return np.ascontiguousarray(table.shapes.points[:, points])
