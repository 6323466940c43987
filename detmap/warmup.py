"""Compiles the kernels ahead of time, by calling each on tiny inputs.

Each public function that runs a kernel is called for each combination of argument types.
`tools/build_native.py` builds the machine-code library from these calls; a test checks that all
commands are covered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from detmap import ranking
from detmap.adapters.coco.scan_json import skip_nothing
from detmap.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.adapters.tabular.csv_cells import read_no_cells
from detmap.adapters.voc.scan_voc import read_nothing
from detmap.compare import compare
from detmap.curves.scores import coco_arrays
from detmap.diagnosis import diagnose
from detmap.diagnosis.diagnosis_intervals import uncertainty
from detmap.diagnosis.summary import parts, summary
from detmap.errors import DetmapError, counted
from detmap.evaluate import evaluate, summarize
from detmap.kernels import PLAIN_PYTHON, jit, native
from detmap.matching.engine import match
from detmap.overlaps import masks
from detmap.overlaps.keypoints import Keypoints
from detmap.protocol import integrators, load, names
from detmap.tables import ABSENT, NOT_EXHAUSTIVE, Detections, Scope, Truth

BOXES = [[0.0, 0.0, 10.0, 10.0], [5.0, 5.0, 20.0, 20.0], [0.0, 0.0, 9.0, 9.0]]
IMAGES, CLASSES = [1, 1, 2], [1, 2, 1]
KINDS = np.array([ABSENT, NOT_EXHAUSTIVE], np.uint8)


def tables() -> tuple[Truth, Detections]:
    """Returns two images, two classes, one crowd; matched, missed and false boxes."""
    truth = truth_from_arrays(IMAGES, CLASSES, BOXES, crowd=[False, False, True])
    return truth, detections_from_arrays(truth, IMAGES, CLASSES, BOXES, [0.9, 0.8, 0.7])


def evaluate_next_to_nothing() -> None:
    """Evaluates boxes under every bundled protocol, also with more thresholds than 16 bits."""
    truth, detections = tables()
    many = {"iou.thresholds": [round(0.1 + i / 100, 2) for i in range(17)]}
    boxes = [
        rules
        for rules in map(load, names())
        if rules.iou.of == "boxes" and rules.evaluation.rule == "matching"
        if not (rules.files.truth or any(group.classes for group in rules.groups))
    ]  # other protocols need attributes and classes of their files, and the same kernels
    for rules in boxes:
        for settings in ({}, many):
            result = evaluate(truth, detections, rules, settings=settings)
            coco_arrays(result.matches)
            result.curve(1, result.protocol.thresholds()[0])
            result.integrators()


def evaluate_next_to_no_cars() -> None:
    """Evaluates boxes by KITTI's rule."""
    boxes = np.array(BOXES) * 10  # large enough for each level
    truth = truth_from_arrays(IMAGES, CLASSES, boxes)
    detections = detections_from_arrays(truth, IMAGES, CLASSES, boxes, [0.9, 0.8, 0.7])
    columns = {name: np.zeros(len(boxes)) for name in ("occluded", "truncated", "alpha")}
    truth = replace(truth, attributes={**truth.attributes, **columns})
    detections = replace(detections, attributes={"alpha": np.zeros(len(boxes))})
    car = {"iou.classes": dict.fromkeys(truth.categories.names, 0.5)}
    evaluate(truth, detections, "kitti", settings=car)


def evaluate_next_to_no_shapes() -> None:
    """Matches keypoints, masks and polygons; keeps assignments."""
    truth, detections = tables()
    box = np.array(BOXES)
    points = np.ones((len(box), 17, 3)) * box[:, :1, None]
    polygons = [[[x, y, x + w, y, x + w, y + h]] for x, y, w, h in BOXES]
    shapes: dict[str, Keypoints | masks.Masks] = {
        "coco-keypoints": Keypoints(points, np.full(len(box), 100.0)),
        "coco-segm": masks.read([{"size": [2, 2], "counts": "04"}] * 3, np.full((3, 2), 2.0), str),
    }
    masks.read([[*polygons[0], *polygons[1]], *polygons[1:]], np.full((3, 2), 40.0), str)
    for name, both in shapes.items():
        shaped = replace(truth, shapes=both).take(np.arange(3)), replace(detections, shapes=both)
        evaluate(*shaped, name)
        match(*shaped, load(name), taken=True)
    lists = Scope(np.array([0, 1, 2]), np.array([1, 0], np.int32), KINDS)
    for name in ("coco-bbox", "voc2012", "lvis"):
        for scope in (None, lists):
            match(replace(truth, scope=scope), detections, load(name), taken=True)


