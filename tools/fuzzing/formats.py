"""Damaged files of YOLO, CSV, Parquet, Cartucho and of image sizes: a `DataError`, or what a naive
reader of the same bytes reads.
"""

import csv
import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap.errors import DetmapError
from tests.support.mutation import damaged
from tools.fuzzing._refusals import judge_refusal
from tools.fuzzing._scratch import scratch

SCRATCH = scratch("formats")
STEMS = ("a", "b", "10")
NAMES = ("cat", "dog", "cow")
Boxes = list[tuple[str, int, list[float]]]
"""Stem, class and numbers of each box."""


def case(seed: int) -> str | None:
    """What is wrong with how one file, perhaps a damaged one, is read."""
    rng = random.Random(seed)
    kind = tuple(KINDS)[seed % len(KINDS)]
    shutil.rmtree(SCRATCH, ignore_errors=True)
    (SCRATCH / "labels").mkdir(parents=True)
    (SCRATCH / "sizes.csv").write_text(
        "image,width,height\n" + "".join(f"{stem},64,32\n" for stem in STEMS)
    )
    (SCRATCH / "data.yaml").write_text(f"val: images\nnames: {list(NAMES)}\n")
    for stem in STEMS:
        (SCRATCH / "labels" / f"{stem}.txt").write_text("")
    file, read, naive = KINDS[kind](rng)
    whole = rng.random() < 0.2
    data = file.read_bytes()
    for _ in range(0 if whole else rng.choice([1, 1, 2, 5])):
        data = damaged(rng, data)
    file.write_bytes(data)
    try:
        table = read()
    except DetmapError as error:
        return judge_refusal(COUNTS, kind, error, whole=whole)
    COUNTS[f"{kind} read"] += 1
    try:
        wanted = naive(data)
    except (ValueError, KeyError, IndexError, TypeError, csv.Error):
        return None  # not naive enough
    return different(kind, table, wanted)


def different(kind: str, table: Any, wanted: Boxes) -> str | None:
    """How a table differs from boxes that another reader found, in any order."""
    stems, names = table.images.stems, table.categories.names
    found = sorted(
        (stems[table.image[i]], names[table.label[i]], *np.round(table.boxes[i], 6).tolist())
        for i in range(len(table))
    )
    expected = sorted(
        (stem, NAMES[label] if label >= 0 else "", *np.round(box, 6).tolist())
        for stem, label, box in wanted
    )
    same = len(found) == len(expected) and all(
        a[:2] == b[:2] and np.allclose(a[2:], b[2:], rtol=1e-9, atol=1e-5)
        for a, b in zip(found, expected, strict=True)
    )
    return None if same else f"{kind}: {found} is not {expected}"


# --- a file of each kind, how it is read, and what a naive reader reads ---------------------------

Made = tuple[Path, Callable[[], Any], Callable[[bytes], Boxes]]


def fraction(rng: random.Random) -> str:
    return rng.choice(["0.5", ".25", "1e-1", "0.125000", "5E-1"])


def lines_of(data: bytes) -> list[list[str]]:
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    return [words for line in text.split("\n") if (words := line.split())]


def yolo(rng: random.Random, n: int) -> tuple[Path, Callable[[bytes], Boxes]]:
    file = SCRATCH / "labels" / "a.txt"
    rows = [
        f"{rng.randrange(3)} {' '.join(fraction(rng) for _ in range(n))}"
        for _ in range(rng.randrange(1, 5))
    ]
    file.write_text("\n".join(rows) + rng.choice(["", "\n", "\r\n"]))

    def naive(data: bytes) -> Boxes:
        found: Boxes = []
        for words in lines_of(data):
            if len(words) != n + 1:
                raise ValueError
            x, y, w, h = map(float, words[1:5])
            box = [(x - w / 2) * 64, (y - h / 2) * 32, w * 64, h * 32]
            found.append(("a", int(float(words[0])), box))
        return found

    return file, naive


def sized() -> detmap.Truth:
    return detmap.read_truth(SCRATCH / "data.yaml", image_sizes=SCRATCH / "sizes.csv")


def yolo_truth(rng: random.Random) -> Made:
    file, naive = yolo(rng, 4)
    return file, sized, naive


def yolo_detections(rng: random.Random) -> Made:
    truth = sized()
    file, naive = yolo(rng, 5)
    folder = file.parent
    return file, lambda: detmap.read_detections(folder, truth, format="yolo"), naive


