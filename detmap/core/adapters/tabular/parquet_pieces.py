"""Reads Parquet detections in pieces: a file, or a folder of shards by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.pieces import Piece, moved
from detmap.core.adapters.tabular import column_tables, csv_parquet, parquet_footer
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.tables import Truth
from detmap.core.tables.join_keys import Earlier
from detmap.errors import DataError

ROWS, MOST_ROWS = 1 << 15, 1 << 18  # that are read at a time, with few and with many images
FIXED, PER_ROW = (96 << 20, 1000)  # bytes that reading takes, and those per row of a piece
BUFFER = 1 << 20  # bytes of a column that are read at a time


def n_rows(file: Path) -> int:
    """Returns the number of rows of a file. Raises `DataError` if it is not Parquet."""
    with _opened(file) as parquet:
        return int(parquet.metadata.num_rows)


def memory(n_rows: int, truth: Truth) -> int:
    """Returns the bytes of memory that reading a file of `n_rows` rows takes."""
    return FIXED + PER_ROW * min(n_rows, _rows(truth))


def _rows(truth: Truth) -> int:
    """The rows of a piece: the work per piece grows with the number of images."""
    return max(ROWS, min(len(truth.images), MOST_ROWS))


def read(
    files: Sequence[Path], truth: Truth, policy: Policy, box_format: str | None = None
) -> Iterator[Piece]:
    """Yields the rows of all files, in order.

    Raises
    ------
    DataError : invalid rows, with the file and the row; shards with different columns
    """
    import pyarrow  # `n_rows` has found it

    policy = policy._replace(earlier=Earlier())
    done: int = 0
    known: list[str] = []
    for file in files:
        size, row = file.stat().st_size, 0
        with _opened(file) as parquet:
            names = csv_parquet.flat_columns(parquet.metadata)[0]
            known = known or names
            csv_parquet.require_same(known, names, shown(file))
            n = max(parquet.metadata.num_rows, 1)
            for batch in parquet.iter_batches(_rows(truth), columns=names):
                try:
                    table = pyarrow.Table.from_batches([batch])
                    sheet = csv_parquet.sheet_of(table, shown(file))
                    made = column_tables.read_detections(sheet, truth, box_format, policy)
                except DataError as error:
                    raise moved(error, shown(file), row) from None
                row += len(batch)
                yield Piece(made, done + size * row // n)
        done += size
    pyarrow.default_memory_pool().release_unused()


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Opens a Parquet file that is read column by column, in small buffers."""
    parquet = csv_parquet.pyarrow_parquet(file)
    with csv_parquet.explained(file), open(file, "rb", opener=open_files.regular) as stream:
        opened = parquet.ParquetFile(stream, buffer_size=BUFFER)
        csv_parquet.refuse_many(opened.metadata.num_columns, shown(file))
        texts = csv_parquet.dictionary_columns(opened.metadata, parquet_footer.last_bytes(stream))
        if texts:
            stream.seek(0)
            opened = parquet.ParquetFile(stream, buffer_size=BUFFER, read_dictionary=texts)
        yield opened
