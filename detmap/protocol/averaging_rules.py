"""The tables of a protocol from the ranked list to the number: scope, limits, order, AP, means."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from detmap.base.grids import Grid
from detmap.protocol.integrators import INTEGRATORS, Integrator, integrator
from detmap.protocol.key_checks import LIMITS, STOPS, WHOLE, Key, choice, grid, number


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """Which pairs of image and class are judged, where the truth is not annotated everywhere."""

    unlisted: Annotated[
        str,
        Key(
            "detections of a class on an image where the truth neither has an object of it nor "
            "says that there is none: `judge` them as any other, or `drop` them; `positive`: drop "
            "all on an image without an object of the class, whatever the truth says",
            choice("judge", "drop", "positive"),
            "drop: lvis/eval.py, _prepare; positive: sam3 coco_eval_offline.py, positive split",
            "judge",
        ),
    ]
    not_exhaustive: Annotated[
        str,
        Key(
            "detections of a class on an image where the truth says that not all objects are "
            "annotated: `judge` them as any other, or ignore those that took no object (`neutral`)",
            choice("judge", "neutral"),
            "neutral: lvis/eval.py, evaluate_img (img_nel)",
            "judge",
        ),
    ]
    unknown: Annotated[
        str,
        Key(
            "images and classes that the detections name and the truth does not: an `error`; or "
            "the `classes`, or both (`add`), are added without objects, for truth files without "
            "a list of them",
            choice("error", "classes", "add"),
            "classes: DOTA_devkit, classnames; add: mmrotate eval_map.py, Ultralytics "
            "validator.py (all images of the data set)",
            "error",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many detections are looked at; `NO_LIMIT` where there is none."""

    max_dets: Annotated[
        tuple[int, ...],
        Key(
            "how many detections are looked at, one result each; [] for all",
            LIMITS,
            "cocoeval.py, Params.setDetParams; lvis/results.py, limit_dets_per_image",
        ),
    ]
    scope: Annotated[
        str,
        Key(
            "of what: of each `class` on an image, of all classes of an `image` together, or of "
            "each class in the whole `dataset`, which cannot be evaluated in parts",
            choice("class", "image", "dataset"),
            "class: cocoeval.py, evaluateImg; image: lvis/results.py, VisDrone calcAccuracy.m; "
            "dataset: GLIP lvis_eval.py, LvisEvaluatorFixedAP",
            "class",
        ),
    ]
    order: Annotated[
        str,
        Key(
            "which ones: those that `score` best, of equal scores the first; or the first of the "
            "`input`, which allows for one limit only",
            choice("score", "input"),
            "score: cocoeval.py, lvis/results.py; input: VisDrone calcAccuracy.m",
            "score",
        ),
    ]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of a class's detections."""

    ties: Annotated[
        str,
        Key(
            "which of two equal scores ranks first: by `image` id, then input order; by `input` "
            "order alone; by image id, then the order in which the image's detections took objects "
            "(`matched`); or by the image that the class's detections name first (`first_seen`)",
            choice("image", "input", "matched", "first_seen"),
            "image: cocoeval.py, accumulate; input: VOCevaldet.m; matched: chainercv "
            "eval_detection_voc.py; first_seen: review_object_detection_metrics coco_evaluator.py",
        ),
    ]
    sort: Annotated[
        str,
        Key(
            "what the sort by score makes of that order: `stable` keeps it; `unstable`: as NumPy's "
            "argsort(-score) leaves it; `reversed`: as its argsort(score)[::-1] does; `objects`: "
            "the same for scores that are Python's objects",
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
            "the numbers that this sort sees: the `scores` as they are held, or `float64`; it "
            "tells where NumPy's sort is not stable",
            choice("scores", "float64"),
            "float64: keras-retinanet eval.py; TF OD API object_detection_evaluation.py",
            "scores",
        ),
    ]
    ignored: Annotated[
        str,
        Key(
            "whether ignored detections `stay` in the list that is sorted, or `leave` it before; "
            "it tells where NumPy's sort is not stable",
            choice("stay", "leave"),
            "leave: TF OD API per_image_evaluation.py (valid_entries)",
            "stay",
        ),
    ]
    stops_at: Annotated[
        tuple[str, ...],
        Key(
            "where the reference stops with an error and gives no number, while detmap goes on and "
            "says so in a note: a class with `no_detections`; one whose best detection is neutral "
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
            "what is sorted by score: each `class`, or `all` classes in one list",
            choice("class", "all"),
            "class: VOCevaldet.m; all: Ultralytics utils/metrics.py, ap_per_class",
            "class",
        ),
    ]
    equal: Annotated[
        str,
        Key(
            "whether equal scores stay in their `order`, or true ones rank before false ones "
            "(`true_first`)",
            choice("order", "true_first"),
            "true_first: fiftyone utils/eval/coco.py",
            "order",
        ),
    ]


