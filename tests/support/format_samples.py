"""A tiny sample in each format that detmap reads: the same boxes, written without the adapters.

A function writes the sample into an empty folder and returns the paths of the ground truth and of
the detections; None where the format has no such file, and then those of `coco` are used. All
samples hold the same boxes of the same two classes on three images of 64 x 32 pixels, the last of
them without objects, so that all give the same number. Used by
`tests/adapters/test_format_samples.py`, `tools/fuzzing/samples.py` and `tools/format_table.py`.
"""

import csv
import json
import struct
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 64, 32
STEMS = ("a", "b", "c")
NAMES = ("cat", "dog")
OBJECTS = (("a", "cat", (8, 4, 16, 8)), ("a", "dog", (32, 8, 16, 16)), ("b", "cat", (0, 0, 32, 16)))
"""Stem, class, and left, top, width, height in continuous pixels from 0."""
DETECTIONS = (
    ("a", "cat", (8, 4, 16, 8), 0.875),
    ("a", "dog", (32, 8, 16, 12), 0.75),
    ("b", "dog", (4, 4, 8, 8), 0.625),
    ("b", "cat", (4, 0, 28, 16), 0.5),
    ("c", "cat", (16, 8, 32, 16), 0.25),
)
Paths = tuple[Path | None, Path | None]


def save(path: Path, content: Any) -> Path:
    """Writes text, or anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def pictures(folder: Path) -> Path:
    """Writes the three images, gray PNG files."""
    folder.mkdir(parents=True, exist_ok=True)

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((WIDTH + 1) * HEIGHT))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    for stem in STEMS:
        (folder / f"{stem}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    return folder


def corners(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Left, top, right, bottom."""
    x, y, w, h = box
    return x, y, x + w, y + h


def pixels(box: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """The first and the last pixel, counted from 1."""
    x, y, w, h = box
    return x + 1, y + 1, x + w, y + h


def fractions(box: tuple[int, int, int, int]) -> tuple[float, float, float, float]:
    """Center, width and height as fractions of the image."""
    x, y, w, h = box
    return (x + w / 2) / WIDTH, (y + h / 2) / HEIGHT, w / WIDTH, h / HEIGHT


def words(*values: object) -> str:
    return " ".join(map(str, values))


def coco(folder: Path) -> Paths:
    truth = {
        "images": [
            {"id": i, "file_name": f"{stem}.png", "width": WIDTH, "height": HEIGHT}
            for i, stem in enumerate(STEMS, 1)
        ],
        "annotations": [
            {
                "id": i,
                "image_id": STEMS.index(stem) + 1,
                "category_id": NAMES.index(name) + 1,
                "bbox": list(box),
                "area": box[2] * box[3],
                "iscrowd": 0,
            }
            for i, (stem, name, box) in enumerate(OBJECTS, 1)
        ],
        "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES, 1)],
    }
    found = [
        {
            "image_id": STEMS.index(stem) + 1,
            "category_id": NAMES.index(name) + 1,
            "bbox": list(box),
            "score": score,
        }
        for stem, name, box, score in DETECTIONS
    ]
    return save(folder / "instances.json", truth), save(folder / "results.json", found)


def voc(folder: Path) -> Paths:
    for stem in STEMS:
        objects = "".join(
            f"<object><name>{name}</name><difficult>0</difficult><bndbox>"
            + "".join(
                f"<{side}>{number}</{side}>"
                for side, number in zip(("xmin", "ymin", "xmax", "ymax"), pixels(box), strict=True)
            )
            + "</bndbox></object>"
            for owner, name, box in OBJECTS
            if owner == stem
        )
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
        page = f"<annotation><filename>{stem}.png</filename>{size}{objects}</annotation>"
        save(folder / "voc" / "Annotations" / f"{stem}.xml", page)
    save(folder / "voc" / "ImageSets" / "Main" / "test.txt", "a\nb\nc\n")
    for name in NAMES:
        lines = [
            words(stem, score, *pixels(box))
            for stem, label, box, score in DETECTIONS
            if label == name
        ]
        save(folder / "results" / f"comp4_det_test_{name}.txt", "\n".join(lines) + "\n")
    return folder / "voc", folder / "results"


def yolo(folder: Path) -> Paths:
    pictures(folder / "images" / "val")
    for stem in STEMS:
        rows = [
            words(NAMES.index(name), *fractions(box)) for own, name, box in OBJECTS if own == stem
        ]
        found = [
            words(NAMES.index(name), *fractions(box), score)
            for own, name, box, score in DETECTIONS
            if own == stem
        ]
        save(folder / "labels" / "val" / f"{stem}.txt", "\n".join(rows))
        save(folder / "run" / "labels" / f"{stem}.txt", "\n".join(found))
    return save(folder / "data.yaml", "val: images/val\nnames: [cat, dog]\n"), folder / "run"


def table(path: Path, rows: list[list[Any]]) -> Path:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def csv_files(folder: Path) -> Paths:
    head = ["image", "class", "xmin", "ymin", "xmax", "ymax"]
    rows = [[f"{stem}.png", name, *corners(box)] for stem, name, box in OBJECTS]
    found = [[f"{stem}.png", name, *corners(box), score] for stem, name, box, score in DETECTIONS]
    return (
        table(folder / "objects.csv", [head, *rows, ["c.png", *[""] * 5]]),
        table(folder / "found.csv", [[*head, "score"], *found]),
    )


def cartucho(folder: Path) -> Paths:
    for stem in STEMS:
        rows = [words(name, *pixels(box)) for own, name, box in OBJECTS if own == stem]
        found = [
            words(name, score, *pixels(box)) for own, name, box, score in DETECTIONS if own == stem
        ]
        save(folder / "ground-truth" / f"{stem}.txt", "\n".join(rows))
        save(folder / "detection-results" / f"{stem}.txt", "\n".join(found))
    return folder / "ground-truth", folder / "detection-results"


SAMPLES: dict[str, Callable[[Path], Paths]] = {
    "coco": coco,
    "voc": voc,
    "yolo": yolo,
    "csv": csv_files,
    "cartucho": cartucho,
}


def all_samples() -> dict[str, Callable[[Path], Paths]]:
    """The samples and variants of this module and of those beside it."""
    found: dict[str, Callable[[Path], Paths]] = {}
    for file in sorted(Path(__file__).parent.glob("format_samples*.py")):
        module = import_module(f"tests.support.{file.stem}")
        found |= module.SAMPLES | getattr(module, "VARIANTS", {})
    return found
