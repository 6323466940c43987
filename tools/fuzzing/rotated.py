"""Damaged files of rotated boxes: a `DataError`, or what a naive reader of the same bytes reads."""

import csv
import io
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap.core.overlaps.rotated_boxes import corners_of
from detmap.errors import DetmapError
from tests.support.mutation import damaged
from tools.fuzzing._refusals import judge_refusal
from tools.fuzzing._scratch import scratch

SCRATCH = scratch("rotated")
CORNERS = "0 0 10 0 10 10.5 0 10"
NAMES = ("ship", "plane")
Rows = list[tuple[str, str, list[float]]]
"""Stem, class and numbers of each box."""
Made = tuple[Path, Callable[[], Any], Callable[[bytes], Rows]]


def case(seed: int) -> str | None:
    """What is wrong with how one file, perhaps a damaged one, is read."""
    rng = random.Random(seed)
    kind = tuple(KINDS)[seed % len(KINDS)]
    shutil.rmtree(SCRATCH, ignore_errors=True)
    for folder in ("labelTxt", "results", "patches", "xml"):
        (SCRATCH / folder).mkdir(parents=True)
    for stem in "ab":
        text = "".join(f"{CORNERS} {name} 0\n" for name in NAMES)
        (SCRATCH / "labelTxt" / f"{stem}.txt").write_text(text)
    file, read, naive = KINDS[kind](rng)
    whole = rng.random() < 0.2
    data = file.read_bytes()
    for _ in range(0 if whole else rng.choice([1, 1, 2, 5])):
        data = damaged(rng, data)
    file.write_bytes(data)
    try:
        table = read()
        detmap.evaluate(*(table, table_of(table)) if hasattr(table, "area") else (truth(), table))
    except DetmapError as error:
        return judge_refusal(COUNTS, kind, error, whole=whole)
    COUNTS[f"{kind} read"] += 1
    try:
        wanted = naive(data)
    except (ValueError, KeyError, IndexError, TypeError, csv.Error):
        return None  # not naive enough
    return different(kind, table, wanted)


def table_of(truth: Any) -> Any:
    """The objects as detections."""
    score = np.linspace(0, 1, len(truth))
    return detmap.Detections(
        truth.images,
        truth.categories,
        truth.image,
        truth.label,
        truth.boxes,
        score,
        box_format=truth.box_format,
        shapes=truth.shapes,
    )


def different(kind: str, table: Any, wanted: Rows) -> str | None:
    """How a table differs from boxes that another reader found, in any order."""
    stems, names = table.images.ids.astype(str).tolist(), table.categories.names
    corners = table.shapes.corners().reshape(-1, 8)
    found = sorted(
        (stems[table.image[i]], names[table.label[i]], np.round(corners[i], 6).tolist())
        for i in range(len(table))
    )
    expected = sorted(
        (stem, name, np.round(corners_of(np.array([box])).reshape(8), 6).tolist())
        for stem, name, box in wanted
    )
    same = len(found) == len(expected) and all(
        a[:2] == b[:2] and np.allclose(a[2], b[2], rtol=1e-9, atol=1e-5)
        for a, b in zip(found, expected, strict=True)
    )
    return None if same else f"{kind}: {found} is not {expected}"


def truth() -> detmap.Truth:
    return detmap.read_truth(SCRATCH / "labelTxt")


