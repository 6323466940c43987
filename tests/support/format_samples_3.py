"""Samples of KITTI, data set and annotation tools' exports, as those of `format_samples`: the same
boxes.

SAMPLES : of formats with a row of their own in the registry
VARIANTS : further files of these formats, and rotated boxes of Ultralytics
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.format_samples import (
    DETECTIONS,
    HEIGHT,
    NAMES,
    OBJECTS,
    STEMS,
    WIDTH,
    Paths,
    corners,
    csv_files,
    pictures,
    save,
    words,
)

Row = tuple[str, Any, float | None]
SIZE = {"width": WIDTH, "height": HEIGHT}
REST = "1.5 1.6 3.9 1 1.7 20 -1.5"  # KITTI's box in 3D


def rows_of(stem: str, *, scored: bool = False) -> Iterator[Row]:
    """Class, box and score of the objects or detections on an image."""
    if scored:
        yield from ((name, box, score) for own, name, box, score in DETECTIONS if own == stem)
    else:
        yield from ((name, box, None) for own, name, box in OBJECTS if own == stem)


def kitti(folder: Path) -> Paths:
    for stem in STEMS:
        rows = [words(name, 0.25, 1, -1.57, *corners(box), REST) for name, box, _ in rows_of(stem)]
        found = [
            words(name, -1, -1, -10, *corners(box), REST, score)
            for name, box, score in rows_of(stem, scored=True)
        ]
        save(folder / "training" / "label_2" / f"{stem}.txt", "\n".join(rows))
        save(folder / "results" / "data" / f"{stem}.txt", "\n".join(found))
    return folder / "training", folder / "results"


def datumaro_kitti(folder: Path) -> Paths:
    """A 16th column, no file for an image without objects; DeepStream's names of detections."""
    truth, results = kitti(folder)
    assert truth is not None
    assert results is not None
    labels = truth / "label_2"
    (labels / "c.txt").unlink()
    for file in labels.iterdir():
        save(file, "".join(f"{line} 1.0\n" for line in file.read_text().splitlines()))
    pictures(truth / "image_2")
    for i, stem in enumerate(STEMS):
        (results / "data" / f"{stem}.txt").rename(results / "data" / f"00_000_{i:06}.txt")
    return labels, results / "data"


def fiftyone(folder: Path) -> Paths:
    def labels(scored: bool) -> dict[str, Any]:
        return {stem: [record(*row) for row in rows_of(stem, scored=scored)] for stem in STEMS}

    def record(name: str, box: Any, score: float | None) -> dict[str, Any]:
        sides = (WIDTH, HEIGHT, WIDTH, HEIGHT)
        fractions = [number / side for number, side in zip(box, sides, strict=True)]
        more = {"attributes": {"iscrowd": 0}} if score is None else {"confidence": score}
        return {"label": NAMES.index(name), "bounding_box": fractions} | more

    pictures(folder / "truth" / "data")
    return (
        save(folder / "truth" / "labels.json", {"classes": NAMES, "labels": labels(False)}).parent,
        save(folder / "found" / "labels.json", {"classes": NAMES, "labels": labels(True)}),
    )


def createml(folder: Path) -> Paths:
    def images(scored: bool) -> list[dict[str, Any]]:
        return [
            {
                "image": f"{stem}.png",
                "annotations": [record(*row) for row in rows_of(stem, scored=scored)],
            }
            for stem in STEMS
        ]

    def record(name: str, box: Any, score: float | None) -> dict[str, Any]:
        x, y, w, h = box
        center = {"x": x + w / 2, "y": y + h / 2, "width": w, "height": h}
        return {"label": name, "coordinates": center} | ({"confidence": score} if score else {})

    return save(folder / "t.json", images(False)), save(folder / "d.json", images(True))


def via(folder: Path) -> Paths:
    def region(name: str, box: Any) -> dict[str, Any]:
        sides = dict(zip(("x", "y", "width", "height"), box, strict=True))
        return {"shape_attributes": {"name": "rect"} | sides, "region_attributes": {"kind": name}}

    images = {
        f"{stem}.png99": {
            "filename": f"{stem}.png",
            "size": 99,
            "regions": [region(name, box) for name, box, _ in rows_of(stem)],
            "file_attributes": {},
        }
        for stem in STEMS
    }
    return save(folder / "via_region_data.json", images), csv_files(folder)[1]


def via_project(folder: Path) -> Paths:
    """A project of version 2, and regions as an object as in version 1."""
    exported = via(folder)[0]
    assert exported is not None
    images = json.loads(exported.read_text())
    for image in images.values():
        image["regions"] = {str(i): region for i, region in enumerate(image["regions"])}
    project = {"_via_settings": {}, "_via_img_metadata": images}
    return save(folder / "via.json", project), csv_files(folder)[1]


