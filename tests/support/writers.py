"""The sample and other tables written in the formats of other tools, one box after the other, with
no code of the adapters: independent conversions.

A box is `x1 y1 x2 y2` of VOC (from 1, last pixel inside) or `x y w h` of COCO, in plain Python.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from detmap import read_detections, read_truth
from detmap.core.tables import Detections, Truth
from tests.support.builders import SHAPES


class Row(NamedTuple):
    """One box."""

    stem: str
    label: int  # from 0, in the ground truth's order of classes
    name: str
    xywh: tuple[float, float, float, float]
    voc: tuple[float, float, float, float]
    score: float
    difficult: bool
    size: tuple[float, float]


def rows(table: Truth | Detections) -> Iterator[Row]:
    """The boxes of a table, in its order."""
    for i in range(len(table)):
        a, b, c, d = table.boxes[i].tolist()
        voc = table.box_format == "voc"
        place = int(table.image[i])
        yield Row(
            table.images.stems[place],
            int(table.label[i]),
            table.categories.names[table.label[i]],
            (a - 1, b - 1, c - a + 1, d - b + 1) if voc else (a, b, c, d),
            (a, b, c, d) if voc else (a + 1, b + 1, a + c, b + d),
            float(table.score[i]) if isinstance(table, Detections) else 1.0,
            bool(table.difficult[i]) if isinstance(table, Truth) else False,
            (float(table.images.width[place]), float(table.images.height[place])),
        )


def file_an_image(
    table: Truth | Detections, folder: Path, line: Callable[[Row], str], *, empty: bool = True
) -> Path:
    """A text file an image, a line a box; images without boxes have an empty one, or none."""
    found: dict[str, list[str]] = {stem: [] for stem in table.images.stems}
    for row in rows(table):
        found[row.stem].append(line(row))
    folder.mkdir(parents=True, exist_ok=True)
    for stem, lines in found.items():
        if lines or empty:
            (folder / f"{stem}.txt").write_text("".join(f"{each}\n" for each in lines))
    return folder


def words(*values: object) -> str:
    return " ".join(str(value) for value in values)


def cartucho(truth: Truth, detections: Detections, folder: Path) -> tuple[Path, Path]:
    """As in Cartucho/mAP's README."""
    return (
        file_an_image(
            truth,
            folder / "ground-truth",
            lambda row: words(row.name, *row.voc, *["difficult"] * row.difficult),
        ),
        file_an_image(
            detections,
            folder / "detection-results",
            lambda row: words(row.name, row.score, *row.voc),
        ),
    )


BOXES: dict[str, Callable[[Row], tuple[float, ...]]] = {
    "voc": lambda row: row.voc,
    "voc xywh": lambda row: (*row.voc[:2], row.voc[2] - row.voc[0], row.voc[3] - row.voc[1]),
    "xywh": lambda row: row.xywh,
    "xyxy": lambda row: (*row.xywh[:2], row.xywh[0] + row.xywh[2], row.xywh[1] + row.xywh[3]),
    "cxcywh": lambda row: center(row, 1.0, 1.0),
    "normalized cxcywh": lambda row: center(row, *row.size),
}


def center(row: Row, width: float, height: float) -> tuple[float, ...]:
    x, y, w, h = row.xywh
    return (x + w / 2) / width, (y + h / 2) / height, w / width, h / height


def rafaelpadilla(
    truth: Truth, detections: Detections, folder: Path, box_format: str
) -> tuple[Path, Path]:
    """As in rafaelpadilla/Object-Detection-Metrics' README."""
    box = BOXES[box_format]
    return (
        file_an_image(truth, folder / "groundtruths", lambda row: words(row.name, *box(row))),
        file_an_image(
            detections, folder / "detections", lambda row: words(row.name, row.score, *box(row))
        ),
    )


def image_sizes(truth: Truth, file: Path) -> Path:
    """A CSV file of the images' sizes."""
    columns = zip(
        truth.images.stems, truth.images.width.tolist(), truth.images.height.tolist(), strict=True
    )
    lines = [f"{stem},{width:g},{height:g}" for stem, width, height in columns]
    file.write_text("\n".join(["image,width,height", *lines]) + "\n")
    return file


