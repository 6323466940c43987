"""Damaged files of YOLO, CSV, Cartucho and DOTA: a `DataError`, or what a naive reader of the same
bytes reads.
"""

import csv
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap.core.overlaps.rotated_boxes import corners_of
from detmap.errors import DetmapError
from tools.fuzzing._files import damage_one, empty_folder, judge_refusal

STEMS = ("a", "b", "10")
NAMES = ("cat", "dog", "cow")
CORNERS = "0 0 10 0 10 10.5 0 10"
NAIVE_ERRORS = (ValueError, KeyError, IndexError, TypeError, csv.Error)
"""What a naive reader raises where it is not naive enough."""

Rows = list[tuple[str, str, list[float]]]
"""Stem, class and numbers of each box."""
Made = tuple[Path, Callable[[], Any], Callable[[bytes], Rows]]
"""A file, how it is read, and what a naive reader reads."""


def case(seed: int) -> str | None:
    """What is wrong with how one file, perhaps a damaged one, is read."""
    rng = random.Random(seed)
    kind = tuple(KINDS)[seed % len(KINDS)]
    file, read, naive = KINDS[kind](empty_folder("formats"), rng)
    whole = not damage_one(rng, [file], 0.2)
    data = file.read_bytes()
    try:
        table = read()
    except DetmapError as error:
        return judge_refusal(COUNTS, kind, error, whole=whole)
    COUNTS[f"{kind} read"] += 1
    try:
        wanted = naive(data)
    except NAIVE_ERRORS:
        return None
    return difference(kind, table, wanted)


def difference(kind: str, table: Any, wanted: Rows) -> str | None:
    """How a table differs from boxes that another reader found, in any order; rotated boxes are
    compared by their corners.
    """
    stems, names, rotated = table.images.stems, table.categories.names, table.shapes is not None
    if rotated:
        stems = table.images.ids.astype(str).tolist()
        wanted = [(*row[:2], corners_of(np.array([row[2]])).ravel().tolist()) for row in wanted]
    numbers = np.round(table.shapes.corners().reshape(-1, 8) if rotated else table.boxes, 6)
    found = sorted(
        (stems[table.image[i]], names[table.label[i]], numbers[i].tolist())
        for i in range(len(table))
    )
    expected = sorted((stem, name, np.round(box, 6).tolist()) for stem, name, box in wanted)
    same = len(found) == len(expected) and all(
        a[:2] == b[:2] and np.allclose(a[2], b[2], rtol=1e-9, atol=1e-5)
        for a, b in zip(found, expected, strict=True)
    )
    return None if same else f"{kind}: {found} is not {expected}"


def lines_of(data: bytes) -> list[list[str]]:
    """The words of the lines that have any."""
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    return [words for line in text.split("\n") if (words := re.findall(r"[^ \t]+", line))]


def some_lines(rng: random.Random, line: Callable[[], str]) -> str:
    return "\n".join(line() for _ in range(rng.randrange(1, 5))) + rng.choice(["", "\n", "\r\n"])


# --- YOLO -----------------------------------------------------------------------------------------


def yolo_truth(folder: Path, rng: random.Random) -> Made:
    empty_labels(folder)
    file, naive = label_lines(folder, rng, 4)
    return file, lambda: sized(folder), naive


def yolo_detections(folder: Path, rng: random.Random) -> Made:
    truth = empty_labels(folder)
    file, naive = label_lines(folder, rng, 5)
    return file, lambda: detmap.read_detections(file.parent, truth, format="yolo"), naive


def empty_labels(folder: Path) -> detmap.Truth:
    """A data set of images of 64 x 32 pixels without objects."""
    sizes = "".join(f"{stem},64,32\n" for stem in STEMS)
    (folder / "sizes.csv").write_text(f"image,width,height\n{sizes}")
    (folder / "data.yaml").write_text(f"val: images\nnames: {list(NAMES)}\n")
    (folder / "labels").mkdir()
    for stem in STEMS:
        (folder / "labels" / f"{stem}.txt").write_text("")
    return sized(folder)


def sized(folder: Path) -> detmap.Truth:
    return detmap.read_truth(folder / "data.yaml", image_sizes=folder / "sizes.csv")


def label_lines(folder: Path, rng: random.Random, n: int) -> tuple[Path, Callable[[bytes], Rows]]:
    """The file of an image, a class and n numbers per line."""
    file = folder / "labels" / "a.txt"

    def line() -> str:
        center = [rng.choice(["0.5", "5E-1", ".50"]) for _ in range(2)]  # no box leaves its image
        more = [rng.choice(["0.5", ".25", "1e-1", "0.125000"]) for _ in range(n - 2)]
        return " ".join([str(rng.randrange(3)), *center, *more])

    file.write_text(some_lines(rng, line))

    def naive(data: bytes) -> Rows:
        found: Rows = []
        for words in lines_of(data):
            if len(words) != n + 1:
                raise ValueError
            x, y, w, h = map(float, words[1:5])
            box = [(x - w / 2) * 64, (y - h / 2) * 32, w * 64, h * 32]
            found.append(("a", NAMES[int(float(words[0]))], box))
        return found

    return file, naive


