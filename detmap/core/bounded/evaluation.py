"""Evaluates detections that do not fit into memory, with the same bits as in memory.

1. The pieces of the file are sorted by image and appended to a temporary file.
2. Blocks of consecutive images are matched, each against its part of the ground truth, and their
   match rows, which are sorted by class, are appended to the temporary file.
3. The rows of some classes at a time are ranked together, and their curves are integrated.

Source: none; the same parts as `detmap.Matches.merge` and `detmap.distributed.evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.pieces import Source, Summary
from detmap.core.base.immutable import blank, vouched
from detmap.core.base.open_files import shown
from detmap.core.bounded import limits as bounds
from detmap.core.bounded.limits import Limits
from detmap.core.bounded.parts import Parts, grouped
from detmap.core.bounded.spill import Spill
from detmap.core.curves import scores as curves
from detmap.core.matching.engine import match
from detmap.core.matching.matches import Matches
from detmap.core.matching.matches_overview import Overview, Ranking
from detmap.core.matching.row_order import rank_rows
from detmap.core.protocol import Protocol
from detmap.core.results.result import Result
from detmap.core.tables import MAX_ROWS, Detections, Note, Truth
from detmap.core.tables.digests import data_digest
from detmap.core.tables.grouping import group_images, labels, ranked, reordered
from detmap.core.tables.notes import distinct, n_dropped
from detmap.errors import DataError

MOST_BUCKETS = 1024  # parts of the images in the temporary file
Progress = Callable[[str, int, int], object]

IMAGE, LABEL, BOXES, SCORE, PLACE = range(5)  # columns of a detection in the temporary file
M_IMAGE, RANK, M_SCORE, TP, IGNORED, POSITION = range(6)  # those of a match row
COLUMNS = {
    "image": M_IMAGE,
    "rank": RANK,
    "score": M_SCORE,
    "tp": TP,
    "ignored": IGNORED,
    "position": POSITION,
}


def evaluate(
    truth: Truth,
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
    truth : ground truth, which is in memory
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
    truth = protocol.classes.rename_table(truth)  # the source keeps the names of the file
    folder = bounds.folder()
    whole = match(
        truth, no_detections(truth), protocol, threads=threads
    )  # its objects, and its errors
    if not isinstance(bound, Limits):
        bounds.require_reading(bound, source.memory)
    bounds.require_disk(source.n_rows, folder)
    borders = _borders(len(truth.images))
    with Spill(folder) as rows:
        with Spill(folder) as raw:
            read = _Read(truth, Parts(raw, len(borders) - 1), borders, protocol)
            notes = read.all(source, progress)
            limits = (
                bound if isinstance(bound, Limits) else bounds.limits(bound, len(truth), protocol)
            )
            _require_room(read, limits, truth)
            groups = grouped(read.n_of_class, min(limits.group, bounds.TOGETHER))
            matched = _Matched(rows, groups, protocol)
            columns: list[tuple[NDArray[Any], ...]] = []
            for begin, part in _match_blocks(read, protocol, limits, threads, progress):
                matched.add(part, begin)
                columns.append((part.digest, part.beyond, part.unjudged))
        digest, beyond, unjudged = map(np.concatenate, zip(*columns, strict=True))
        notes = distinct(whole.notes, notes)
        whole = replace(whole, digest=digest, beyond=beyond, unjudged=unjudged, notes=notes)
        return _scored(whole, matched, threads, progress)


def no_detections(truth: Truth) -> Detections:
    """Returns a table without detections."""
    none = np.zeros(0, dtype=np.int32)
    return Detections(
        truth.images, truth.categories, none, none, np.zeros((0, 4)), np.zeros(0), box_format="xywh"
    )


def _borders(n_images: int) -> NDArray[np.int64]:
    """Where the buckets of images begin, and the end."""
    n_buckets = max(min(MOST_BUCKETS, n_images), 1)
    return (np.arange(n_buckets + 1) * n_images) // n_buckets


# --- reading --------------------------------------------------------------------------------------


class _Read:
    """The detections by bucket of images, in the temporary file.

    Parameters
    ----------
    truth : ground truth
    parts : where the rows go, one part per bucket
    borders : (B + 1,) where the buckets begin
    protocol : decides whether rows keep their position in the file
    """

    def __init__(
        self, truth: Truth, parts: Parts, borders: NDArray[np.int64], protocol: Protocol
    ) -> None:
        self.truth, self.parts, self.borders = truth, parts, borders
        self.classes, self.placed = protocol.classes, protocol.ranking.ties != "image"
        self.n_of_class = np.zeros(len(truth.categories), dtype=np.int64)
        self.n_rows = 0
        self.box_format = "xywh"

    def all(self, source: Source, progress: Progress) -> tuple[Note, ...]:
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
        given = (detections.image, detections.label, detections.boxes, detections.score)
        columns: list[NDArray[Any]] = [np.take(column, order, axis=0) for column in given]
        if self.placed:
            columns.append((order + self.n_rows).astype(np.int32))
        self.parts.append(columns, off[self.borders])
        self.n_of_class += np.bincount(detections.label, minlength=len(self.n_of_class))
        self.n_rows += len(detections)

    def block(self, begin: int, end: int) -> tuple[Truth, Detections, NDArray[np.int32]]:
        """Returns ground truth and detections of some buckets, and the rows' positions."""
        first, last = self.borders[begin], self.borders[end]
        images = np.arange(first, last)
        objects = self._objects[self._object_off[first] : self._object_off[last]]
        truth = self.truth.select_images(images, np.sort(objects))
        columns = [self.parts.read(which, begin, end) for which in range(4 + self.placed)]
        # The pieces follow one another: an image's rows are in file order, but images are not.
        if self.placed:
            order = np.argsort(columns[PLACE], kind="stable")
            columns = [column[order] for column in columns]
        detections = Detections(
            truth.images,
            truth.categories,
            columns[IMAGE] - np.int32(first),
            columns[LABEL],
            columns[BOXES],
            columns[SCORE],
            box_format=self.box_format,  # type: ignore[arg-type]
        )
        return truth, detections, columns[PLACE] if self.placed else np.zeros(0, dtype=np.int32)

    def group_objects(self) -> None:
        """Sorts the objects by image, for `block`."""
        grouped = group_images(self.truth.image, len(self.truth.images))
        self._objects, self._object_off = grouped


