"""Compiles the kernels ahead of time, by calling each on tiny inputs.

Each public function that runs a kernel is called for each combination of argument types.
`tools/build_native.py` builds the machine-code library from these calls; a test checks that all
commands are covered.
"""

from dataclasses import replace

import numpy as np

from detmap import wings
from detmap.compare import compare
from detmap.core.adapters.in_memory.arrays import detections_from_arrays, truth_from_arrays
from detmap.core.curves.scores import coco_arrays
from detmap.core.matching.counting import count_boxes
from detmap.core.matching.engine import match
from detmap.core.overlaps import WING, masks
from detmap.core.overlaps.keypoints import KeypointReader, Keypoints
from detmap.core.protocol import integrators, load, names
from detmap.core.protocol.benchmark_rules import EXTRA
from detmap.core.tables import ABSENT, NOT_EXHAUSTIVE, Detections, Scope, Truth
from detmap.errors import DetmapError, counted
from detmap.evaluate import evaluate, summarize
from detmap.kernels import PLAIN_PYTHON, jit, native

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
        if all(wings.is_installed(EXTRA[name].place) for name in rules.evaluation.extra)
    ]  # other protocols need attributes and classes of their files, and the same kernels
    for rules in boxes:
        for settings in ({}, many):
            result = evaluate(truth, detections, rules, settings=settings)
            coco_arrays(result.matches)
            count_boxes(truth, detections, result.protocol, (0.0, 0, 0))
            result.curve(1, result.protocol.thresholds()[0])
            result.integrators()


def evaluate_next_to_no_shapes() -> None:
    """Matches keypoints, masks and polygons; keeps assignments."""
    truth, detections = tables()
    box = np.array(BOXES)
    points = np.repeat(box[:, :1], 51, axis=1)
    polygons = [[[x, y, x + w, y, x + w, y + h]] for x, y, w, h in BOXES]
    shapes: dict[str, Keypoints | masks.Masks] = {
        "coco-keypoints": KeypointReader().from_numbers(points, str),
        "coco-segm": masks.read([{"size": [2, 2], "counts": "04"}] * 3, np.full((3, 2), 2.0), str),
    }
    if wings.is_installed(WING):
        shapes["coco-boundary"] = shapes["coco-segm"]
    masks.read([[*polygons[0], *polygons[1]], *polygons[1:]], np.full((3, 2), 40.0), str)
    long_run = [{"size": [256, 256], "counts": [1 << 16]}]
    replace(masks.read(long_run, np.full((1, 2), 256.0), str))  # packs it, and checks it unpacked
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
                one.intervals()
                one.ties(orders=1)
                summarize(one.matches, weights=[1.0, 2.0])


def compare_next_to_nothing() -> None:
    """Compares two detectors."""
    truth, detections = tables()
    other = detections_from_arrays(truth, IMAGES, CLASSES, BOXES, [0.7, 0.8, 0.9])
    for name in ("voc2012", "coco-bbox"):
        compare(truth, detections, other, protocol=name)


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


STEPS = (
    "detmap.core.adapters.coco.scan_json:skip_nothing",
    "detmap.core.adapters.voc.scan_voc:read_nothing",
    "detmap.core.adapters.tabular.csv_cells:read_no_cells",
    "detmap.warmup:evaluate_next_to_nothing",
    "detmap.benchmarks.warmup:evaluate_next_to_no_cars",
    "detmap.warmup:evaluate_next_to_no_shapes",
    "detmap.warmup:doubt_next_to_nothing",
    "detmap.warmup:compare_next_to_nothing",
    "detmap.analysis.diagnosis.warmup:diagnose_next_to_nothing",
    "detmap.warmup:integrate_next_to_nothing",
    "detmap.ranking.warmup:rank_next_to_nothing",
    "detmap.compat.warmup:evaluate_like_pycocotools",
)
"""Places of functions that run kernels; see `detmap.wings`."""


def warmup() -> str:
    """Compiles and saves every kernel; fast if they are saved already. Returns what is where.

    Raises
    ------
    DetmapError : numba compiles the kernels and cannot save them
    """
    for place in STEPS:
        try:
            step = wings.load(place)
        except DetmapError:  # the package, or one that it needs, is not installed
            continue
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
