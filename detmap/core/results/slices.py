"""Parts of an evaluation: slices (sets of images) and single images.

The result of a slice equals an evaluation of these images alone. Images are matched
independently, so one set of match rows serves every slice.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from detmap.core.curves.aggregation import COUNTS
from detmap.core.matching.matches import Matches
from detmap.core.output.table import Cell, Table


def per_image(matches: Matches, a: int, t: int) -> list[dict[str, Any]]:
    """Returns one dict per image: id, `COUNTS`, and ``worst_score``.

    `a` and `t` select subset and threshold. ``worst_score`` is the score of the highest-scoring
    false positive, NaN without one.
    """
    n, image = matches.n_images, matches.image
    bit = matches.tp.dtype.type(1 << t)
    hit, ignored = (matches.tp[:, a] & bit) != 0, (matches.ignored[:, a] & bit) != 0
    false = ~(hit | ignored)
    total = np.bincount(image, minlength=n)
    tp, fp = np.bincount(image[hit], minlength=n), np.bincount(image[false], minlength=n)
    objects = np.bincount(matches.obj_image[matches.counted[:, a]], minlength=n)
    worst = np.full(n, -np.inf)
    np.maximum.at(worst, image[false], matches.score[false])
    worst[fp == 0] = np.nan
    columns = (matches.image_ids, objects, total, tp, fp, total - tp - fp, objects - tp, worst)
    names = ("image", *COUNTS, "worst_score")
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def image_table(rows: list[dict[str, Any]]) -> Table:
    """Returns one row per image, from `Result.per_image`."""
    header = ("image", *COUNTS, "worst_score")
    cells = tuple(
        (row["image"], *(row[name] for name in COUNTS), _full_digits(row["worst_score"]))
        for row in rows
    )
    return Table("images", header, cells, name="images")


def _full_digits(score: float) -> str | None:
    return None if np.isnan(score) else repr(score)


def slice_table(results: Mapping[str, Any], iou: float | None) -> Table:
    """Returns one row per slice: counts, metrics, signature."""
    rows: list[tuple[Cell, ...]] = []
    known: tuple[str, ...] = ("images", *COUNTS)
    header: tuple[str, ...] = ("slice", *known)
    for name, result in results.items():
        counts, metrics = result.counts(iou), result.metrics
        known = tuple(each for each in known if each in counts)
        header = ("slice", *known, *metrics, "signature")
        totals = (counts[each] for each in known)
        rows.append((name, *totals, *metrics.values(), result.signature))
    return Table("slices", header, tuple(rows), name="slices")
