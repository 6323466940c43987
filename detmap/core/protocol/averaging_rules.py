"""The tables of a protocol for scope, limits, ranking, AP and means."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.grids import Grid
from detmap.core.base.immutable import Value
from detmap.core.protocol.integrators import INTEGRATORS, Integrator, integrator
from detmap.core.protocol.key_checks import LIMITS, STOPS, WHOLE, Key, choice, grid, number


@dataclass(slots=True, eq=False, repr=False)
class ScopeRules(Value):
    """The evaluated pairs of image and class, for ground truth that is not exhaustive."""

    unlisted: Annotated[
        str,
        Key(
            "detections of a class on an image without objects of the class and without a label "
            "that it is absent: `judge` (evaluate) them as any other, or `drop` them; `positive`: "
            "drop all detections on images without objects of the class, even if the absence was "
            "verified",
            choice("judge", "drop", "positive"),
            "drop: lvis/eval.py, _prepare; positive: sam3 coco_eval_offline.py, positive split",
            "judge",
        ),
    ]
    not_exhaustive: Annotated[
        str,
        Key(
            "detections of a class on an image whose annotation of the class is not exhaustive: "
            "`judge` (evaluate) them as any other, or ignore the unmatched ones (`neutral`)",
            choice("judge", "neutral"),
            "neutral: lvis/eval.py, evaluate_img (img_nel)",
            "judge",
        ),
    ]
    unknown: Annotated[
        str,
        Key(
            "images and classes that the detections contain and the ground truth does not: an "
            "`error`; or add the `classes`, or both (`add`), without objects, for ground-truth "
            "files without a list of them",
            choice("error", "classes", "add"),
            "classes: DOTA_devkit, classnames; add: mmrotate eval_map.py, Ultralytics "
            "validator.py (all images of the data set)",
            "error",
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class Limits(Value):
    """The detection limits; `NO_LIMIT` for none."""

    max_dets: Annotated[
        tuple[int, ...],
        Key(
            "the detection limits, with one result per limit; [] for no limit",
            LIMITS,
            "cocoeval.py, Params.setDetParams; lvis/results.py, limit_dets_per_image",
        ),
    ]
    scope: Annotated[
        str,
        Key(
            "what the limit applies to: each `class` of an image; all classes of an `image`; or "
            "each class of the whole `dataset`, which cannot be evaluated in parts",
            choice("class", "image", "dataset"),
            "class: cocoeval.py, evaluateImg; image: lvis/results.py, VisDrone calcAccuracy.m; "
            "dataset: GLIP lvis_eval.py, LvisEvaluatorFixedAP",
            "class",
        ),
    ]
    order: Annotated[
        str,
        Key(
            "the detections within the limit: those with the highest `score`, the first of tied "
            "ones; or the first of the `input`, which allows one limit only",
            choice("score", "input"),
            "score: cocoeval.py, lvis/results.py; input: VisDrone calcAccuracy.m",
            "score",
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class Ranking(Value):
    """The order of a class's detections."""

    ties: Annotated[
        str,
        Key(
            "the order of tied scores: by `image` id, then input order; by `input` order; by image"
            " id, then the order in which the image's detections were `matched`; or by the order "
            "in which the class's detections first name the images (`first_seen`)",
            choice("image", "input", "matched", "first_seen"),
            "image: cocoeval.py, accumulate; input: VOCevaldet.m; matched: chainercv "
            "eval_detection_voc.py; first_seen: review_object_detection_metrics coco_evaluator.py",
        ),
    ]
    sort: Annotated[
        str,
        Key(
            "the sort by score: `stable`; `unstable`: as NumPy's argsort(-score); `reversed`: as "
            "NumPy's argsort(score)[::-1]; `objects`: the same for scores stored as Python objects",
            choice("stable", "unstable", "reversed", "objects"),
            "stable: cocoeval.py, VOCevaldet.m; unstable: py-faster-rcnn voc_eval.py; reversed: "
            "chainercv eval_detection_voc.py; objects: mean_average_precision mean_average_"
            "precision_2d.py (pandas)",
            "stable",
        ),
    ]
    precision: Annotated[
        str,
        Key(
            "the type of the sorted values: the `scores` as stored, or `float64`; it matters if "
            "NumPy's sort is unstable",
            choice("scores", "float64"),
            "float64: keras-retinanet eval.py; TF OD API object_detection_evaluation.py",
            "scores",
        ),
    ]
    ignored: Annotated[
        str,
        Key(
            "whether ignored detections `stay` in the list before the sort, or `leave` it; it "
            "matters if NumPy's sort is unstable",
            choice("stay", "leave"),
            "leave: TF OD API per_image_evaluation.py (valid_entries)",
            "stay",
        ),
    ]
    stops_at: Annotated[
        tuple[str, ...],
        Key(
            "cases in which the reference stops with an error and detmap continues with a note: a "
            "class with `no_detections`; a class whose highest-scoring detection is ignored "
            "(`neutral_first`)",
            STOPS,
            "no_detections: py-faster-rcnn voc_eval.py (IndexError); neutral_first: Cartucho "
            "main.py (ZeroDivisionError)",
            [],
        ),
    ]
    of: Annotated[
        str,
        Key(
            "the lists that are sorted by score: one per `class`, or one for `all` classes",
            choice("class", "all"),
            "class: VOCevaldet.m; all: Ultralytics utils/metrics.py, ap_per_class",
            "class",
        ),
    ]
    equal: Annotated[
        str,
        Key(
            "whether tied scores keep their `order`, or true positives rank before false positives"
            " (`true_first`)",
            choice("order", "true_first"),
            "true_first: fiftyone utils/eval/coco.py",
            "order",
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class AveragePrecision(Value):
    """The AP of a ranked list."""

    integrator: Annotated[
        str,
        Key(
            "the AP interpolation: how recall and precision become AP",
            choice(*(row.name for row in INTEGRATORS)),
            "eleven_point: VOCevaldet.m of 2007; all_points: VOCap.m; grid_envelope: cocoeval.py; "
            "trapezoid: yolov5 utils/metrics.py; left_envelope: darknet detector.c; "
            "between_ranks: CrowdDet database.py, eval_AP; score_samples: WIDER FACE evaluation.py",
        ),
    ]
    grid: Annotated[
        Grid,
        Key(
            "recall points of `grid_envelope` and `trapezoid`",
            grid(0, 1, 100_001, above=False),
            "cocoeval.py, Params.setDetParams",
        ),
    ]
    eleven: Annotated[
        Grid,
        Key(
            "recall points of `eleven_point`",
            grid(0, 1, 100_001, above=False),
            "VOCevaldet.m; voc_eval.py",
        ),
    ]
    epsilon: Annotated[
        float,
        Key(
            "added to TP + FP before the division",
            number(0, 1e-6),
            "np.spacing(1): cocoeval.py, accumulate",
        ),
    ]
    recall_over: Annotated[
        str,
        Key(
            "the objects in the denominator of recall: the `counted` ones, or `all`, including "
            "ignored ones",
            choice("counted", "all"),
            "all: VisDrone evalRes.m",
            "counted",
        ),
    ] = "counted"
    tail: Annotated[
        str,
        Key(
            "the precision of `trapezoid` beyond the last recall: a `ramp` from the last precision"
            " to 0 at recall 1, or 0 at once (`drop`)",
            choice("ramp", "drop"),
            "ramp: yolov5 utils/metrics.py, compute_ap; drop: Ultralytics 8.4 utils/metrics.py",
            "ramp",
        ),
    ] = "ramp"
    arithmetic: Annotated[
        str,
        Key(
            "the floating-point type of precision and of the sum of the eleven points",
            choice("float64", "float32"),
            "float32: mmdet mean_ap.py",
            "float64",
        ),
    ] = "float64"
    sum: Annotated[
        str,
        Key(
            "the order of the sum of an area: sequential (`running`), or as NumPy adds "
            "(`pairwise`); it changes the last bits",
            choice("running", "pairwise"),
            "running: VOCap.m; pairwise: voc_eval.py, np.sum",
            "running",
        ),
    ] = "running"
    stored: Annotated[
        str,
        Key(
            "the floating-point type that a class's AP, or its precision at a recall point, is "
            "rounded to",
            choice("float64", "float32"),
            "float32: mmeval voc_map.py; supervision mean_average_precision.py",
            "float64",
        ),
    ] = "float64"
    no_objects: Annotated[
        str,
        Key(
            "the AP of a class without counted objects: `undefined`, or 0 (`zero`); its effect on "
            "the mean is `mean.undefined`",
            choice("undefined", "zero"),
            "zero: mmdet mean_ap.py; keras-retinanet eval.py",
            "undefined",
        ),
    ] = "undefined"
    pool: Annotated[
        str,
        Key(
            "whether each `class` has its own curve, or `all` classes share one",
            choice("class", "all"),
            "all: TF OD API metrics, WeightedPascalDetectionEvaluator",
            "class",
        ),
    ] = "class"
    samples: Annotated[
        int,
        Key(
            "the number of scores that `score_samples` reads: 1 - 1/n, 1 - 2/n ... 0",
            WHOLE,
            "1000: WIDER FACE evaluation.py (wondervictor), thresh_num",
            1000,
        ),
    ] = 1000

    @property
    def rule(self) -> Integrator:
        """The row of the AP interpolation."""
        return integrator(self.integrator)

    def points(self) -> NDArray[np.float64]:
        """(R,) the recall points of the interpolation; those of ``grid`` if it has none."""
        return self.eleven.values() if self.rule.points == "eleven" else self.grid.values()


@dataclass(slots=True, eq=False, repr=False)
class OperatingPoint(Value):
    """The score threshold of the rows P, R and F1."""

    rule: Annotated[
        str,
        Key(
            "the score threshold of P, R and F1. `above`: detections of all classes that score "
            "more than `operating.score`; `best_mean_f1`: the threshold, out of "
            "`operating.samples` from 0 to 1, with the highest smoothed mean F1 over classes; the "
            "values are means over classes",
            choice("above", "best_mean_f1"),
            "above: darknet detector.c, thresh_calc_avg_iou; best_mean_f1: yolov5 "
            "utils/metrics.py, ap_per_class",
            "above",
        ),
    ]
    score: Annotated[
        float,
        Key(
            "the score threshold of `above`",
            number(0, 1),
            "0.25: darknet detector.c, thresh_calc_avg_iou",
            0.25,
        ),
    ]
    samples: Annotated[
        int,
        Key(
            "the number of thresholds of `best_mean_f1`; precision and recall are interpolated "
            "linearly between detections",
            WHOLE,
            "1000: yolov5 utils/metrics.py, px",
            1000,
        ),
    ]
    smooth: Annotated[
        float,
        Key(
            "the width of the moving average of F1, as a fraction of the samples; 0: no smoothing",
            number(0, 1),
            "0.1: yolov5 utils/metrics.py, smooth",
            0.1,
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class Mean(Value):
    """The mean over classes."""

    undefined: Annotated[
        str,
        Key(
            "the value of a class without counted objects in the mean: none (`skip`), 0 (`zero`), "
            "1 (`one`), 0 if it has detections that are not ignored (`detected`); `no_mean`: NaN, "
            "so that there is no mean, if it has detections, else 0",
            choice("skip", "zero", "one", "no_mean", "detected"),
            "skip: cocoeval.py, summarize; zero: DOTA; no_mean: voc_eval.py, np.mean; detected: "
            "TIDE ap.py",
        ),
    ]
    undetected: Annotated[
        float,
        Key(
            "the AP of a class without evaluated detections, also if it has no objects",
            number(-1, 0),
            "-1: ssd.pytorch eval.py, voc_eval",
            0.0,
        ),
    ]
    weights: Annotated[
        str,
        Key(
            "the weight of a class in the mean: the same for all (`equal`), its number of `images`"
            " with an object, or its number of counted `objects`",
            choice("equal", "images", "objects"),
            "images: VisDrone calcAccuracy.m (evalClass repeats); objects: keras-retinanet "
            "bin/evaluate.py (--weighted-average)",
            "equal",
        ),
    ]
    precision: Annotated[
        str,
        Key(
            "the floating-point type of the mean: `float64`; `float32`: values, sum and mean; "
            "`rounded`: only the mean, overall and per class, is rounded to float32",
            choice("float64", "float32", "rounded"),
            "float32: mmdet mean_ap.py; rounded: torchmetrics mean_ap.py",
            "float64",
        ),
    ]
