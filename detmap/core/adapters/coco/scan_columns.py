"""The columns that the fast reader of COCO JSON fills, piece by piece."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coco import number_lists
from detmap.core.adapters.coco.number_lists import NumberLists
from detmap.core.base.immutable import blank


class Segmentations(NamedTuple):
    """Segmentations of n records: run lengths, or the text of another value.

    Parameters
    ----------
    size : (n, 2) int64 height and width of run lengths, which fill it
    off, counts : (n + 1,) int64 and (r,) uint16, entries as of `detmap.kernels.runs.Runs`
    others : JSON text of values that are neither run lengths nor lists, by row
    labelled : (n,) int64 num_keypoints, -1 without it; of keypoints only
    rows, lists : (k,) int64 rows whose values are polygons, or keypoints, and their numbers
    """

    size: NDArray[np.int64]
    off: NDArray[np.int64]
    counts: NDArray[np.uint16]
    others: dict[int, bytes]
    labelled: NDArray[np.int64]
    rows: NDArray[np.int64]
    lists: NumberLists


class Columns(NamedTuple):
    """Records in file order.

    Parameters
    ----------
    image, category : (n,) int32 positions of the ids
    number : (n,) int64, the records' own ids, if requested
    boxes : (n, 4) float64, no negative side, no number above 1e80
    value : (n,) float64, score or area
    seen : (n,) uint8, bits of the keys that each record has
    whole : whether the text has no other keys, and floats wherever columns are float64
    masks : the segmentations, if requested
    """

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    number: NDArray[np.int64]
    boxes: NDArray[np.float64]
    value: NDArray[np.float64]
    seen: NDArray[np.uint8]
    whole: bool = False
    masks: Segmentations | None = None


SEPARATORS = 1 << 15  # that are listed at a time: they and their text fit a cache
NUMBERS = 16  # of a record that may differ from the one before
ARRAYS = ("image", "category", "number", "boxes", "value", "seen")


class Piece:
    """Columns of one piece, with ids not yet looked up."""

    def __init__(self, n: int, n_runs: int = 0) -> None:
        from detmap.kernels.scanning.alike_records import Model
        from detmap.kernels.scanning.json_scan import Records
        from detmap.kernels.scanning.mask_scan import ShapeColumns

        rows = n if n_runs else 0
        self.masks = ShapeColumns(
            np.empty((rows, 2), dtype=np.int64),
            np.empty(rows, dtype=np.int64),
            np.empty(n_runs, dtype=np.uint16),
            np.empty((rows, 2), dtype=np.int64),
            np.empty(rows, dtype=np.int64),
        )
        image, category, number = np.empty((3, n), dtype=np.int64)
        boxes, value, seen = np.empty((n, 4)), np.empty(n), np.empty(n, dtype=np.uint8)
        self.records = Records(image, category, number, boxes, value, seen, self.masks)
        self.state = np.empty(3, dtype=np.int64)
        self.model = Model(
            np.empty(0 if rows else SEPARATORS, dtype=np.int32),  # only numbers differ, no shapes
            np.empty((NUMBERS, 3), dtype=np.int64),
            np.empty((NUMBERS, 4), dtype=np.int64),
        )
        self.others: dict[int, bytes] = {}
        self.rows = np.zeros(0, dtype=np.int64)
        self.lists = self._numbers = number_lists.buffer(n_runs, rows)

    def scan(self, text: NDArray[np.uint8], first: int, stop: int, wanted: int) -> int:
        """Reads the records from `first` to `stop`; see `alike_records.scan_records`."""
        from detmap.kernels.scanning.alike_records import scan_records

        return scan_records(text, first, stop, wanted, self.records, self.state, self.model)

    def read_lists(self, text: NDArray[np.uint8], n: int, depth: int) -> bool:
        """Reads the shapes of the first n rows that are lists of numbers (of lists, at depth 2),
        and copies the text of those that are neither lists nor run lengths. Returns whether each
        list is one of numbers.
        """
        span = self.masks.span[:n]
        some = np.flatnonzero(span[:, 1])
        listed = text[span[some, 0]] == ord("[")
        self.rows, others = some[listed], some[~listed].tolist()
        self.others = {row: text[slice(*span[row])].tobytes() for row in others}
        lists = number_lists.read(text, span[self.rows], depth, self._numbers)
        self.lists = lists or self._numbers
        return lists is not None

    def columns(self, n: int, ids: Any, *, numbers: bool, more: bool) -> Columns:
        """Returns the first n rows, which are all of a file; parameters as of `GrowingColumns`."""
        image, category, number, boxes, value, seen, _ = self.records
        return Columns(
            image[:n].astype(ids),
            category[:n].astype(ids),
            number[: n * numbers],
            boxes[:n],
            value[:n],
            seen[:n],
            whole=not more,
        )


class GrowingColumns:
    """The rows of all pieces so far.

    Parameters
    ----------
    ids : type of images and categories
    numbers, masks : whether to keep the records' own ids, and segmentations
    """

    def __init__(self, ids: Any, numbers: bool, masks: bool) -> None:
        self.filled = [name for name in ARRAYS if name != "number" or numbers]
        self.n = self.n_runs = self.n_numbers = 0
        self.masks = masks
        self.others: dict[int, bytes] = {}
        self.rows: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        self.lengths: list[list[NDArray[np.int64]]] = [[np.zeros(1, dtype=np.int64)] * 2]
        kinds: dict[str, tuple[Any, ...]] = {
            "image": (ids,),
            "category": (ids,),
            "number": (np.int64,),
            "boxes": (np.float64, 4),
            "value": (np.float64,),
            "seen": (np.uint8,),
        }
        if masks:
            kinds |= {"size": (np.int64, 2), "end": (np.int64,), "counts": (np.uint16,)}
            kinds |= {"labelled": (np.int64,), "numbers": (np.float64,)}
        self.whole = {name: np.empty((0, *shape), kind) for name, (kind, *shape) in kinds.items()}

    def append(self, piece: Piece, n: int, read: float) -> None:
        """Copies the first n rows of a piece, with which this share of the file is read: 1 if
        these are the last.
        """
        n_runs = int(piece.masks.end[n - 1]) if self.masks and n else 0
        self._require(self.n + n, read, "seen", *(self.whole.keys() - {"counts", "numbers"}))
        rows = slice(self.n, self.n + n)
        for name in self.filled:
            self.whole[name][rows] = getattr(piece.records, name)[:n]
        if self.masks:
            self._require(self.n_runs + n_runs, read, "counts", "counts")
            self.whole["size"][rows] = piece.masks.size[:n]
            self.whole["labelled"][rows] = piece.masks.labelled[:n]
            self.whole["end"][rows] = piece.masks.end[:n] + self.n_runs
            self.whole["counts"][self.n_runs : self.n_runs + n_runs] = piece.masks.counts[:n_runs]
            self.others |= {self.n + row: text for row, text in piece.others.items()}
            self.rows.append(piece.rows + self.n)
            numbers, *offsets = piece.lists
            n_numbers = self.n_numbers + len(numbers)
            self._require(n_numbers, read, "numbers", "numbers")
            self.whole["numbers"][self.n_numbers : n_numbers] = numbers
            self.n_numbers = n_numbers
            self.lengths.append([np.diff(each) for each in offsets])
        self.n += n
        self.n_runs += n_runs

    def _require(self, n: int, read: float, measure: str, *names: str) -> None:
        """Makes room for n rows, and for the rest of the file if its records are about alike."""
        if n <= len(self.whole[measure]):
            return
        room = n if read == 1 else n + int(1.05 * n / read)
        for name in names:
            old = self.whole[name]
            used = {"counts": self.n_runs, "numbers": self.n_numbers}.get(name, self.n)
            self.whole[name] = blank((room, *old.shape[1:]), old.dtype)
            self.whole[name][:used] = old[:used]

    def columns(self, *, more: bool) -> Columns:
        """Returns the rows."""
        masks = None
        if self.masks:
            off = np.concatenate([[0], self.whole["end"][: self.n]])
            counts = self.whole["counts"][: self.n_runs]
            size, labelled = (self.whole[name][: self.n] for name in ("size", "labelled"))
            rows, numbers = np.concatenate(self.rows), self.whole["numbers"][: self.n_numbers]
            offsets = (np.cumsum(np.concatenate(each)) for each in zip(*self.lengths, strict=True))
            lists = NumberLists(numbers, *offsets)
            masks = Segmentations(size, off, counts, self.others, labelled, rows, lists)
        arrays = {name: self.whole[name][: self.n] for name in ARRAYS}
        return Columns(**arrays, whole=not more, masks=masks)
