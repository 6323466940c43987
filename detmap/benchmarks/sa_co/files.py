"""Reads the ground truth of SA-Co: COCO JSON in which an image is a pair of image and phrase.

Several annotators have a file each, ``NAME_1.json``, ``NAME_2.json`` ..., side by side. Their
objects are in one table; the role ``annotator K`` marks those of annotator K. A pair that an
annotator did not annotate exhaustively (``is_instance_exhaustive`` 0) has a further row with the
role ``not_exhaustive``. Categories are not read: all objects are of the first.

Source: facebookresearch/sam3 sam3/eval/cgf1_eval.py, CGF1Evaluator.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import instances, tool_results
from detmap.core.base import unique_keys
from detmap.core.base.open_files import shown
from detmap.core.tables import Note, Truth
from detmap.core.tables.notes import distinct
from detmap.errors import DataError

ANNOTATOR, PARTIAL = "annotator ", "not_exhaustive"
_NUMBERED = re.compile(r"(.*_)([1-9][0-9]{0,5})\.json")


class _Pair(msgspec.Struct, gc=False):
    id: int | str
    is_instance_exhaustive: int | float | bool | None = None


class _File(msgspec.Struct, gc=False):
    images: list[_Pair]


def read_truth(path: Path) -> Truth:
    """Reads the file of each annotator beside `path`, and its own."""
    files = _annotators(path)
    tables = [instances.read_truth(file) for file in files.values()]
    first = tables[0]
    place = {each: i for i, each in enumerate(first.images.ids.tolist())}
    images, boxes, crowd, partial, who = [], [], [], [], []
    gaps = max(files) - len(files)
    text = "files of annotators are missing: the numbers have gaps, and the others are evaluated"
    notes = [Note("annotators-missing", text, gaps, shown(path), adding="once")] * bool(gaps)
    for number, file, table in zip(files, files.values(), tables, strict=True):
        at = np.array([place.get(i, -1) for i in table.images.ids.tolist()], dtype=np.int32)
        if (lost := int((at < 0).sum())) or len(at) < len(place):
            text = f"images are in {files[min(files)].name} or {file.name} alone"
            count = lost + len(place) - int((at >= 0).sum())
            notes.append(Note("annotators-differ", text, count, shown(file)))
        own = at[table.image] if len(at) else table.image
        marked = np.array([place[i] for i in _partial(file) if i in place], dtype=np.int32)
        images += [own[own >= 0], marked]
        boxes += [table.boxes[own >= 0], np.zeros((len(marked), 4))]
        crowd += [table.crowd[own >= 0], np.zeros(len(marked), dtype=bool)]
        partial += [np.zeros(int((own >= 0).sum()), dtype=bool), np.ones(len(marked), dtype=bool)]
        who.append(np.full(len(images[-2]) + len(marked), number))
    annotator, all_boxes = np.concatenate(who), np.concatenate(boxes)
    roles: dict[str, NDArray[Any]] = {f"{ANNOTATOR}{k}": annotator == k for k in files}
    roles |= {"crowd": np.concatenate(crowd), PARTIAL: np.concatenate(partial)}
    return replace(
        first,
        image=np.concatenate(images),
        label=np.zeros(len(annotator), dtype=np.int32),
        boxes=all_boxes,
        roles=roles,
        attributes={"area": all_boxes[:, 2] * all_boxes[:, 3]},
        notes=distinct(*(table.notes for table in tables), notes),
        scope=None,
    )


def read_detections(*_: Any, **__: Any) -> Any:
    """Refuses: results are COCO JSON."""
    raise DataError("format", "sa-co has no results of its own", "use the format coco for them")


def _annotators(path: Path) -> dict[int, Path]:
    """The files of all annotators by number, or the one file as number 1."""
    name = _NUMBERED.fullmatch(path.name)
    if name is None:
        return {1: path}
    found = {}
    for each in path.parent.iterdir():
        other = _NUMBERED.fullmatch(each.name)
        if other and other[1] == name[1] and each.is_file():
            found[int(other[2])] = each
    return dict(sorted(found.items()))


def _partial(path: Path) -> list[int | str]:
    """Ids of the pairs that are not annotated exhaustively."""
    try:
        data = tool_results.read_bytes(path)
        file = msgspec.json.decode(data, type=_File)
        unique_keys.require(data, shown(path))
    except (msgspec.DecodeError, RecursionError) as error:
        fix = "is_instance_exhaustive is 0 or 1 in each image"
        raise DataError(shown(path), str(error), fix) from None
    told = [each for each in file.images if each.is_instance_exhaustive is not None]
    return [each.id for each in told if not each.is_instance_exhaustive]
