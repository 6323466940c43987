"""Evaluates detections that do not fit into memory, with the same bits as in memory.

1. The pieces of the file are sorted by image and appended to a temporary file.
2. Blocks of consecutive images are matched, each against its part of the ground truth, and their
   match rows, which are sorted by class, are appended to another.
3. The rows of some classes at a time are ranked together, and their curves are integrated.

Source: none; the same parts as `detmap.Matches.merge` and `detmap.distributed.evaluate`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.pieces import Source, Summary
from detmap.core.base.immutable import blank, vouched
from detmap.core.base.open_files import shown
from detmap.core.bounded import memory_plan as bounds
from detmap.core.bounded.memory_plan import Limits
from detmap.core.bounded.spill import Spill, grouped
from detmap.core.curves import scores as curves
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.matching.matches_overview import RowSummary, overview, row_summary
from detmap.core.matching.row_order import rank_rows
from detmap.core.protocol import Protocol
from detmap.core.results.result import Result
from detmap.core.tables import MAX_ROWS, Detections, Note, Truth
from detmap.core.tables.grouping import group_images, labels, ranked, reordered
from detmap.core.tables.notes import distinct
from detmap.errors import DataError

MOST_BUCKETS = 1024  # parts of the images in the temporary file
Progress = Callable[[str, int, int], object]
DETECTION = ("image", "label", "boxes", "score", "position")
"""Columns of the first file. The position is that in the whole file, if it decides about ties."""
ROW = ("image", "rank", "score", "tp", "ignored", "position")
"""Columns of the second file, those of `Matches`; the position likewise."""
CURVE = ("rank", "tp", "ignored")
"""What curves need, and no more if `bounds.scores_suffice`."""


def evaluate(
    source: Source,
    protocol: Protocol,
    bound: int | Limits,
    *,
    threads: int | None = None,
    progress: Progress = lambda *_: None,
) -> Result:
    """Evaluates detections in bounded memory.

    Parameters
    ----------
    source : the detections, from `detmap.core.adapters.pieces.source`
    protocol : the rules
    bound : bytes of memory that this process may use
    threads : number of threads (default: all processors); has no effect on the result
    progress : called with the step, the work done in it and the whole

    Returns
    -------
    Result without match rows: no intervals and no single curves

    Raises
    ------
    ProtocolError : a protocol that needs all detections at once
    DataError : invalid input; too small a bound; a full disk
    """
    protocol.require("bounded memory")
    truth = protocol.classes.rename_table(source.truth)  # the source keeps the names of the file
    folder = bounds.folder()
    whole = match(truth, no_detections(truth), protocol, threads=threads)  # the objects' errors
    if not isinstance(bound, Limits):
        bounds.require_reading(bound, source.memory)
    bounds.require_disk(source.n_rows, folder)
    with ExitStack() as files:
        with _Read(truth, folder, protocol) as read:
            notes = read.read_all(source, progress)
            if not isinstance(bound, Limits):
                bound = bounds.limits(bound, len(truth), protocol)
            _require_room(read, bound)
            groups = grouped(read.n_of_class, min(bound.group, bounds.TOGETHER))
            rows = files.enter_context(_Rows(folder, groups))
            columns: list[tuple[NDArray[Any], ...]] = []
            for begin, part in _match_blocks(read, protocol, bound, threads, progress):
                rows.add(part, begin)
                columns.append((part.digest, part.beyond, part.unjudged))
        digest, beyond, unjudged = map(np.concatenate, zip(*columns, strict=True))
        notes = distinct(whole.notes, notes)
        whole = replace(whole, digest=digest, beyond=beyond, unjudged=unjudged, notes=notes)
        return _scored(whole, rows, threads, progress)


def no_detections(truth: Truth) -> Detections:
    """Returns a table without detections."""
    none = np.zeros(0, dtype=np.int32)
    return Detections(
        truth.images, truth.categories, none, none, np.zeros((0, 4)), np.zeros(0), box_format="xywh"
    )


def _columns(names: tuple[str, ...], protocol: Protocol) -> tuple[str, ...]:
    """The names, without the position where it has no effect."""
    return names if protocol.ranking.ties != "image" else names[:-1]


# --- reading --------------------------------------------------------------------------------------


class _Read(Spill):
    """The detections by bucket of images."""

    def __init__(self, truth: Truth, folder: Path, protocol: Protocol) -> None:
        n_images = len(truth.images)
        n_buckets = max(min(MOST_BUCKETS, n_images), 1)
        super().__init__(folder, n_buckets)
        self.borders = np.arange(n_buckets + 1) * n_images // n_buckets
        self.truth, self.classes = truth, protocol.classes
        self.names = _columns(DETECTION, protocol)
        self.n_of_class = np.zeros(len(truth.categories), dtype=np.int64)
        self.n_rows = 0
        self.box_format = "xywh"
        self.objects, self.object_off = group_images(truth.image, n_images)

    def read_all(self, source: Source, progress: Progress) -> tuple[Note, ...]:
        """Reads all pieces; returns their notes."""
        summary = Summary(shown(source.path))
        self._add(no_detections(self.truth))  # so that there are columns
        for detections, read in source.pieces():
            summary.add(detections)
            self._add(self.classes.rename_table(detections))
            progress("MB read", read // 1_000_000, source.size // 1_000_000)
        return summary.notes()

    def _add(self, detections: Detections) -> None:
        if self.n_rows + len(detections) > MAX_ROWS:
            what = f"more than {MAX_ROWS} detections"
            raise DataError(detections.source, what, "evaluate parts of the images, and merge them")
        if detections.shapes is not None:
            what = "rotated boxes or masks are evaluated as a whole, not in bounded memory"
            raise DataError(detections.source, what, "evaluate without a bound of memory")
        if len(detections):
            self.box_format = detections.box_format
        order, off = group_images(detections.image, len(self.truth.images))
        columns = [
            (order + self.n_rows).astype(np.int32)
            if name == "position"
            else np.take(getattr(detections, name), order, axis=0)
            for name in self.names
        ]
        self.append(columns, off[self.borders])
        self.n_of_class += np.bincount(detections.label, minlength=len(self.n_of_class))
        self.n_rows += len(detections)

    def block(self, begin: int, end: int) -> tuple[Truth, Detections, NDArray[np.int32] | None]:
        """Returns ground truth and detections of some buckets, and the rows' positions."""
        first, last = self.borders[begin], self.borders[end]
        objects = self.objects[self.object_off[first] : self.object_off[last]]
        truth = self.truth.select_images(np.arange(first, last), np.sort(objects))
        read = {name: self.read(i, begin, end) for i, name in enumerate(self.names)}
        place = read.pop("position", None)
        # The pieces follow one another: an image's rows are in file order, but images are not.
        if place is not None:
            order = np.argsort(place, kind="stable")
            read, place = {name: column[order] for name, column in read.items()}, place[order]
        read["image"] -= np.int32(first)
        tables: Any = {**read, "box_format": self.box_format}
        return truth, Detections(truth.images, truth.categories, **tables), place


