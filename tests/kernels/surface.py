"""Everything public that runs a kernel, on drawn data and files; prints what came out, as JSON.

Run on an installed wheel's kernels, on freshly compiled ones, and as plain Python while the types
of arguments are noted: the same bits, nothing compiled, nothing that the warm-up leaves out.
"""

import contextlib
import io
import json
import random
import re
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap import ranking
from detmap.compat import COCO, COCOeval
from detmap.core.base.resources import folder
from tests.support.drawing import draw_coco, draw_lvis, draw_many_detections
from tests.support.drawing_shapes import draw_keypoints, draw_outlined, draw_segm
from tests.support.lanes import LANES, always_scan, write_mutated
from tests.support.running import run

vars(import_module("detmap.analysis.doctor"))["SECONDS"] = 3600.0
"""What the doctor finds must not depend on speed. `detmap.analysis.doctor` is the function."""

SHAPES = folder("datasets") / "shapes"
CROWDED: dict[str, Any] = {"n_images": 2, "n_classes": 1, "max_objects": 70, "max_detections": 80}
MANY = [round(0.3 + i / 100, 2) for i in range(20)]


def commands(place: Path) -> list[object]:
    """The command line: files of both families, results and states between."""
    drawn = draw_coco(np.random.default_rng(1), **CROWDED)
    truth, results = place / "instances.json", place / "results.json"
    truth.write_text(json.dumps(drawn[0]))
    results.write_text(json.dumps(drawn[1]))
    state, labels, scores = place / "state.npz", place / "labels.csv", place / "scores.csv"
    labels.write_text("image,cat,dog\na,0,1\nb,1,1\nc,0,1\n")
    scores.write_text("image,cat,dog\na,.1,.8\nb,.9,.7\nc,.2,.1\n")
    ids = [each["id"] for each in drawn[0]["images"]]
    slices, some = place / "slices.json", place / "some.txt"
    slices.write_text(json.dumps({"first": ids[:1]}))
    some.write_text(f"{ids[0]}\n")
    contours = SHAPES / "detections" / "contours"
    lines: list[tuple[object, ...]] = [
        ("eval", truth, results, "--per-class"),
        ("eval", truth, results, "--set", f"iou.thresholds={MANY}"),
        ("eval", truth, results, "-p", "voc2012"),
        ("eval", SHAPES, contours, "--per-class"),
        ("eval", SHAPES, contours, "-p", "coco-bbox"),
        ("match", truth, results, "-o", state),
        ("merge", state),
        ("merge", state, "--confidence", 0.5, "--best-f1", "--per-image", place / "rows.csv"),
        ("eval", truth, results, "--slices", slices, "--min-recall", 0.5, "--images", some),
        ("rank", labels, scores),
        ("rank", labels, scores, "-p", "voc2007"),
        ("demo",),
        ("parity", truth, results),
    ]
    outcomes = [run(*line) for line in lines]
    times = re.compile(r"seconds, files to numbers.*", re.DOTALL)
    return [
        (*line, code, times.sub("", out), err)
        for line, (code, out, err) in zip(lines, outcomes, strict=True)
    ]


def results() -> list[object]:
    """The array interface, by every protocol, and what a result can be asked for."""
    found: list[object] = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        instances, detections = draw_many_detections(rng) if seed == 0 else draw_coco(rng)
        ids = [each["id"] for each in instances["images"]]
        names = {each["id"]: each["name"] for each in instances["categories"]}
        objects = instances["annotations"]
        kept = [each for each in detections if each["category_id"] in names]
        truth = detmap.truth_from_arrays(
            *columns(objects),
            crowd=[each.get("iscrowd", 0) for each in objects],
            images=ids,
            categories=names,
        )
        boxes = detmap.detections_from_arrays(
            truth, *columns(kept), [each["score"] for each in kept]
        )
        for protocol in ("coco-bbox", "voc2007", "voc2012"):
            for settings in ({}, {"iou.thresholds": MANY}):
                result = detmap.evaluate(truth, boxes, protocol, settings=settings)
                found += [result.metrics, result.signature, result.integrators()]
                weights = rng.random(len(ids))
                found.append(detmap.summarize(result.matches, weights=weights).metrics)
                found.append({key: one.to_dict() for key, one in result.ties(orders=2).items()})
                made = result.intervals()
                found.append({key: one.to_dict() for key, one in made.metrics.items()})
                curve = result.curve(next(iter(names)), result.protocol.thresholds()[0])
                found.append([array.tolist() for array in curve])
        evaluator = detmap.Evaluator(classes=names)
        for image in ids:
            evaluator.update([of(kept, image, scores=True)], [of(objects, image)])
        found.append(evaluator.compute().metrics)
    return found


