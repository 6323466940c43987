"""Gives classes other names, and merges classes of one name: ``classes`` of a protocol."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from detmap.core.tables import Categories, Detections, Scope, Truth

Table = TypeVar("Table", Truth, Detections)


def with_new_names(
    table: Table, new_names: Mapping[str, str], ignored: Collection[str] = ()
) -> Table:
    """Returns a table whose classes have their new names; itself if no class has another.

    A class keeps the id of the class that has the name already, else of the first that gets it.

    Parameters
    ----------
    new_names : by the name in the table
    ignored : names in the table of classes whose objects get the role ``crowd``; their detections
        are ordinary ones
    """
    names = table.categories.names
    if new_names.keys().isdisjoint(names):
        return table
    categories, label_of = merged_classes(table.categories, new_names)
    renamed = replace(table, categories=categories, label=label_of[table.label])
    if not isinstance(table, Truth):
        return renamed
    roles, scope = dict(table.roles), table.scope
    region = np.array([name in ignored for name in names], dtype=bool)
    if region.any():
        roles["crowd"] = table.crowd | region[table.label]
    return replace(renamed, roles=roles, scope=scope and _scope(scope, label_of))


def merged_classes(
    categories: Categories, new_names: Mapping[str, str]
) -> tuple[Categories, NDArray[np.int32]]:
    """Returns the classes under their new names, and (K,) int32, the position of each old one."""
    names = categories.names
    place = {name: k for k, name in reversed(list(enumerate(names))) if name not in new_names}
    for k, name in enumerate(names):
        if name in new_names:
            place.setdefault(new_names[name], k)
    at = [place[new_names[name]] if name in new_names else k for k, name in enumerate(names)]
    kept = np.unique(np.array(at, dtype=np.int64))
    renamed = tuple(new_names.get(name, name) for name in names)
    label_of = np.searchsorted(kept, at).astype(np.int32)
    return Categories(categories.ids, renamed, categories.groups).take(kept), label_of


def _scope(scope: Scope, label_of: NDArray[np.int32]) -> Scope:
    """Returns the pairs of image and class for merged classes, each once."""
    image = np.repeat(np.arange(len(scope.off) - 1), np.diff(scope.off))
    rows = np.column_stack([image, label_of[scope.label], scope.kind]).reshape(-1, 3)
    rows = np.unique(rows, axis=0)
    off = np.searchsorted(rows[:, 0], np.arange(len(scope.off)))
    return Scope(off, rows[:, 1].astype(np.int32), rows[:, 2].astype(np.uint8))
