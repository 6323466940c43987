"""Converts matches to ``evalImgs`` and ``ious``, and ``evalImgs`` back to matches."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask

from detmap.compat.accumulate import Selection
from detmap.compat.annotation_rows import Unusual
from detmap.compat.drop_in_engine import Evaluated, Part, protocol_of, split_thresholds
from detmap.compat.eval_imgs_snapshot import COLUMNS, Cell, Snapshot, digest, read
from detmap.compat.matched_objects import find_assignments
from detmap.core.matching.matches import Matches
from detmap.core.matching.matches_checks import word_of
from detmap.core.tables import Categories
from detmap.core.tables.grouping import group, labels, ranked


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Evaluated rows by category, then image; C of the K * I cells have rows.

    Parameters
    ----------
    place : (C,) category times I plus image
    detections : (D,) rows of the matches, by descending score within a cell
    objects : (G,) rows of the ground truth
    d_off, g_off : (C + 1,) the start of each cell
    begin : (C,) where the (T, n) arrays of each cell begin in those of all
    """

    place: NDArray[np.int64]
    detections: NDArray[np.int32]
    objects: NDArray[np.int32]
    d_off: NDArray[np.int64]
    g_off: NDArray[np.int64]
    begin: NDArray[np.int64]


def cells_of(evaluated: Evaluated) -> Cells:
    """The rows of an evaluation in the order of `Cells`."""
    matches, truth = evaluated.parts[0].matches, evaluated.truth
    n_images, n_classes = len(evaluated.rules.image_ids), evaluated.rules.n_classes
    sides = []
    for image, label in ((matches.image, labels(matches.off)), (truth.image, truth.label)):
        rows = group(image, label, n_images, n_classes)[0]
        cell = label[rows].astype(np.int64) * n_images + image[rows]
        sides.append((rows, np.bincount(cell, minlength=n_classes * n_images)))
    (detections, d_count), (objects, g_count) = sides
    place = np.flatnonzero((d_count > 0) | (g_count > 0))
    d_off, g_off = (np.concatenate([[0], np.cumsum(count[place])]) for count in (d_count, g_count))
    # Without objects nothing is matched, and the system gives no memory to zeros at the end that
    # are never written.
    size, begin = len(evaluated.rules.thresholds) * np.diff(d_off), np.empty_like(place)
    order = np.argsort(g_count[place] == 0, kind="stable")
    begin[order] = np.cumsum(size[order]) - size[order]
    return Cells(place, detections, objects, d_off, g_off, begin)


