"""Polygons of a COCO file beside their boxes, where an evaluation of boxes does not read polygons:
a sample of the file, in half a millisecond.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from detmap.analysis.doctor.truth_checks import is_many
from detmap.core.results.findings import Finding
from detmap.core.tables import Truth, apart

WINDOWS, BYTES, MOST = 12, 8192, 4
"""Places in the file, bytes that are read there, and records of these."""
EXPLAINED = ("truth-boxes", "truth-outside", "truth-empty-boxes")
"""Findings of which other boxes than polygons are a part."""
RECORD = re.compile(rb"\{[^{}]*\}")
"""An annotation with polygons; run lengths are an object inside."""


class _Record(msgspec.Struct):
    bbox: tuple[float, float, float, float]
    segmentation: list[list[float]]
    iscrowd: int = 0


def facts(truth: Truth, found: Iterable[Finding] = ()) -> Iterator[Finding]:
    """Yields the finding that polygons do not lie in the boxes beside them, unless what was found
    explains it.
    """
    path = Path(truth.source)
    if any(each.name in EXPLAINED for each in found):
        return
    if truth.shapes is not None or path.suffix.lower() != ".json" or not path.is_file():
        return
    try:
        records = _sampled(path)
    except OSError:
        return
    if not records:
        return
    around = []
    for each in records:
        xs = [x for ring in each.segmentation for x in ring[::2]]
        ys = [y for ring in each.segmentation for y in ring[1::2]]
        around.append((min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)))
    odd = apart(np.array(around), np.array([each.bbox for each in records]))
    if is_many(odd):
        first = records[int(np.argmax(odd))].bbox
        text = (
            f"polygons of {odd.sum()} of {len(odd)} objects of a sample do not lie in their box, "
            f"such as that of {list(first)}: one of both is of another size or order"
        )
        yield Finding("truth-shapes", text)


def _sampled(path: Path) -> list[_Record]:
    size, found = path.stat().st_size, []
    with path.open("rb") as file:
        for k in range(WINDOWS):
            file.seek(max(0, size - BYTES) * k // (WINDOWS - 1))
            for text in islice(RECORD.finditer(file.read(BYTES)), MOST):
                try:
                    record = msgspec.json.decode(text[0], type=_Record)
                except msgspec.DecodeError:  # an image, or without polygons
                    continue
                rings = record.segmentation
                whole = bool(rings) and all(len(each) >= 6 and len(each) % 2 == 0 for each in rings)
                if whole and not record.iscrowd and any(map(any, rings)):
                    found.append(record)
    return found
