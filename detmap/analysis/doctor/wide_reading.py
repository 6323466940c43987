"""Reads files of any format with classes that the ground truth lacks: against a ground truth with
more classes.
"""

import ast
from collections.abc import Callable, Mapping
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

Widely = Callable[[Truth, Mapping[int, str] | None], Detections]
"""Reads the detections against another ground truth and other class names; drops rows of unknown
images."""


def widely_with(detections: Any, how: Mapping[str, Any]) -> Widely:
    """Returns what reads detections with these options of `detmap.read_detections`."""

    def read(truth: Truth, class_names: Mapping[int, str] | None) -> Detections:
        given = {**how, "unknown": "drop", "class_names": class_names}
        return read_detections(detections, truth, **given)

    return read


def read(truth: Truth, class_names: Any, widely: Widely) -> Raw | None:
    """Returns rows with the class ids of the file, None if the reader refuses it even so.

    Parameters
    ----------
    class_names : as in `detmap.read_detections`
    """
    names = None if class_names is None else policy(class_names=class_names).class_names
    try:
        if names is None:
            return from_table(widely(_with_ids(truth), None))
        more = {i: UNKNOWN.format(i) for i in range(MOST_ID) if i not in names}
        wide = replace(truth, categories=with_classes(truth.categories, list(more.values())))
        table = widely(wide, {**names, **more})
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


def read_objects(truth: Truth, class_names: Any, widely: Widely) -> Raw:
    """Returns rows of Python objects with the classes that they name, ids or texts.

    Raises `DataError` for objects that cannot be read even so.
    """
    table = widely(truth, class_names)
    lost = [name for note in table.notes if note.code == "class-unknown" for name in note.names]
    texts = [ast.literal_eval(name) for name in lost if name.startswith(("'", '"'))]
    if not lost or len(texts) < len(lost):
        return (read(truth, class_names, widely) if lost else None) or from_table(table)
    classes = with_classes(truth.categories, texts)
    raw = from_table(widely(with_axes(truth, truth.images, classes), class_names))
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
