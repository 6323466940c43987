"""`Matches`: the mergeable match results of an evaluation.

Above 400 lines: one class, a third of which is its documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.base import arguments
from detmap.core.base.immutable import Immutable
from detmap.core.base.reprs import outlined
from detmap.core.matching import matches_checks
from detmap.core.matching.matches_checks import word_of
from detmap.core.matching.row_order import TOGETHER, rank_rows
from detmap.core.protocol import Protocol
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.tables import Categories, Note
from detmap.core.tables.digests import data_digest, fold_table
from detmap.core.tables.grouping import group, labels, reordered, rows_of
from detmap.core.tables.notes import distinct as distinct
from detmap.core.tables.notes import fixes, merged, n_dropped
from detmap.errors import DataError, MergeError, counted, few

if TYPE_CHECKING:
    from detmap.core.matching.assignments import Assignments
    from detmap.core.matching.matches_overview import Overview, Ranking


@outlined
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Matches(Immutable):
    """Match results of D detections and G objects under one protocol, on a set of images.

    >>> import detmap
    >>> from detmap.core.base.resources import folder
    >>> sample = folder("datasets") / "shapes"
    >>> truth = detmap.read_truth(sample)
    >>> found = detmap.read_detections(sample / "detections" / "contours", truth)
    >>> matches = detmap.match(truth, found, detmap.core.protocol.load("coco-bbox"))
    >>> round(detmap.summarize(matches).metrics["AP50"], 4)
    0.606

    Detections are ordered by class, descending score, then the protocol's rule for ties; objects
    by class, then image. A detection has a bit per threshold: set in `tp`, in `ignored`, or in
    neither (false positive).

    Parameters
    ----------
    protocol, categories : rules and classes
    image_ids : (I,) int64 or str, ascending, with images without objects or detections
    digest : (I, 2) uint64, fingerprints of each image's truth and detections
    beyond : (I,) int32, detections beyond the detection limit
    off, obj_off : (K + 1,) int64, where each class's rows begin
    image, obj_image : (D,), (G,) int32, positions in `image_ids`
    rank : (D,) int32, rank for the detection limit
    position : (D,) int32, row in the detections table; 0 for streams (`detmap.Evaluator`)
    score : (D,) float64
    tp, ignored : (D, A) unsigned words, bit t for threshold t
    counted : (G, A) bool, whether the object counts as ground truth in each subset
    unjudged : (I,) int32, detections within the limit that the protocol excludes: their class is
        not annotated on the image, or they have no area
    notes, taken : remarks of the readers; the assignments, with ``match(..., taken=True)``
    """

    protocol: Protocol
    categories: Categories
    image_ids: NDArray[Any]
    digest: NDArray[np.uint64]
    beyond: NDArray[np.int32]
    off: NDArray[np.int64]
    image: NDArray[np.int32]
    rank: NDArray[np.int32]
    position: NDArray[np.int32]
    score: NDArray[np.float64]
    tp: NDArray[np.unsignedinteger[Any]]
    ignored: NDArray[np.unsignedinteger[Any]]
    obj_off: NDArray[np.int64]
    obj_image: NDArray[np.int32]
    counted: NDArray[np.bool_]
    unjudged: NDArray[np.int32]
    notes: tuple[Note, ...] = ()
    taken: Assignments | None = None

    def __post_init__(self) -> None:
        matches_checks.check(self)

    def __len__(self) -> int:
        return int(self.off[-1])

    def n_objects(self) -> NDArray[np.int64]:
        """(K, A) counted objects."""
        total = np.zeros((len(self.counted) + 1, self.counted.shape[1]), dtype=np.int64)
        np.cumsum(self.counted, axis=0, out=total[1:])
        return total[self.obj_off[1:]] - total[self.obj_off[:-1]]

    @property
    def n_images(self) -> int:
        """The number of images, I."""
        return len(self.image_ids)

    def data_digest(self) -> str:
        """Returns the digest of the matched data; it does not depend on how images were split."""
        order, dropped = self.order_digest(), n_dropped(self.notes)
        return data_digest(self.categories, self.image_ids, self.digest, order, dropped)

    def order_digest(self) -> NDArray[np.uint64]:
        """(K,) digests of each class's row order if more than the images decide ties, else (0,).

        Image digests cover the order within an image, but not the order of images, nor that of an
        unstable sort of all detections.
        """
        if self.protocol.ranking.ties == "image" and self.protocol.ranking.sort == "stable":
            return np.zeros(0, dtype=np.uint64)
        return fold_table(len(self.categories), labels(self.off), self.image, self.rank)

    def n_tied(self) -> int:
        """Counts the detections with tied scores within their class."""
        label = labels(self.off)
        same = (self.score[1:] == self.score[:-1]) & (label[1:] == label[:-1])
        return int((np.append(same, False) | np.append(False, same))[: len(self)].sum())

    def n_images_without_objects(self) -> int:
        """Counts the images without ground-truth objects."""
        with_objects = np.zeros(self.n_images, dtype=bool)
        with_objects[self.obj_image] = True
        return int((~with_objects).sum())

    def overview(self) -> Overview:
        """Returns a summary without the rows."""
        from detmap.core.matching.matches_overview import overview, row_summary

        return overview(self, [row_summary(self)], self.n_images_without_objects())

    def ranking(self) -> Ranking:
        """Returns what notes need to know of the ranked detections."""
        from detmap.core.matching.matches_overview import Ranking

        sizes = np.diff(self.off)
        first = self.ignored[self.off[:-1][sizes > 0], 0]
        return Ranking(
            len(self),
            float(self.score.min(initial=np.inf)),
            float(self.score.max(initial=-np.inf)),
            int((sizes == 0).sum()),
            int((first & first.dtype.type(1)).sum()),
        )

    def without_rows(self) -> Matches:
        """Returns the same images, digests and notes without any row."""
        return replace(
            Matches.empty(self.protocol, self.categories),
            image_ids=self.image_ids,
            digest=self.digest,
            beyond=self.beyond,
            unjudged=self.unjudged,
            notes=self.notes,
            taken=None if self.taken is None else self.taken.take(np.zeros(0, dtype=np.int64)),
        )

    @staticmethod
    def empty(protocol: Protocol, categories: Categories) -> Matches:
        """Returns matches without images."""
        n_areas, word = len(protocol.subsets), word_of(protocol)
        none, offsets = np.zeros(0, dtype=np.int32), np.zeros(len(categories) + 1, dtype=np.int64)
        return Matches(
            protocol,
            categories,
            image_ids=np.zeros(0, dtype=np.int64),
            digest=np.zeros((0, 2), dtype=np.uint64),
            beyond=none,
            off=offsets,
            image=none,
            rank=none,
            position=none,
            score=np.zeros(0),
            tp=np.zeros((0, n_areas), dtype=word),
            ignored=np.zeros((0, n_areas), dtype=word),
            obj_off=offsets,
            obj_image=none,
            counted=np.zeros((0, n_areas), dtype=bool),
            unjudged=none,
        )

    def merge(self, *others: Matches) -> Matches:
        """Merges all parts; the result does not depend on order or grouping.

        Raises
        ------
        MergeError : another protocol or other classes, an image in two parts, or a protocol that
            needs all detections at once
        """
        from detmap.core.matching import assignments

        for other in others:
            if not isinstance(other, Matches):
                what = f"a {type(other).__name__}, not Matches"
                raise MergeError("merge", what, "give the parts as `Matches`")
        parts = [part for part in (self, *others) if len(part.image_ids)]
        for other in others:
            require_same_kind(self, other)
        notes = _merged_notes((self, *others))
        if len(parts) < 2:
            return replace(parts[0] if parts else self, notes=notes)
        if not self.protocol.image_by_image():
            what = f"{self.protocol.name} {TOGETHER}"
            raise MergeError("merge", what, "match all images at once")
        image_ids, moved = join_images(parts)
        pairs = list(zip(parts, moved, strict=True))
        sizes = n_images, n_classes = len(image_ids), len(self.categories)
        label = np.concatenate([labels(part.off) for part in parts])
        image = np.concatenate([new[part.image] for part, new in pairs])
        position = np.concatenate([part.position for part in parts])
        score = np.concatenate([part.score for part in parts])
        ignored = np.concatenate([part.ignored for part in parts])
        order, off = rank_rows(self.protocol, image, label, score, ignored, position, sizes)
        image, position = reordered(image, order), reordered(position, order)
        score, ignored = reordered(score, order), reordered(ignored, order)
        obj_label = np.concatenate([labels(part.obj_off) for part in parts])
        obj_image = np.concatenate([new[part.obj_image] for part, new in pairs])
        obj_order, obj_off = group(obj_image, obj_label, n_images, n_classes)
        digest = np.empty((n_images, 2), dtype=np.uint64)
        beyond, unjudged = np.empty((2, n_images), dtype=np.int32)
        for part, new in pairs:
            digest[new], beyond[new], unjudged[new] = part.digest, part.beyond, part.unjudged
        return Matches(
            self.protocol,
            self.categories,
            image_ids,
            digest,
            beyond,
            off=off,
            image=image,
            rank=reordered(np.concatenate([part.rank for part in parts]), order),
            position=position,
            score=score,
            tp=reordered(np.concatenate([part.tp for part in parts]), order),
            ignored=ignored,
            obj_off=obj_off,
            obj_image=obj_image[obj_order],
            counted=np.concatenate([part.counted for part in parts])[obj_order],
            unjudged=unjudged,
            notes=notes,
            taken=assignments.join([part.taken for part in parts], order),
        )

    def select(self, image_ids: ArrayLike) -> Matches:
        """Returns the part on some images, given by id.

        Raises
        ------
        DataError : an id that is not among `image_ids`
        """
        wanted = np.unique(arguments.ids("select", image_ids))
        known = not len(wanted) or wanted.dtype.kind == self.image_ids.dtype.kind
        keep = np.isin(self.image_ids, wanted) if known else np.zeros(self.n_images, dtype=bool)
        if keep.sum() != len(wanted):
            unknown = (wanted[~np.isin(wanted, self.image_ids)] if known else wanted).tolist()
            raise DataError("select", f"no images {unknown[:5]}", "give ids of evaluated images")
        return self.select_where(keep)

    def select_where(self, keep: NDArray[np.bool_]) -> Matches:
        """Returns the part on the images where (I,) `keep` is true."""
        from detmap.core.matching.part import part_of

        return part_of(self, keep)

    def select_classes(self, classes: ArrayLike) -> Matches:
        """Returns the part on some classes, given by ascending position; it keeps all images.

        Raises
        ------
        DataError : positions that do not ascend or do not exist
        """
        wanted = arguments.positions("select_classes", classes, len(self.categories))
        rows, off = rows_of(self.off, wanted)
        obj_rows, obj_off = rows_of(self.obj_off, wanted)
        return replace(
            self,
            categories=self.categories.take(wanted),
            off=off,
            image=self.image[rows],
            rank=self.rank[rows],
            position=self.position[rows],
            score=self.score[rows],
            tp=self.tp[rows],
            ignored=self.ignored[rows],
            obj_off=obj_off,
            obj_image=self.obj_image[obj_rows],
            counted=self.counted[obj_rows],
            taken=None if self.taken is None else self.taken.take(rows),
        )

    def save(self, path: str | Path | BinaryIO, **remarks: Any) -> None:
        """Writes a ``.npz`` file: arrays, and a JSON header with protocol and notes.

        A path is written atomically; a file object takes bytes (``"wb"``).

        The header also has the `remarks`, plain values that `read` returns and `load` does not.

        Raises
        ------
        DetmapError : the path is a folder or a device, the file object takes text, or the write
            fails
        """
        from detmap.core.matching import matches_file

        matches_file.write(path, self, ARRAYS, remarks)

    @staticmethod
    def load(path: str | Path | BinaryIO) -> Matches:
        """Reads a file of `save`, given by path or as a file object (``"rb"``).

        Raises
        ------
        DataError : not such a file, damaged, or of an unknown format
        """
        return read(path)[0]

    def to_bytes(self) -> bytes:
        """Returns what `save` would write, to send to another process."""
        from detmap.core.matching import matches_file

        return matches_file.to_bytes(self, ARRAYS)

    @staticmethod
    def from_bytes(content: bytes) -> Matches:
        """Reads what `to_bytes` gave, safely; errors are those of `load`."""
        from detmap.core.matching import matches_file

        return matches_file.from_bytes(content, ARRAYS, Matches)


_OTHERS = ("protocol", "categories", "notes", "taken")
ARRAYS = [f.name for f in fields(Matches) if f.name not in _OTHERS]


def _merged_notes(matches: Sequence[Matches]) -> tuple[Note, ...]:
    """Notes of the parts; one without images states nothing about the table it was cut from."""
    filled = any(len(part.image_ids) for part in matches)
    return merged(
        *(
            part.notes
            if len(part.image_ids) or not filled
            else [note for note in part.notes if not note.table]
            for part in matches
        )
    )


def read(path: str | Path | BinaryIO) -> tuple[Matches, dict[str, Any]]:
    """Reads a file of `Matches.save`, with the remarks in its header; errors as `Matches.load`."""
    from detmap.core.matching import matches_file

    return matches_file.read(path, ARRAYS, Matches)


def require_same_kind(a: Matches, b: Matches) -> None:
    """Raises `MergeError` unless two parts have the same protocol and classes."""
    if a.protocol is not b.protocol and protocol_digest(a.protocol) != protocol_digest(b.protocol):
        raise MergeError(
            "merge",
            f"protocol {a.protocol.name} {dict(a.protocol.changes)} and {b.protocol.name} "
            f"{dict(b.protocol.changes)}",
            "match all parts under the same protocol",
        )
    if a.categories is not b.categories and a.categories != b.categories:
        differing = sorted(set(a.categories.names) ^ set(b.categories.names))
        raise MergeError(
            "merge",
            f"the classes differ: {few(differing) or 'same names, other ids'}",
            "use the same list of classes for all parts",
        )
    fixed = [fixes(part.notes, guesses=True) for part in (a, b)]
    if len(a) and len(b) and {*fixed[0]} != {*fixed[1]}:
        told = [" ".join(each) or "nothing" for each in fixed]
        same = {*fixes(a.notes)} == {*fixes(b.notes)}
        raise MergeError(
            "merge",
            f"the detections were fixed by {told[0]} in one part, by {told[1]} in the other",
            "match all images at once with --fix"
            if same
            else "match all parts with the same --fix",
        )


def join_images(parts: list[Matches]) -> tuple[NDArray[Any], list[NDArray[np.int32]]]:
    """Returns the union of the parts' image ids, ascending, and the new position of each image."""
    kinds = {part.image_ids.dtype.kind for part in parts}
    if len(kinds) > 1:
        raise MergeError(
            "merge",
            "image ids are numbers in one part and strings in another",
            "use one kind of ids in all parts",
        )
    every = np.concatenate([part.image_ids for part in parts])
    image_ids, count = np.unique(every, return_counts=True)
    if (count > 1).any():
        twice = image_ids[count > 1].tolist()
        raise MergeError(
            "merge",
            f"{counted(len(twice), 'image')} in more than one part: {twice[:5]}",
            "put every image into one part only",
        )
    places = (np.searchsorted(image_ids, part.image_ids) for part in parts)
    return image_ids, [each.astype(np.int32) for each in places]
