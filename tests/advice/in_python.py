"""Advices of functions and hosts about their arguments."""

import io
from typing import Any

import numpy as np

import detmap
from detmap.integrations import shards
from tests.advice import wrong_files as wrong
from tests.advice.situations import Place, Row, answer, ways

TABLES = "core/adapters/in_memory/"
CLASSES = "core/streaming/"
RANKED = "keras-retinanet"


def pair(p: Place) -> tuple[Any, Any]:
    return wrong.images_of(p, p.right.rows), wrong.images_of(p, p.right.truth["annotations"])


def named(p: Place) -> dict[int, str]:
    return p.classes()


def updated(p: Place, evaluator: Any, *, known: bool = False) -> Any:
    found, objects = pair(p)
    evaluator.update(found) if known else evaluator.update(found, objects)
    return evaluator.compute()


def numbered_boxes(p: Place, form: str) -> Any:
    """An evaluation of images whose boxes have width and height."""
    found, objects = pair(p)
    for each in (*found, *objects):
        each["boxes"] = np.hstack(
            [each["boxes"][:, :2], each["boxes"][:, 2:] - each["boxes"][:, :2]]
        )
    evaluator = detmap.Evaluator(classes=named(p), box_format=form)
    evaluator.update(found, objects)
    return evaluator.compute()


def arrays(p: Place, **how: Any) -> Any:
    columns = wrong.arrays_of(p.right.truth["annotations"])
    classes = {"categories": named(p)}
    truth = detmap.truth_from_arrays(**columns | {"images": wrong.ids(p)} | classes | how)
    return detmap.evaluate(
        truth, detmap.detections_from_arrays(truth, **wrong.arrays_of(p.right.rows))
    )


def corners(p: Place, **how: Any) -> Any:
    """Detections as corners, of which some have no such width."""
    columns = wrong.arrays_of(p.right.rows)
    boxes = columns["boxes"]
    boxes = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
    truth = detmap.read_truth(p.truth)
    boxes = boxes if how else boxes * [1, 1, -1, -1]
    columns |= {"boxes": boxes}
    return detmap.evaluate(truth, detmap.detections_from_arrays(truth, **columns, **how))


class Text:
    """A file whose read returns another thing than text."""

    def read(self) -> list[int]:
        return [1]


def matched_parts(p: Place) -> Any:
    return detmap.match(p.truth, p.found)


def fixed(p: Place, name: str) -> Any:
    return detmap.evaluate(p.truth, p.found, memory="3GB", fix=name)


