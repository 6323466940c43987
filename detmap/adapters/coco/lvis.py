"""What an LVIS truth says beside a COCO one: on which images a class was looked for.

LVIS is annotated in part. An image names the classes that are known not to be on it
(``neg_category_ids``) and those of which not every object is annotated
(``not_exhaustive_category_ids``); of any other class without an object there nothing is known. A
category has a frequency: r(are), c(ommon) or f(requent).

Source: Gupta, Dollár and Girshick, "LVIS: A Dataset for Large Vocabulary Instance Segmentation"
(2019), section 3, and the files that lvis-api 0.5.3 reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from detmap.adapters.coco.decode import Category, Image, field
from detmap.tables import ABSENT, NOT_EXHAUSTIVE, Categories, Images, Scope
from detmap.tables.grouping import positions


def scope(records: Sequence[Image], images: Images, categories: Categories) -> Scope | None:
    """The pairs of image and class that the images name; None where none names any, as in COCO.

    A class that is named twice is one pair, and one in both lists two, as lvis-api reads them; one
    that the file does not list is left out.
    """
    lists = {
        ABSENT: field(records, "neg_category_ids"),
        NOT_EXHAUSTIVE: field(records, "not_exhaustive_category_ids"),
    }
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


def groups(records: Sequence[Category], categories: Categories) -> tuple[str, ...]:
    """The frequency of each class, "" where it has none; () where none has one, as in COCO."""
    if all(record.frequency is None for record in records):
        return ()
    of = {int(record.id): record.frequency or "" for record in records}
    return tuple(of[i] for i in categories.ids.tolist())


def _pairs(
    at: NDArray[np.int64], lists: Sequence[list[int]], kind: int, categories: Categories
) -> NDArray[np.int64]:
    """(P, 3) position of the image, position of the class, kind."""
    image = np.repeat(at, [len(each) for each in lists])
    label = positions(categories.ids, np.array([i for each in lists for i in each], dtype=np.int64))
    known = label >= 0
    return np.column_stack([image[known], label[known], np.full(int(known.sum()), kind)])