def supervisely(folder: Path) -> Paths:
    def save_project(path: Path, scored: bool) -> Path:
        classes = [{"title": name, "shape": "rectangle"} for name in NAMES]
        save(path / "meta.json", {"classes": classes, "tags": []})
        for stem in STEMS:
            objects = [record(*row) for row in rows_of(stem, scored=scored)]
            page = {"description": "", "tags": [], "size": SIZE, "objects": objects}
            save(path / "ds0" / "ann" / f"{stem}.png.json", page)
        return path

    def record(name: str, box: Any, score: float | None) -> dict[str, Any]:
        left, top, right, bottom = corners(box)
        points = {"exterior": [[right, bottom], [left, top]], "interior": []}
        tags = [{"name": "confidence", "value": score}] if score else []
        return {"classTitle": name, "geometryType": "rectangle", "tags": tags, "points": points}

    return save_project(folder / "truth", False), save_project(folder / "found", True)


def vott(folder: Path) -> Paths:
    def region(name: str, box: Any) -> dict[str, Any]:
        sides = dict(zip(("left", "top", "width", "height"), box, strict=True))
        return {"id": "r", "type": "RECTANGLE", "tags": [name], "boundingBox": sides}

    assets = {
        f"0{i}": {
            "asset": {"name": f"{stem}.png", "path": f"file:{stem}.png", "size": SIZE, "type": 1},
            "regions": [region(name, box) for name, box, _ in rows_of(stem)],
        }
        for i, stem in enumerate(STEMS)
    }
    head = {"name": "p", "videoSettings": {"frameExtractionRate": 15}}
    tags = [{"name": name} for name in NAMES]
    tree = head | {"tags": tags, "assets": assets}
    return save(folder / "vott-export.json", tree), csv_files(folder)[1]


def huggingface(folder: Path) -> Paths:
    for scored, name in ((False, "test"), (True, "found")):
        lines = []
        for stem in STEMS:
            rows = list(rows_of(stem, scored=scored))
            objects = {"bbox": [row[1] for row in rows], "categories": [row[0] for row in rows]}
            objects |= {"score": [row[2] for row in rows]} if scored else {}
            lines.append({"file_name": f"{stem}.png", **SIZE, "objects": objects})
        save(folder / name / "metadata.jsonl", "".join(f"{json.dumps(row)}\n" for row in lines))
    return folder / "test", folder / "found" / "metadata.jsonl"


def huggingface_parquet(folder: Path) -> Paths:
    """Parquet with the classes in its schema, and the images in it."""
    import pyarrow
    from pyarrow import parquet

    images = pictures(folder)
    label = {"names": list(NAMES), "_type": "ClassLabel"}
    features = {"objects": {"feature": {"bbox": {}, "category": label}, "_type": "Sequence"}}
    rows = [
        {
            "image": {"bytes": (images / f"{stem}.png").read_bytes(), "path": f"{stem}.png"},
            "image_id": 7 + i,
            "objects": {
                "bbox": [list(map(float, box)) for _, box, _ in rows_of(stem)],
                "category": [NAMES.index(name) for name, _, _ in rows_of(stem)],
            },
        }
        for i, stem in enumerate(STEMS)
    ]
    info = json.dumps({"info": {"features": features}})
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata({"huggingface": info})
    file = folder / "data" / "test-00000-of-00001.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, file)
    return folder / "data", csv_files(folder)[1]


def ultralytics_json(folder: Path) -> Paths:
    for stem in STEMS:
        rows = [
            {"name": name, "class": NAMES.index(name), "confidence": score}
            | {"box": dict(zip(("x1", "y1", "x2", "y2"), corners(box), strict=True))}
            for name, box, score in rows_of(stem, scored=True)
        ]
        save(folder / "json" / f"{stem}.json", rows)
    return None, folder / "json"


def mmdet_preds(folder: Path) -> Paths:
    """Without class names: the ground truth is FiftyOne's, whose classes count from 0."""
    for stem in STEMS:
        rows = list(rows_of(stem, scored=True))
        page = {
            "labels": [NAMES.index(row[0]) for row in rows],
            "scores": [row[2] for row in rows],
            "bboxes": [corners(row[1]) for row in rows],
        }
        save(folder / "outputs" / "preds" / f"{stem}.json", page)
    return fiftyone(folder)[0], folder / "outputs"


def rotated_predictions(folder: Path) -> Paths:
    """Ultralytics' predictions.json of rotated boxes."""
    rows = []
    for own, name, box, score in DETECTIONS:
        x1, y1, x2, y2 = corners(box)
        row = {"image_id": own, "file_name": f"{own}.png", "category_id": NAMES.index(name) + 1}
        poly = [x1, y1, x2, y1, x2, y2, x1, y2]
        rows.append(row | {"score": score, "rbox": [0, 0, 1, 1, 0], "poly": poly})
    return None, save(folder / "predictions.json", rows)


SAMPLES: dict[str, Callable[[Path], Paths]] = {
    "kitti": kitti,
    "fiftyone": fiftyone,
    "createml": createml,
    "via": via,
    "supervisely": supervisely,
    "vott": vott,
    "huggingface": huggingface,
    "ultralytics-json": ultralytics_json,
    "mmdet-preds": mmdet_preds,
}
VARIANTS: dict[str, Callable[[Path], Paths]] = {
    "datumaro-kitti": datumaro_kitti,
    "via-project": via_project,
    "huggingface-parquet": huggingface_parquet,
    "rotated-predictions": rotated_predictions,
}
