"""Reads detections in pieces, for files that do not fit into memory.

The pieces have the rows of `detmap.core.adapters.read_detections`, in the same order. If pieces of
a file would be read differently (scores in some records only, fractions and pixels), it is an
error.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from detmap.core.adapters import detection_reader, explained, readable
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.row_estimates import n_records
from detmap.core.base.open_files import shown
from detmap.core.base.sums import add_integers
from detmap.core.tables import Detections, Note, Truth
from detmap.core.tables.notes import DROPPED, merged
from detmap.errors import DataError

ADDED = (
    *DROPPED,
    "class-zero",
    "region-ignored",
    "box-outside",
    "box-reversed",
    "score-vast",
    "shape-and-box",
)
"""Codes of notes that count rows; all others describe how the file is read."""

LOW = 0.75  # of the estimate: so many detections there are at least


class Piece(NamedTuple):
    """Some rows of a file, and how many of its bytes have been read so far."""

    detections: Detections
    read: int


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder that can be read in pieces.

    Parameters
    ----------
    truth : the ground truth, whose classes may have got names
    path, size : the path, and its bytes
    n_rows : number of detections; a low estimate for JSON
    memory : bytes that reading takes, estimated
    pieces : starts to read
    """

    truth: Truth
    path: Path
    size: int
    n_rows: int
    memory: int
    pieces: Callable[[], Iterator[Piece]]


@dataclass(slots=True)
class Summary:
    """Sums the notes of pieces, and refuses pieces that are read differently."""

    source: str
    counts: tuple[Note, ...] = ()
    ways: frozenset[tuple[str, str]] | None = None
    n_rows: int = 0

    def add(self, piece: Detections) -> None:
        """Adds the notes of the next piece. Raises `DataError` if it is read differently."""
        if not len(piece) and not piece.notes:
            return
        ways = frozenset((n.code, n.template) for n in piece.notes if n.code not in ADDED)
        if self.ways is not None and ways != self.ways:
            texts = sorted(text for _, text in ways ^ self.ways)
            raise DataError(
                f"{piece.source}: from row {self.n_rows} on",
                f"the rows have another form than those before: {'; '.join(texts)}",
                "write all rows in one form, and give the box format; or evaluate without --memory",
            )
        self.ways = ways
        self.n_rows += len(piece)
        self.counts = merged(self.counts, piece.notes)

    def notes(self) -> tuple[Note, ...]:
        """Returns the notes of all pieces."""
        return tuple(replace(note, source=self.source) for note in self.counts)


def source(path: str | Path, truth: Truth, **options: Any) -> Source:
    """Opens detections to be read in pieces; parameters as of
    `detmap.core.adapters.read_detections`.

    Raises
    ------
    DataError : a format that is read as a whole; invalid options
    """
    wanted = options.get("format") or options.get("preferred_format") or None
    with detection_reader(path, truth, **options) as reader:
        place = reader.path
        if reader.row.name == "coco" and place.suffix.lower() != ".gz":
            from detmap.core.adapters.coco import result_pieces

            size = place.stat().st_size
            start = Source(
                reader.truth,
                place,
                size,
                int(LOW * n_records(place)),
                result_pieces.memory(size),
                lambda: result_pieces.read(place, reader.truth, reader.policy),
            )
            return _guarded(start, wanted)
        if reader.row.name == "parquet":
            return _guarded(_parquet(place, reader.truth, reader.policy, reader.options), wanted)
    raise DataError(
        shown(place),
        f"format {reader.row.name} is read as a whole, not in bounded memory",
        "give a COCO results list, JSON lines or Parquet, unpacked; `detmap convert` writes them",
    )


def _parquet(path: Path, truth: Truth, policy: Policy, options: Mapping[str, Any]) -> Source:
    from detmap.core.adapters.tabular import csv_parquet, parquet_pieces

    files = csv_parquet.shards(path)
    sizes = [file.stat().st_size for file in files]
    n_rows = add_integers(map(parquet_pieces.n_rows, files))
    return Source(
        truth,
        path,
        add_integers(sizes),
        n_rows,
        parquet_pieces.memory(n_rows, truth),
        lambda: parquet_pieces.read(files, truth, policy, **options),
    )


def _guarded(source: Source, wanted: str | None) -> Source:
    """A source with the errors of `read_detections`; the user or the protocol wants a format."""

    def pieces() -> Iterator[Piece]:
        with readable(source.path), explained(source.path, "detections", wanted):
            yield from source.pieces()

    return replace(source, pieces=pieces)


def moved(error: DataError, path: str, by: int) -> DataError:
    """Returns the error of a piece with the number of its record or row in the whole file."""
    inside = error.where.removeprefix(path)
    if inside == error.where:
        return error
    found = re.match(r"(\[|: row )(\d+)", inside)
    if found is None:
        return error
    where = f"{path}{found[1]}{int(found[2]) + by}{inside[found.end() :]}"
    return DataError(where, error.what, error.fix)
