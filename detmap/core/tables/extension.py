"""Adds images and classes without objects to a ground truth, for one detector or for several that
are compared: then each is evaluated on the images and classes of all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.core.tables.grouping import positions
from detmap.errors import few

Table = TypeVar("Table", Truth, Detections)


def with_images(images: Images, ids: Sequence[Any]) -> Images:
    """Returns the images and others with these ids, which have the type of the known ones."""
    every = np.concatenate([images.ids, np.array(ids)]) if len(ids) else images.ids
    order = np.argsort(every, kind="stable")
    stems = (*images.stems, *("" if every.dtype.kind == "i" else each for each in ids))
    files = (*images.files, *[""] * len(ids)) if images.files else ()
    unknown = np.full(len(ids), np.nan)
    return Images(
        every[order],
        tuple(stems[i] for i in order.tolist()),
        np.concatenate([images.width, unknown])[order],
        np.concatenate([images.height, unknown])[order],
        tuple(files[i] for i in order.tolist()) if files else (),
    )


def with_classes(categories: Categories, names: Sequence[str]) -> Categories:
    """Returns the classes and others with these names, whose ids follow the known ones."""
    first = int(categories.ids.max(initial=0)) + 1
    return Categories(
        np.concatenate([categories.ids, np.arange(first, first + len(names))]),
        (*categories.names, *names),
        (*categories.groups, *[""] * len(names)) if categories.groups else (),
    )


def extended(table: Table, like: Truth | Detections) -> Table:
    """Returns a table on the images and of the classes of another one, if these include its own;
    else the table as it is. A class that has a number alone may get a name.
    """
    return with_axes(table, like.images, like.categories)


def with_axes(table: Table, images: Images, categories: Categories) -> Table:
    """Does `extended` for these images and classes."""
    same = images is table.images and categories is table.categories
    partly = isinstance(table, Truth) and table.scope is not None
    if same or partly or images.ids.dtype.kind != table.images.ids.dtype.kind:
        return table
    image = positions(images.ids, table.images.ids)
    label = positions(categories.ids, table.categories.ids)
    if (image < 0).any() or (label < 0).any():
        return table
    if any(
        categories.names[k] != own and own != str(categories.ids[k])
        for k, own in zip(label.tolist(), table.categories.names, strict=True)
    ):
        return table
    return replace(
        table,
        images=images,
        categories=categories,
        image=image[table.image].astype(np.int32),
        label=label[table.label].astype(np.int32),
    )


def with_class_names(truth: Truth, like: Detections) -> Truth:
    """Returns a ground truth whose classes have numbers alone with the classes of detections that
    have names; others as they are.
    """
    own, given = truth.categories, like.categories
    if own.are_numbers and not given.are_numbers:
        return with_axes(truth, truth.images, given)
    return truth


def extended_by_all(truth: Truth, tables: Mapping[str, Detections]) -> tuple[Truth, list[Note]]:
    """Returns the ground truth with the images and classes that the detections of any detector
    added, and a note for each detector that lacks some of these classes.

    Parameters
    ----------
    truth : as it was read
    tables : detections by the detector's name; each was read with the ground truth that the ones
        before it had extended
    """
    every = truth
    for table in tables.values():
        every = extended(every, table)
    own = positions(every.categories.ids, truth.categories.ids)  # all are there
    known = {every.categories.names[k] for k in own.tolist()}
    used = {
        name: {table.categories.names[k] for k in np.unique(table.label).tolist()} - known
        for name, table in tables.items()
    }
    everywhere = {each for own in used.values() for each in own}
    notes = [
        Note(
            "class-of-others",
            "classes without objects that only other detections name "
            f"({few(sorted(everywhere - own))}); `detmap eval` of {name} alone may give another "
            "number",
            len(everywhere - own),
        )
        for name, own in used.items()
        if everywhere - own
    ]
    return every, notes
