"""detmap beside pycocotools on the same files: every array, every stat, and the time."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap import opening
from detmap import protocol as protocols
from detmap.adapters import ClassNames, read_detections, read_truth_for
from detmap.curves import coco_arrays
from detmap.errors import DataError, DetmapError, ProtocolError, require
from detmap.evaluate import evaluate, prepare
from detmap.protocol import Protocol
from detmap.report.table import Table
from detmap.result import Result
from detmap.signature import protocol_digest
from detmap.tables import Detections, Truth, boxes_as

SETTABLE = ("iou.thresholds", "ap.grid", "limits.max_dets", "subsets")
TYPES = {
    "boxes": ("coco-bbox", "bbox"),
    "masks": ("coco-segm", "segm"),
    "keypoints": ("coco-keypoints", "keypoints"),
}
"""By what overlaps: the protocol that restates pycocotools, and pycocotools' name of it."""
ARRAYS = ("precision", "recall", "scores")


@dataclass(frozen=True, slots=True, eq=False)
class Official:
    """What pycocotools made of the data: its ``eval`` arrays, its ``stats`` (None under other
    settings), seconds.
    """

    arrays: dict[str, NDArray[np.float64]]
    stats: NDArray[np.float64] | None
    read_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Parity:
    """A comparison: whether every number is equal (``==``),
    the differences and times as tables, remarks.
    """

    equal: bool
    tables: list[Table]
    remarks: list[str]


def compare(
    truth_path: str | Path,
    detections_path: str | Path,
    *,
    protocol: Protocol | str = "coco-bbox",
    split: str | None = None,
    settings: Mapping[str, Any] | None = None,
    unknown: str = "error",
    class_names: ClassNames | None = None,
) -> Parity:
    """Run detmap and pycocotools on the same files and compare their arrays, stats and times.

    COCO files are given to pycocotools as they are. Where it cannot read them (a missing iscrowd or
    area, an empty list), or where they are VOC files, it gets the same boxes as dicts. Where
    annotation ids make pycocotools itself wrong, it is run once more with ids from 1, to show that
    nothing else differs. Masks and keypoints have no such second way. `unknown` and `class_names`
    are those of `read_detections`.

    Parameters
    ----------
    protocol : one of those that restate pycocotools, see `TYPES`

    Raises
    ------
    DetmapError : bad input, a setting that pycocotools does not have, or pycocotools is not
        installed
    """
    with contextlib.suppress(ImportError):
        import pycocotools  # noqa: F401
    begin = time.perf_counter()
    rules = prepare(protocol, settings)
    _check_settable(rules)
    truth = read_truth_for(truth_path, rules, split=split)
    detections = read_detections(detections_path, truth, unknown=unknown, class_names=class_names)
    read_seconds = time.perf_counter() - begin
    result = evaluate(truth, detections, rules)
    values = [result.metrics[row.name] for row in result.rows]
    seconds = time.perf_counter() - begin
    ours = coco_arrays(result.matches)

    remarks: list[str] = []
    if class_names is None:
        instances, results = _as_given(truth, truth_path, detections, detections_path)
    else:
        instances, results = as_coco(truth, detections)
    try:
        official = _run(instances, results, rules)
    except (KeyError, IndexError, TypeError, ValueError, AssertionError) as error:
        if truth.shapes is not None:
            what = f"pycocotools cannot read these files ({type(error).__name__}: {error})"
            raise DataError(truth.source, what, "write them as COCO does") from None
        remarks.append(
            f"pycocotools cannot read these files ({type(error).__name__}: {error}); it was "
            "given the same boxes with iscrowd and area filled in and numbers for ids"
        )
        official = _run(*as_coco(truth, detections), rules)
    differences = _differences(ours, values, official)
    equal = all(row[2] == 0 for row in differences)
    odd_ids = [note for note in truth.notes if note.code in ("id-zero", "id-twice")]
    if not equal and odd_ids:
        remarks += [str(note) for note in odd_ids]
    if not equal and odd_ids and truth.shapes is None:
        renumbered = _differences(ours, values, _run(*as_coco(truth, detections), rules))
        same = all(row[2] == 0 for row in renumbered)
        remarks.append(
            "explained: with annotation ids counted from 1 pycocotools gives "
            f"{'the same bits as detmap' if same else 'still other numbers'}"
        )
    return Parity(equal, _tables(differences, result, official, (read_seconds, seconds)), remarks)