@dataclass(frozen=True, slots=True)
class AveragePrecision:
    """From a ranked list to one number."""

    integrator: Annotated[
        str,
        Key(
            "the rule that turns recall and precision into AP",
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
            "the objects that recall is a share of: those to find (`counted`), or `all`, neutral "
            "ones too",
            choice("counted", "all"),
            "all: VisDrone evalRes.m",
            "counted",
        ),
    ] = "counted"
    tail: Annotated[
        str,
        Key(
            "precision of `trapezoid` from the last recall on: a `ramp` from the last precision to "
            "0 at recall 1, or 0 at once (`drop`)",
            choice("ramp", "drop"),
            "ramp: yolov5 utils/metrics.py, compute_ap; drop: Ultralytics 8.4 utils/metrics.py",
            "ramp",
        ),
    ] = "ramp"
    arithmetic: Annotated[
        str,
        Key(
            "the numbers that precision and the sum of the eleven points are computed in",
            choice("float64", "float32"),
            "float32: mmdet mean_ap.py",
            "float64",
        ),
    ] = "float64"
    sum: Annotated[
        str,
        Key(
            "how the parts of an area are added: one after the other (`running`), or as NumPy adds "
            "(`pairwise`); it tells in the last bits",
            choice("running", "pairwise"),
            "running: VOCap.m; pairwise: voc_eval.py, np.sum",
            "running",
        ),
    ] = "running"
    stored: Annotated[
        str,
        Key(
            "the numbers that a class's AP, or its precision at a recall point, is rounded to",
            choice("float64", "float32"),
            "float32: mmeval voc_map.py; supervision mean_average_precision.py",
            "float64",
        ),
    ] = "float64"
    no_objects: Annotated[
        str,
        Key(
            "AP that is told for a class without objects to find: none (`undefined`), or 0 "
            "(`zero`); what the mean makes of it is `mean.undefined`",
            choice("undefined", "zero"),
            "zero: mmdet mean_ap.py; keras-retinanet eval.py",
            "undefined",
        ),
    ] = "undefined"
    pool: Annotated[
        str,
        Key(
            "whether each `class` has a curve, or `all` classes together have one",
            choice("class", "all"),
            "all: TF OD API metrics, WeightedPascalDetectionEvaluator",
            "class",
        ),
    ] = "class"
    samples: Annotated[
        int,
        Key(
            "how many scores `score_samples` reads: 1 - 1/n, 1 - 2/n ... 0",
            WHOLE,
            "1000: WIDER FACE evaluation.py (wondervictor), thresh_num",
            1000,
        ),
    ] = 1000

    @property
    def rule(self) -> Integrator:
        """The row of the integrator."""
        return integrator(self.integrator)

    def points(self) -> NDArray[np.float64]:
        """(R,) the recall points of the integrator; those of ``grid`` for one that has none."""
        return self.eleven.values() if self.rule.points == "eleven" else self.grid.values()


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """The score at which the rows P, R and F1 are read."""

    rule: Annotated[
        str,
        Key(
            "where P, R and F1 are read. `above`: of the detections of all classes that score more "
            "than `operating.score`; `best_mean_f1`: at the score at which the mean over classes "
            "of F1, read at `operating.samples` scores from 0 to 1 and smoothed, is highest, as "
            "means over classes",
            choice("above", "best_mean_f1"),
            "above: darknet detector.c, thresh_calc_avg_iou; best_mean_f1: yolov5 "
            "utils/metrics.py, ap_per_class",
            "above",
        ),
    ]
    score: Annotated[
        float,
        Key(
            "the score of `above`",
            number(0, 1),
            "0.25: darknet detector.c, thresh_calc_avg_iou",
            0.25,
        ),
    ]
    samples: Annotated[
        int,
        Key(
            "how many scores `best_mean_f1` looks at; between those of two detections precision "
            "and recall are straight lines",
            WHOLE,
            "1000: yolov5 utils/metrics.py, px",
            1000,
        ),
    ]
    smooth: Annotated[
        float,
        Key(
            "the share of the samples that the moving mean of F1 is wide; 0 for none",
            number(0, 1),
            "0.1: yolov5 utils/metrics.py, smooth",
            0.1,
        ),
    ]


@dataclass(frozen=True, slots=True)
class Mean:
    """From the classes' numbers to one."""

    undefined: Annotated[
        str,
        Key(
            "what a class without objects to find adds to the mean: nothing (`skip`), 0 (`zero`), "
            "1 (`one`), 0 where it has detections that are not ignored (`detected`), or NaN where "
            "it has detections, so that there is no mean, else 0 (`no_mean`)",
            choice("skip", "zero", "one", "no_mean", "detected"),
            "skip: cocoeval.py, summarize; zero: DOTA; no_mean: voc_eval.py, np.mean; detected: "
            "TIDE ap.py",
        ),
    ]
    undetected: Annotated[
        float,
        Key(
            "AP of a class without a detection that takes part, also where it has no object",
            number(-1, 0),
            "-1: ssd.pytorch eval.py, voc_eval",
            0.0,
        ),
    ]
    weights: Annotated[
        str,
        Key(
            "what a class weighs in the mean: the same (`equal`), its number of `images` with an "
            "object, or of `objects` to find",
            choice("equal", "images", "objects"),
            "images: VisDrone calcAccuracy.m (evalClass repeats); objects: keras-retinanet "
            "bin/evaluate.py (--weighted-average)",
            "equal",
        ),
    ]
    precision: Annotated[
        str,
        Key(
            "the numbers of the mean: `float64`; `float32`: values, sum and mean; `rounded`: the "
            "mean alone, of all and of a class, is rounded to float32",
            choice("float64", "float32", "rounded"),
            "float32: mmdet mean_ap.py; rounded: torchmetrics mean_ap.py",
            "float64",
        ),
    ]