def doubt_next_to_nothing() -> None:
    """Computes weights and intervals under each AP interpolation."""
    truth, detections = tables()
    many = {"iou.thresholds": [round(0.1 + i / 100, 2) for i in range(17)]}
    for name in ("voc2007", "coco-bbox"):
        for settings in ({}, many):
            result = evaluate(truth, detections, name, settings=settings)
            for row in integrators.AT_TRUE_POSITIVES:
                rules = result.protocol.override({"ap.integrator": row.name})
                one = summarize(replace(result.matches, protocol=rules))
                one.intervals(replicates=1)
                one.ties(orders=1)
                summarize(one.matches, weights=[1.0, 2.0])


def diagnose_next_to_nothing() -> None:
    """Runs the error analysis with replicates."""
    for name in ("coco-bbox", "voc2012"):
        diagnosis = diagnose(*tables(), name)
        summary(diagnosis)
        uncertainty(diagnosis, parts(diagnosis), np.array([0.5]), replicates=2, of_lists=2)


def compare_next_to_nothing() -> None:
    """Compares two detectors with both kinds of tests."""
    truth, detections = tables()
    other = detections_from_arrays(truth, IMAGES, CLASSES, BOXES, [0.7, 0.8, 0.9])
    for name in ("voc2012", "coco-bbox"):
        compare(truth, detections, other, protocol=name, replicates=1, test="permutation")


def integrate_next_to_nothing() -> None:
    """Calls the AP interpolations directly."""
    recall, precision = np.array([0.5, 1.0]), np.array([1.0, 0.5])
    for area in (
        integrators.eleven_point,
        integrators.all_points,
        integrators.grid_envelope,
        integrators.step,
    ):
        area(recall, precision)


def rank_next_to_nothing() -> None:
    """Computes classification and retrieval metrics."""
    labels, scores = [0, 1, 1], [0.1, 0.4, 0.35]
    for ties in ranking.TIES:
        ranking.average_precision(labels, scores, ties=ties, sample_weight=[1.0, 1.0, 2.0])
        ranking.precision_recall_curve(labels, scores)
    for integrator in ranking.INTEGRATORS:
        ranking.average_precision(labels, scores, integrator=integrator)
    ranking.auc(labels, scores)
    ranking.roc_curve(labels, scores)
    ranking.best_f_beta(labels, scores)
    ranking.precision_at_k(labels, scores, 1)
    ranking.average_precision_at_k(labels, scores, 1)


def stand_in_for_pycocotools() -> None:
    """Runs the pycocotools drop-in if pycocotools is installed."""
    try:
        from detmap import compat
    except DetmapError:
        return
    from contextlib import redirect_stdout
    from io import StringIO

    rows = [
        {"id": i, "image_id": image, "category_id": label, "bbox": box, "area": 9, "iscrowd": 0}
        for i, (image, label, box) in enumerate(zip(IMAGES, CLASSES, BOXES, strict=True), 1)
    ]
    truth, detections = compat.COCO(), [{**row, "score": 0.5} for row in rows]
    truth.dataset = {
        "images": [{"id": 1, "width": 99, "height": 99}, {"id": 2, "width": 99, "height": 99}],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": rows,
    }
    with redirect_stdout(StringIO()):
        truth.createIndex()
        for thresholds in (10, 17):
            run = compat.COCOeval(truth, truth.loadRes([dict(row) for row in detections]), "bbox")
            run.params.iouThrs = np.linspace(0.5, 0.9, thresholds)
            run.evaluate()
            run.accumulate()
            run.summarize()
            assert run.evalImgs


STEPS = (
    skip_nothing,
    read_nothing,
    read_no_cells,
    evaluate_next_to_nothing,
    evaluate_next_to_no_cars,
    evaluate_next_to_no_shapes,
    doubt_next_to_nothing,
    compare_next_to_nothing,
    diagnose_next_to_nothing,
    integrate_next_to_nothing,
    rank_next_to_nothing,
    stand_in_for_pycocotools,
)


def warmup() -> str:
    """Compiles and saves every kernel; fast if they are saved already. Returns what is where.

    Raises
    ------
    DetmapError : numba compiles the kernels and cannot save them
    """
    for step in STEPS:
        step()
    return saved()


def saved() -> str:
    """Returns where the kernels are that ran in this process; raises as `warmup`."""
    if PLAIN_PYTHON:
        return "the kernels run as plain Python (NUMBA_DISABLE_JIT): nothing is compiled"
    if not jit.folders:
        return f"the kernels are ready: {native.LIBRARY} contains them, nothing is compiled"
    unsaved = [name for name, folder in jit.folders.items() if not folder]
    if unsaved:
        raise DetmapError(
            "warmup",
            f"{counted(len(unsaved), 'kernel')} were compiled and cannot be saved: no folder for "
            "them can be written, so every run compiles them again",
            "set NUMBA_CACHE_DIR to a folder that can be written, here and in later runs",
        )
    where = ", ".join(sorted(set(jit.folders.values())))
    return f"the kernels are ready: numba saved {len(jit.folders)} in {where}"