def _check_settable(protocol: Protocol) -> None:
    stock, _ = TYPES.get(protocol.iou.of, ("coco-bbox", ""))
    same = protocols.load(stock)
    for key, value in protocol.changes:
        same = same.override({key: value})
    if protocol_digest(replace(same, name=protocol.name)) != protocol_digest(protocol):
        raise ProtocolError(
            f"protocol {protocol.name}",
            "pycocotools has other rules",
            f"compare under {', '.join(name for name, _ in TYPES.values())}",
        )
    attributes = {r.attribute for subset in protocol.subsets for r in subset.ranges}
    if attributes != {"area"} or any(len(subset.ranges) != 1 for subset in protocol.subsets):
        raise ProtocolError(
            "--set: subsets", "pycocotools knows ranges of area only", "give each subset one area"
        )
    for key, value in protocol.changes:
        if not key.startswith(SETTABLE):
            raise ProtocolError(
                f"--set: {key}",
                f"pycocotools has no setting for {value}",
                f"it has {', '.join(SETTABLE)}",
            )


def _as_given(
    truth: Truth, truth_path: str | Path, detections: Detections, detections_path: str | Path
) -> tuple[Any, Any]:
    """The files themselves where both are COCO, else their boxes as dicts."""
    if truth.family == "coco" and Path(detections_path).is_file():
        return str(truth_path), str(detections_path)
    return as_coco(truth, detections)