ROWS = (
    Row(
        f"{TABLES}arrays: a box is x, y, width,",
        lambda p: lambda **how: corners(p, **how),
        r'(box_format="xyxy") reads',
    ),
    Row(
        f"{TABLES}arrays: add every id to images=",
        lambda p: lambda **how: arrays(p, **({"images": wrong.ids(p)[:-1]} | how)),
        "to (images)=",
        "{0}=[each['id'] for each in p.right.truth['images']]",
    ),
    Row(
        f"{TABLES}arrays: add every id to categories=",
        lambda p: lambda **how: arrays(p, **({"categories": {1: "kettle"}} | how)),
        "to (categories)=",
        "{0}=p.classes()",
    ),
    Row(
        f"{TABLES}batch_rows: give them as classes=",
        lambda p: lambda **how: updated(p, detmap.Evaluator(**(how or {"class_names": named(p)}))),
        "as (classes)=",
        "{0}=p.classes()",
    ),
    Row(
        f"{TABLES}batch_tables: give targets, or truth= to the",
        lambda p: lambda **how: updated(p, detmap.Evaluator(**how), known=True),
        "or (truth)= to the evaluator",
        "{0}=p.truth",
    ),
    *ways(
        f"{TABLES}batch_tables: remove them or truth=",
        lambda p: lambda: updated(p, detmap.Evaluator(truth=p.truth)),
        ("remove (them)", lambda p, _: updated(p, detmap.Evaluator(truth=p.truth), known=True)),
        ("or (truth)=", lambda p, _: updated(p, detmap.Evaluator(classes=named(p)))),
    ),
    Row(
        f"{TABLES}batch_tables: update each image once; reset() starts",
        lambda p: lambda: updated(p, wrong.used(p)),
        r"; (reset)\(\) starts again",
        lambda p, name: updated(p, wrong.used(p, name)),
    ),
    Row(
        f"{TABLES}batches: boxes are read as {{}}; set",
        lambda p: lambda **how: numbered_boxes(p, **(how or {"form": "xyxy"})),
        r"set (box_format)= if those",
        'form="xywh"',
    ),
    Row(
        f"{TABLES}batches: give arrays of numpy, torch, JAX",
        lambda p: lambda: updated_by(p, wrong.OnDevice),
        r"(\.cpu\(\)) moves a tensor",
        lambda p, call: updated_by(
            p, lambda boxes: eval(f"each{call}", {"each": wrong.OnDevice(boxes)})
        ),
    ),
    Row(
        f"{TABLES}batches: remove box_format=",
        lambda p: lambda: own_format(p, "xywh"),
        "remove (box_format)=",
        lambda p, name: own_format(p, ""),
    ),
    Row(
        f"{TABLES}python_objects: read() returned a {{}}",
        lambda p: lambda: detmap.evaluate(p.truth, Text()),
        "give an open file",
        lambda p, _: detmap.evaluate(p.truth, io.BytesIO(p.found.read_bytes())),
    ),
    *ways(
        CLASSES + 'evaluator: give classes=["cat", "dog"], or truth=',
        lambda p: lambda: updated(p, detmap.Evaluator(classes=named(p), truth=p.truth)),
        (
            "give (classes)=.* or (truth)=",
            lambda p, one, other: updated(p, detmap.Evaluator(**{other: p.truth}), known=True),
        ),
        (
            "give (classes)=.* or truth=",
            lambda p, name: updated(p, detmap.Evaluator(**{name: named(p)})),
        ),
    ),
    Row(
        "integrations/shards: give a list of parts: reduce([part])",
        lambda p: lambda: shards.reduce(matched_parts(p)),
        r"(reduce\(\[part\]\)) or",
        lambda p, call: eval(call, {"reduce": shards.reduce, "part": matched_parts(p)}),
    ),
    Row(
        CLASSES + "unmatched: give classes= to all evaluators, or",
        lambda p: lambda: wrong.halves(p, ({"classes": named(p)}, {})),
        "give (classes)= to all",
        lambda p, name: wrong.halves(p, ({name: named(p)}, {name: named(p)})),
    ),
    Row(
        "core/tables/catalog: ; class_names= (--class-names FILE) names these",
        lambda p: [wrong.truth_without_names(p), p.found, "--classes", "kettle"],
        "(--class-names) FILE",
        lambda p, option: answer([*p.made, option, p.names_by_id()]),
        lambda p: answer(["eval", p.truth, p.found, "--classes", "kettle"]),
    ),
    Row(
        "evaluate: leave memory= out",
        lambda p: lambda: fixed(p, "boxes-xyxy"),
        "leave (memory)= out",
        lambda p, name: detmap.evaluate(p.truth, p.changed(wrong.to_corners), fix="boxes-xyxy"),
    ),
    Row(
        "core/results/result: give rows=True to detmap.distributed.evaluate, merge the",
        lambda p: lambda: detmap.evaluate(p.truth, p.found, memory="3GB").matches,
        r"or evaluate without (memory)=",
        lambda p, name: detmap.summarize(detmap.evaluate(p.truth, p.found).matches),
    ),
    Row(
        "core/results/result: give a dict: name to ids;",
        lambda p: lambda: detmap.evaluate(p.truth, p.found).slices("slices.csv"),
        r"(detmap\.read_slices\(path, truth\)) reads one",
        lambda p, call: detmap.evaluate(p.truth, p.found).slices(
            eval(
                call,
                {"detmap": detmap, "path": wrong.slices(p), "truth": detmap.read_truth(p.truth)},
            )
        )["all"],
    ),
    Row(
        "core/results/result: give Result.intervals()",
        lambda p: lambda: detmap.evaluate(p.truth, p.found).flat(intervals=5),
        r"give Result\.(intervals)\(\)",
        lambda p, name: (r := detmap.evaluate(p.truth, p.found)).flat(intervals=getattr(r, name)())[
            "AP"
        ],
    ),
    Row(
        "core/results/result: evaluate ground truth and detections with",
        lambda p: lambda: detmap.summarize(matched_parts(p)).confusion_matrix(),
        r"with (detmap\.evaluate)",
        lambda p, call: eval(call)(p.truth, p.found).confusion_matrix().array.sum() > 0,
        True,
    ),
    Row(
        "core/results/findings: the result has no input files:",
        lambda p: lambda: wrong.Said(detmap.summarize(matched_parts(p)).findings),
        "`(detmap doctor)` checks",
        lambda p, words: wrong.code(p, f"{words} TRUTH DETECTIONS"),
        0,
    ),
    Row(
        "core/results/result_notes: slice the result of `detmap.evaluate`, or",
        lambda p: (
            lambda: detmap.summarize(detmap.match(p.truth, wrong.tied(p), RANKED)).slices(
                {"a": wrong.ids(p)[:12]}
            )
        ),
        "slice the result of `(detmap.evaluate)`",
        lambda p, call: (
            eval(call)(p.truth, wrong.tied(p), RANKED)
            .slices({"a": wrong.ids(p)[:12]})["a"]
            .metrics["mAP"]
        ),
        lambda p: detmap.evaluate(p.truth, wrong.tied(p), RANKED, images=wrong.ids(p)[:12])["mAP"],
    ),
    Row(
        "analysis/curve_plots: give the return value of detmap.evaluate,",
        lambda p: lambda: detmap.plot({"a": 5}),
        r"of (detmap\.evaluate)",
        lambda p, call: len(detmap.plot({"a": eval(call)(p.truth, p.found)}).axes),
        2,
    ),
    Row(
        "analysis/curve_plots: give one for ax=, else some",
        lambda p: lambda: drawn(p, ["f1", "iou"]),
        r"give (one) for (ax)=",
        lambda p, *_: drawn(p, "f1"),
        "F1",
    ),
    Row(
        "core/base/column_checks: give np.ascontiguousarray(...) of it",
        lambda p: lambda: wrong.strided(p, lambda array: array),
        r"give (np\.ascontiguousarray)\(\.\.\.\)",
        lambda p, call: wrong.strided(p, eval(call)),
    ),
    Row(
        "analysis/doctor/__init__: {}: evaluate(..., fix={})",
        lambda p: lambda **how: detmap.evaluate(p.truth, wrong.from_zero(p), **how),
        r"evaluate\(\.\.\., (fix=\"[\w-]+\")\)",
    ),
    Row(
        "integrations/pytest: give baseline=, or use at_least=",
        lambda p: lambda **how: wrong.gate(p, max_drop={"AP": 0.01}, **how),
        "give (baseline)=",
        "{0}=p.found",
        True,
    ),
    Row(
        "integrations/pytest: give baseline=, or use at_least=",
        lambda p: lambda: wrong.gate(p, max_drop={"AP": 0.01}),
        "or use (at_least)=",
        lambda p, name: wrong.gate(p, **{name: {"AP": 0.5}}),
        True,
    ),
    Row(
        "integrations/pytest: give at_least=, at_most= or baseline=",
        lambda p: lambda **how: wrong.gate(p, **how),
        "give (at_least)=, at_most= or (baseline)=",
        '{0}={{"AP": .5}}, {1}=p.found',
        True,
    ),
    Row(
        "integrations/pytest: give at_least=, at_most= or baseline=",
        lambda p: lambda: wrong.gate(p),
        "give at_least=, (at_most)=",
        lambda p, name: wrong.gate(p, protocol=wrong.with_mr(), **{name: {"MR": 1.0}}),
        True,
    ),
)


def updated_by(p: Place, wrap: Any) -> Any:
    found, objects = pair(p)
    for each in found:
        each["boxes"] = wrap(each["boxes"])
    evaluator = detmap.Evaluator(classes=named(p))
    evaluator.update(found, objects)
    return evaluator.compute()


def own_format(p: Place, form: str) -> Any:
    found, objects = pair(p)
    for each in found:
        each |= {"box_format": form} if form else {}
    evaluator = detmap.Evaluator(classes=named(p))
    evaluator.update(found, objects)
    return evaluator.compute()


def drawn(p: Place, panels: Any) -> Any:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    detmap.evaluate(p.truth, p.found).plot(ax=axes, panels=panels)
    return axes.get_ylabel()
