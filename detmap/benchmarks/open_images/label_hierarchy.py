"""The class hierarchy of Open Images, and how it extends a ground truth.

An object also counts as an object of each class above its own, except the root. A class that is
verified as present on an image makes the classes above it present too; a class that is verified as
absent makes the classes below it absent.

Source: TensorFlow Object Detection API, dataset_tools/oid_hierarchical_labels_expansion.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import json_faults, open_files, unique_keys
from detmap.core.base.open_files import shown
from detmap.errors import DataError

DEEPEST, MOST = 64, 100_000  # classes below each other; in all
MOST_EXPANDED, EXPANDED_PER_ROW = 1_000_000, 100
"""Rows and their copies in memory, of about 200 bytes each."""
LABEL, BELOW = "LabelName", "Subcategory"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The classes above and below each class, without the class itself and without the root."""

    above: Mapping[str, frozenset[str]]
    below: Mapping[str, frozenset[str]]


def read_hierarchy(path: Path) -> Hierarchy:
    """Reads ``{"LabelName": root, "Subcategory": [{"LabelName": ...}, ...]}``.

    Raises `DataError` for other content.
    """
    data = open_files.read_bytes(path, times=10)
    try:
        tree = open_files.parse_json(data, shown(path))
    except ValueError as error:
        fault = json_faults.explain(data, error, "write or copy the file again")
        raise DataError(shown(path), *fault) from None
    unique_keys.require(data, shown(path))
    above: dict[str, set[str]] = {}
    n_nodes = 0

    def visit(node: Any, parents: tuple[str, ...], where: str) -> None:
        nonlocal n_nodes
        n_nodes += 1
        name = node.get(LABEL) if isinstance(node, dict) else None
        if not isinstance(name, str) or not name:
            what = f"no {LABEL}" if isinstance(node, dict) else f"a {type(node).__name__}"
            fix = f'a class is {{"{LABEL}": ..., "{BELOW}": [...]}}'
            raise DataError(f"{shown(path)}: {where}", what, fix)
        if n_nodes > MOST or len(parents) > DEEPEST:
            raise DataError(f"{shown(path)}: {where}", "too many classes", "check its content")
        if name in parents:
            raise DataError(f"{shown(path)}: {where}", f"{name!r} is below itself", "remove it")
        own = above.setdefault(name, set())
        own.update(parents[1:])
        children = node.get(BELOW, [])
        if not isinstance(children, list):
            raise DataError(f"{shown(path)}: {where}.{BELOW}", "not a list", "list the classes")
        for i, child in enumerate(children):
            visit(child, (*parents, name), f"{where}.{BELOW}[{i}]")

    visit(tree, (), "top")
    root = tree[LABEL]
    below: dict[str, set[str]] = {}
    for name, parents in above.items():
        for parent in parents:
            below.setdefault(parent, set()).add(name)
    return Hierarchy(
        {name: frozenset(each - {root}) for name, each in above.items() if name != root},
        {name: frozenset(each) for name, each in below.items()},
    )


def positions(
    relatives: Mapping[str, frozenset[str]], names: Sequence[str]
) -> list[NDArray[np.int32]]:
    """Returns, for each class, the ascending positions of its relatives among `names`."""
    place = {name: i for i, name in enumerate(names)}
    return [
        np.array(
            sorted(place[each] for each in relatives.get(name, ()) if each in place), dtype=np.int32
        )
        for name in names
    ]


def expand(
    label: NDArray[np.int32], relatives: Sequence[NDArray[np.int32]], where: str
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]:
    """Returns the source row, class and derivation of each row and its copies for relatives.

    A row precedes its copies; both keep the order of the rows.

    Raises `DataError` if they are too many; `where` is its place.
    """
    n_copies = np.array([len(each) for each in relatives], dtype=np.int64)
    first = np.cumsum(n_copies) - n_copies
    listed = np.concatenate([*relatives, np.zeros(0, dtype=np.int32)])
    size = 1 + n_copies[label]
    most = max(MOST_EXPANDED, EXPANDED_PER_ROW * len(label))
    if (n_rows := int(size.sum())) > most:
        what = f"makes {n_rows:,} rows of {len(label):,}: of each class above or below its own one"
        raise DataError(where, what, f"give a hierarchy that makes no more than {most:,}")
    source = np.repeat(np.arange(len(label)), size)
    begin = np.cumsum(size) - size
    step = np.arange(len(source)) - begin[source]
    derived = step > 0
    classes = label[source]
    classes[derived] = listed[(first[label[source]] + step - 1)[derived]]
    return source, classes, derived
