"""Proposes the right name for a wrong one: by meaning first, by spelling second."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

MEANT: Mapping[str, Mapping[str, str]] = {
    "command": {
        "eval": "evaluate val validate validation test score map metrics coco voc run",
        "eval TRUTH DETECTIONS --plot FILE": "pr pr-curve curve curves plot",
        "eval TRUTH DETECTIONS --best-f1": "threshold best-threshold f1 conf confidence",
        "eval TRUTH DETECTIONS --per-class": "per-class classwise classes",
        "eval TRUTH DETECTIONS --ci": "ci confidence-interval intervals bootstrap error-bars",
        "COMMAND --help": "help man usage",
        "--version": "version",
        "doctor": "check lint healthcheck health-check sanity validate-data",
        "compare": "diff vs ab benchmark versus significance p-value pvalue ttest",
        "diagnose": "analyze analyse analysis errors tide confusion confusion-matrix",
        "inspect": "info describe stats summary ls",
        "show": "protocols list configs formats",
        "report": "html visualize visualise dashboard explore",
        "convert": "export to transform",
        "explain": "why debug",
        "cite": "citation bibtex",
        "tools": "peers presets all",
        "reproduce": "replicate search find",
        "suite": "suites datasets",
    },
    "option": {
        "detmap diagnose TRUTH DETECTIONS": "size sizes by-size area areas tide error-types",
        "detmap diagnose TRUTH DETECTIONS --table confusion": "confusion-matrix cm confusion",
        "detmap report TRUTH DETECTIONS -o report.html": "html report",
        "TRUTH": "gt ground-truth groundtruth gt-path ann ann-file annotations target data labels "
        "anno-json truth",
        "DST": "o out output dst save out-file output-file",
        "DETECTIONS": "dt det dets pred preds predictions pred-path results res res-file pred-json "
        "detections",
        "--confidence": "conf conf-thres conf-thresh conf-threshold score score-thr score-thresh "
        "score-threshold threshold min-score confidence-threshold",
        "--best-f1": "best-threshold best-conf best-score best f1 optimal-threshold max-f1 "
        "average micro macro",
        "--per-class": "classwise class-wise per-category per-cls",
        "--iou": "iou-thr iou-thres iou-thresh iou-threshold",
        "--set": "set-cfg cfg-options opts area-rng areas",
        "NUMBER": "value target published number",
        "--set iou.thresholds=[0.5]": "iou-thrs iou-thresholds",
        "--set limits.max_dets=[1,10,300]": "max-det max-dets maxdets max-detections",
        "--format json": "json",
        "--table metrics": "metrics",
        "--format latex": "latex tex",
        "--format markdown": "markdown md",
        "--output FILE.csv": "csv excel xlsx to-csv",
        "--to": "format output-format",
        "--ci": "bootstrap confidence-interval confidence-intervals intervals bars error-bars",
        "--threads": "workers jobs n-jobs num-workers processes",
        "--output": "out save output-file out-file project save-dir",
        "--protocol": "preset style metric metric-type iou-type ioutype tool mode rules benchmark",
        "--class-names": "names class-map label-map",
        "--classes": "cls class category categories cat-ids",
        "--images": "images-dir img-dir image-dir img-folder imgs",
        "--plot": "plots pr-curve curves figure",
        "--fail-under": "min-ap assert at-least",
        "--fail-if-drop": "max-drop tolerance",
        "--format": "output-format",
        "--truth-format": "gt-format from source-format",
        "--detections-format": "dt-format pred-format",
        "--detections-box-format": "box-format bbox-format",
    },
    "protocol": {
        "ultralytics-8.4": "yolov8 yolov9 yolov10 yolo11 yolov11 yolo12 yolo26 yolo yolo-world",
        "coco-bbox": "detectron2 mmdet mmdetection bbox cocoeval coco-eval faster-coco-eval "
        "coco-detection hotcoco rtdetr rt-detr detr torchvision coco2017 coco2014 coco-2017 coco17 "
        "coco-val2017",
        "mmdet-coco": "mmdet mmdetection",
        "mmdet-voc12": "mmdet mmdetection",
        "detectron2-voc12": "detectron2",
        "detectron2-voc07": "detectron2",
        "coco-segm": "segm mask masks segmentation",
        "coco-boundary": "boundary boundary-ap boundary-iou boundary-iou-api",
        "coco-keypoints": "keypoints pose oks",
        "voc2012": "pascal pascal-voc vocdevkit",
        "voc2007": "pascal pascal-voc vocdevkit 11point",
        "yolov5": "yolov6 yolov7",
        "dota": "obb dotav1 dota-1.0",
        "ultralytics-obb": "obb",
        "openimages-v2": "openimages oid",
        "openimages-challenge": "openimages oid",
        "tide": "tidecv",
        "torchmetrics": "tm lightning torch",
        "tfod-pascal": "tfod tensorflow",
        "tfod-oidv2": "tfod tensorflow",
        "darknet-0": "darknet yolov4 yolov3",
        "rafaelpadilla-odm-area": "rafaelpadilla odm object-detection-metrics",
        "rafaelpadilla-review-coco": "rafaelpadilla",
    },
    "choice": {
        "latex": "tex",
        "markdown": "md",
        "table": "text txt",
        "classes": "class per-class per_class",
        "drop": "ignore skip",
    },
    "python": {
        "evaluate": "eval score val map mean_average_precision coco_eval evaluate_detections",
        "read_truth": "load read read_coco load_truth read_ground_truth load_dataset from_coco",
        "Matches": "load_result load_results load_matches",
        "read_detections": "loadres load_res load_detections read_predictions",
        "doctor": "check healthcheck",
        "diagnose": "tide errors",
        "show": "protocols list_protocols",
        "Evaluator": "metric meanap detectionmap cocoevaluator",
        "plot": "pr_curve precision_recall_curve",
    },
    "result": {
        "metrics": "stats results results_dict box values",
        "summary": "summarize print print_summary table",
        "per_class": "maps class_metrics classwise by_class",
        "to_frame": "to_pandas df dataframe to_df pandas",
        "confusion_matrix": "confusion cm confusion_matrices",
        "best_f1": "best_threshold f1 best_conf max_f1",
        "at": "at_confidence threshold at_threshold f1_score precision recall",
        "curve": "pr_curve curves precisions recalls",
        "counts": "tp fp fn true_positives false_positives",
        "intervals": "ci bootstrap confidence_interval",
        "to_latex": "to_tex latex",
        "to_json": "json",
        "to_markdown": "markdown to_md",
        "save": "write export dump to_csv",
        "per_image": "eval_imgs images by_image",
    },
}
"""By kind of name: the right name, and the words that people write for it."""

ARGUMENTS: Mapping[str, str] = {
    "names": "labels detectors models",
    "image_id": "image_ids img_id img_ids image_index",
    "category_id": "labels label class_id class_ids category_ids classes cls class_index",
    "boxes": "bbox bboxes box xyxy xywh",
    "score": "scores conf confidence confidences",
    "truth": "gt ground_truth groundtruth target targets gts y_true annotations coco_gt",
    "detections": "dt det dets pred preds prediction predictions result results y_pred coco_dt",
    "protocol": "preset rules style tool benchmark metric_type",
    "class_names": "names class_map label_map categories",
    "classes": "cls class_ids category_ids cat_ids labels",
    "confidence": "conf score conf_thres conf_threshold confidence_threshold score_threshold "
    "score_thr threshold thr",
    "box_format": "format bbox_format in_fmt detections_box_format truth_box_format",
    "panels": "kind panel curve what",
    "threads": "workers n_jobs num_workers jobs",
    "output": "out o path save file filename save_path output_file",
    "path": "out output o save file filename save_path fname",
    "source": "path file input src data",
    "start": "from from_ protocol a base before",
    "end": "to other b after",
    "iou": "iou_thr iou_thres iou_thresh iou_threshold pos_threshold",
    "level": "alpha ci confidence confidence_level",
    "number": "value target published ap",
}
"""Arguments, and the words that people write for them."""

SETTINGS: Mapping[str, str] = {
    'protocol="coco-bbox"': "iou_type ioutype",
    'settings={"subsets": ...}': "areas area area_rng area_ranges arearng",
    'settings={"scope.unknown": "drop"}': "allow_unknown",
    'settings={"iou.thresholds": [0.5]}': "iou iou_thr iou_thrs iou_thres iou_threshold "
    "iou_thresholds iouthrs",
    'settings={"limits.max_dets": [1, 10, 100]}': "max_det max_dets max_detections maxdets "
    "max_detection_thresholds",
}
"""Arguments of a protocol, and the words that people write for them."""

READ: Mapping[str, str] = {
    "read_truth(..., image_sizes=...)": "image_sizes img_sizes sizes image_size imgsz img_size",
    "read_truth(..., split=...)": "split image_set",
    "read_truth(..., format=...)": "truth_format gt_format",
    "read_truth(..., box_format=...)": "truth_box_format",
    "read_detections(..., format=...)": "detections_format dt_format pred_format",
    "read_detections(..., box_format=...)": "detections_box_format",
}
"""Functions that read inputs of `detmap.evaluate`, and the arguments that people write for them."""

IOU_TYPES = ("ioutype", "iou_type")
KINDS_OF_IOU = ("bbox", "segm", "keypoints")
"""The argument of other tools for what is compared, and its values."""

RETURNED: Mapping[str, str] = {
    "at(confidence=0.5)": "conf score conf_thres score_threshold confidence conf_threshold "
    "confidence_threshold threshold score_thr",
    "per_class": "per_class classwise class_metrics by_class",
    "select(ids)": "image_ids img_ids imgids",
    "intervals()": "ci intervals bootstrap confidence_intervals",
    "plot()": "plot plots pr_curve",
    "best_f1()": "best_f1 best_threshold",
    "metrics": "metric metrics",
    "slices({name: ids})": "slices groups",
}
"""What a result has, and the arguments that people write for it."""

IMPORTS: Mapping[str, str] = {
    "MeanAveragePrecision": "detmap.integrations.torchmetrics",
    "DetmapEvaluator": "detmap.integrations.detectron2",
    "DetmapValidator": "detmap.integrations.ultralytics",
    "CocoEvaluator": "detmap.integrations.torchvision",
    "detection_gate": "detmap.integrations.pytest",
    "COCO": "detmap.compat",
    "COCOeval": "detmap.compat",
    "mask": "detmap.compat",
    "patch_pycocotools": "detmap.compat",
    "evaluate_suite": "detmap.benchmarks.suites",
    "average_precision": "detmap.ranking",
    "roc_curve": "detmap.ranking",
    "precision_recall_curve": "detmap.ranking",
}
"""Names that people look for in `detmap`, and the modules that have them."""

FUNCTIONS = ("compare", "convert", "diagnose", "doctor", "explain", "report", "reproduce", "tools")
"""Functions of `detmap` that people look for at a result."""

ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "Result": {"detmap.diagnose(...)": "tide errors error_analysis", "plot": "plot_pr plot_curve"},
    "ClassRows": {
        "to_frame()": "sort_values to_csv to_pandas items df head sort",
        "names": "keys classes",
    },
    "Comparison": {
        'comparison["AP"].difference': "delta diff difference change gain",
        'comparison["AP"].p': "p p_value pvalue p_values significance",
        "better": "winner best",
        "verdict": "result conclusion significant",
        "pairs": "pair differences results",
        "values": "metrics",
    },
    "Pair": {
        "p": "p_value pvalue significant",
        "difference": "delta diff change value",
        "low": "interval ci lower",
        "high": "interval ci upper",
        "se": "std stderr standard_error",
    },
    "Diagnosis": {
        "detmap.diagnose(...).to_dict()": "costs gains errors tide best_f1 recall precision f1",
        "counts()": "false_positives false_negatives fp fn tp kinds",
        "detmap.evaluate(...).confusion_matrix()": "confusion matrix confusion_matrix cm",
        'detmap.evaluate(...)["AP"]': "ap map ap50 map50 metrics",
        "tables()": "table",
    },
    "Confusion": {
        "array": "values cm confusion confusion_matrix data to_numpy numpy",
        "classes": "names labels class_names",
        "confidence": "threshold conf score",
    },
    "Evaluator": {
        "compute()": "result results metrics evaluate map ap ap50 value values summary summarize",
        "update": "add add_batch append process __call__ step",
        "reset()": "clear",
    },
    "Truth": {
        "label": "labels classes category_ids class_ids",
        "boxes": "bbox bboxes xyxy xywh",
        "images.ids": "image_ids ids image_id img_ids",
        "categories.names": "names class_names classes categories_names",
        "image": "image_index image_indices",
        "roles": "crowd iscrowd difficult",
        "attributes": "area areas",
    },
    "Detections": {
        "label": "labels classes category_ids class_ids",
        "boxes": "bbox bboxes xyxy xywh",
        "score": "scores confidence confidences conf",
        "image": "image_ids image_index image_id",
    },
}
"""By class: its attributes, and the words that people write for them."""

ANYWHERE = ("COMMAND", "--version", "detmap")
"""Words of a command line that are proposed although they are no commands."""

CLOSE = 0.65  # similarity of names, of difflib
SHORTEST = 3  # characters of a name that others begin with

_METRIC_WORDS = (
    (r"^m(?=a[pr])", ""),
    (r"small$", "s"),
    (r"medium$", "m"),
    (r"large$", "l"),
    (r"^(a[pr])0?50?95$", r"\1"),
    (r"^(a[pr])0?5$", r"\g<1>50"),
    (r"^(a[pr])075$", r"\g<1>75"),
    (r"^ar$", "ar100"),
)
"""mAP50, map_50 and AP@.5 are one metric; AP, mAP and mAP@0.5:0.95 another one."""


def metric_key(name: str) -> str:
    """Returns the same text for all spellings of a metric."""
    key = re.sub(r"[^a-z0-9]", "", name.casefold())
    for pattern, text in _METRIC_WORDS:
        key = re.sub(pattern, text, key)
    return key


def meanings(kind: str, name: str) -> list[str]:
    """Returns the names of `MEANT` that a word of another tool means, whether they exist or not."""
    key = name.casefold().strip("-_ ")
    if kind in ("command", "option", "protocol"):
        key = key.replace("_", "-")
    return [right for right, words in MEANT.get(kind, {}).items() if key in words.split()]


def suggestions(kind: str, name: str, known: Iterable[Any]) -> list[str]:
    """Returns the names that a wrong name may mean, best first; empty if none is near.

    Parameters
    ----------
    kind : a key of `MEANT`; ``metric``; or another word, for names that have a spelling only
    name : what was written
    known : the names that exist
    """
    texts = [str(each) for each in known]
    if kind == "metric":
        meant = [each for each in texts if metric_key(each) == metric_key(name)]
    else:
        known = (*texts, *ANYWHERE)
        meant = [each for each in meanings(kind, name) if each.partition(" ")[0] in known]
    if meant:
        return meant
    import difflib  # for messages alone

    key = name.casefold().strip("-_ ")
    folded = {each.casefold().strip("-"): each for each in reversed(texts)}
    begun = [each for each in reversed(folded) if len(key) >= SHORTEST and each.startswith(key)]
    if begun:
        return [folded[each] for each in begun[:3]]
    return [
        folded[each] for each in difflib.get_close_matches(key[:200], folded, n=1, cutoff=CLOSE)
    ]


def did_you_mean(kind: str, name: str, known: Iterable[Any]) -> str:
    """Returns "did you mean ...?" and a space; "" if no name is near."""
    found = suggestions(kind, name, known)
    named = list(map(repr, found))
    listed = " or ".join((", ".join(named[:-1]), named[-1])) if named[1:] else "".join(named)
    return f"did you mean {listed}? " if found else ""


def did_you_mean_value(name: str, metrics: Iterable[Any], classes: Iterable[Any]) -> str:
    """Returns the proposal for a wrong ``METRIC/CLASS``, and a list of what there is."""
    from detmap.errors import few

    metric, _, of = name.partition("/")
    known, named = list(map(str, metrics)), list(map(str, classes))
    hint = ""
    if metric and metric not in known and f"m{metric}" not in known:
        hint = did_you_mean("metric", metric, known)
    if of and of not in named:
        hint += did_you_mean("class", of, named)
    return f"{hint}metrics: {', '.join(known)}; classes: {few(named)}"


def missing(name: object, known: Iterable[Any]) -> KeyError:
    """Returns the error for the name of a metric that is not there."""
    names = list(map(str, known))
    hint = did_you_mean("metric", str(name), names)
    return KeyError(f"there is no {name!s:.80}; {hint}the names are {', '.join(names)}")


def missing_attribute(thing: Any, name: str, metrics: Iterable[str] = ()) -> AttributeError:
    """Returns the error for an attribute that an object lacks, with the one that may be meant.

    metrics : names of the metrics that the object has as items
    """
    own = type(thing).__name__
    text = f"{own!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text)
    known = [each for each in dir(thing) if not each.startswith("_")]
    found = (
        [f"detmap.{name}(...)"] * (name in FUNCTIONS)
        or _meaning(ATTRIBUTES.get(own, {}), name)
        or suggestions("result", name, known)
        or [f'{own.lower()}["{each}"]' for each in suggestions("metric", name, metrics)]
    )
    return AttributeError(f"{text}; did you mean {' or '.join(found)}?" if found else text)


class ProposesNames:
    """Base class: the error for a wrong attribute proposes the right one."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(self, name)


