"""Whether the fast lane of a format agrees with the reference lane on one file."""

import dataclasses
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from detmap.core.adapters import text_fields as text
from detmap.core.adapters.coco import instances as coco
from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.adapters.coco import shapes, tool_results
from detmap.core.adapters.in_memory.arrays import truth_from_arrays
from detmap.core.adapters.joining.unknown_policy import STRICT
from detmap.core.adapters.tabular import csv_cells
from detmap.core.adapters.tabular import csv_parquet as sheets
from detmap.core.adapters.text_per_image import label_files
from detmap.core.adapters.voc import devkit as voc
from detmap.core.adapters.voc import scan_voc as voc_scan
from detmap.core.overlaps import kind_of
from detmap.core.tables import MAX_PIXEL, Categories, Images, Truth
from detmap.errors import DataError
from tests.support.mutation import FILES, SIZES, damaged

COCO_TRUTH = truth_from_arrays(
    [1], [1], [[0, 0, 1, 1]], images=[1, 2, 7], categories={1: "dog", 3: "cat"}
)
READERS = {name: kind_of(name).reader for name in ("masks", "keypoints")}
HEIGHT, WIDTH = (np.array(side, dtype=float) for side in zip(*SIZES.values(), strict=True))
MASK_TRUTH = replace(COCO_TRUTH, images=replace(COCO_TRUTH.images, height=HEIGHT, width=WIDTH))
STEMS = ("000001", "000002", "2008_000007")
VOC_TRUTH = Truth(
    Images(np.array(STEMS), STEMS, np.full(3, np.nan), np.full(3, np.nan)),
    Categories(np.array([1]), ("cat",)),
    *(np.zeros(0, dtype=np.int32) for _ in range(2)),
    np.zeros((0, 4)),
    roles={},
    attributes={"area": np.zeros(0)},
    box_format="voc",
    family="voc",
)
NUMBERED = Images(np.array([1, 2, 7]), ("x", "2", "1"), *np.full((2, 3), np.nan))
NUMBERED_TRUTH = replace(VOC_TRUTH, images=NUMBERED, family="coco")
"""Ids that lines may name, and stems: some names are both, of two images."""


def always_scan(rng: random.Random) -> None:
    """Let the fast lane take the smallest file, in pieces of some bytes."""
    coco_scan.LEAST_SIZE, voc_scan.LEAST_FILES, voc_scan.LEAST_SIZE = 0, 0, 0
    csv_cells.LEAST_CELLS = 0
    sizes = rng.choice([(60, 20, 300), (150, 100, 200), (1 << 20, 1 << 8, 1 << 10)])
    coco_scan.PIECE, coco_scan.NEAR, coco_scan.OVERLAP = sizes
    coco_scan.SHAPES_PIECE = coco_scan.PIECE


def taken(kind: str, file: Path) -> bool:
    """Whether the fast lane takes the file; an AssertionError where it reads what the reference
    lane does not."""
    fast, reference = LANES[kind]
    found = fast(file)
    if found is not None:
        assert_same(found, reference(file))
    return found is not None


def sheet_columns(file: Path, fast: bool) -> Any:
    """The texts, numbers and lines of a CSV file, or the error on it."""
    try:
        content = text.decoded(file)
        delimiter = next((each for each in ",;\t" if each in content.partition("\n")[0]), ",")
        if fast and csv_cells.split(content, delimiter) is None:
            return None
        sheet = sheets.read_csv(file) if fast else sheets._read_csv(file, content, delimiter)
    except DataError as error:
        return str(error)
    found = [list(sheet.lines)]
    for name in sheet.columns:
        found += [name, list(sheet.columns[name]), sheet.whole(name)]
        for read in (sheet.texts, sheet.numbers, lambda name: sheet.numbers(name, blank=True)):
            try:
                found.append(read(name))
            except DataError as error:
                found.append(str(error))
    return found


def label_lines(file: Path, fast: bool) -> Any:
    """The files, line numbers, words and numbers of two label files, or the error on them."""
    try:
        if not fast:
            return [
                (i, line, words, _limited(words))
                for i in range(2)
                for line, words in text.lines(file)
            ]
        lines = label_files.read([file, file])
    except DataError as error:
        return None if error.what == "holds a NUL byte" else str(error)
    found = []
    for row, (i, line) in enumerate(zip(lines.file.tolist(), lines.number.tolist(), strict=True)):
        some = lines.take(np.array([row]))
        words = [some.column(k)[0] for k in range(int(some.count[0]))]
        try:
            numbers = some.numbers(["x"] * len(words))[0].tolist()
        except DataError:
            numbers = None
        found.append((i, line, words, numbers))
    return found


