"""Reads detections of any format as the ordinary reader does; with classes that the ground truth
lacks, against a ground truth with more classes.
"""

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from detmap.analysis.doctor.raw_rows import Raw, from_table
from detmap.core.adapters import read_detections
from detmap.core.adapters.joining.unknown_policy import policy
from detmap.core.tables import Categories, Detections, Truth
from detmap.core.tables.extension import with_axes, with_classes
from detmap.errors import DataError

MOST_ID = 1000  # of classes that are read though the ground truth lacks them
UNKNOWN = "class {} of the detections"


class Reading:
    """The ordinary reader of some detections.

    Parameters
    ----------
    detections : as of `detmap.read_detections`, and what `loose_readers.read` takes
    how : options of `detmap.read_detections`
    """

    def __init__(self, detections: Any, how: Mapping[str, Any]) -> None:
        self.detections, self.how = detections, how
        self.class_names = how.get("class_names")
        self.table: Detections | None = None
        self.error: DataError | None = None

    def strictly(self, truth: Truth) -> Detections:
        """Reads once, and keeps the table or the error that it raises."""
        if self.table is None:
            try:
                self.table = read_detections(self.detections, truth, **self.how)
            except DataError as error:
                self.error = error
                raise
        return self.table

    def widely(self, truth: Truth, class_names: Mapping[int, str] | None) -> Detections:
        """Reads against another ground truth and class names; drops rows of unknown images."""
        how = {**self.how, "unknown": "drop", "class_names": class_names}
        return read_detections(self.detections, truth, **how)


def read(truth: Truth, reading: Reading) -> Raw | None:
    """Returns rows with the class ids of the file, None if the reader refuses it even so."""
    given = reading.class_names
    names = None if given is None else policy(class_names=given).class_names
    try:
        if names is None:
            return from_table(reading.widely(_with_ids(truth), None))
        more = {i: UNKNOWN.format(i) for i in range(MOST_ID) if i not in names}
        wide = replace(truth, categories=with_classes(truth.categories, list(more.values())))
        table = reading.widely(wide, {**names, **more})
    except DataError:
        return None
    if table.categories is not wide.categories:  # the names are those of the ground truth
        return None
    ids = {name: i for i, name in {**more, **names}.items()}
    lost = -1  # classes that the names lack, of which there are no rows
    keys = tuple(ids.get(name, lost) for name in wide.categories.names)
    used, label = np.unique(table.label, return_inverse=True)
    raw = replace(from_table(table), label=label.astype(np.int32))
    return replace(raw, classes=tuple(keys[k] for k in used.tolist()), names=dict(names))


def read_objects(truth: Truth, reading: Reading) -> Raw:
    """Returns rows of Python objects with the classes that they name, ids or texts.

    Raises `DataError` for objects that cannot be read even so.
    """
    table = reading.widely(truth, reading.class_names)
    lost = [name for note in table.notes if note.code == "class-unknown" for name in note.names]
    texts = [ast.literal_eval(name) for name in lost if name.startswith(("'", '"'))]
    if not lost or len(texts) < len(lost):
        return (read(truth, reading) if lost else None) or from_table(table)
    classes = with_classes(truth.categories, texts)
    wide = with_axes(truth, truth.images, classes)
    raw = from_table(reading.widely(wide, reading.class_names))
    used, label = np.unique(raw.label, return_inverse=True)
    names = tuple(classes.names[k] for k in used.tolist())
    return replace(raw, classes=names, label=label.astype(np.int32), left_out=())


def _with_ids(truth: Truth) -> Truth:
    known = truth.categories
    ids = np.union1d(known.ids, np.arange(MOST_ID))
    name = dict(zip(known.ids.tolist(), known.names, strict=True))
    # Classes with numbers alone must stay so: their names are their numbers.
    spelled = str if known.are_numbers else UNKNOWN.format
    names = tuple(name.get(i, spelled(i)) for i in ids.tolist())
    return with_axes(truth, truth.images, Categories(ids, names))