Function = TypeVar("Function", bound=Callable[..., Any])


def proposes_arguments(function: Function, more: Sequence[str] = ()) -> Function:
    """Decorates a public function: a wrong keyword ends in a `TypeError` with the right one.

    `more` are the keywords that it takes besides its own.
    """
    code = function.__code__
    known = (*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *more)

    @wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                raise TypeError(_wrong_argument(function, name, known, options[name]))
        return function(*args, **options)

    return checked  # type: ignore[return-value]


def _wrong_argument(
    function: Callable[..., Any], name: str, known: tuple[str, ...], value: Any
) -> str:
    """The message about a keyword that a function does not have."""
    called = function.__qualname__.removesuffix(".__init__")
    own = [each for each in known if each != "self"]
    found = [f"{each}=..." for each in _meaning(ARGUMENTS, name) if each in own]
    found += [each for each in _meaning(SETTINGS, name) if each.partition("=")[0] in own]
    if called == "convert" and name in ("detections", *ARGUMENTS["detections"].split()):
        found = ["convert(detections, output, truth=...)"]
    if "truth" in own and not found:
        found += [f"detmap.{each}" for each in _meaning(READ, name)]
    if name.casefold() in IOU_TYPES and value in KINDS_OF_IOU:
        found = [f'protocol="coco-{value}"']
    result = {"evaluate": "evaluate(...)", "Evaluator": "compute()"}.get(called)
    if result:
        found += [f"{result}.{each}" for each in _meaning(RETURNED, name)]
    found = found or [f"{each}=..." for each in suggestions("argument", name, own)]
    hint = f"write {found[0]}" if found else f"the arguments are {', '.join(own)}"
    return f"{called}() has no argument {name!r}: {hint}"


def _meaning(words: Mapping[str, str], name: str) -> list[str]:
    return [right for right, meant in words.items() if name.casefold() in meant.split()]