def _require_room(read: _Read, limits: Limits) -> None:
    """Raises `DataError` if one bucket of images, or one class, does not fit."""
    names = [f"class {name!r}" for name in read.truth.categories.names]
    for rows, most, row, of in (
        (read.sizes, limits.block, bounds.MATCHED, ["a block of images"] * MOST_BUCKETS),
        (read.n_of_class, limits.group, bounds.RANKED, names),
    ):
        largest = int(rows.argmax()) if len(rows) else 0
        if len(rows) and rows[largest] > most:
            more = (int(rows[largest]) - most) * row
            raise DataError(
                "memory",
                f"{of[largest]} has {rows[largest]} detections, and {most} fit",
                f"raise the bound by {more / 1e6 / bounds.FILLED + 5:.0f}MB",
            )


# --- matching -------------------------------------------------------------------------------------


def _match_blocks(
    read: _Read, protocol: Protocol, limits: Limits, threads: int | None, progress: Progress
) -> Iterator[tuple[int, Matches]]:
    """Yields each block's first image and matches, with positions in the whole file."""
    done = 0
    for begin, end in grouped(read.sizes, limits.block):
        truth, detections, place = read.block(begin, end)
        part = match(truth, detections, protocol, threads=threads)
        done += len(detections)
        del truth, detections
        if place is not None:
            part = replace(part, position=place[part.position])
        progress("thousand detections matched", done // 1000, read.n_rows // 1000)
        yield int(read.borders[begin]), part


class _Rows(Spill):
    """Match rows by group of classes; `groups` has the range of each."""

    def __init__(self, folder: Path, groups: list[tuple[int, int]]) -> None:
        super().__init__(folder, len(groups))
        self.groups = groups
        self.offs: list[NDArray[np.int64]] = []  # of the blocks: where each class begins

    def add(self, part: Matches, first: int) -> None:
        """Writes the rows of a block whose first image is `first`."""
        columns = {name: getattr(part, name) for name in _columns(ROW, part.protocol)}
        columns["image"] = part.image + np.int32(first)
        ends = np.array([0, *(end for _, end in self.groups)])
        self.append(list(columns.values()), part.off[ends])
        self.offs.append(part.off)

    def group(self, g: int, whole: Matches) -> tuple[Matches, RowSummary]:
        """Returns the rows of a group of classes in the order of the whole, and their summary.

        Columns are read one after another, and what the curves do not need is not kept.
        """
        begin, end = self.groups[g]
        protocol, images = whole.protocol, whole.select_classes(np.arange(begin, end))
        names, lean = _columns(ROW, protocol), bounds.scores_suffice(protocol)

        def column(name: str) -> NDArray[Any]:
            return self.read(names.index(name), g, g + 1)

        order, off = self._order(column, (begin, end), whole)

        def rows(needed: tuple[str, ...]) -> Matches:
            """The rows with some columns; the others have no memory."""
            columns = {each.name: getattr(images, each.name) for each in fields(Matches)}
            columns |= {"off": off, "notes": (), "position": blank(len(order), np.int32)}
            for i, name in enumerate(names):
                columns[name] = (
                    reordered(column(name), order) if name in needed else self.zeros(i, len(order))
                )
            return vouched(Matches, **columns)

        listed = rows(("score",) if lean else names)
        summary = row_summary(listed)
        if lean:
            del listed  # the scores
            listed = rows(CURVE)
        return listed, summary

    def _order(
        self, column: Callable[[str], NDArray[Any]], group: tuple[int, int], whole: Matches
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The rows of all blocks by class and rank, and each class's begin.

        Blocks ascend by image, and tied rows of a block do: usually the scores alone decide.
        """
        begin, end = group
        if end - begin == 1:  # zeros without memory
            label = blank(sum(int(off[end] - off[begin]) for off in self.offs), np.int32)
        else:
            label = np.concatenate([labels(off[begin : end + 1]) for off in self.offs])
        ranking, sizes, score = (
            whole.protocol.ranking,
            (whole.n_images, end - begin),
            column("score"),
        )
        if ranking.ties == "image" and ranking.ignored != "leave":
            return ranked(None, label, score, (), sizes)
        image, ignored = column("image"), column("ignored")
        position = column("position") if ranking.ties != "image" else image
        return rank_rows(whole.protocol, image, label, score, ignored, position, sizes)


# --- curves ---------------------------------------------------------------------------------------


def _scored(whole: Matches, rows: _Rows, threads: int | None, progress: Progress) -> Result:
    """Returns the result of all groups of classes."""
    made, summaries = [], []
    for g, (_, end) in enumerate(rows.groups):
        listed, summary = rows.group(g, whole)
        made.append(curves.scores(listed, threads=threads))
        summaries.append(summary)
        del listed  # before the next one is read
        progress("classes", end, len(whole.categories))
    ranges = [np.arange(begin, end) for begin, end in rows.groups]
    found = overview(whole, summaries, whole.n_images_without_objects())
    return Result(found, curves.join(made, ranges))
