"""Adds images and classes without objects to a ground truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detmap.tables import Categories, Detections, Images, Truth
from detmap.tables.grouping import positions

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
    else the table as it is.
    """
    images, categories = like.images, like.categories
    same = images is table.images and categories is table.categories
    partly = isinstance(table, Truth) and table.scope is not None
    if same or partly or images.ids.dtype.kind != table.images.ids.dtype.kind:
        return table
    image = positions(images.ids, table.images.ids)
    label = positions(categories.ids, table.categories.ids)
    if (image < 0).any() or (label < 0).any():
        return table
    return replace(
        table,
        images=images,
        categories=categories,
        image=image[table.image].astype(np.int32),
        label=label[table.label].astype(np.int32),
    )