def as_coco(truth: Truth, detections: Detections) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The tables as the dicts that pycocotools reads.

    Image ids are counted from 1 where they are strings, annotation ids always; neutral objects
    are crowds.
    """
    numbered = truth.images.ids.dtype.kind != "i"
    image_ids = np.arange(1, len(truth.images) + 1) if numbered else truth.images.ids
    category_ids = truth.categories.ids
    boxes = boxes_as(truth.boxes, truth.box_format, "xywh").tolist()
    crowd = (truth.crowd | truth.difficult).astype(int).tolist()
    annotations = [
        {
            "id": i + 1,
            "image_id": int(image_ids[image]),
            "category_id": int(category_ids[label]),
            "bbox": box,
            "area": area,
            "iscrowd": flag,
        }
        for i, (image, label, box, area, flag) in enumerate(
            zip(truth.image, truth.label, boxes, truth.area.tolist(), crowd, strict=True)
        )
    ]
    found = zip(
        detections.image,
        detections.label,
        boxes_as(detections.boxes, detections.box_format, "xywh").tolist(),
        detections.score.tolist(),
        strict=True,
    )
    results = [
        {
            "image_id": int(image_ids[image]),
            "category_id": int(category_ids[label]),
            "bbox": box,
            "score": score,
        }
        for image, label, box, score in found
    ]
    categories = [
        {"id": int(i), "name": name}
        for i, name in zip(category_ids, truth.categories.names, strict=True)
    ]
    return {
        "images": [{"id": int(i)} for i in image_ids],
        "annotations": annotations,
        "categories": categories,
    }, results


def _run(
    instances: str | dict[str, Any], results: str | list[dict[str, Any]], protocol: Protocol
) -> Official:
    """Run pycocotools on files or dicts, silenced."""
    COCO = require("pycocotools.coco", "parity").COCO  # noqa: N806 - its name
    COCOeval = require("pycocotools.cocoeval", "parity").COCOeval  # noqa: N806
    if COCOeval.__module__.startswith("detmap."):
        raise DetmapError(
            "parity",
            "pycocotools is replaced by detmap's drop-in",
            "undo patch_pycocotools() first",
        )

    stock = not protocol.changes
    with contextlib.redirect_stdout(io.StringIO()):
        begin = time.perf_counter()
        if isinstance(instances, str):
            truth = COCO(instances)
        else:
            truth = COCO()
            truth.dataset = instances
            truth.createIndex()
        if isinstance(results, str):
            found: Any = json.loads(opening.read_bytes(results))
            records: list[dict[str, Any]] = (
                found["annotations"] if isinstance(found, dict) else found
            )
        else:
            records = results
        if isinstance(results, str) and any(
            isinstance(record["category_id"], str) for record in records
        ):
            raise TypeError("a category_id is a name")
        detections = truth.loadRes(copy.copy(records)) if records else _no_detections(truth)
        read = time.perf_counter() - begin
        run = COCOeval(truth, detections, TYPES[protocol.iou.of][1])
        run.params.iouThrs = protocol.thresholds()
        run.params.recThrs = protocol.ap.grid.values()
        run.params.maxDets = list(protocol.max_dets())
        run.params.areaRng = [[r.low, r.high] for subset in protocol.subsets for r in subset.ranges]
        run.params.areaRngLbl = [subset.name for subset in protocol.subsets]
        run.evaluate()
        run.accumulate()
        if stock:
            run.summarize()
        seconds = time.perf_counter() - begin
    return Official(
        {name: run.eval[name] for name in ARRAYS},
        np.array(run.stats) if stock else None,
        read,
        seconds,
    )


def _no_detections(truth: Any) -> Any:
    """An empty result, which loadRes itself cannot make."""
    empty = type(truth)()
    empty.dataset = {
        "images": truth.dataset["images"],
        "categories": truth.dataset["categories"],
        "annotations": [],
    }
    empty.createIndex()
    return empty


def _differences(
    ours: dict[str, NDArray[np.float64]], values: list[float], official: Official
) -> list[tuple[str, int, int, float]]:
    """Name, cells, cells that differ, largest difference; of every array and of the stats."""
    pairs = [(name, ours[name], official.arrays[name]) for name in ARRAYS]
    if official.stats is not None:
        pairs.append(("stats", np.nan_to_num(np.array(values), nan=-1.0), official.stats))
    return [
        (name, a.size, int((a != b).sum()), float(np.abs(a - b).max(initial=0.0)))
        if a.shape == b.shape
        else (f"{name} {a.shape} / {b.shape}", a.size, a.size, float("nan"))
        for name, a, b in pairs
    ]


def _tables(
    differences: list[tuple[str, int, int, float]],
    result: Result,
    official: Official,
    seconds: tuple[float, float],
) -> list[Table]:
    rows = tuple(
        (name, cells, different, f"{largest:.3g}")
        for name, cells, different, largest in differences
    )
    equal = Table(
        "detmap and pycocotools", ("array", "cells", "different", "largest difference"), rows
    )
    tables = [equal]
    if official.stats is not None:
        stats = zip(result.rows, official.stats.tolist(), strict=True)
        tables.append(
            Table(
                "",
                ("metric", "detmap", "pycocotools"),
                tuple(
                    (row.name, result.metrics[row.name], None if theirs == -1 else theirs)
                    for row, theirs in stats
                ),
            )
        )
    (our_read, our_total), their_read, their_total = (
        seconds,
        official.read_seconds,
        official.seconds,
    )
    times = (
        ("detmap", f"{our_read:.3f}", f"{our_total - our_read:.3f}", f"{our_total:.3f}"),
        (
            "pycocotools",
            f"{their_read:.3f}",
            f"{their_total - their_read:.3f}",
            f"{their_total:.3f}",
        ),
        (
            "ratio",
            *(
                f"{theirs / ours:.1f}x"
                for theirs, ours in (
                    (their_read, our_read),
                    (their_total - their_read, our_total - our_read),
                    (their_total, our_total),
                )
            ),
        ),
    )
    tables.append(
        Table(
            "seconds, files to numbers in this process",
            ("tool", "read", "evaluate", "total"),
            times,
        )
    )
    return tables
