"""COCO results and annotations in memory: the two-stage scanner reads what the reference reader
and Python's `json` read, in every bit, or nothing.

A case is a list of records of one form and FILES files that are made of it: other numbers, other
text, cut at any byte. Each file is scanned in two stages and record by record, in one piece or in
pieces of some bytes, between memory pages that cannot be read. `COUNTS` has the files: a case with
odd seed is of annotations.
"""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from detmap.core.adapters.coco import decode, instances, scan_columns, scan_json, tool_results
from detmap.core.base import immutable
from detmap.core.tables.grouping import Positions
from detmap.errors import DataError
from tests.support.alike_lists import ODD, draw
from tests.support.guarded_pages import ROOM, GuardedFile
from tests.support.lanes import assert_same
from tests.support.mutation import damaged
from tools.fuzzing._files import scratch

FILES = 20
IDS = np.array([0, 1, 2, 7, 42, 999, 17 * 10**4, 12345678, 987654321, 10**17, 10**18 - 1])
CATEGORIES = (1, 7, 42)
COUNTS = {f"{kind} {what}": 0 for kind in ("results", "annotations") for what in ("files", "read")}
PATH = scratch("text")
NUMBER = re.compile(rb"(?<=[:\[, ])-?[0-9][0-9.eE+-]*")


def prepare() -> None:
    """Makes the fast reader read the smallest file, in this thread."""
    scan_json.LEAST_SIZE = 0
    scan_json.map_ordered = lambda work, begins: (work(begin) for begin in begins)


def case(seed: int) -> str | None:
    """Reads the files of one seed; what differs, None if nothing does."""
    rng = random.Random(seed)
    immutable.LARGE_PAGE = (2 << 20, 4096, 4096)[seed % 3]
    check, kind = ((results, "results"), (annotations, "annotations"))[seed % 2]
    for data in files(rng, template(rng, kind)):
        scan_json.PIECE, scan_json.OVERLAP = rng.choice([(1 << 16, 1 << 10)] * 3 + [(200, 400)])
        separators = rng.choice([64, 128, 1 << 15])
        COUNTS[f"{kind} files"] += 1
        try:
            COUNTS[f"{kind} read"] += check(data, separators, last=rng.random() < 0.7)
        except AssertionError as error:
            return f"{kind}, {separators} separators, {scan_json.PIECE}: {error!s:.200} {data!r}"
    return None


def template(rng: random.Random, kind: str) -> bytes:
    """A file of records with the same keys; all ids are known."""
    listed = draw(rng, most=8).strip()
    listed = re.sub(rb'("image_id"\s?:\s?)[^,}]*', lambda m: m[1] + known(rng, IDS), listed)
    listed = re.sub(
        rb'("category_id"\s?:\s?)[^,}]*', lambda m: m[1] + known(rng, CATEGORIES), listed
    )
    if kind == "results":
        return listed
    listed = re.sub(rb'"score"(\s?:\s?)-?', rng.choice([rb'"area"\1', rb'"score"\1']), listed)
    crowd = rng.choice([b"", b', "iscrowd": 0', b',"iscrowd":1', b', "ignore": 0'])
    listed = listed.replace(b"}", crowd + b"}")
    images = json.dumps([{"id": each} for each in IDS.tolist()]).encode()
    groups = [
        b'"images": ' + images,
        b'"annotations":' + rng.choice([b"", b" "]) + listed,
        b'"categories": [{"id": 42}, {"id": 1, "name": "a"}, {"id": 7}]',
    ]
    if rng.random() < 0.3:
        rng.shuffle(groups)
    return b"{" + b", ".join(groups) + b"}"


def known(rng: random.Random, ids: Any) -> bytes:
    return str(rng.choice(list(ids))).encode()


