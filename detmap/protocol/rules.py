"""The tables of a protocol: the rules by which benchmarks differ, each a key of the TOML file.

A key is declared here once, with its meaning, its check, its source and its default; validation,
the documentation and the signature all read this declaration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from detmap.grids import Grid
from detmap.integrators import INTEGRATORS, Integrator, integrator
from detmap.protocol.checks import (
    LIMITS,
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
            "how far a box reaches: `continuous` edges, or `inclusive` pixels, width x2 - x1 + 1",
            choice("continuous", "inclusive"),
            "continuous: bbIou in pycocotools' maskApi.c; inclusive: VOCevaldet.m",
        ),
    ]
    empty: Annotated[
        str,
        Key(
            "what becomes of objects and, after the limit, detections with an area of 0: they are "
            "kept (`keep`) or left out altogether (`drop`)",
            choice("keep", "drop"),
            "drop: lvis/lvis.py, get_ann_ids (area > 0)",
            "keep",
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
            "what overlaps: `boxes`, `masks` (pixels), or `keypoints` (object keypoint similarity)",
            choice("boxes", "masks", "keypoints"),
            "cocoeval.py, computeIoU and computeOks",
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
            "which of two objects with the same overlap is the better one, in the order of the "
            "truth",
            choice("last", "first"),
            "last: cocoeval.py, evaluateImg; first: VOCevaldet.m, CrowdDet, eval_detection.m",
        ),
    ]
    neutral: Annotated[
        tuple[tuple[str, str], ...],
        Key(
            "what an object with a role is. `ignore`: neither an object to find nor, where a "
            "detection meets it, an error; `absorb`: the same, and the overlap with it is measured "
            "over the detection's own area, so that one region takes many detections; `count`: an "
            "ordinary object, as objects whose roles are not listed",
            NEUTRAL,
            "crowd: cocoeval.py and maskApi.c; difficult: VOCevaldet.m; ignore: lvis/eval.py",
            {},
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
    """What a detection outside a subset is while that subset is evaluated."""

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


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """Which pairs of image and class are judged, where the truth is not annotated everywhere."""

    unlisted: Annotated[
        str,
        Key(
            "detections of a class on an image where the truth neither has an object of it nor "
            "says that there is none: `judge` them as any other, or `drop` them",
            choice("judge", "drop"),
            "drop: lvis/eval.py, _prepare",
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
            "of what: of each `class` on an image, or of all classes of an `image` together",
            choice("class", "image"),
            "class: cocoeval.py, evaluateImg; image: lvis/results.py, VisDrone calcAccuracy.m",
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
            "which of two equal scores ranks first: by `image` id, then input order; or by `input` "
            "order alone",
            choice("image", "input"),
            "image: cocoeval.py, accumulate; input: VOCevaldet.m",
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
            "eleven_point: VOCevaldet.m of 2007; all_points: VOCap.m; grid_envelope: cocoeval.py",
        ),
    ]
    grid: Annotated[
        Grid,
        Key(
            "recall points of `grid_envelope`",
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

    @property
    def rule(self) -> Integrator:
        """The row of the integrator."""
        return integrator(self.integrator)

    def points(self) -> NDArray[np.float64]:
        """(R,) the recall points of the integrator; those of ``grid`` for one that has none."""
        return self.eleven.values() if self.rule.points == "eleven" else self.grid.values()


@dataclass(frozen=True, slots=True)
class Mean:
    """From the classes' numbers to one."""

    undefined: Annotated[
        str,
        Key(
            "what a class without objects to find adds to the mean: nothing (`skip`), 0 (`zero`) "
            "or 1 (`one`)",
            choice("skip", "zero", "one"),
            "skip: cocoeval.py, summarize; zero: DOTA",
        ),
    ]
    weights: Annotated[
        str,
        Key(
            "what a class weighs in the mean: the same (`equal`), or its number of `images` with "
            "an object",
            choice("equal", "images"),
            "images: VisDrone calcAccuracy.m (evalClass repeats)",
            "equal",
        ),
    ]
