"""Generated data sets for the writers of the formats of annotation tools and detectors.

`format_samples` writes the same three images in each format. Here names of images and classes,
sizes, boxes and the order of all of them are generated, since a reader may be right for `a.png` and
`cat` only. The writers follow the tools' own spelling, and share nothing with the readers.
"""

from __future__ import annotations

import csv
import json
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

Box = tuple[float, float, float, float]
STEMS = (
    *("IMG_0025", "my photo 1", "Zürich", "猫 7", "000012", "0007", "v1.2", "a.b.c", "50% off"),
    *("x&y", "it's", "100%25", "a+b", "-5", "nan", "2008_000003", "frame.000001", "(2)", "a#b"),
    *("DSC00012", "a,b", "true", "1e5", "image=3", "12", "photo.jpg copy", "_x", "ground truth"),
)
SUFFIXES = (".jpg", ".JPG", ".png", ".jpeg", ".PNG", ".bmp")
CLASSES = (
    *("Pentagon", "five-point star", "traffic light", "猫", "person", "r&b", "car_2", "Über-Haus"),
    *("null", "a/c", "T-shirt", "50%", "nan", "yes", "cat", "Cat"),
)
TEXTS = (".txt", ".xml", ".json", ".jsonl", ".csv", ".yaml", ".data", ".names")
FILE_PER_IMAGE = ("Annotations", "labels", "ann", "json", "preds", "data", "label_2", "dump")
"""Names of folders with one text file per image."""
FOLDERS = ("", "", "sub/", "day 1/cam.0/")


@dataclass
class Case:
    """Images, classes, objects and detections; `flagged` objects are crowds where a format can say
    so.
    """

    images: list[tuple[str, int, int]]
    classes: list[str]
    objects: list[tuple[int, int, Box]]
    detections: list[tuple[int, int, Box, float]]
    flagged: set[int] = field(default_factory=set)

    def stem(self, image: int) -> str:
        """File name without folder and suffix."""
        return self.last(image).rpartition(".")[0]

    def last(self, image: int) -> str:
        """File name without folder."""
        return self.images[image][0].rpartition("/")[2]

    @cached_property
    def places(self) -> tuple[list[list[int]], list[list[int]]]:
        """The numbers of the objects and of the detections of each image."""
        found: tuple[list[list[int]], list[list[int]]] = tuple(  # type: ignore[assignment]
            [[] for _ in self.images] for _ in range(2)
        )
        for lists, rows in zip(found, (self.objects, self.detections), strict=True):
            for i, row in enumerate(rows):
                lists[row[0]].append(i)
        return found

    def on(self, image: int) -> list[tuple[int, str, Box]]:
        """Number, class and box of each object on an image."""
        rows = [(n, *self.objects[n][1:]) for n in self.places[0][image]]
        return [(n, self.classes[c], box) for n, c, box in rows]

    def found(self, image: int) -> list[tuple[int, str, Box, float]]:
        """Class number, class, box and score of each detection on an image."""
        rows = [self.detections[n][1:] for n in self.places[1][image]]
        return [(c, self.classes[c], box, score) for c, box, score in rows]

    def rows(self, image: int, scored: bool) -> list[tuple[str, Box, float | None]]:
        """Class, box and score of the detections, or of the objects, which have no score."""
        if scored:
            return [row[1:] for row in self.found(image)]
        return [(label, box, None) for _, label, box in self.on(image)]

    def renamed(self, name: str) -> Case:
        """The case with other names of images: `name` has places for the number and the name."""
        images = [
            (name.format(0xA0B1C2D3 + i, self.last(i)), *row[1:])
            for i, row in enumerate(self.images)
        ]
        return Case(images, self.classes, self.objects, self.detections)


def draw(rng: random.Random, *, whole: bool = False, folders: bool = True) -> Case:
    """A data set; `whole` boxes have whole pixels. The last image has no object, the first no
    detection.
    """
    stems = rng.sample(STEMS, rng.randint(4, 6))
    if rng.random() < 0.3:  # numbers, as trainers like them
        stems = [f"{i:06}" for i in rng.sample(range(999), len(stems))]
    suffix = rng.choice(SUFFIXES)
    images = []
    for stem in stems:
        name = stem + (rng.choice(SUFFIXES) if rng.random() < 0.2 else suffix)
        images.append(((rng.choice(FOLDERS) if folders else "") + name, *_size(rng)))
    classes = rng.sample(CLASSES, rng.randint(2, 4))
    objects = [
        (i, rng.randrange(len(classes)), _box(rng, *images[i][1:], whole))
        for i in range(len(images) - 1)
        for _ in range(rng.randint(1, 4))
    ]
    objects += [(0, c, _box(rng, *images[0][1:], whole)) for c in range(len(classes))]
    rng.shuffle(objects)
    found = [
        (i, c if rng.random() < 0.8 else rng.randrange(len(classes)), _moved(rng, box, whole))
        for i, c, box in objects * 2
        if i
    ]
    extra = [(len(images) - 1, c, _box(rng, *images[-1][1:], whole)) for c in range(len(classes))]
    scores = rng.sample(range(1, 1000), len(found) + len(extra))
    detections = [(*row, n / 1024) for row, n in zip(found + extra, scores, strict=True)]
    rng.shuffle(detections)
    flagged = {rng.randrange(len(objects))} if rng.random() < 0.5 else set()
    return Case(images, classes, objects, detections, flagged)


def _size(rng: random.Random) -> tuple[int, int]:
    return rng.choice([(64, 32), (37, 91), (200, 120), (33, 33), (150, 301)])