def yolo(
    truth: Truth,
    detections: Detections,
    folder: Path,
    image: Callable[[Path, tuple[float, float]], None],
) -> tuple[Path, Path]:
    """A data set and its predictions as Ultralytics has them; `image` makes the file of one."""
    size = {
        stem: (width, height)
        for stem, width, height in zip(
            truth.images.stems,
            truth.images.width.tolist(),
            truth.images.height.tolist(),
            strict=True,
        )
    }
    (folder / "images" / "val").mkdir(parents=True, exist_ok=True)
    for stem, sides in size.items():
        image(folder / "images" / "val" / f"{stem}.jpg", sides)
    box = BOXES["normalized cxcywh"]
    file_an_image(
        truth, folder / "labels" / "val", lambda row: words(row.label, *box(row)), empty=False
    )
    file_an_image(
        detections,
        folder / "run" / "labels",
        lambda row: words(row.label, *box(row), row.score),
        empty=False,
    )
    names = "".join(f"  {i}: {name}\n" for i, name in enumerate(truth.categories.names))
    (folder / "data.yaml").write_text(
        f"path: .\ntrain: images/train\nval: images/val\nnames:\n{names}"
    )
    return folder / "data.yaml", folder / "run"


def predictions(detections: Detections, file: Path, first: int) -> Path:
    """A predictions.json as Ultralytics writes it, the ids of classes from `first` on."""
    found = [
        {
            "image_id": int(row.stem) if row.stem.isnumeric() else row.stem,
            "file_name": f"{row.stem}.jpg",
            "category_id": row.label + first,
            "bbox": [round(each, 3) for each in row.xywh],
            "score": round(row.score, 5),
        }
        for row in rows(detections)
    ]
    file.write_text(json.dumps(found))
    return file


def columns(table: Truth | Detections, names: str, box_format: str) -> dict[str, list[Any]]:
    """Named columns: an image, a class, four numbers, and a score of detections."""
    found = list(rows(table))
    boxes = [BOXES[box_format](row) for row in found]
    image, label, *sides = names.split()
    written: dict[str, list[Any]] = {
        image: [f"{row.stem}.jpg" for row in found],
        label: [row.name for row in found],
    }
    for i, side in enumerate(sides[:4]):
        written[side] = [box[i] for box in boxes]
    if isinstance(table, Detections):
        written["score"] = [row.score for row in found]
    else:
        written["difficult"] = [int(row.difficult) for row in found]
        for stem in set(table.images.stems) - {row.stem for row in found}:
            for column in written.values():  # an image without objects
                column.append(f"{stem}.jpg" if column is written[image] else None)
    return written


def csv(found: dict[str, list[Any]], file: Path, delimiter: str = ",") -> Path:
    """Columns as a CSV file."""
    lines = [found, *zip(*found.values(), strict=True)]
    file.write_text(
        "".join(
            f"{delimiter.join('' if cell is None else str(cell) for cell in line)}\n"
            for line in lines
        )
    )
    return file


def recipes(folder: Path) -> None:
    """The sample as docs/recipes.md and docs/formats.md have it from each tool."""
    truth = read_truth(SHAPES)
    found = read_detections(SHAPES / "detections" / "contours", truth)

    def image(file: Path, size: tuple[float, float]) -> None:
        shutil.copy(SHAPES / "JPEGImages" / file.name, file)

    yolo(truth, found, folder, image)
    (folder / "runs" / "detect").mkdir(parents=True)
    shutil.move(folder / "run", folder / "runs" / "detect" / "val")
    predictions(found, folder / "runs" / "detect" / "val" / "predictions.json", 1)
    for name in ("inference/coco_instances_results.json", "work_dirs/results.bbox.json"):
        (folder / name).parent.mkdir()
        shutil.copy(SHAPES / "detections" / "contours.json", folder / name)
    cartucho(truth, found, folder)
    rafaelpadilla(truth, found, folder, "voc xywh")
    image_sizes(truth, folder / "sizes.csv")
    names = "image class xmin ymin xmax ymax"
    csv(columns(truth, names, "xyxy"), folder / "objects.csv")
    csv(columns(found, names, "xyxy"), folder / "found.csv")
