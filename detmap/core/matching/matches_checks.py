"""Checks of the columns of `Matches`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import column_checks as checks
from detmap.core.base.immutable import keep
from detmap.core.matching.class_thresholds import class_thresholds
from detmap.core.protocol import Protocol
from detmap.core.tables import MAX_ROWS, Categories, Note
from detmap.core.tables.grouping import labels


def word_of(protocol: Protocol) -> type[np.unsignedinteger[Any]]:
    """Returns the unsigned type with a bit per threshold."""
    return np.uint16 if len(protocol.thresholds()) <= 16 else np.uint64


def effective_thresholds(protocol: Protocol) -> NDArray[np.float64]:
    """(T,) the lowest IoU that matches at each threshold, with the protocol's cap and comparison.

    ``overlap > t`` becomes ``overlap >=`` the next larger number: the kernels only use ``>=``.
    """
    thresholds = np.minimum(protocol.thresholds(), protocol.iou.cap)
    return np.nextafter(thresholds, np.inf) if protocol.iou.comparison == ">" else thresholds


def least_overlap(protocol: Protocol) -> float:
    """Returns the lowest overlap of a candidate pair.

    It is the lowest threshold; under ``best_any`` with a tolerance it is any overlap above 0.
    """
    lowest = min((float(effective_thresholds(protocol)[0]), *class_thresholds(protocol).values()))
    if protocol.matching.rule == "best_any" and protocol.iou.tolerance:
        return min(lowest, float(np.nextafter(0, 1)))
    return lowest


def check(matches: Any) -> None:
    """Checks every column once and makes it read-only.

    Raises
    ------
    DataError : names the array
    """
    protocol, categories = matches.protocol, matches.categories
    for name, value, kind in (
        ("protocol", protocol, Protocol),
        ("categories", categories, Categories),
    ):
        if not isinstance(value, kind):
            checks.refuse(f"Matches.{name}", f"a {type(value).__name__}")
    checks.notes("Matches.notes", matches.notes, Note)
    n_classes, n_areas, word = len(categories), len(protocol.subsets), word_of(protocol)
    n_rows, n_objects = checks.n_rows(matches.score), checks.n_rows(matches.obj_image)
    if max(n_rows, n_objects) > MAX_ROWS:
        checks.refuse("Matches.score", f"{n_rows} rows", f"evaluate at most {MAX_ROWS} at once")
    image_ids = checks.image_ids("Matches.image_ids", matches.image_ids)
    n_images = len(image_ids)
    columns = {
        name: checks.column(f"Matches.{name}", getattr(matches, name), dtype, *shape)
        for name, dtype, shape in (
            ("digest", np.uint64, (n_images, 2)),
            ("beyond", np.int32, (n_images,)),
            ("unjudged", np.int32, (n_images,)),
            ("rank", np.int32, (n_rows,)),
            ("position", np.int32, (n_rows,)),
            ("score", np.float64, (n_rows,)),
            ("tp", word, (n_rows, n_areas)),
            ("ignored", word, (n_rows, n_areas)),
            ("counted", np.bool_, (n_objects, n_areas)),
        )
    }
    for name in ("beyond", "unjudged", "position"):
        if columns[name].min(initial=0) < 0:
            row = int(np.argmin(columns[name]))
            checks.refuse(f"Matches.{name}[{row}]", f"{columns[name][row]} is negative")
    columns |= {
        "image_ids": image_ids,
        "off": checks.offsets_of("Matches.off", matches.off, n_classes, n_rows),
        "obj_off": checks.offsets_of("Matches.obj_off", matches.obj_off, n_classes, n_objects),
        "image": checks.positions_in("Matches.image", matches.image, n_rows, n_images),
        "obj_image": checks.positions_in(
            "Matches.obj_image", matches.obj_image, n_objects, n_images
        ),
    }
    keep(matches, **columns)
    _check_order(matches)
    if matches.taken is not None:
        _check_taken(matches)


def _check_taken(matches: Any) -> None:
    """Checks that the assignments agree with the match results."""
    from detmap.core.matching.assignments import Assignments

    if not isinstance(matches.taken, Assignments):
        checks.refuse("Matches.taken", f"a {type(matches.taken).__name__}")
    n_images = max(matches.n_images, 1)
    cell = labels(matches.off).astype(np.int64) * n_images + matches.image
    obj_cell = labels(matches.obj_off).astype(np.int64) * n_images + matches.obj_image
    n_met = np.searchsorted(obj_cell, cell, "right") - np.searchsorted(obj_cell, cell, "left")
    protocol = matches.protocol
    absent = "absent" in dict(protocol.matching.neutral).values()
    some = absent or protocol.boxes.empty == "drop"  # positions count removed objects too
    fault = matches.taken.fault(matches.tp, matches.ignored, None if some else n_met)
    if fault:
        checks.refuse("Matches.taken", fault)


def _check_order(matches: Any) -> None:
    """Checks the order of rows and the bits of match results."""
    from detmap.kernels.state import find_bad_verdict

    image, word = matches.obj_image, matches.tp.dtype.type
    back = np.flatnonzero(image[1:] < image[:-1]) + 1
    back = back[~np.isin(back, matches.obj_off)]
    if back.size:
        checks.refuse(f"Matches.obj_image[{back[0]}]", "does not ascend within its class")
    n_thresholds = len(matches.protocol.thresholds())
    no_threshold = np.array(
        [~word(0) << word(n_thresholds) if n_thresholds < 8 * word(0).nbytes else 0], word
    )
    row = find_bad_verdict(
        matches.off,
        matches.image,
        matches.rank,
        matches.score,
        matches.tp,
        matches.ignored,
        no_threshold,
        _ranks(matches.protocol),
        matches.protocol.max_dets()[-1],
        _most_found(matches),
        np.zeros(matches.n_images, dtype=np.int32),
        np.zeros((matches.tp.shape[1], n_thresholds), dtype=np.int64),
    )
    if row < 0:
        return
    k = int(np.searchsorted(matches.off, row, side="right")) - 1
    before = slice(matches.off[k], row)
    if np.isnan(matches.score[row]):
        checks.refuse(f"Matches.score[{row}]", "is NaN")
    if row > matches.off[k] and matches.score[row] > matches.score[row - 1]:
        checks.refuse(f"Matches.score[{row}]", "does not descend within its class")
    rank = _rank(matches, row, before)
    if rank is not None:
        checks.refuse(f"Matches.rank[{row}]", f"{matches.rank[row]} instead of {rank}")
    if (matches.tp[row] & matches.ignored[row]).any():
        checks.refuse(f"Matches.tp[{row}]", "both true and ignored")
    if ((matches.tp[row] | matches.ignored[row]) & no_threshold).any():
        checks.refuse(f"Matches.ignored[{row}]", "a bit beyond the thresholds")
    checks.refuse(f"Matches.tp[{row}]", "more true positives than objects of its class")


def _most_found(matches: Any) -> NDArray[np.int64]:
    """The most true positives, as `Matches.n_objects`."""
    objects: NDArray[np.int64] = matches.n_objects()
    if matches.protocol.matching.flags == "repeated":  # a crowd is found many times
        return np.full_like(objects, len(matches.score))
    return objects


def _ranks(protocol: Protocol) -> int:
    """The kind of ranks in an image and class: consecutive, ascending with gaps, or any."""
    from detmap.kernels import state

    if protocol.limits.order == "input" or not protocol.uses_default_order():
        return state.ANY_ORDER
    whole = protocol.scope.unlisted == "judge" and protocol.boxes.empty == "keep"
    return state.NO_GAPS if whole and protocol.limits.scope == "class" else state.UPWARDS


def _rank(matches: Any, row: int, before: slice) -> str | None:
    """The required rank of a row; None if it is correct."""
    from detmap.kernels import state

    rank, kind = int(matches.rank[row]), _ranks(matches.protocol)
    earlier = matches.rank[before][matches.image[before] == matches.image[row]]
    if kind == state.NO_GAPS:
        return None if rank == len(earlier) else f"{len(earlier)}"
    limit = matches.protocol.max_dets()[-1]
    lowest = 0 if kind == state.ANY_ORDER else int(earlier.max(initial=-1)) + 1
    return None if lowest <= rank < limit else f"{lowest} to {limit - 1}"
