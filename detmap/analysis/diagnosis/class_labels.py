"""Unique names of classes."""

import re
from collections import Counter

from detmap.core.tables import Categories

RESERVED = ("", "micro", "macro", "classwise", "background")
"""Names of rows that are not classes."""


def told_apart(categories: Categories) -> tuple[str, ...]:
    """(K,) unique names: with the id if several classes share a name or it is in `RESERVED`.

    >>> import numpy as np
    >>> told_apart(Categories(np.array([1, 2, 3]), ("car", "car", "background")))
    ('car (id 1)', 'car (id 2)', 'background (id 3)')
    """
    counts = Counter(categories.names)
    return tuple(
        f"{name} (id {number})".lstrip()
        if counts[name] > 1 or name in RESERVED or re.search(r"\(id -?\d+\)$", name)
        else name
        for name, number in zip(categories.names, categories.ids.tolist(), strict=True)
    )