def columns(rows: list[dict[str, Any]]) -> tuple[Any, Any, Any]:
    boxes = np.array([row["bbox"] for row in rows], dtype=float).reshape(-1, 4)
    return [row["image_id"] for row in rows], [row["category_id"] for row in rows], boxes


def of(rows: list[dict[str, Any]], image: int, scores: bool = False) -> dict[str, Any]:
    mine = [row for row in rows if row["image_id"] == image]
    _, labels, boxes = columns(mine)
    boxes[:, 2:] += boxes[:, :2]
    found = {"boxes": boxes, "labels": np.array(labels, dtype=int), "image_id": image}
    return {**found, "scores": np.array([row["score"] for row in mine])} if scores else found


def shapes_and_scopes(place: Path) -> list[object]:
    """Masks, keypoints and LVIS from files, and which object each detection took."""
    found: list[object] = []
    drawn = {
        "coco-segm": draw_segm(np.random.default_rng(3)),
        "coco-boundary": draw_outlined(np.random.default_rng(3)),
        "coco-keypoints": draw_keypoints(np.random.default_rng(3)),
        "lvis": draw_lvis(np.random.default_rng(3)),
    }
    for name, (instances, results) in drawn.items():
        files = place / f"{name}.json", place / f"{name}-results.json"
        for file, content in zip(files, (instances, results), strict=True):
            file.write_text(json.dumps(content))
        found.append(run("eval", *files, "-p", name, "--per-class"))
        protocol = detmap.load_protocol(name)
        truth = detmap.read_truth(files[0], shapes=protocol.iou.of)
        matches = detmap.match(truth, detmap.read_detections(files[1], truth), protocol, taken=True)
        taken = matches.taken
        found.append([taken.object.tolist(), taken.overlap.tolist(), taken.words.tolist()])
        matches.save(place / "taken.npz")
        found.append(detmap.summarize(detmap.Matches.load(place / "taken.npz")).metrics)
    return found


def rankings() -> list[object]:
    """The metrics of classifiers and of retrieval."""
    rng = np.random.default_rng(0)
    truth, scores, weight = rng.random((40, 5)) < 0.3, rng.random((40, 5)).round(1), rng.random(40)
    one = truth[:, 0], scores[:, 0]
    found: list[object] = [
        np.asarray(metric(truth, scores, average=average, sample_weight=weight)).tolist()
        for average in ranking.AVERAGES
        for metric in (ranking.average_precision, ranking.auc)
    ]
    found += [
        ranking.average_precision(truth, scores, ties=ties, integrator=integrator)
        for ties in ranking.TIES
        for integrator in ranking.INTEGRATORS
    ]
    found += [
        array.tolist()
        for curve in (ranking.roc_curve, ranking.precision_recall_curve)
        for array in curve(*one)
    ]
    found += [
        np.asarray(at_k(truth, scores, 2)).tolist()
        for at_k in (
            ranking.precision_at_k,
            ranking.recall_at_k,
            ranking.average_precision_at_k,
            ranking.mean_average_precision_at_k,
        )
    ]
    return [*found, ranking.best_f_beta(*one), str(ranking.confusion(*one, 0.5))]


def drop_in(place: Path) -> list[object]:
    """pycocotools' classes, from files and from dicts."""
    found: list[object] = []
    for seed in range(3):
        instances, results = draw_coco(np.random.default_rng(seed), max_objects=30)
        file = place / f"{seed}.json"
        for i, each in enumerate(instances["annotations"]):
            each |= {"id": i + 1, "area": 400.0, "iscrowd": each.get("iscrowd", 0)}
        file.write_text(json.dumps(instances))
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO(str(file))
            run = COCOeval(truth, truth.loadRes(results), "bbox")
            run.evaluate()
            run.accumulate()
            run.summarize()
        found.append([run.stats.tolist(), repr(run.evalImgs), float(run.eval["precision"].sum())])
    return found


def lanes(place: Path) -> list[object]:
    """Whether the fast lane of each format takes damaged files."""
    always_scan(random.Random(0))
    found: list[object] = []
    for kind in LANES:
        for seed in range(40):
            write_mutated(kind, seed, place / "file")
            found.append(LANES[kind][0](place / "file") is not None)
    return found


def outcomes() -> list[object]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found = [*results(), *rankings(), *drop_in(Path()), *shapes_and_scopes(Path())]
        return [*found, *lanes(Path()), *commands(Path())]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    text = json.dumps(outcomes(), default=str)  # as text: NaN equals itself
    json.dump(
        {"detmap": detmap.__file__, "outcomes": text, "numba": "numba" in sys.modules}, sys.stdout
    )
