"""Scope and class groups of an LVIS ground truth.

LVIS is partly annotated. An image lists the classes that are known to be absent
(``neg_category_ids``) and those that are not exhaustively annotated
(``not_exhaustive_category_ids``). Other classes without objects there are unknown. A category has a
frequency: r(are), c(ommon) or f(requent).

Source: Gupta, Dollár and Girshick, "LVIS: A Dataset for Large Vocabulary Instance Segmentation"
(2019), section 3, and the files that lvis-api 0.5.3 reads.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco.decode import Category, Image, field
from detmap.core.tables import ABSENT, NOT_EXHAUSTIVE, Categories, Images, Scope
from detmap.core.tables.grouping import positions

LISTS = {ABSENT: "neg_category_ids", NOT_EXHAUSTIVE: "not_exhaustive_category_ids"}


def scope(records: Sequence[Image], images: Images, categories: Categories) -> Scope | None:
    """Returns the pairs of image and class that images list; None if there are none, as in COCO.

    As in lvis-api, repeated classes are one pair, a class in both lists is two, and unknown classes
    are dropped.
    """
    lists = {kind: field(records, name) for kind, name in LISTS.items()}
    if all(column.count(None) == len(records) for column in lists.values()):
        return None
    place = {each: i for i, each in enumerate(images.ids.tolist())}
    at = np.array([place[record.id] for record in records], dtype=np.int64)
    parts = [
        _pairs(at, [each or [] for each in column], kind, categories)
        for kind, column in lists.items()
    ]
    # One number a pair sorts much faster than three: by image, then class, then kind.
    n_classes, n_kinds = max(len(categories), 1), NOT_EXHAUSTIVE + 1
    codes = np.unique(np.concatenate(parts) @ [n_classes * n_kinds, n_kinds, 1])
    pair, kind = np.divmod(codes, n_kinds)
    pairs = np.column_stack([*np.divmod(pair, n_classes), kind])
    off = np.searchsorted(pairs[:, 0], np.arange(len(images) + 1)).astype(np.int64)
    return Scope(off, pairs[:, 1].astype(np.int32), pairs[:, 2].astype(np.uint8))


def incomplete(records: Sequence[Image], categories: Categories) -> list[tuple[Any, ...]]:
    """Returns code, text, count, names and numbers of what is missing in the lists of a scope."""
    found: list[tuple[Any, ...]] = []
    for name in LISTS.values():
        column = field(records, name)
        listed = np.array([i for each in column for i in each or ()], dtype=np.int64)
        unknown = int((positions(categories.ids, listed) < 0).sum())
        text = f"entries of {name} are categories that are not in the file: dropped"
        found.append(("scope-unlisted", text, unknown))
        missing = column.count(None)
        text = f"of the {{0}} images have no {name}: read as an empty list"
        found.append(("scope-missing", text, missing, (), (len(records),)))
    return found


def groups(records: Sequence[Category], categories: Categories) -> tuple[str, ...]:
    """Returns the frequency of each class, "" if missing; () if no class has one."""
    if all(record.frequency is None for record in records):
        return ()
    of = {int(record.id): record.frequency or "" for record in records}
    return tuple(of[i] for i in categories.ids.tolist())


def _pairs(
    at: NDArray[np.int64], lists: Sequence[list[int]], kind: int, categories: Categories
) -> NDArray[np.int64]:
    """Returns (P, 3) image position, class position, kind."""
    image = np.repeat(at, [len(each) for each in lists])
    label = positions(categories.ids, np.array([i for each in lists for i in each], dtype=np.int64))
    known = label >= 0
    return np.column_stack([image[known], label[known], np.full(int(known.sum()), kind)])