@contextmanager
def _paused_collection() -> Iterator[None]:
    """Pauses the garbage collector: it looks through all cells so far for every 700 new ones."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_paused_collection()
def image_results(evaluated: Evaluated, ranges: list[Any]) -> Snapshot:
    """``evalImgs`` by category, area range and image; None for cells without rows.

    The arrays of the cells are parts of a few large ones, contiguous as those of pycocotools.

    ranges: the area ranges as given by the caller.
    """
    rules, cells = evaluated.rules, cells_of(evaluated)
    n_images, n_areas = len(rules.image_ids), len(rules.areas)
    category_ids = [-1] if rules.together else rules.category_ids
    limit, n = rules.limits[-1], len(rules.thresholds)
    listed: list[Cell | None] = [None] * (rules.n_classes * n_areas * n_images)
    made: list[Cell] = []
    matches = evaluated.parts[0].matches
    ids = evaluated.found.ids[matches.position[cells.detections]].tolist()
    scores = matches.score[cells.detections].tolist()
    classes, images = np.divmod(cells.place, n_images)
    no_flags, no_objects = np.array([]), np.zeros((n, 0))
    off = (cells.d_off[:-1], cells.d_off[1:], cells.g_off[:-1], cells.g_off[1:])
    arrays: list[NDArray[Any]] = []
    parts = list(_area_results(evaluated, cells))  # what they need is let go before cells are made
    for a, part in enumerate(parts):
        own_ids = part.object_ids.tolist()
        at = (classes * n_areas + a) * n_images + images
        columns = (at, classes, images, *off, cells.begin)
        for place, k, i, d, d_end, g, g_end, begin in zip(
            *(column.data for column in columns), strict=True
        ):
            cell = _Cell()
            m, n_objects, end = d_end - d, g_end - g, begin + n * (d_end - d)
            cell.image_id, cell.category_id = rules.image_ids[i], category_ids[k]
            cell.aRng, cell.maxDet = ranges[a], limit
            cell.dtIds, cell.gtIds = ids[d:d_end], own_ids[g:g_end]
            cell.dtMatches = part.hits[begin:end].reshape(n, m)
            cell.gtMatches = (
                part.gains[n * g : n * g_end].reshape(n, n_objects) if n_objects else no_objects
            )
            cell.dtScores = scores[d:d_end]
            cell.gtIgnore = part.neutral[g:g_end] if n_objects else no_flags
            cell.dtIgnore = part.ignored[begin:end].reshape(n, m)
            listed[place] = vars(cell)
            made.append(vars(cell))
        arrays += [part.hits, part.ignored, part.neutral]
    sizes = np.diff(cells.d_off)
    return Snapshot(listed, made, list(read(made)), scores, sizes, arrays, digest(arrays))


class _Cell:
    """The attributes of an object share the table of their names: as its ``vars``, the dicts of
    ``evalImgs`` take half of the memory of others.
    """

    image_id: Any
    category_id: Any
    aRng: Any  # noqa: N815
    maxDet: int  # noqa: N815
    dtIds: list[int]  # noqa: N815
    gtIds: list[int]  # noqa: N815
    dtMatches: NDArray[np.float64]  # noqa: N815
    gtMatches: NDArray[np.float64]  # noqa: N815
    dtScores: list[float]  # noqa: N815
    gtIgnore: NDArray[Any]  # noqa: N815
    dtIgnore: NDArray[np.bool_]  # noqa: N815


@dataclass(frozen=True, slots=True, eq=False)
class AreaResults:
    """The columns of all cells in one area range; ignored objects come last in each cell.

    Parameters
    ----------
    object_ids, neutral : (G,) int64
    hits : (T * D,) float64, the id of the matched object, or 0; by cell, see `Cells.begin`
    gains : (T * G,) float64, the id of the matched detection, or 0; by cell
    ignored : (T * D,) bool, as `hits`
    """

    object_ids: NDArray[np.int64]
    neutral: NDArray[np.int64]
    hits: NDArray[np.float64]
    gains: NDArray[np.float64]
    ignored: NDArray[np.bool_]


def _area_results(evaluated: Evaluated, cells: Cells) -> Iterator[AreaResults]:
    """The results of each area range."""
    rules, truth, taken = evaluated.rules, evaluated.truth, find_assignments(evaluated)
    n_thresholds, d_place = len(rules.thresholds), _places(cells.detections)
    position = evaluated.parts[0].matches.position[cells.detections]
    cell = np.repeat(np.arange(len(cells.place)), np.diff(cells.g_off))
    for a, (low, high) in enumerate(rules.areas):
        neutral = evaluated.ignored_objects() | (truth.area < low) | (truth.area > high)
        objects = cells.objects[
            np.argsort(2 * cell + neutral[cells.objects], kind="stable")
        ]  # those to be found come first
        mine = np.flatnonzero(taken.area == a)
        order = mine[np.argsort(d_place[taken.row[mine]], kind="stable")]
        t, d, target = taken.threshold[order], d_place[taken.row[order]], taken.target[order]
        first, step = _lines(cells.begin, cells.d_off)
        ignored = np.zeros(n_thresholds * len(position), dtype=bool)
        own_area = evaluated.found.area[position]
        outside = (own_area < low) | (own_area > high)
        rows = np.flatnonzero(outside)
        for line in range(n_thresholds):
            ignored[first[rows] + line * step[rows]] = True
        hits, ids = np.zeros(len(ignored)), evaluated.objects.ids[target]
        at = first[d] + t * step[d]
        hits[at], ignored[at] = ids, neutral[target] | ((ids == 0) & outside[d])
        # of several detections that take a crowd, the last is the one that it shows
        first, step = _lines(n_thresholds * cells.g_off[:-1], cells.g_off)
        gains, g = np.zeros(n_thresholds * len(objects)), _places(objects)[target]
        gains[first[g] + t * step[g]] = evaluated.found.ids[position[d]]
        own_ids, own_flags = evaluated.objects.ids[objects], neutral[objects].astype(np.int64)
        yield AreaResults(own_ids, own_flags, hits, gains, ignored)


def _lines(
    begin: NDArray[np.int64], off: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(N,) the place of each row at the first threshold, and the distance to that at the next.

    begin (C,): where the (T, n) arrays begin; off (C + 1,): the rows of each cell.
    """
    size = np.diff(off)
    return np.arange(off[-1]) + np.repeat(begin - off[:-1], size), np.repeat(size, size)


def _places(rows: NDArray[Any]) -> NDArray[np.int64]:
    """The inverse of a permutation."""
    places = np.empty(len(rows), dtype=np.int64)
    places[rows] = np.arange(len(rows))
    return places


