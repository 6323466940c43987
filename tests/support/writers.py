"""Tables as a `Case`, so that the writers of formats can write them without the adapters."""

import shutil
from pathlib import Path
from typing import Any

from detmap import read_detections, read_truth
from detmap.core.tables import Detections, Truth
from tests.support.builders import SHAPES
from tests.support.varied_exports import Case, sizes_csv, table
from tests.support.varied_writers import cartucho, columns, predictions, rafaelpadilla


def case(truth: Truth, detections: Detections) -> Case:
    """The tables in continuous pixels, difficult objects flagged."""
    sizes = zip(truth.images.width.tolist(), truth.images.height.tolist(), strict=True)

    def rows(table: Truth | Detections, *more: list[float]) -> list[tuple[Any, ...]]:
        boxes = [tuple(box) for box in table.boxes.tolist()]
        if table.box_format == "voc":
            boxes = [(a - 1, b - 1, c - a + 1, d - b + 1) for a, b, c, d in boxes]
        return list(zip(table.image.tolist(), table.label.tolist(), boxes, *more, strict=True))

    return Case(
        [
            (f"{stem}.jpg", int(width), int(height))
            for stem, (width, height) in zip(truth.images.stems, sizes, strict=True)
        ],
        list(truth.categories.names),
        rows(truth),
        rows(detections, detections.score.tolist()),
        set(truth.difficult.nonzero()[0].tolist()),
    )


def csv(found: dict[str, list[Any]], file: Path) -> Path:
    """Columns as a CSV file."""
    return table(file, [list(found), *zip(*found.values(), strict=True)])


def recipes(folder: Path) -> None:
    """The sample as docs/recipes.md and docs/formats.md have it from each tool."""
    truth = read_truth(SHAPES)
    sample = case(truth, read_detections(SHAPES / "detections" / "contours", truth))
    predictions(sample, folder)
    (folder / "runs" / "detect").mkdir(parents=True)
    shutil.move(folder / "run", folder / "runs" / "detect" / "val")
    shutil.move(folder / "predictions.json", folder / "runs" / "detect" / "val")
    for name in ("inference/coco_instances_results.json", "work_dirs/results.bbox.json"):
        (folder / name).parent.mkdir()
        shutil.copy(SHAPES / "detections" / "contours.json", folder / name)
    cartucho(sample, folder, "difficult")
    rafaelpadilla(sample, folder, "voc xywh")
    sizes_csv(sample, folder)
    for scored, name in enumerate(("objects", "found")):
        found = columns(sample, "image class xmin ymin xmax ymax", "xyxy", scored=bool(scored))
        csv(found, folder / f"{name}.csv")
