"""The tables of a protocol for benchmarks with special files or evaluation rules."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from detmap.core.base.grids import Grid
from detmap.core.base.immutable import Value
from detmap.core.protocol.key_checks import CLASSES, Check, Key, choice, grid, number


class Rule(NamedTuple):
    """A rule of evaluation.

    Parameters
    ----------
    place : ``module:function``, called with truth, detections and protocol; it returns
        `detmap.benchmarks.shared.benchmark_result.Numbers`. The module's `READS` lists the keys
        that the rule reads, or has such a list per function: with ``metrics`` among them it gives
        what they ask for, else they choose among its numbers by name
    unselected : what a selection of classes does with the others: ``removed``; ``kept``: they
        influence the numbers of the selected ones, which `iou.classes` lists; ``compared``: they
        are removed with a note, since the numbers change
    """

    place: str
    unselected: Literal["removed", "kept", "compared"] = "removed"


class Extra(NamedTuple):
    """Metrics beside those of the curves.

    Parameters
    ----------
    place : ``module:function``, called with truth, detections and protocol; it returns metrics by
        name
    names : of its metrics
    """

    place: str
    names: tuple[str, ...]


RULES: dict[str, Rule] = {
    "matching": Rule("detmap.core.matching.engine:match"),
    "kitti": Rule("detmap.benchmarks.kitti.rules:evaluate", unselected="kept"),
    "froc_spheres": Rule("detmap.benchmarks.luna16.froc:evaluate_spheres"),
    "froc_boxes": Rule("detmap.benchmarks.luna16.froc:evaluate_boxes"),
    "cgf1": Rule("detmap.benchmarks.sa_co.cgf1:evaluate"),
    "scoreless": Rule("detmap.benchmarks.scoreless.rules:evaluate"),
    "wholebody": Rule("detmap.benchmarks.coco_wholebody.rules:evaluate"),
    "motion": Rule("detmap.benchmarks.imagenet.motion:evaluate", unselected="compared"),
}
"""``evaluation.rule``: `matching`, and rules that keys cannot express."""
EXTRA: dict[str, Extra] = {
    "olrp": Extra("detmap.benchmarks.ai_tod.olrp:olrp", ("oLRP", "oLRP-Loc", "oLRP-FP", "oLRP-FN")),
    "crowd_index": Extra(
        "detmap.benchmarks.crowdpose.crowd_index:crowd_index_metrics",
        ("AP-easy", "AP-medium", "AP-hard"),
    ),
    "as_given": Extra("detmap.benchmarks.open_images.given_mean:given_mean", ("mAP-as-given",)),
    "first_recalls": Extra(
        "detmap.benchmarks.visdrone.first_recalls:first_recalls", ("AR1", "AR10", "AR100")
    ),
    "JI": Extra("detmap.benchmarks.crowdhuman.jaccard_index:best", ("JI",)),
}
"""An entry of ``evaluation.extra``."""
FORMAT_NAME = re.compile(r"[a-z0-9-]*")


def _format(value: Any) -> str:
    if not isinstance(value, str) or not FORMAT_NAME.fullmatch(value):
        raise ValueError
    return value


def _extra(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(each in EXTRA for each in value):
        raise ValueError
    return tuple(value)


def _whole_from_zero(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError
    return value


FORMAT = Check(_format, 'the name of a format, as docs/formats.md lists them; "" for any')


@dataclass(slots=True, eq=False, repr=False)
class Files(Value):
    """The formats of the benchmark's files. They change no metric and are not in the signature."""

    truth: Annotated[
        str, Key('format of the ground truth; "": detected from the path', FORMAT, "detmap", "")
    ]
    detections: Annotated[
        str, Key('format of the detections; "": detected from the path', FORMAT, "detmap", "")
    ]


@dataclass(slots=True, eq=False, repr=False)
class Evaluation(Value):
    """How the metrics are computed."""

    rule: Annotated[
        str,
        Key(
            "`matching`: the rules of this protocol; any other: a rule of a benchmark that these "
            "keys cannot express",
            choice(*RULES),
            "detmap",
            "matching",
        ),
    ]
    extra: Annotated[
        tuple[str, ...],
        Key(
            "additional metrics that are not computed from the curves",
            Check(_extra, f"a list of {', '.join(EXTRA) or 'none yet'}"),
            "detmap",
            [],
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class KittiRule(Value):
    """Keys of the rule `kitti`."""

    height: Annotated[
        str,
        Key(
            "an object is ignored at a level if its height is smaller than (`<`), or at most "
            "(`<=`), the minimum height of the level",
            choice("<", "<="),
            "copies of evaluate_object_3d_offline.cpp: <: prclibo/kitti_eval; <=: "
            "asharakeh/kitti_native_evaluation",
            "<",
        ),
    ]
    neighbors: Annotated[
        tuple[tuple[str, str], ...],
        Key(
            "per class, the class whose objects are ignored instead of removed",
            CLASSES,
            "evaluate_object_3d_offline.cpp, cleanData",
            {},
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class FrocRule(Value):
    """Keys of the rules `froc_spheres` and `froc_boxes`."""

    rates: Annotated[
        Grid,
        Key(
            "false positives per image at which the sensitivity is read",
            grid(0, 1e6, 64, above=True),
            "LUNA16: 0.125 to 8; MULAN detection_eval.py: 0.5 to 16",
            [0.125, 0.25, 0.5, 1, 2, 4, 8],
        ),
    ]
    mean_up_to: Annotated[
        float,
        Key(
            "the highest rate in the mean sensitivity (CPM)",
            number(0, 1e6),
            "8: LUNA16; 4: MULAN",
            8,
        ),
    ]
    lookup: Annotated[
        str,
        Key(
            "interpolation of the curve: `last`: linear, the last of several points at one rate, "
            "and the last point beyond the end; `first`: linear, the first of them, and beyond the"
            " end extrapolated from the last two points",
            choice("last", "first"),
            "last: numpy.interp (LUNA16, MULAN); first: scipy interp1d with "
            "fill_value=extrapolate (3DCE)",
            "last",
        ),
    ]
    most_marks: Annotated[
        int,
        Key(
            "the limit per image: only marks with a score above that of the next mark after so "
            "many are used; 0: all",
            Check(_whole_from_zero, "a whole number from 0"),
            "100: noduleCADEvaluationLUNA16.py",
            0,
        ),
    ]


@dataclass(slots=True, eq=False, repr=False)
class CgF1Rule(Value):
    """Keys of the rule `cgf1`."""

    score: Annotated[
        float,
        Key(
            "the lowest score of evaluated detections", number(0, 1), "0.5: sam3 cgf1_eval.py", 0.5
        ),
    ]