def predictions(folder: Path, rng: random.Random) -> Made:
    truth = empty_labels(folder)
    rows = [
        {
            "image_id": rng.choice(["a", "b"]),
            "category_id": i % 4,
            "bbox": [rng.randrange(9), 1.5, 2, rng.random()],
            "score": rng.random(),
        }
        for i in rng.choice([(0, 1, 2), (1, 2, 3), (0,)])
    ]
    file = folder / "predictions.json"
    file.write_text(json.dumps(rows))

    def naive(data: bytes) -> Rows:
        read = json.loads(data)
        first = 0 if any(row["category_id"] == 0 for row in read) else 1
        return [
            (row["image_id"], NAMES[row["category_id"] - first], list(map(float, row["bbox"])))
            for row in read
        ]

    return file, lambda: detmap.read_detections(file, truth), naive


# --- CSV and Cartucho -----------------------------------------------------------------------------


def csv_boxes(folder: Path, rng: random.Random) -> Made:
    rows = [[stem, name, "0", "0", "1", "1"] for stem, name in zip(STEMS, NAMES, strict=True)]
    for _ in range(rng.randrange(1, 5)):
        box = [str(rng.randrange(9)), "2.5", "3", "1e1"]
        rows.append([rng.choice(STEMS), rng.choice(NAMES), *box])
    return csv_file(folder, list("xywh"), rows)


def csv_rotated(folder: Path, rng: random.Random) -> Made:
    def row() -> list[str]:
        box = ["5", "2.5", "3", "1e1", rng.choice(["0", "-1.5"])]
        return [rng.choice(STEMS), rng.choice(NAMES), *box]

    return csv_file(folder, ["cx", "cy", "w", "h", "angle"], [row() for _ in range(4)])


def csv_file(folder: Path, numbers: list[str], rows: list[list[str]]) -> Made:
    """A ground truth of columns; the first line names them."""
    file = folder / "t.csv"
    file.write_text("".join(f"{','.join(row)}\n" for row in [["image", "class", *numbers], *rows]))

    def naive(data: bytes) -> Rows:
        found: Rows = []
        for row in csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")):
            if row["image"] not in STEMS:
                raise ValueError
            name = row["class"].strip(" \t")
            found.append((row["image"], name, [float(row[each]) for each in numbers]))
        return found

    return file, lambda: detmap.read_truth(file), naive


def cartucho(folder: Path, rng: random.Random) -> Made:
    place = folder / "ground-truth"
    place.mkdir()
    (place / "b.txt").write_text("".join(f"{name} 1 1 2 2\n" for name in NAMES))
    file = place / "a.txt"

    def line() -> str:
        more = rng.choice(["", " difficult"])
        return f"{rng.choice(NAMES)} {rng.randrange(9)} 2 {rng.randrange(9, 20)} 7.5{more}"

    file.write_text(some_lines(rng, line))

    def naive(data: bytes) -> Rows:
        found: Rows = [("b", name, [1, 1, 2, 2]) for name in NAMES]
        for words in lines_of(data):
            name = NAMES[NAMES.index(words[0])]
            found.append(("a", name, list(map(float, words[1:5]))))
        return found

    return file, lambda: detmap.read_truth(place, format="cartucho"), naive


# --- DOTA -----------------------------------------------------------------------------------------


def dota_labels(folder: Path, rng: random.Random) -> Made:
    place = folder / "labelTxt"
    place.mkdir()
    for stem in "ab":
        (place / f"{stem}.txt").write_text("".join(f"{CORNERS} {name} 0\n" for name in NAMES))
    file = place / "a.txt"
    head = rng.choice(["", "imagesource:GoogleEarth\ngsd:0.15\n"])
    more = rng.choice(["", " 1"])
    file.write_text(head + some_lines(rng, lambda: f"{corners(rng)} {rng.choice(NAMES)}{more}"))

    def naive(data: bytes) -> Rows:
        found: Rows = [("b", name, list(map(float, CORNERS.split()))) for name in NAMES]
        for words in lines_of(data):
            if len(words) >= 9:
                found.append(("a", words[8], list(map(float, words[:8]))))
        return found

    return file, lambda: detmap.read_truth(place, format="dota"), naive


def dota_results(folder: Path, rng: random.Random) -> Made:
    truth = dota_labels(folder, rng)[1]()
    file = folder / "results" / "Task1_cat.txt"
    file.parent.mkdir()
    file.write_text(some_lines(rng, lambda: f"{rng.choice('ab')} {rng.random()} {corners(rng)}"))

    def naive(data: bytes) -> Rows:
        return [(words[0], "cat", list(map(float, words[2:]))) for words in lines_of(data)]

    return file, lambda: detmap.read_detections(file.parent, truth), naive


def corners(rng: random.Random) -> str:
    return " ".join(rng.choice(["0", "10", "7.5", "-3", "1e1", "+.5"]) for _ in range(8))


KINDS: dict[str, Callable[[Path, random.Random], Made]] = {
    "yolo truth": yolo_truth,
    "yolo detections": yolo_detections,
    "predictions.json": predictions,
    "csv": csv_boxes,
    "rotated csv": csv_rotated,
    "cartucho": cartucho,
    "labelTxt": dota_labels,
    "Task1": dota_results,
}
COUNTS = {f"{kind} {how}": 0 for kind in KINDS for how in ("read", "refused")}