def text_of(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def some(rng: random.Random, line: Callable[[], str]) -> str:
    return "\n".join(line() for _ in range(rng.randrange(1, 5))) + rng.choice(["", "\n", "\r\n"])


def corners(rng: random.Random) -> str:
    return " ".join(rng.choice(["0", "10", "7.5", "-3", "1e1", "+.5"]) for _ in range(8))


def label_text(rng: random.Random) -> Made:
    file = SCRATCH / "labelTxt" / "a.txt"
    head = rng.choice(["", "imagesource:GoogleEarth\ngsd:0.15\n"])
    file.write_text(
        head + some(rng, lambda: f"{corners(rng)} {rng.choice(NAMES)}{rng.choice(['', ' 1'])}")
    )

    def naive(data: bytes) -> Rows:
        found: Rows = [("b", name, list(map(float, CORNERS.split()))) for name in NAMES]
        for line in text_of(data).split("\n"):
            words = re.findall(r"[^ \t]+", line)
            if len(words) >= 9:
                found.append(("a", words[8], list(map(float, words[:8]))))
        return found

    return file, lambda: detmap.read_truth(file.parent, format="dota"), naive


def results(rng: random.Random) -> Made:
    known = truth()
    file = SCRATCH / "results" / "Task1_ship.txt"
    file.write_text(some(rng, lambda: f"{rng.choice('ab')} {rng.random():.4f} {corners(rng)}"))

    def naive(data: bytes) -> Rows:
        words = [re.findall(r"[^ \t]+", line) for line in text_of(data).split("\n")]
        words = [each for each in words if each]
        return [(each[0], "ship", list(map(float, each[2:]))) for each in words]

    return file, lambda: detmap.read_detections(file.parent, known), naive


def patch_results(rng: random.Random) -> Made:
    known = truth()
    file = SCRATCH / "patches" / "Task1_ship.txt"
    names = ("a__1__0___0", "a__0.5__100___0", "b__1__0___200")
    file.write_text(some(rng, lambda: f"{rng.choice(names)} {rng.random():.4f} {corners(rng)}"))
    return file, lambda: detmap.read_detections(file.parent, known), _none


def _none(data: bytes) -> Rows:
    raise ValueError


def table(rng: random.Random) -> Made:
    file = SCRATCH / "t.csv"
    columns = ["image", "class", "cx", "cy", "w", "h", "angle"]
    lines = [
        [rng.choice("ab"), rng.choice(NAMES), "5", "2.5", "3", "1e1", rng.choice(["0", "-1.5"])]
        for _ in range(rng.randrange(1, 5))
    ]
    file.write_text("".join(",".join(line) + "\n" for line in [columns, *lines]))

    def naive(data: bytes) -> Rows:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        return [
            (
                row["image"].strip(" \t"),
                row["class"].strip(" \t"),
                [float(row[each]) for each in columns[2:]],
            )
            for row in reader
        ]

    return file, lambda: detmap.read_truth(file), naive


def hrsc(rng: random.Random) -> Made:
    return xml(
        rng,
        "<HRSC_Image><Img_SizeWidth>99</Img_SizeWidth><HRSC_Objects>{}</HRSC_Objects></HRSC_Image>",
        "<HRSC_Object><mbox_cx>5</mbox_cx><mbox_cy>{}</mbox_cy><mbox_w>3</mbox_w>"
        "<mbox_h>2</mbox_h><mbox_ang>-0.5</mbox_ang><difficult>0</difficult></HRSC_Object>",
    )


def dior(rng: random.Random) -> Made:
    sides = "".join(
        f"<{axis}_{corner}>{{}}</{axis}_{corner}>"
        for corner in ("left_top", "right_top", "right_bottom", "left_bottom")
        for axis in "xy"
    ).replace("{}", "7", 7)
    box = f"<object><name>ship</name><robndbox>{sides}</robndbox></object>"
    return xml(rng, "<annotation>{}</annotation>", box)


def xml(rng: random.Random, page: str, box: str) -> Made:
    file = SCRATCH / "xml" / "a.xml"
    file.write_text(page.format(some(rng, lambda: box.format(rng.choice(["5", "2.5", " -1 "])))))
    return file, lambda: detmap.read_truth(file.parent, format="rotated-xml"), _none


KINDS: dict[str, Callable[[random.Random], Made]] = {
    "labelTxt": label_text,
    "Task1": results,
    "patches": patch_results,
    "csv": table,
    "HRSC2016": hrsc,
    "DIOR-R": dior,
}
COUNTS = {f"{kind} {how}": 0 for kind in KINDS for how in ("read", "refused")}