def _box(rng: random.Random, width: int, height: int, whole: bool) -> Box:
    w, h = rng.randint(6, width - 5), rng.randint(6, height - 5)
    x, y = rng.randint(1, width - w - 3), rng.randint(1, height - h - 3)
    return _moved(rng, (x, y, w, h), whole, least=0)


def _moved(rng: random.Random, box: Box, whole: bool, least: int = -1) -> Box:
    """The box changed by up to a pixel a number; two decimals, so that no IoU is a threshold."""
    x, y, w, h = (
        number + (rng.randint(least, 1) if whole else round(rng.uniform(least, 1), 2))
        for number in box
    )
    return x, y, w, h


# --- files ----------------------------------------------------------------------------------------


def save(path: Path, content: Any) -> Path:
    """Writes text, or anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    return path


def table(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    """Writes a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def picture(path: Path, width: int, height: int) -> None:
    """Writes a gray image; its bytes are PNG whatever its suffix."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(bytes((width + 1) * height), 1)) + chunk(b"IEND", b"")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + body)


def pictures(case: Case, folder: Path) -> Path:
    """Writes all images into one folder, without their own folders."""
    for i, (_, width, height) in enumerate(case.images):
        picture(folder / case.last(i), width, height)
    return folder


def dress(rng: random.Random, export: Export, folder: Path) -> None:
    """Changes nothing that a reader of text should see: a byte order mark, the ends of lines, the
    case of the suffixes of files that are one of many.
    """
    crlf, mark, upper = (rng.random() < 0.3 for _ in range(3))
    for file in sorted(each for each in folder.rglob("*") if each.suffix in TEXTS):
        data = file.read_bytes().replace(b"\r\n", b"\n")
        file.write_bytes(b"\xef\xbb\xbf" * mark + (data.replace(b"\n", b"\r\n") if crlf else data))
        given = (export.truth, export.found, *export.found_options.values())
        if upper and file not in given and file.parent.name in FILE_PER_IMAGE:
            file.rename(file.with_suffix(file.suffix.upper()))


def corners(box: Box) -> Box:
    """Left, top, right, bottom."""
    x, y, w, h = box
    return x, y, x + w, y + h


def center(box: Box) -> Box:
    """Center, width, height."""
    x, y, w, h = box
    return x + w / 2, y + h / 2, w, h


def scaled(box: Sequence[float], image: tuple[str, int, int], by: float = 1) -> list[float]:
    """The numbers as fractions of width and height, times a factor."""
    return [number / image[1 + i % 2] * by for i, number in enumerate(box)]


def words(*values: object) -> str:
    """The values with a space between them."""
    return " ".join(map(str, values))


# --- the case as COCO, and for every format that lacks one of both --------------------------------


def coco_trees(case: Case, rng: random.Random | None = None) -> tuple[Any, Any]:
    """Ground truth and results of pycocotools, with generated ids, or ids from 1."""
    image, category = (
        rng.sample(range(2000, 2099), len(rows)) if rng else range(1, len(rows) + 1)
        for rows in (case.images, case.classes)
    )
    truth = {
        "images": [
            {"id": image[i], "file_name": name, "width": w, "height": h}
            for i, (name, w, h) in enumerate(case.images)
        ],
        "annotations": [
            {"id": n + 1, "image_id": image[i], "category_id": category[c], "bbox": list(box)}
            | {"area": box[2] * box[3], "iscrowd": int(n in case.flagged)}
            for n, (i, c, box) in enumerate(case.objects)
        ],
        "categories": [{"id": category[c], "name": name} for c, name in enumerate(case.classes)],
    }
    found = [
        {"image_id": image[i], "category_id": category[c], "bbox": list(box), "score": score}
        for i, c, box, score in case.detections
    ]
    return truth, found


def coco(case: Case, folder: Path, rng: random.Random | None = None) -> tuple[Path, Path]:
    """The files of `coco_trees`."""
    truth, found = coco_trees(case, rng)
    return save(folder / "instances.json", truth), save(folder / "results.json", found)


def plain_csv(case: Case, folder: Path) -> Path:
    """Detections with a header, images by file name."""
    head = ["image", "class", "xmin", "ymin", "xmax", "ymax", "score"]
    rows = [
        [case.images[i][0], case.classes[c], *corners(box), score]
        for i, c, box, score in case.detections
    ]
    return table(folder / "found.csv", [head, *rows])


def sizes_csv(case: Case, folder: Path) -> Path:
    """A table of image sizes."""
    return table(folder / "sizes.csv", [["image", "width", "height"], *case.images])


def ap(truth: Path, found: Path) -> float:
    """AP of pycocotools on COCO files."""
    import contextlib
    import io

    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        rows = COCO(str(truth))
        run = COCOeval(rows, rows.loadRes(str(found)), "bbox")
        run.evaluate(), run.accumulate(), run.summarize()
    return float(run.stats[0])


@dataclass
class Export:
    """What a writer made: paths, or None for the COCO file, and options of the readers."""

    truth: Path | None = None
    found: Path | None = None
    truth_options: dict[str, Any] = field(default_factory=dict)
    found_options: dict[str, Any] = field(default_factory=dict)
    flags: bool = False
    """Whether the format says which objects are crowds."""
    listed: bool = True
    """Whether an image without objects is there."""


Writer = Callable[[Case, Path], Export]


def known(case: Case, made: Export) -> Case:
    """What an export can say of a case."""
    last = len(case.images) - 1
    found = [row for row in case.detections if made.listed or row[0] < last]
    flagged = case.flagged if made.flags else set()
    return Case(case.images, case.classes, case.objects, found, flagged)
