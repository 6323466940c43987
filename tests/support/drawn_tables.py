"""Drawn data as tables, by way of the adapters where there is a format for it."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap.core.tables import Categories, Detections, Images, Truth
from tests.support.drawing import VocDetections, VocObjects

Tables = tuple[Truth, Detections]


def read_coco(
    instances: Mapping[str, Any], results: Sequence[Mapping[str, Any]], shapes: str = "boxes"
) -> Tables:
    """The dicts written as JSON files and read back; detections of classes that the ground truth
    lacks are dropped without a note, as pycocotools does."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "instances.json"), Path(folder, "results.json")
        for file, content in zip(files, (instances, results), strict=True):
            file.write_text(json.dumps(content))
        truth = detmap.read_truth(files[0], shapes=shapes)
        detections = detmap.read_detections(files[1], truth, unknown="drop")
        notes = tuple(note for note in detections.notes if note.code != "class-unknown")
        return truth, replace(detections, notes=notes)


def voc_tables(objects: VocObjects, detections: VocDetections) -> tuple[Truth, Detections]:
    """VOC data as its adapter would read it: classes in alphabetical order, one file after the
    other."""
    names = sorted(objects)
    stems = sorted({stem for per_image in objects.values() for stem in per_image})
    rows = [
        (stems.index(stem), label, *obj)
        for label, name in enumerate(names)
        for stem, found in objects[name].items()
        for obj in found
    ]
    columns = np.array(rows, dtype=float).reshape(-1, 7)
    boxes = np.ascontiguousarray(columns[:, 2:6])
    unknown = np.full(len(stems), np.nan)
    truth = Truth(
        Images(np.array(stems, dtype=str), tuple(stems), unknown, unknown),
        Categories(np.arange(1, len(names) + 1), tuple(names)),
        image=columns[:, 0].astype(np.int32),
        label=columns[:, 1].astype(np.int32),
        boxes=boxes,
        roles={"difficult": columns[:, 6].astype(bool)},
        attributes={"area": (boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1)},
        box_format="voc",
        family="voc",
    )
    found = [
        (stems.index(stem), label, score, *box)
        for label, name in enumerate(names)
        for stem, score, *box in detections[name]
    ]
    columns = np.array(found, dtype=float).reshape(-1, 7)
    return truth, Detections(
        truth.images,
        truth.categories,
        columns[:, 0].astype(np.int32),
        columns[:, 1].astype(np.int32),
        np.ascontiguousarray(columns[:, 3:]),
        np.ascontiguousarray(columns[:, 2]),
        box_format="voc",
    )