def _limited(words: list[str]) -> list[float] | None:
    numbers = [text.number(word) for word in words]
    return numbers if all(n is not None and abs(n) <= MAX_PIXEL for n in numbers) else None


def shaped_objects(kind: str, file: Path, fast: bool) -> Any:
    """The ground truth with masks or keypoints of a file, or the error on it."""
    try:
        if fast:
            return shapes._scan_truth(file, READERS[kind])
        with unscanned():
            return shapes.read_truth(file, kind)
    except DataError as error:
        return str(error)


def shaped_results(kind: str, file: Path, fast: bool) -> Any:
    """The detections with masks or keypoints of a file, or the error on it."""
    try:
        if fast:
            return shapes._scan_shapes(file, MASK_TRUTH, STRICT, READERS[kind])
        text = tool_results.results(file, MASK_TRUTH, STRICT)
        return shapes.read_shaped(file, text, MASK_TRUTH, STRICT, READERS[kind])[0]
    except DataError as error:
        return str(error)


@contextmanager
def unscanned() -> Iterator[None]:
    """Lets the reference reader of COCO JSON read every file."""
    before, coco_scan.LEAST_SIZE = coco_scan.LEAST_SIZE, 1 << 60
    try:
        yield
    finally:
        coco_scan.LEAST_SIZE = before


Lanes = tuple[Callable[[Path], Any], Callable[[Path], Any]]


def shaped_lanes(read: Callable[[str, Path, bool], Any], kind: str) -> Lanes:
    """Both lanes of a kind of shapes."""
    return (lambda file: read(kind, file, True)), (lambda file: read(kind, file, False))


LANES: dict[str, Lanes] = {
    "results": (
        lambda f: coco.scan_results(f, COCO_TRUTH),
        lambda f: coco.decode_results(f, COCO_TRUTH),
    ),
    "instances": (coco.scan_instances, coco.decode_instances),
    "mask results": shaped_lanes(shaped_results, "masks"),
    "mask instances": shaped_lanes(shaped_objects, "masks"),
    "keypoint results": shaped_lanes(shaped_results, "keypoints"),
    "keypoint instances": shaped_lanes(shaped_objects, "keypoints"),
    "page": (
        lambda f: voc.scan_pages(f.parent, [f, f]),
        lambda f: voc.decode_pages(f.parent, [f, f]),
    ),
    "lines": (
        lambda f: voc.scan_files(f.parent, [(f, 0)], VOC_TRUTH),
        lambda f: voc.decode_files(f.parent, [(f, 0)], VOC_TRUTH),
    ),
    "lines of ids": (
        lambda f: voc.scan_files(f.parent, [(f, 0)], NUMBERED_TRUTH),
        lambda f: voc.decode_files(f.parent, [(f, 0)], NUMBERED_TRUTH),
    ),
    "labels": (lambda f: label_lines(f, True), lambda f: label_lines(f, False)),
    "csv": (lambda f: sheet_columns(f, True), lambda f: sheet_columns(f, False)),
}


def assert_same(a: Any, b: Any) -> None:
    """Equal in every bit, signs of zeros included, through tuples and dataclasses."""
    if dataclasses.is_dataclass(a):
        a, b = ([getattr(x, f.name) for f in dataclasses.fields(a)] for x in (a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        x, y = np.asarray(a), np.asarray(b)
        assert x.shape == y.shape
        assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        if x.dtype.kind == "f":
            assert (np.signbit(x) == np.signbit(y))[~np.isnan(x)].all()
    elif isinstance(a, Mapping):
        assert_same((list(a), list(a.values())), (list(b), list(b.values())))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b


def write_mutated(kind: str, seed: int, file: Path) -> None:
    """The damaged file of a seed, and the settings of the fast lane that go with it."""
    rng = random.Random(seed)
    always_scan(rng)
    file.write_bytes(damaged(rng, FILES[kind](rng)))