def files(rng: random.Random, whole: bytes) -> Iterator[bytes]:
    """The file, and FILES - 1 that differ from it."""
    yield whole[:ROOM]
    begin = max(whole.find(b'"annotations"'), 0)
    spans = [match.span() for match in NUMBER.finditer(whole, begin)]
    for i in range(1, FILES):
        data = whole
        if i < FILES - 6:
            for a, b in sorted(rng.sample(spans, min(len(spans), rng.choice([1, 2, 5]))))[::-1]:
                is_id = data[a - 8 : a].find(b"id") >= 0 and rng.random() < 0.9
                data = data[:a] + (known(rng, CATEGORIES) if is_id else spelled(rng)) + data[b:]
        elif i < FILES - 2:
            data = data[:begin] + damaged(rng, data[begin:])
        else:
            data = data[: rng.randrange(1, len(data) + 1)]
        yield (data + b" " * rng.choice([0, 0, 1, 7, 80]))[:ROOM]


def spelled(rng: random.Random) -> bytes:
    """A number of any length and form that JSON allows; seldom another text."""
    if rng.random() < 0.03:
        return rng.choice(ODD).encode()
    size = rng.randrange(1, 21)
    digits = str(rng.randrange(10 ** (size - 1), 10**size))
    point = rng.randrange(size + 1)
    text = f"{digits[:point] or '0'}.{digits[point:]}" if point < size else digits
    exponent = rng.choice(["e", "E"]) + rng.choice(["", "+", "-"]) + str(rng.randrange(30))
    return f"{'-' * (rng.random() < 0.1)}{text}{exponent * (rng.random() < 0.1)}".encode()


# --- readers --------------------------------------------------------------------------------------


def results(data: bytes, separators: int, *, last: bool) -> bool:
    """Whether the scanner reads a results list; an AssertionError if anything differs."""

    def scan() -> Any:
        locate = Positions(IDS), Positions(np.array(CATEGORIES))
        found = scan_json.scan_detections(GuardedFile(data, last=last), *locate)
        return found and (IDS[found.image], found.category, found.boxes, found.value)

    found = in_both_ways(scan, separators)
    if found is None:
        return False
    image, category, boxes, score = found
    category = np.array(CATEGORIES)[category]
    rows = decode.results(PATH, data)
    ids = np.asarray(rows.image_ids), np.asarray(rows.category_ids)
    assert_same([image, category, boxes, score], [*ids, rows.boxes, rows.score])
    equal_to_json(json.loads(data), image_id=image, category_id=category, bbox=boxes, score=score)
    return True


def annotations(data: bytes, separators: int, *, last: bool) -> bool:
    """As `results`, of a ground truth."""

    def scan() -> Any:
        return instances.scan_instances(GuardedFile(data, last=last))  # type: ignore[arg-type]

    found = in_both_ways(scan, separators)
    if found is None:
        return False
    tool_results.read_bytes = lambda path: data
    assert_same(found, decode.instances(PATH))
    own = found.annotations
    rows = json.loads(data)["annotations"]
    image, category = found.images.ids[own.image], found.categories.ids[own.label]
    equal_to_json(rows, image_id=image, category_id=category, bbox=own.boxes)
    equal_to_json([row for row in rows if "area" in row], area=own.area[~np.isnan(own.area)])
    equal_to_json([row for row in rows if "id" in row], id=np.asarray(own.ids))
    flags = [row.get("iscrowd", -1) for row in rows]
    assert flags == own.iscrowd.tolist(), "iscrowd"
    return True


def in_both_ways(scan: Any, separators: int) -> Any:
    """What is read in two stages; an AssertionError if it is not what is read record by record."""
    found = []
    for size in (separators, 0):
        scan_columns.SEPARATORS = size
        try:
            found.append(scan())
        except DataError as error:
            found.append(str(error))
    assert_same(*found)
    return found[0]


def equal_to_json(rows: list[Any], **columns: Any) -> None:
    """An AssertionError if a column is not that of Python's `json`."""
    for name, column in columns.items():
        expected = np.array([row[name] for row in rows], dtype=column.dtype)
        assert expected.reshape(column.shape).tobytes() == column.tobytes(), f"{name} of json"