def overlaps(evaluated: Evaluated) -> dict[tuple[Any, Any], Any]:
    """``ious`` per image and category, detections by objects; [] if either is missing."""
    rules, cells = evaluated.rules, cells_of(evaluated)
    category_ids = [-1] if rules.together else rules.category_ids
    ious: dict[tuple[Any, Any], Any] = {
        (image, category): [] for image in rules.image_ids for category in category_ids
    }
    matches, crowd = evaluated.parts[0].matches, evaluated.truth.crowd.astype(int)
    boxes = evaluated.found.boxes[matches.position]
    for c, (k, i) in enumerate(zip(*np.divmod(cells.place, len(rules.image_ids)), strict=True)):
        d = cells.detections[cells.d_off[c] : cells.d_off[c + 1]]
        g = cells.objects[cells.g_off[c] : cells.g_off[c + 1]]
        if len(d) and len(g):
            ious[rules.image_ids[i], category_ids[k]] = mask.iou(
                boxes[d], evaluated.truth.boxes[g], crowd[g].tolist()
            )
    return ious


def parts_of_results(
    results: Any, chosen: Selection, sizes: tuple[int, int], n_thresholds: int
) -> list[Part]:
    """Converts ``evalImgs`` of any origin to matches; each selected category and area range is a
    class.

    sizes: I and A of the evaluation.

    Raises
    ------
    Unusual : values that only pycocotools handles
    """
    # Over 60 lines: one line per column of `Matches`.
    n_images, n_areas = sizes
    images = range(n_images) if chosen.images is None else chosen.images
    lists = [(k * n_areas + a) * n_images for k in chosen.classes for a in chosen.areas]
    try:
        found = [
            (cell, i, c)
            for c, begin in enumerate(lists)
            for i in images
            if (cell := results[begin + i]) is not None
        ]
        cells, image, label = zip(*found, strict=True) if found else ((), (), ())
        columns = [[cell[key] for cell in cells] for key in COLUMNS]
        n_found = np.array([len(scores) for scores in columns[0]], dtype=np.int64)
        n_objects = np.array([len(flags) for flags in columns[3]], dtype=np.int64)
        if bool in set(map(type, chain.from_iterable(columns[0]))):
            raise Unusual  # NumPy negates no boolean
        score = np.fromiter(chain.from_iterable(columns[0]), np.float64, int(n_found.sum()))
        empty = np.zeros((n_thresholds, 0))
        hit = np.concatenate([empty, *columns[1]], axis=1, dtype=np.float64, casting="same_kind")
        ignored = np.concatenate([empty, *columns[2]], axis=1) != 0
        widths = [[array.shape for array in column] for column in columns[1:3]]
        neutral = np.concatenate([np.zeros(0), *columns[3]])
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        raise Unusual from None
    shapes = [(n_thresholds, n) for n in n_found.tolist()]
    if widths != [shapes, shapes] or len(neutral) != n_objects.sum() or np.isnan(score).any():
        raise Unusual
    each = (np.array(image, dtype=np.int32), np.array(label, dtype=np.int32))
    rank = np.arange(len(score)) - np.repeat(np.cumsum(n_found) - n_found, n_found)
    within = np.flatnonzero(rank < max(chosen.limits))
    d_image, d_label = (np.repeat(column, n_found)[within] for column in each)
    g_image, g_label = (np.repeat(column, n_objects) for column in each)
    size = (n_images, len(lists))
    order, off = ranked(d_image, d_label, score[within], (), size)
    rows = within[order]
    hit, ignored = hit[:, rows] != 0, ignored[:, rows]
    g_order, g_off = group(g_image, g_label, *size)
    parts = []
    for where in split_thresholds(n_thresholds):
        protocol = protocol_of(np.linspace(0.5, 1, len(where)), ((0.0, 1.0),), max(chosen.limits))
        word = word_of(protocol)
        bits = [hit[where] & ~ignored[where], ignored[where]]
        tp, excused = (_words(flags, word)[:, None] for flags in bits)
        parts.append(
            Part(
                where,
                Matches(
                    protocol,
                    Categories(np.arange(size[1]), tuple(map(str, range(size[1])))),
                    np.arange(n_images),
                    np.zeros((n_images, 2), dtype=np.uint64),
                    np.zeros(n_images, dtype=np.int32),
                    off,
                    d_image[order],
                    rank[rows].astype(np.int32),
                    rows.astype(np.int32),
                    score[rows],
                    tp,
                    excused,
                    g_off,
                    g_image[g_order],
                    (neutral == 0)[g_order, None],
                    unjudged=np.zeros(n_images, dtype=np.int32),
                ),
                apart=True,
            )
        )
    return parts


def _words(flags: NDArray[np.bool_], word: Any) -> NDArray[Any]:
    """(n,) words of (T, n) flags, bit t for row t."""
    words = np.zeros(flags.shape[1], dtype=word)
    for t, row in enumerate(flags):
        words |= row.astype(word) << word(t)
    return words
