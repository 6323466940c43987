"""The tables of a protocol for boxes, overlaps and matching. Each rule that differs between
benchmarks is a key of the TOML file. `detmap.core.protocol.averaging_rules` has the tables for
curves and means.

Each key is declared once, with its meaning, check, source and default. Validation, documentation
and signature read this declaration.
"""

from dataclasses import dataclass
from typing import Annotated

from detmap.core.base.grids import Grid
from detmap.core.base.immutable import Value
from detmap.core.protocol.key_checks import (
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


@dataclass(slots=True, eq=False, repr=False)
class Boxes(Value):
    """The box convention, and which boxes are evaluated."""

    extent: Annotated[
        str,
        Key(
            "the box convention: `continuous` edges; `inclusive` pixels, width x2 - x1 + 1; "
            "`padded`: the box ends at x2 + 1, width (x2 + 1) - x1; `as_written`: width x2 - x1 in"
            " VOC's files too, whose boxes become one pixel smaller",
            choice("continuous", "inclusive", "padded", "as_written"),
            "continuous: bbIou in pycocotools' maskApi.c; inclusive: VOCevaldet.m; padded: "
            "chainercv eval_detection_voc.py; as_written: podm box.py, Ultralytics VOC.yaml",
        ),
    ]
    empty: Annotated[
        str,
        Key(
            "objects and, after the limit, detections with an area of 0: `keep` or `drop` them; "
            "`detections`: drop detections without width or height before the limit, keep objects",
            choice("keep", "drop", "detections"),
            "drop: lvis/lvis.py, get_ann_ids (area > 0); detections: TF OD API "
            "per_image_evaluation.py, _remove_invalid_boxes",
            "keep",
        ),
    ]
    reversed: Annotated[
        str,
        Key(
            "detections with x2 < x1 or y2 < y1, possible in text files with corners: "
            "`no_overlap`: they overlap nothing, so they are false positives unless an area range "
            "excludes them; `refuse`: the evaluation stops with an error",
            choice("no_overlap", "refuse"),
            "no_overlap: VOCevaldet.m (iw>0 & ih>0), bbIou in maskApi.c; refuse: podm box.py and "
            "globox boundingbox.py (assert), rafaelpadilla Evaluator.py (assert iou >= 0)",
            "no_overlap",
        ),
    ]
    clip: Annotated[
        str,
        Key(
            "clip boxes to their image first: `no`; `crowdhuman`: left and top edge to width - 1 "
            "and height - 1, right and bottom edge to width and height",
            choice("no", "crowdhuman"),
            "crowdhuman: CrowdDet lib/evaluate APMRToolkits/image.py, clip_all_boader",
            "no",
        ),
    ]
    first_pixel: Annotated[
        str,
        Key(
            "the index of the first pixel when coordinates are rounded to `boxes.precision`: "
            "`one`, as VOC writes; `zero`: subtract 1 from all four coordinates first",
            choice("one", "zero"),
            "zero: chainercv voc_bbox_dataset.py; keras-retinanet pascal_voc.py",
            "one",
        ),
    ]
    form: Annotated[
        str,
        Key(
            "the values that are rounded to `boxes.precision`: the `edges`; left, top and the "
            "`sides`; the `center` and the sides, which then give the edges; left, top and the "
            "sides as `fractions` of the image, or as `thousandths` of a pixel for any image size;"
            " the `corners`: the edges, which then give the sides, even without rounding",
            choice("edges", "sides", "center", "fractions", "thousandths", "corners"),
            "sides: torchmetrics mean_ap.py, box_convert; center: darknet box.c; fractions: "
            "fiftyone utils/iou.py; corners: od_metrics.py, iou",
            "edges",
        ),
    ]
    precision: Annotated[
        str,
        Key(
            "the floating-point type of coordinates and areas",
            choice("float64", "float32"),
            "float32: mmdet mean_ap.py; Ultralytics engine/validator.py",
            "float64",
        ),
    ]
    area: Annotated[
        float,
        Key(
            "the area of an object, for area ranges and keypoints: 0: the area in the file; else "
            "this fraction of box width times height",
            number(0, 1),
            "0.53: crowdposetools cocoeval.py, computeOks; xtcocotools (use_area=False)",
            0.0,
        ),
    ]
    object_shift: Annotated[
        float,
        Key(
            "the offset added to the coordinates of objects, but not of detections",
            number(-10, 10),
            "-1: ssd.pytorch eval.py, parse_rec (xmin - 1), while write_voc_results_file adds 1",
            0.0,
        ),
    ]
    aspect: Annotated[
        float,
        Key(
            "the aspect ratio (width / height) that counted objects are set to, around their "
            "center; ignored objects and objects outside the subset keep their width; 0: no change",
            number(0, 1e6),
            "0.41: dbEval.m of Caltech, loadGt",
            0.0,
        ),
    ]
    aspect_of: Annotated[
        str,
        Key(
            "what `boxes.aspect` changes: `objects` alone, or `both`, objects and all detections",
            choice("objects", "both"),
            "objects: dbEval.m in CSP; both: dbEval.m of Caltech 3.2.1, loadDt",
            "objects",
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class Iou(Value):
    """The overlap of a detection and an object, and its thresholds."""

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
            "the upper bound of thresholds: 1 - 1e-10 lets a threshold of 1 accept a perfect match",
            number(0, 1),
            "cocoeval.py, evaluateImg: min([t, 1-1e-10])",
        ),
    ]
    of: Annotated[
        str,
        Key(
            "the shapes that are compared: `boxes`, `masks` (pixels), masks by the lower of their "
            "mask IoU and the IoU of their boundaries (`boundary`), `keypoints` (object keypoint "
            "similarity); for rotated boxes the `polygons`, the rectangles (`rotated`; four "
            "corners give the smallest rectangle around them), or normal distributions with the "
            "center and size of the box (`probiou`)",
            choice("boxes", "masks", "boundary", "keypoints", "polygons", "rotated", "probiou"),
            "cocoeval.py, computeIoU and computeOks; boundary: boundary-iou-api cocoeval.py, "
            "computeBoundaryIoU; polygons: DOTA_devkit polyiou.cpp; rotated: "
            "mmcv box_iou_rotated; probiou: Ultralytics metrics.py, batch_probiou",
            "boxes",
        ),
    ]
    dilation: Annotated[
        float,
        Key(
            'the width of a boundary (`iou.of = "boundary"`) as a part of the image\'s diagonal; '
            "at least one pixel",
            number(0, 1),
            "boundary-iou-api boundary_utils.py, mask_to_boundary: dilation_ratio",
            0.02,
        ),
    ]
    sigmas: Annotated[
        tuple[float, ...],
        Key(
            "per keypoint, the standard deviation between annotators",
            SIGMAS,
            "cocoeval.py, Params.setKpParams",
            [],
        ),
    ]
    epsilon: Annotated[
        float,
        Key(
            "the constant added to the divisor of an overlap",
            number(0, 1),
            "1e-6: CrowdDet lib/evaluate APMRToolkits/image.py, box_overlap_opr",
            0.0,
        ),
    ]
    least_union: Annotated[
        float,
        Key(
            "the lower bound of the divisor of an overlap",
            number(0, 1),
            "1e-6: mmdet bbox_overlaps.py; eps: keras-retinanet compute_overlap.pyx",
            0.0,
        ),
    ]
    absorb: Annotated[
        str,
        Key(
            "the comparison for ignored regions (`absorb`); `iou.comparison` `>` applies to them "
            "too",
            choice(">=", ">"),
            ">=: cocoeval.py; >: TIDE quantify.py",
            ">=",
        ),
    ]
    absorb_from: Annotated[
        str,
        Key(
            "how an overlap with an ignored region (`absorb`) is computed, which is divided by the"
            " detection's own area d: from the `boxes`; or from the `iou` and the region's area a "
            "as iou / (1 + iou) * (1 + a / d), which differs in the last bits, and more if the "
            "area is not that of the box",
            choice("boxes", "iou"),
            "boxes: bbIou in pycocotools' maskApi.c; iou: TinyBenchmark cocoeval.py, IOD_by_IOU",
            "boxes",
        ),
    ]
    arithmetic: Annotated[
        str,
        Key(
            "the floating-point type of overlaps, rounded after each step; `mixed`: intersections "
            "in float64, areas of boxes in float32",
            choice("float64", "float32", "mixed"),
            "float32: mmdet bbox_overlaps.py, chainercv bbox_iou.py; mixed: ActivityNet "
            "np_box_ops.py, intersection",
            "float64",
        ),
    ]
    tolerance: Annotated[
        float,
        Key(
            "tolerance for small objects, in pixels: an object of w x h has the threshold w h / "
            "((w + tolerance)(h + tolerance)) if that is lower; 0: no tolerance",
            number(0, 1e6),
            "10: ILSVRC2014 eval_detection.m",
            0.0,
        ),
    ]
    classes: Annotated[
        tuple[tuple[str, float], ...],
        Key(
            "IoU thresholds of single classes by name, in place of each of `iou.thresholds`: "
            "`[iou.classes] Car = 0.7`",
            CLASS_THRESHOLDS,
            "Cartucho main.py, --set-class-iou; KITTI evaluate_object_3d_offline.cpp, MIN_OVERLAP",
            {},
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class Matching(Value):
    """The matching rule, and the treatment of ignored objects."""

    rule: Annotated[
        str,
        Key(
            "the matching rule. `best_free`: a detection matches the best unmatched object; "
            "`best_any`: only the best of all objects; if that is already matched, the detection "
            "is a false positive",
            choice("best_free", "best_any"),
            "best_free: cocoeval.py, evaluateImg; best_any: VOCevaldet.m",
        ),
    ]
    equal: Annotated[
        str,
        Key(
            "which of several objects with the same overlap wins: the `last` or the `first` in the"
            " ground truth; `first_to_find`: the first, counted objects before ignored ones; "
            "`sorted`: the first after NumPy's unstable sort of all pairs of the image, reversed; "
            "`sorted_own`: the same for the overlaps of one detection; `index`: the last in a "
            "spatial index of the reference; detmap uses the last in the ground truth, with a note",
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
            "the priority under `best_any`: the larger `overlap`; or, at or above the threshold, a"
            " counted object (`to_find`) before an ignored one",
            choice("overlap", "to_find"),
            "overlap: VOCevaldet.m; to_find: darknet detector.c, validate_detector_map",
            "overlap",
        ),
    ]
    flags: Annotated[
        str,
        Key(
            "the flag that makes an object ignored: its `own`; `repeated`: for the i-th of n "
            "detections of an image and class and the j-th of m objects, the flag of object (i m +"
            " j) // n, while all objects are counted",
            choice("own", "repeated"),
            "repeated: mean_average_precision utils.py, compute_match_table (np.repeat, reshape)",
            "own",
        ),
    ]
    order: Annotated[
        str,
        Key(
            "the order in which the detections of an image are matched: the `ranking` of the "
            "class; a sort of the image's detections of the `class`, or of all classes of the "
            "`image`; or the order of the `input`",
            choice("ranking", "class", "image", "input"),
            "ranking: VOCevaldet.m; class: mmdet mean_ap.py; image: keras-retinanet eval.py; "
            "input: ActivityNet per_image_evaluation.py",
            "ranking",
        ),
    ]
    sort: Annotated[
        str,
        Key(
            "the order of tied scores in that sort: `stable`; `unstable`: as NumPy's "
            "argsort(-score) leaves them; `reversed`: as NumPy's argsort(score)[::-1]",
            choice("stable", "unstable", "reversed"),
            "unstable: mmdet mean_ap.py; reversed: chainercv eval_detection_voc.py",
            "stable",
        ),
    ]
    neutral: Annotated[
        tuple[tuple[str, str], ...],
        Key(
            "the treatment of objects by role. `ignore`: not counted; a matched detection is "
            "ignored too; `absorb`: the same, but the overlap is divided by the detection's own "
            "area, and any number of detections can match; `count`: an ordinary object, as are "
            "objects with roles that are not listed; `absent`: removed; `region`: like `absorb`, "
            "but compared after all objects, also for duplicate detections; `region_to_find`: the "
            "same, and the region is counted and matched by its best detection with a score above "
            "0",
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
            "when a detection can match an ignored object, or one outside the subset, under "
            "`best_free`: if it reaches no unmatched counted object (`unmatched`), or only if all "
            "counted objects of its image and class are matched (`none_free`)",
            choice("unmatched", "none_free"),
            "unmatched: cocoeval.py, evaluateImg; none_free: globox evaluation.py, evaluate_boxes",
            "unmatched",
        ),
    ]
    outside: Annotated[
        str,
        Key(
            "the treatment of objects outside a subset when that subset is evaluated: `ignore` or "
            "`absorb`, as for roles",
            choice("ignore", "absorb"),
            "ignore: cocoeval.py, evaluateImg; absorb: CityPersons eval_MR_multisetup.py, bbGt.m",
            "ignore",
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class DetectionRules(Value):
    """The treatment of scores, and of detections outside a subset."""

    outside: Annotated[
        str,
        Key(
            "the treatment of detections outside a subset. `neutral`: ignored if unmatched; "
            "`drop`: ignored and never matched, and the upper end of a range is outside; `count`: "
            "as any other",
            choice("neutral", "drop", "count"),
            "neutral: cocoeval.py, evaluateImg; drop: CityPersons eval_MR_multisetup.py, bbGt.m",
            "neutral",
        ),
    ]
    margin: Annotated[
        float,
        Key(
            "the factor that widens the ranges of subsets for detections, at both ends",
            number(1, 1e6),
            "1.25: CityPersons eval_MR_multisetup.py (expFilter), bbGt.m",
            1.0,
        ),
    ]
    above: Annotated[
        tuple[float, ...],
        Key(
            "only detections with a higher score are used; compared in the precision of scores; "
            "[]: all",
            FLOOR,
            "0.05: keras-retinanet eval.py; 0.001: yolov5 val.py; 0.005: darknet detector.c",
            [],
        ),
    ]
    score_precision: Annotated[
        str,
        Key(
            "the floating-point type of scores",
            choice("float64", "float32"),
            "float32: mmdet mean_ap.py; Ultralytics engine/validator.py",
            "float64",
        ),
    ]
    score_decimals: Annotated[
        int,
        Key(
            "the number of decimals that scores are rounded to, as by writing and reading them; "
            "-1: no rounding",
            DECIMALS,
            "3: detectron2 pascal_voc_evaluation.py; ssd.pytorch eval.py",
            -1,
        ),
    ]
    box_decimals: Annotated[
        int,
        Key(
            "the number of decimals that coordinates are rounded to, as by writing and reading "
            "them; -1: no rounding",
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
            "scaling of scores: `no`; `min_max`: linear over all detections: the lowest, at most "
            "1, becomes 0 and the highest, at least 0, becomes 1",
            choice("no", "min_max"),
            "min_max: WIDER FACE evaluation.py (wondervictor), norm_score",
            "no",
        ),
    ]
    score_order: Annotated[
        str,
        Key(
            "the order of an image's detections: by `score`; or the order of the `input`, treated "
            "as sorted: the score of a row is the highest of all rows from it on",
            choice("score", "input"),
            "input: WIDER FACE evaluation.py (wondervictor), image_eval and img_pr_info",
            "score",
        ),
    ]