def _require_room(read: _Read, limits: Limits, truth: Truth) -> None:
    """Raises `DataError` if one bucket of images, or one class, does not fit."""
    names = [f"class {name!r}" for name in truth.categories.names]
    for rows, most, row, of in (
        (read.parts.sizes, limits.block, bounds.MATCHED, ["a block of images"] * MOST_BUCKETS),
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
    read.group_objects()
    done = 0
    for begin, end in grouped(read.parts.sizes, limits.block):
        truth, detections, place = read.block(begin, end)
        part = match(truth, detections, protocol, threads=threads)
        done += len(detections)
        del truth, detections
        if read.placed:
            part = replace(part, position=place[part.position])
        progress("thousand detections matched", done // 1000, read.n_rows // 1000)
        yield int(read.borders[begin]), part


class _Group(NamedTuple):
    """The match rows of some classes, and what has been read of their scores."""

    rows: Matches
    order_digest: NDArray[np.uint64]
    n_tied: int
    ranking: Ranking


class _Matched:
    """Match rows by group of classes, in the temporary file.

    Parameters
    ----------
    spill : the file
    classes : first and last class of each group
    protocol : decides whether rows keep their position in the file
    """

    def __init__(self, spill: Spill, classes: list[tuple[int, int]], protocol: Protocol) -> None:
        self.parts, self.classes = Parts(spill, len(classes)), classes
        self.offs: list[NDArray[np.int64]] = []  # of the blocks: where each class begins
        self.protocol, self.placed = protocol, protocol.ranking.ties != "image"

    def add(self, part: Matches, first: int) -> None:
        """Writes the rows of a block whose first image is `first`."""
        columns = [part.image + np.int32(first), part.rank, part.score, part.tp, part.ignored]
        if self.placed:
            columns.append(part.position)
        ends = np.array([0, *(end for _, end in self.classes)])
        self.parts.append(columns, part.off[ends])
        self.offs.append(part.off)

    def group(self, g: int, whole: Matches) -> _Group:
        """Returns the rows of a group of classes in the order of the whole.

        Columns are read one after another, and what the curves do not need is not kept.
        """
        begin, end = self.classes[g]
        images = whole.select_classes(np.arange(begin, end))

        def column(which: int) -> NDArray[Any]:
            return self.parts.read(which, g, g + 1)

        def rows(*needed: int) -> Matches:
            """The rows with some columns; the others have no memory."""
            kinds = self.parts.kinds()
            columns = {
                name: reordered(column(which), order)
                if which in needed
                else blank((len(order), *kinds[which].row), kinds[which].dtype)
                for name, which in COLUMNS.items()
                if which < len(kinds)
            }
            return vouched(
                Matches,
                protocol=self.protocol,
                categories=images.categories,
                image_ids=whole.image_ids,
                digest=whole.digest,
                beyond=whole.beyond,
                off=off,
                obj_off=images.obj_off,
                obj_image=images.obj_image,
                counted=images.counted,
                unjudged=whole.unjudged,
                notes=(),
                taken=None,
                **{"position": blank(len(order), np.int32), **columns},
            )

        order, off = self._order(column, self._label(begin, end), (whole.n_images, end - begin))
        lean = bounds.scores_suffice(self.protocol)
        listed = rows(*((M_SCORE,) if lean else COLUMNS.values()))
        order_digest, n_tied, ranking = listed.order_digest(), listed.n_tied(), listed.ranking()
        if lean:
            del listed  # the scores
            listed = rows(RANK, TP, IGNORED)
        return _Group(listed, order_digest, n_tied, ranking)

    def _label(self, begin: int, end: int) -> NDArray[np.int32]:
        """The class of each row, block after block, from 0."""
        if end - begin == 1:
            n_rows = sum(int(off[end] - off[begin]) for off in self.offs)
            return blank(n_rows, np.int32)  # zeros without memory
        return np.concatenate([labels(off[begin : end + 1]) for off in self.offs])

    def _order(
        self,
        column: Callable[[int], NDArray[Any]],
        label: NDArray[np.int32],
        sizes: tuple[int, int],
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The rows of all blocks by class and rank, and each class's begin.

        Blocks ascend by image, and tied rows of a block do: usually the scores alone decide.
        """
        ranking, score = self.protocol.ranking, column(M_SCORE)
        if ranking.ties == "image" and ranking.ignored != "leave":
            return ranked(None, label, score, (), sizes)
        image, ignored = column(M_IMAGE), column(IGNORED)
        position = column(POSITION) if self.placed else image
        return rank_rows(self.protocol, image, label, score, ignored, position, sizes)


# --- curves ---------------------------------------------------------------------------------------


def _scored(whole: Matches, matched: _Matched, threads: int | None, progress: Progress) -> Result:
    """Returns the result of all groups of classes."""
    made, order, n_tied, ranking = [], [], 0, Ranking()
    for g, (_, end) in enumerate(matched.classes):
        group = matched.group(g, whole)
        made.append(curves.scores(group.rows, threads=threads))
        order.append(group.order_digest)
        n_tied += group.n_tied
        ranking = ranking.add(group.ranking)
        del group  # before the next one is read
        progress("classes", end, len(whole.categories))
    overview = Overview(
        whole.protocol,
        whole.categories,
        whole.n_images,
        whole.n_images_without_objects(),
        int(whole.beyond.sum()),
        n_tied,
        int(whole.unjudged.sum()),
        data_digest(
            whole.categories,
            whole.image_ids,
            whole.digest,
            np.concatenate(order),
            n_dropped(whole.notes),
        ),
        whole.notes,
        ranking,
    )
    ranges = [np.arange(begin, end) for begin, end in matched.classes]
    return Result(overview, curves.join(made, ranges))