def data_yaml(rng: random.Random) -> Made:
    file, naive = yolo(rng, 4)
    labels = file.read_bytes()
    names = rng.choice([json.dumps(NAMES), json.dumps(dict(enumerate(NAMES)))])
    path = rng.choice(["path: .\n", "path: ''\n", ""])
    (SCRATCH / "data.yaml").write_text(
        f"{path}val: {rng.choice(['images', '[images]'])}\nnames: {names}\n"
    )

    def same_names(data: bytes) -> Boxes:
        if not all(name in data.decode() for name in (*NAMES, "images")) or b"#" in data:
            raise ValueError
        if sized().categories.names != NAMES:
            raise ValueError
        return naive(labels)

    return SCRATCH / "data.yaml", sized, same_names


def predictions(rng: random.Random) -> Made:
    truth = sized()
    rows = [
        {
            "image_id": rng.choice(["a", "b"]),
            "category_id": i % 4,
            "bbox": [rng.randrange(9), 1.5, 2, rng.random()],
            "score": rng.random(),
        }
        for i in rng.choice([(0, 1, 2), (1, 2, 3), (0,)])
    ]
    file = SCRATCH / "predictions.json"
    file.write_text(json.dumps(rows))

    def naive(data: bytes) -> Boxes:
        read = json.loads(data)
        first = 0 if any(row["category_id"] == 0 for row in read) else 1
        return [
            (row["image_id"], row["category_id"] - first, list(map(float, row["bbox"])))
            for row in read
        ]

    return file, lambda: detmap.read_detections(file, truth), naive


def csv_rows(rng: random.Random) -> str:
    rows = [
        [rng.choice(["a", "b", "10"]), rng.choice(NAMES), str(rng.randrange(9)), "2.5", "3", "1e1"]
        for _ in range(rng.randrange(1, 5))
    ]
    rows += [[stem, name, "0", "0", "1", "1"] for stem, name in zip(STEMS, NAMES, strict=True)]
    return "".join(",".join(row) + "\n" for row in [["image", "class", *"xywh"], *rows])


def csv_truth(rng: random.Random) -> Made:
    file = SCRATCH / "t.csv"
    file.write_text(csv_rows(rng))

    def naive(data: bytes) -> Boxes:
        text = data.decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""))
        found: Boxes = []
        for row in reader:
            if row["image"] not in STEMS:
                raise ValueError
            label = NAMES.index(row["class"].strip(" \t"))
            found.append((row["image"], label, [float(row[side]) for side in "xywh"]))
        return found

    return file, lambda: detmap.read_truth(file), naive


def parquet(rng: random.Random) -> Made:
    from pyarrow import csv as reader
    from pyarrow import parquet as writer

    file = SCRATCH / "t.parquet"
    text = csv_rows(rng)
    writer.write_table(reader.read_csv(io.BytesIO(text.encode())), file)
    whole = file.read_bytes()

    def naive(data: bytes) -> Boxes:
        if data != whole:
            raise ValueError
        rows = list(csv.DictReader(io.StringIO(text)))
        return [
            (row["image"], NAMES.index(row["class"]), [float(row[side]) for side in "xywh"])
            for row in rows
        ]

    return file, lambda: detmap.read_truth(file), naive


def cartucho(rng: random.Random) -> Made:
    folder = SCRATCH / "ground-truth"
    folder.mkdir()
    file = folder / "a.txt"
    rows = [
        f"{rng.choice(NAMES)} {rng.randrange(9)} 2 {rng.randrange(9, 20)} 7.5"
        + rng.choice(["", " difficult"])
        for _ in range(rng.randrange(1, 5))
    ]
    file.write_text("\n".join(rows))
    (folder / "b.txt").write_text("".join(f"{name} 1 1 2 2\n" for name in NAMES))

    def naive(data: bytes) -> Boxes:
        found: Boxes = [("b", label, [1, 1, 2, 2]) for label in range(3)]
        return found + [
            ("a", NAMES.index(words[0]), list(map(float, words[1:5]))) for words in lines_of(data)
        ]

    return file, lambda: detmap.read_truth(folder, format="cartucho"), naive


def sizes(rng: random.Random) -> Made:
    file, naive = yolo(rng, 4)
    labels = file.read_bytes()
    whole = (SCRATCH / "sizes.csv").read_bytes()

    def same_sizes(data: bytes) -> Boxes:
        if data != whole:
            raise ValueError
        return naive(labels)

    return SCRATCH / "sizes.csv", sized, same_sizes


KINDS: dict[str, Callable[[random.Random], Made]] = {
    "yolo truth": yolo_truth,
    "yolo detections": yolo_detections,
    "data.yaml": data_yaml,
    "predictions.json": predictions,
    "csv": csv_truth,
    "parquet": parquet,
    "cartucho": cartucho,
    "sizes": sizes,
}
COUNTS = {f"{kind} {how}": 0 for kind in KINDS for how in ("read", "refused")}
