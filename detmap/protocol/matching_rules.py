"""The tables of a protocol up to the verdicts: the rules by which benchmarks differ, each a key of
the TOML file. From the ranked list on they are in `detmap.protocol.averaging_rules`.

A key is declared here once, with its meaning, its check, its source and its default; validation,
the documentation and the signature all read this declaration.

More than 400 lines: one declaration per key.
"""

from dataclasses import dataclass
from typing import Annotated

from detmap.base.grids import Grid
from detmap.protocol.key_checks import (
    CLASS_THRESHOLDS,
    DECIMALS,
    FLOOR,
    MARGINS,
    MAX_THRESHOLDS,
    NEUTRAL,
    SIGMAS,
    Key,
    choice,
    grid,
    number,
)


@dataclass(frozen=True, slots=True)
class Boxes:
    """How far a box reaches, and which boxes take part."""

    extent: Annotated[
        str,
        Key(
            "how far a box reaches: `continuous` edges; `inclusive` pixels, width x2 - x1 + 1; "
            "`padded`: to x2 + 1, width (x2 + 1) - x1; or the corners `as_written`, x2 - x1 in "
            "VOC's files too, whose boxes lose a pixel",
            choice("continuous", "inclusive", "padded", "as_written"),
            "continuous: bbIou in pycocotools' maskApi.c; inclusive: VOCevaldet.m; padded: "
            "chainercv eval_detection_voc.py; as_written: podm box.py, Ultralytics VOC.yaml",
        ),
    ]
    empty: Annotated[
        str,
        Key(
            "what becomes of objects and, after the limit, detections with an area of 0: they are "
            "kept (`keep`) or left out altogether (`drop`); `detections`: those without a width or "
            "height are left out before the limit, objects are kept",
            choice("keep", "drop", "detections"),
            "drop: lvis/lvis.py, get_ann_ids (area > 0); detections: TF OD API "
            "per_image_evaluation.py, _remove_invalid_boxes",
            "keep",
        ),
    ]
    reversed: Annotated[
        str,
        Key(
            "what becomes of detections whose right edge is left of the left one, or the lower one "
            "above the upper, as text with corners may have them: they overlap nothing "
            "(`no_overlap`), so they are false positives where no range of sizes excludes them; or "
            "the evaluation stops with an error (`refuse`)",
            choice("no_overlap", "refuse"),
            "no_overlap: VOCevaldet.m (iw>0 & ih>0), bbIou in maskApi.c; refuse: podm box.py and "
            "globox boundingbox.py (assert), rafaelpadilla Evaluator.py (assert iou >= 0)",
            "no_overlap",
        ),
    ]
    clip: Annotated[
        str,
        Key(
            "whether boxes are cut to their image before all else: `no`; `crowdhuman`: left and top"
            " edge to width - 1 and height - 1, right and bottom edge to width and height",
            choice("no", "crowdhuman"),
            "crowdhuman: CrowdDet lib/evaluate APMRToolkits/image.py, clip_all_boader",
            "no",
        ),
    ]
    first_pixel: Annotated[
        str,
        Key(
            "the number of the first pixel while coordinates are rounded to `boxes.precision`: "
            "`one`, as VOC writes; `zero`: 1 is taken from all four before",
            choice("one", "zero"),
            "zero: chainercv voc_bbox_dataset.py; keras-retinanet pascal_voc.py",
            "one",
        ),
    ]
    form: Annotated[
        str,
        Key(
            "what is rounded to `boxes.precision`: the `edges`; left, top and the `sides`; the "
            "`center` and the sides, from which the edges are taken anew; or left, top and the "
            "sides as `fractions` of the image, or as `thousandths` of a pixel whatever its size; "
            "or the `corners`: the edges, from which the sides are taken anew even where nothing "
            "is rounded",
            choice("edges", "sides", "center", "fractions", "thousandths", "corners"),
            "sides: torchmetrics mean_ap.py, box_convert; center: darknet box.c; fractions: "
            "fiftyone utils/iou.py; corners: od_metrics.py, iou",
            "edges",
        ),
    ]
    precision: Annotated[
        str,
        Key(
            "the floating-point numbers that coordinates and areas are held in",
            choice("float64", "float32"),
            "float32: mmdet mean_ap.py; Ultralytics engine/validator.py",
            "float64",
        ),
    ]
    area: Annotated[
        float,
        Key(
            "the area of an object, for area ranges and keypoints: that of the file (0), or this "
            "share of the width times the height of its box",
            number(0, 1),
            "0.53: crowdposetools cocoeval.py, computeOks; xtcocotools (use_area=False)",
            0.0,
        ),
    ]
    object_shift: Annotated[
        float,
        Key(
            "added to the coordinates of the objects, not to those of the detections",
            number(-10, 10),
            "-1: ssd.pytorch eval.py, parse_rec (xmin - 1), while write_voc_results_file adds 1",
            0.0,
        ),
    ]
    aspect: Annotated[
        float,
        Key(
            "objects to find are made this times as wide as they are high, around their center; "
            "ignored objects and those outside the subset keep their width; 0: all keep it",
            number(0, 1e6),
            "0.41: dbEval.m of Caltech, loadGt",
            0.0,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Iou:
    """Which overlaps count as a match."""

    thresholds: Annotated[
        Grid,
        Key(
            "the IoU thresholds",
            grid(0, 1, MAX_THRESHOLDS, above=True),
            "cocoeval.py, Params.setDetParams; VOCinit.m (minoverlap)",
        ),
    ]
    comparison: Annotated[
        str,
        Key(
            "whether an overlap equal to the threshold is a match (`>=`) or not (`>`)",
            choice(">=", ">"),
            ">=: cocoeval.py, VOCevaldet.m; >: py-faster-rcnn voc_eval.py",
        ),
    ]
    cap: Annotated[
        float,
        Key(
            "no threshold is higher than this: 1 - 1e-10 lets a threshold of 1 accept a perfect "
            "overlap",
            number(0, 1),
            "cocoeval.py, evaluateImg: min([t, 1-1e-10])",
        ),
    ]
    of: Annotated[
        str,
        Key(
            "what overlaps: `boxes`, `masks` (pixels), `keypoints` (object keypoint similarity); "
            "of rotated boxes the `polygons`, the rectangles (`rotated`; for four corners the "
            "smallest around them), or the normal distributions with their center and extent "
            "(`probiou`)",
            choice("boxes", "masks", "keypoints", "polygons", "rotated", "probiou"),
            "cocoeval.py, computeIoU and computeOks; polygons: DOTA_devkit polyiou.cpp; rotated: "
            "mmcv box_iou_rotated; probiou: Ultralytics metrics.py, batch_probiou",
            "boxes",
        ),
    ]
    sigmas: Annotated[
        tuple[float, ...],
        Key(
            "of each keypoint, how far annotators disagree about its place",
            SIGMAS,
            "cocoeval.py, Params.setKpParams",
            [],
        ),
    ]
    epsilon: Annotated[
        float,
        Key(
            "added to the area that an overlap is divided by",
            number(0, 1),
            "1e-6: CrowdDet lib/evaluate APMRToolkits/image.py, box_overlap_opr",
            0.0,
        ),
    ]
    least_union: Annotated[
        float,
        Key(
            "the area that an overlap is divided by is at least this",
            number(0, 1),
            "1e-6: mmdet bbox_overlaps.py; eps: keras-retinanet compute_overlap.pyx",
            0.0,
        ),
    ]
    absorb: Annotated[
        str,
        Key(
            "the comparison for objects that absorb; with `iou.comparison` `>` it is that one",
            choice(">=", ">"),
            ">=: cocoeval.py; >: TIDE quantify.py",
            ">=",
        ),
    ]
    absorb_from: Annotated[
        str,
        Key(
            "how the overlap o over a detection's own area d, for objects that absorb, is found: "
            "from the `boxes`; or from the `iou` and the object's area a as "
            "iou / (1 + iou) * (1 + a / d), which is another number in the last bits, and wherever "
            "the area is not that of the box",
            choice("boxes", "iou"),
            "boxes: bbIou in pycocotools' maskApi.c; iou: TinyBenchmark cocoeval.py, IOD_by_IOU",
            "boxes",
        ),
    ]
    arithmetic: Annotated[
        str,
        Key(
            "the numbers that overlaps are computed in, each step rounded; `mixed`: the shared "
            "area in float64, the areas of the boxes in float32",
            choice("float64", "float32", "mixed"),
            "float32: mmdet bbox_overlaps.py, chainercv bbox_iou.py; mixed: ActivityNet "
            "np_box_ops.py, intersection",
            "float64",
        ),
    ]
    tolerance: Annotated[
        float,
        Key(
            "pixels by which a small object may be missed: an object of w x h has the threshold "
            "w h / ((w + tolerance)(h + tolerance)) where that is lower; 0 for none",
            number(0, 1e6),
            "10: ILSVRC2014 eval_detection.m",
            0.0,
        ),
    ]
    classes: Annotated[
        tuple[tuple[str, float], ...],
        Key(
            "the threshold of single classes by name, in place of each of `iou.thresholds`: "
            "`[iou.classes] Car = 0.7`",
            CLASS_THRESHOLDS,
            "Cartucho main.py, --set-class-iou; KITTI evaluate_object_3d_offline.cpp, MIN_OVERLAP",
            {},
        ),
    ]


@dataclass(frozen=True, slots=True)
class Matching:
    """Which object a detection may take, and what neutral objects do."""

    rule: Annotated[
        str,
        Key(
            "`best_free`: a detection takes the best object that is still free; `best_any`: the "
            "best object of all, and if that one is taken the detection is false",
            choice("best_free", "best_any"),
            "best_free: cocoeval.py, evaluateImg; best_any: VOCevaldet.m",
        ),
    ]
    equal: Annotated[
        str,
        Key(
            "which of two objects with the same overlap is the better one: the `last` or the "
            "`first` of the truth; `first_to_find`: the first, neutral ones standing behind the "
            "others; `sorted`: the first after NumPy's unstable sort of all pairs of the image, "
            "backwards; `sorted_own`: the same of the detection's own overlaps; `index`: the last "
            "in an index of the reference's own, for which the last of the truth stands, with a "
            "note",
            choice("last", "first", "first_to_find", "sorted", "sorted_own", "index"),
            "last: cocoeval.py, evaluateImg; first: VOCevaldet.m, CrowdDet, eval_detection.m; "
            "first_to_find: mmdet mean_ap.py, tpfp_default; sorted: yolov5 val.py, process_batch; "
            "sorted_own: mean_average_precision utils.py, row_to_vars; index: fiftyone "
            "utils/iou.py, rtree",
        ),
    ]
    prefer: Annotated[
        str,
        Key(
            "under `best_any`, what comes first: the larger `overlap`; or, where it is reached, an "
            "object `to_find`, and a neutral one only where no such is",
            choice("overlap", "to_find"),
            "overlap: VOCevaldet.m; to_find: darknet detector.c, validate_detector_map",
            "overlap",
        ),
    ]
    flags: Annotated[
        str,
        Key(
            "which flag says that an object is neutral: its `own`; or, for the i-th of n "
            "detections of an image and class and the j-th of m objects, that of object "
            "(i m + j) // n, while all objects count (`repeated`)",
            choice("own", "repeated"),
            "repeated: mean_average_precision utils.py, compute_match_table (np.repeat, reshape)",
            "own",
        ),
    ]
    order: Annotated[
        str,
        Key(
            "the order in which the detections of an image take objects: that of the class's "
            "`ranking`; that of a sort of the image's detections of the `class`, or of all classes "
            "of the `image`; or that of the `input`",
            choice("ranking", "class", "image", "input"),
            "ranking: VOCevaldet.m; class: mmdet mean_ap.py; image: keras-retinanet eval.py; "
            "input: ActivityNet per_image_evaluation.py",
            "ranking",
        ),
    ]
    sort: Annotated[
        str,
        Key(
            "how that sort treats equal scores: `stable`; `unstable`: as NumPy's "
            "argsort(-score) leaves them; `reversed`: as its argsort(score)[::-1] does",
            choice("stable", "unstable", "reversed"),
            "unstable: mmdet mean_ap.py; reversed: chainercv eval_detection_voc.py",
            "stable",
        ),
    ]
    neutral: Annotated[
        tuple[tuple[str, str], ...],
        Key(
            "what an object with a role is. `ignore`: neither an object to find nor, where a "
            "detection meets it, an error; `absorb`: the same, and the overlap with it is measured "
            "over the detection's own area, so that one region takes many detections; `count`: an "
            "ordinary object, as objects whose roles are not listed; `absent`: as if it were not "
            "there; `region`: as `absorb`, asked after all objects, also for a detection that came "
            "too late for one; `region_to_find`: the same, and it is an object to find, by the "
            "best of the detections in it",
            NEUTRAL,
            "crowd: cocoeval.py and maskApi.c; difficult: VOCevaldet.m; ignore: lvis/eval.py; "
            "absent: Ultralytics VOC.yaml; region, region_to_find: TF OD API "
            "per_image_evaluation.py, compute_match_ioa",
            {},
        ),
    ]
    neutral_when: Annotated[
        str,
        Key(
            "when a detection takes a neutral object, or one outside the subset, under "
            "`best_free`: where it reaches no free object to find (`unmatched`), or only where no "
            "object to find of its image and class is free (`none_free`)",
            choice("unmatched", "none_free"),
            "unmatched: cocoeval.py, evaluateImg; none_free: globox evaluation.py, evaluate_boxes",
            "unmatched",
        ),
    ]
    outside: Annotated[
        str,
        Key(
            "what an object outside a subset is while that subset is evaluated: `ignore` or "
            "`absorb`, as for roles",
            choice("ignore", "absorb"),
            "ignore: cocoeval.py, evaluateImg; absorb: CityPersons eval_MR_multisetup.py, bbGt.m",
            "ignore",
        ),
    ]


@dataclass(frozen=True, slots=True)
class DetectionRules:
    """How detections are read, and what one outside a subset is while that is evaluated."""

    outside: Annotated[
        str,
        Key(
            "what a detection is whose box is outside a subset. `neutral`: ignored where it took no"
            " object; `drop`: ignored, and it takes nothing; the upper end is then outside; "
            "`count`: as any other",
            choice("neutral", "drop", "count"),
            "neutral: cocoeval.py, evaluateImg; drop: CityPersons eval_MR_multisetup.py, bbGt.m",
            "neutral",
        ),
    ]
    margin: Annotated[
        float,
        Key(
            "factor by which the ranges are widened for detections, both ways",
            number(1, 1e6),
            "1.25: CityPersons eval_MR_multisetup.py (expFilter), bbGt.m",
            1.0,
        ),
    ]
    above: Annotated[
        tuple[float, ...],
        Key(
            "detections take part whose score is larger than this, in the precision of scores; [] "
            "for all",
            FLOOR,
            "0.05: keras-retinanet eval.py; 0.001: yolov5 val.py; 0.005: darknet detector.c",
            [],
        ),
    ]
    score_precision: Annotated[
        str,
        Key(
            "the floating-point numbers that scores are held in",
            choice("float64", "float32"),
            "float32: mmdet mean_ap.py; Ultralytics engine/validator.py",
            "float64",
        ),
    ]
    score_decimals: Annotated[
        int,
        Key(
            "decimals that scores are written with before they are read again; -1: as they are",
            DECIMALS,
            "3: detectron2 pascal_voc_evaluation.py; ssd.pytorch eval.py",
            -1,
        ),
    ]
    box_decimals: Annotated[
        int,
        Key(
            "decimals that coordinates are written with before they are read again; -1: as they "
            "are",
            DECIMALS,
            "1: detectron2 pascal_voc_evaluation.py; ssd.pytorch eval.py",
            -1,
        ),
    ]
    margins: Annotated[
        tuple[tuple[str, float], ...],
        Key(
            "`detections.margin` of single subsets, by name",
            MARGINS,
            "1 and 1.5: dbEval.m of Caltech (Expand=100, Expand=150)",
            {},
        ),
    ]
    score_scale: Annotated[
        str,
        Key(
            "scores as they are (`no`), or scaled linearly over all detections (`min_max`): the "
            "lowest, at most 1, becomes 0 and the highest, at least 0, becomes 1",
            choice("no", "min_max"),
            "min_max: WIDER FACE evaluation.py (wondervictor), norm_score",
            "no",
        ),
    ]
    score_order: Annotated[
        str,
        Key(
            "the order of an image's detections: by `score`; or that of the `input`, as if it were "
            "sorted: a score is then the highest from its row on",
            choice("score", "input"),
            "input: WIDER FACE evaluation.py (wondervictor), image_eval and img_pr_info",
            "score",
        ),
    ]
