"""Lists of records that are alike, read in two stages, record by record and by Python."""

import json
import random
from typing import Any

import numpy as np

from detmap.core.adapters.coco.scan_columns import Piece
from detmap.kernels.scanning import json_scan as scan

WANTED = scan.IMAGE_ID | scan.CATEGORY_ID | scan.BBOX | scan.SCORE
NO_PLACES = np.empty(0, dtype=np.int32)
KEYS = ("image_id", "category_id", "bbox", "score", "id", "file_name", "segmentation")
ODD = (
    *("5.99e-05", "1e2", "1.5E+1", "2e-7", "0e0", "-0", "-0.0", "0", "00", "01.5", ".5", "5.", "-"),
    *("1.2.3", "12345678", "123456789", "1234567.8", "12345678.9", "0.123456789012345678"),
    *("1.0000000000000000001", "12345678901234567890", "9007199254740993", "0.30000000000000004"),
    *("9007199254740993.5", "null", '"1"', "true", "1,2", "[1]", "NaN", "1 ", " 1", "+1", "1_0"),
    "",
)


def numbers(rng: random.Random) -> str:
    """A number as exporters write it; seldom another value."""
    if rng.random() < 0.01:
        return rng.choice(ODD)
    value = rng.choice([rng.random(), rng.random() * 700, rng.random() * 1e-4, -rng.random()])
    return rng.choice(
        [f"{value:.{rng.randrange(1, 20)}f}", repr(value), str(rng.randrange(2000)), f"{value:.2e}"]
    )


def ids(rng: random.Random) -> str:
    """An integer of 1 to 19 digits; seldom another value."""
    if rng.random() < 0.004:
        return rng.choice(ODD)
    return str(rng.randrange(10 ** rng.choice([1, 2, 3, 6, 8, 9, 12, 18])))


def draw(rng: random.Random, most: int = 12) -> bytes:
    """A list of records with the same keys in the same order, some with other text."""
    keys = rng.sample(KEYS[:4], 4) + rng.sample(KEYS[4:], rng.choice([0, 0, 0, 1, 2]))
    rng.shuffle(keys)
    comma, colon = rng.choice([(", ", ": "), (", ", ": "), (",", ":"), (",\n ", " : ")])
    values = {
        "bbox": lambda: "[" + comma.join(numbers(rng).lstrip("-") for _ in range(4)) + "]",
        "score": lambda: numbers(rng),
        "file_name": lambda: f'"{rng.choice(["a", "b,]", "a"])}"',
        "segmentation": lambda: rng.choice(["[]", "[]", "[]", "[[1, 2.5]]"]),
    }
    rows = []
    for _ in range(rng.randrange(1, most)):
        order = keys if rng.random() < 0.97 else rng.sample(keys, len(keys))
        row = [f'"{key}"{colon}{values.get(key, lambda: ids(rng))()}' for key in order]
        rows.append("{" + comma.join(row) + "}")
    return f"[{comma.join(rows)}]".encode() + b" " * rng.choice([0, 0, 1, 7, 80, 200])


def scanned(data: bytes, *, full: bool, places: int = 1 << 15) -> list[Any] | None:
    """The columns of a list, each record read in full or not; None for the full decoder."""
    text = np.frombuffer(data, dtype=np.uint8)
    piece = Piece(len(data) // 40 + 1)
    model = piece.model._replace(places=NO_PLACES if full else piece.model.places[:places])
    piece.model, piece.state[:] = model, 0
    end = piece.scan(text, 1, len(data), WANTED)
    n, last, more = piece.state.tolist()
    if end < 0 or not last:
        return None
    records = piece.records
    columns = records.image, records.category, records.boxes, records.value, records.seen
    return [end, bool(more), *(column[:n] for column in columns)]


def accepted(data: bytes, places: int = 1 << 15) -> bool:
    """Whether the scanner reads a list; an AssertionError where it reads it otherwise than record
    by record, or than Python.
    """
    fast, plain = scanned(data, full=False, places=places), scanned(data, full=True)
    assert (fast is None) == (plain is None)
    if fast is None or plain is None:
        return False
    assert fast[:2] == plain[:2]
    assert fast[-1].tobytes() == plain[-1].tobytes()
    whole = fast[-1] == WANTED  # what a record lacks is not written
    for column, other in zip(fast[2:-1], plain[2:-1], strict=True):
        assert column[whole].tobytes() == other[whole].tobytes()
    if not whole.all():
        return True
    rows = json.loads(b"[" + data[1 : fast[0]])
    names = "image_id", "category_id", "bbox", "score"
    for column, name in zip(fast[2:6], names, strict=True):
        assert column.tolist() == np.array([row[name] for row in rows], column.dtype).tolist()
    return True
