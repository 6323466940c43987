"""Reads sheets, tables with named columns: CSV, Parquet, and pandas, polars and Arrow tables.

Column names match regardless of case, spaces, ``_ - .`` and a leading ``bbox`` or ``box``.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import folder_files, text_fields
from detmap.core.adapters.coded_names import CodedNames, coded
from detmap.core.adapters.tabular import csv_cells, parquet_footer
from detmap.core.adapters.tabular.csv_cells import Cells
from detmap.core.base import arguments, json_faults, memory, open_files
from detmap.core.base.open_files import shown
from detmap.core.base.sums import add_integers
from detmap.errors import DataError, few

IMAGE = ("imageid", "image", "filename", "imagename", "imagepath", "img", "imgid", "file", "path")
WIDTH = ("width", "imagewidth", "imgwidth", "w")
BOX = ("xmin", "x1", "x", "left", "cx", "xcenter", "bbox", "box", "boxes")
"""Columns of which a sheet of boxes has one."""
HEIGHT = ("height", "imageheight", "imgheight", "h")

_IGNORED = re.compile(r"[\s_.\-]+")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
CELL = 100  # bytes of memory that a cell takes while it is read, as a Python object
IN_MEMORY = 12  # bytes of memory that a byte of Parquet takes, roughly: it is compressed
_LAST = "\x1e"  # a row that is put behind the last one
_PARQUET = b"PAR1"  # begins and ends a Parquet file
PLENTY = 1 << 28  # bytes of memory that any Parquet file may take
MOST_COLUMNS = 1000
PARQUET = (".parquet", ".pq")
LONGEST = 10_000  # characters of a name

Column = Sequence[str] | NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Named columns of n rows.

    Parameters
    ----------
    source : for messages
    columns : by their names as written; text for CSV files, else arrays
    lines : n line numbers of a CSV file, in a folder with the file; () for row numbers from 0
    """

    source: str
    columns: Mapping[str, Column]
    lines: Sequence[int | str] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int) -> str:
        """Returns the place of a row, for messages."""
        if len(self.lines):
            return f"{self.source}: line {self.lines[row]}"
        return f"{self.source}: row {row}"

    def named(self, names: Sequence[str]) -> str | None:
        """Returns the column with the first of these names that exists, or None.

        Raises `DataError` if two columns have it.
        """
        for name in names:
            same = [column for column in self.columns if spelled(column) == name]
            if len(same) > 1:
                raise DataError(
                    self.source, f"columns {' and '.join(same)} are the same", "remove one"
                )
            if same:
                return same[0]
        return None

    def find(self, names: Sequence[str], what: str = "") -> str:
        """Returns the column with one of these names, which is required."""
        column = self.named(names)
        if column is None:
            raise DataError(
                self.source,
                f"no column {what or names[0]}; there are {few(self.columns)}",
                f"name it {', '.join(names[:3])} or the like",
            )
        return column

    def texts(self, column: str) -> list[str]:
        """Returns the cells of a column as stripped text.

        Raises `DataError` for empty cells and fractional numbers.
        """
        values = self.columns[column]
        if not isinstance(values, np.ndarray):
            texts = [cell.strip(text_fields.SPACE) for cell in values]
        else:
            texts = list(
                map(str, arguments.ids(f"{self.source}: column {column}", values).tolist())
            )
        long = next((row for row, cell in enumerate(texts) if len(cell) > LONGEST), None)
        if long is not None:
            where, what = f"{self.place(long)}, column {column}", f"{len(texts[long])} characters"
            raise DataError(where, what, f"a name has at most {LONGEST}")
        if any("\0" in cell for cell in texts):
            row = next(row for row, cell in enumerate(texts) if "\0" in cell)
            what = f"{text_fields.short(texts[row])} holds a NUL"
            raise DataError(f"{self.place(row)}, column {column}", what, "use visible characters")
        if "" in texts:
            row = texts.index("")
            raise DataError(f"{self.place(row)}, column {column}", "is empty", "fill the cell")
        return texts

    def names(self, column: str) -> CodedNames:
        """Returns what `texts` does, with each different cell once."""
        values = self.columns[column]
        if not isinstance(values, Cells):
            return coded(self.texts(column))
        names = [each.strip(text_fields.SPACE) for each in values.coded.names]
        if any(not 0 < len(name) <= LONGEST or "\0" in name for name in names):
            self.texts(column)  # raises the error
        once = coded(names)
        return CodedNames(once.names, once.code[values.coded.code])

    def numbers(
        self, column: str, *, blank: bool = False, flags: bool = True
    ) -> NDArray[np.float64]:
        """Returns (n,) cells as numbers; an empty one is NaN if allowed. Without `flags`, booleans
        are refused.
        """
        values = self.columns[column]
        if isinstance(values, np.ndarray):
            where = f"{self.source}: column {column}"
            array = arguments.numbers(where, values, flags)
            if array.shape != (len(self),):
                raise DataError(
                    f"{self.source}: column {column}", "not one number per row", "see docs"
                )
            return array
        if isinstance(values, Cells):
            with suppress(ValueError):
                return values.numbers()
        try:
            cells = [cell or "nan" for cell in values] if blank else values
            return np.array(text_fields.numbers(cells), dtype=np.float64)
        except ValueError:
            row = next(
                row
                for row, cell in enumerate(values)
                if text_fields.number(cell.strip(text_fields.SPACE)) is None
                and not (blank and not cell)
            )
            raise DataError(
                f"{self.place(row)}, column {column}",
                f"{text_fields.short(values[row])} is not a number",
                "write a plain number",
            ) from None

    def whole(self, column: str) -> NDArray[np.int64] | None:
        """Returns (n,) cells as whole numbers; None if one is not, or has leading zeros: 007 and 7
        are two names.
        """
        values = self.columns[column]
        if isinstance(values, np.ndarray):
            if values.dtype.kind not in "iuf" and not all(isinstance(v, int) for v in values.flat):
                return None
            array = arguments.ids(f"{self.source}: column {column}", values)
            return array if array.dtype.kind == "i" else None
        rows = values.coded if isinstance(values, Cells) else coded(values)
        if not len(rows) or not all(map(_WHOLE.fullmatch, rows.names)):
            return None
        return rows.whole_numbers()

    def blank(self, column: str) -> NDArray[np.bool_]:
        """Returns (n,) bool, empty cells: "", None, NaN and pandas' NA."""
        values = self.columns[column]
        if not isinstance(values, np.ndarray):
            return np.array([not cell for cell in values], dtype=bool)
        if values.dtype.kind in "biufSU":
            return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
        return np.array(list(map(missing, values.tolist())), dtype=bool)

    def take(self, rows: NDArray[np.bool_]) -> Sheet:
        """Selects rows."""
        chosen = np.flatnonzero(rows).tolist()
        columns = {
            name: values[chosen] if isinstance(values, np.ndarray) else [values[i] for i in chosen]
            for name, values in self.columns.items()
        }
        return Sheet(self.source, columns, [self.lines[i] for i in chosen] if self.lines else ())


def missing(cell: Any) -> bool:
    """Checks for an empty cell: None, NaN and pandas' NA."""
    return (
        cell is None
        or type(cell).__name__ == "NAType"
        or (isinstance(cell, float) and math.isnan(cell))
    )


@lru_cache(maxsize=1 << 12)  # each rule asks for each column
def spelled(column: str) -> str:
    """Normalizes a column name."""
    bare = _IGNORED.sub("", column.strip("\ufeff")).lower()
    for prefix in ("bbox", "box"):
        if bare.startswith(prefix) and len(bare) > len(prefix) and bare != "boxes":
            return bare.removeprefix(prefix)
    return bare


# --- files ----------------------------------------------------------------------------------------


def read_csv(path: Path, header: Sequence[str] = ()) -> Sheet:
    """Reads a CSV file, separated by commas, semicolons or tabs.

    Parameters
    ----------
    path : the file
    header : the names of the columns, separated by commas, if the file has no line of names
    """
    content = text_fields.decoded(path)
    head = content.partition("\n")[0]
    delimiter = next((each for each in ",;\t" if each in head and not header), ",")
    columns = csv_cells.split(content, delimiter)
    if columns is not None and len(columns) == len(header):
        lines = range(1, len(columns[0]) + 1)
        return Sheet(shown(path), dict(zip(header, columns, strict=True)), lines)
    if columns is not None and not header:
        names = _named(path, [column.header for column in columns])
        cells = [column.below for column in columns]
        return Sheet(shown(path), dict(zip(names, cells, strict=True)), range(2, len(cells[0]) + 2))
    return _read_csv(path, content, delimiter, header)


def read_folder(folder: Path) -> Sheet:
    """Reads a folder of CSV files, one per image, whose stem names the image.

    Raises `DataError` if the files have different columns.
    """
    files = folder_files.required(folder, ".csv", "give a folder with one file per image")
    sheets = {file.stem: read_csv(file) for file in files}
    names = list(next(iter(sheets.values())).columns)
    for sheet in sheets.values():
        require_same(names, list(sheet.columns), sheet.source)
    columns: dict[str, Column] = {
        name: [cell for sheet in sheets.values() for cell in sheet.columns[name]] for name in names
    }
    columns["image"] = [stem for stem, sheet in sheets.items() for _ in range(len(sheet))]
    lines = [f"{n} of {stem}.csv" for stem, sheet in sheets.items() for n in sheet.lines]
    return Sheet(shown(folder), columns, lines)


def is_of_image(file: Path) -> bool:
    """Checks if a CSV file has columns of a box and a score, but none that names the image."""
    names = _header_names(open_files.head(file, 1 << 12))
    return bool(names & {"confidence", "score", "conf"}) and not names & set(IMAGE)


def csv_looks(path: Path, suffixes: Sequence[str]) -> int:
    """See `detmap.core.adapters.format_rows.Looks`: a CSV file, by suffix or by its header, which
    names an image, a class or score, and a box.
    """
    head = open_files.head(path, 1 << 12)
    if head.startswith(_PARQUET):
        return 0
    if path.suffix.lower() in suffixes:
        return 2
    names = _header_names(head)
    return 2 * (len(names) > 3 and bool(names & set(IMAGE)) and bool(names & set(BOX)))


def _header_names(head: bytes) -> set[str]:
    line = head.decode("utf-8", "replace").partition("\n")[0]
    return {spelled(name.strip().strip('"')) for name in re.split("[,;\t]", line)}


def parquet_looks(path: Path, suffixes: Sequence[str]) -> int:
    """See `detmap.core.adapters.format_rows.Looks`: a Parquet file, by its first bytes."""
    return 2 * (path.suffix.lower() in suffixes or open_files.head(path, 4) == _PARQUET)


def _read_csv(path: Path, content: str, delimiter: str, header: Sequence[str] = ()) -> Sheet:
    """As `read_csv`, of any CSV text."""
    _require_closed_quotes(path, content, delimiter)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
    try:
        rows = list(reader)
        lines: Sequence[int] = range(1, len(rows) + 1)
        if reader.line_num != len(rows):  # a cell has several lines
            reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
            lines = [reader.line_num for _ in reader]
    except csv.Error as error:
        where = f"{shown(path)}: line {reader.line_num}"
        raise DataError(where, f"not CSV: {error}", "write the file as CSV text") from None
    if not all(rows):  # blank lines
        lines = [line for line, row in zip(lines, rows, strict=True) if row]
        rows = [row for row in rows if row]
    names = list(header) or _named(path, rows[0] if rows else [])
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(names):
            where = f"{shown(path)}: line {line}"
            if row is rows[-1] and len(row) < len(names) and not content.endswith(("\n", "\r")):
                what = f"truncated: the file ends in the middle of a row ({len(row)} columns)"
                raise DataError(where, what, json_faults.WRITE_AGAIN)
            raise DataError(
                where,
                f"{len(row)} columns, {'a row' if header else 'the header'} has {len(names)}",
                f"write one cell per column{': ' * bool(header)}{', '.join(header)}",
            )
    rows, lines = rows[not header :], lines[not header :]
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return Sheet(shown(path), dict(zip(names, cells, strict=True)), lines)


def _named(path: Path, header: Sequence[str]) -> list[str]:
    """Returns the column names, which must be present and unique."""
    names = [name.strip(text_fields.SPACE) for name in header]
    if names[1:] and not names[0]:
        names[0] = "Unnamed: 0"  # an index, as pandas writes it; and the name that it then reads
    if len(names) < 2 or len(set(names)) < len(names) or "" in names:
        what = f"the header is {','.join(names)[:80]!r}" if names else "the file is empty"
        fix = "the first line names the columns, each once: image, class, xmin, ..."
        raise DataError(f"{shown(path)}: line 1", what, fix)
    refuse_many(len(names), f"{shown(path)}: line 1")
    return names


def _require_closed_quotes(path: Path, content: str, delimiter: str) -> None:
    """Raises `DataError` if the text ends inside a quoted cell, which `csv` accepts."""
    if content.count('"') % 2 == 0:
        return
    before = last = 0
    final: list[str] = []
    reader = csv.reader(io.StringIO(f"{content}\n{_LAST}", newline=""), delimiter=delimiter)
    with suppress(csv.Error):  # the reader of rows reports it
        for row in reader:
            before, last, final = last, reader.line_num, row
        if final != [_LAST]:
            where = f"{shown(path)}: line {before + 1}"
            what = "truncated: the file ends inside a quoted cell"
            raise DataError(where, what, json_faults.WRITE_AGAIN)


@contextmanager
def parquet_file(path: Path, times: int = IN_MEMORY) -> Iterator[Any]:
    """Opens a Parquet file for reading; `times` is the memory that a byte of it takes.

    Raises `DataError` if it is invalid or pyarrow is missing.
    """
    parquet = pyarrow_parquet(path)
    data = open_files.read_bytes(path, times=times)
    if data[:4] == _PARQUET and (data[-4:] != _PARQUET or len(data) < 12):
        raise DataError(shown(path), "truncated: its end is missing", json_faults.WRITE_AGAIN)
    with explained(path):
        import pyarrow

        buffer = pyarrow.BufferReader(data)
        metadata = parquet.read_metadata(buffer)
        _require(metadata, data, shown(path))
        texts = dictionary_columns(metadata, data)
        yield parquet.ParquetFile(buffer, read_dictionary=texts)


def pyarrow_parquet(path: Path) -> Any:
    """Returns the module that reads Parquet. Raises `DataError` if it is not installed."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            shown(path),
            "Parquet is read by pyarrow, which is not installed",
            "pip install 'detmap-eval[parquet]'",
        ) from None
    return parquet


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Converts pyarrow's errors to `DataError`."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # of pyarrow's own kinds, OSError, overflow
        what = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise DataError(
            shown(path), f"cannot be read as Parquet: {what}", "write the file again, or as CSV"
        ) from None


def read_parquet(path: Path) -> Sheet:
    """Reads a Parquet file, or a folder of shards by name.

    Raises `DataError` if one is invalid, shards have different columns, or pyarrow is missing.
    """
    if path.is_dir():
        return _read_shards(path)
    with parquet_file(path) as file:
        return sheet_of(file.read(columns=flat_columns(file.metadata)[0]), shown(path))


def shards(path: Path) -> list[Path]:
    """Returns the Parquet files of a folder by name, or the file itself."""
    return folder_files.listed(path, *PARQUET) if path.is_dir() else [path]


def _read_shards(folder: Path) -> Sheet:
    sheets = [read_parquet(file) for file in shards(folder)]
    if not sheets:
        raise DataError(shown(folder), "no .parquet files", "give a folder of Parquet shards")
    names = list(sheets[0].columns)
    for sheet in sheets:
        require_same(names, list(sheet.columns), sheet.source)
    columns = {
        name: np.concatenate([np.asarray(sheet.columns[name]) for sheet in sheets])
        for name in names
    }
    return Sheet(shown(folder), columns)


def require_same(known: Sequence[str], names: Sequence[str], where: str) -> None:
    """Raises `DataError` if a file of a folder has other columns than the first."""
    if list(names) != list(known):
        what = f"the columns are {few(names)}, and {few(known)} in other files"
        raise DataError(where, what, "give files with the same columns")


def looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`: a folder of Parquet shards with scores."""
    try:
        files = shards(path)
        with parquet_file(files[0]) as file:
            names = {spelled(name) for name in file.schema.names}
    except (DataError, IndexError):
        return 0
    return 2 * bool(names & {"confidence", "score", "conf"})


def sheet_of(table: Any, where: str) -> Sheet:
    """Returns the sheet of an Arrow table of a file."""
    columns = {name: _unpacked(table[name], name, where) for name in table.schema.names}
    return from_table(columns, where)


def _require(metadata: Any, data: bytes, where: str) -> None:
    """Rejects Parquet files that are far larger in memory than on disk."""
    refuse_many(metadata.num_columns, where)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    values, size = parquet_footer.count_values(data), len(data)  # lists hold many
    cells = max(metadata.num_rows * max(metadata.num_columns, 1), values)
    needed = CELL * cells + add_integers(group.total_byte_size for group in groups)
    if needed > max(PLENTY, open_files.MOST_TIMES * size):
        what = f"{size} bytes hold {cells} cells, {needed / 2**20:.0f} MiB in memory"
        raise DataError(where, what, "check its content; write large tables as CSV")
    memory.require(needed, where, f"{cells} cells")


def flat_columns(metadata: Any) -> tuple[list[str], list[str]]:
    """The paths of the columns, without lists of texts, which no box has; and those of texts."""
    leaves = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    texts = {leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"}
    nested = {leaf.path for leaf in leaves if leaf.max_repetition_level} & texts
    return [leaf.path for leaf in leaves if leaf.path not in nested], sorted(texts - nested)


def dictionary_columns(metadata: Any, data: bytes) -> list[str]:
    """The columns of texts that pyarrow decodes into dictionaries: none from delta encoding.

    Parameters
    ----------
    data : the last bytes of the file, with its footer
    """
    return [] if parquet_footer.has_delta(data) else flat_columns(metadata)[1]


def _unpacked(column: Any, name: str, where: str) -> Any:
    """A column whose equal texts are one object: a file may name a long one a million times.

    Raises
    ------
    DataError : a text that is too long
    """
    if not hasattr(column.type, "index_type"):
        return column
    parts = [np.zeros(0, dtype=object)]
    for chunk in column.chunks:
        known = chunk.dictionary.to_pylist()
        longest = max((len(each) for each in known if each is not None), default=0)
        if longest > LONGEST:
            what, fix = f"a text of {longest} characters", f"a name has at most {LONGEST}"
            raise DataError(f"{where}: column {name}", what, fix)
        texts = np.array([*known, None], dtype=object)
        parts.append(texts[chunk.indices.fill_null(len(known)).to_numpy()])
    return np.concatenate(parts)


def refuse_many(columns: int, where: str) -> None:
    """Raises `DataError` if a file has more columns than a table of boxes has."""
    if columns > MOST_COLUMNS:
        what = f"{columns} columns, the limit is {MOST_COLUMNS}"
        raise DataError(where, what, "remove columns that are not needed")


def is_table(value: Any) -> bool:
    """Checks for named columns: a pandas or polars frame, an Arrow table, a dict, or a list of
    rows, which are dicts of the same columns.
    """
    if isinstance(value, list | tuple):
        return bool(value) and all(
            isinstance(row, Mapping)
            and row.keys() == value[0].keys()
            and not any(
                hasattr(cell, "__len__") and not isinstance(cell, str) for cell in row.values()
            )
            for row in value
        )
    if isinstance(value, np.ndarray):
        return False
    return isinstance(value, Mapping) or (
        hasattr(value, "__getitem__")
        and (
            hasattr(value, "collect_schema")  # of polars, whose LazyFrame warns about `columns`
            or hasattr(value, "column_names")
            or hasattr(value, "columns")
        )
    )


def from_table(table: Any, source: str) -> Sheet:
    """Returns the sheet of a table in memory.

    Raises `DataError` for invalid or repeated names and columns that are not arrays.
    """
    if hasattr(table, "collect"):  # polars.LazyFrame
        table = table.collect()
    try:
        if isinstance(table, list | tuple):
            table = {name: [row[name] for row in table] for name in table[0]}
        if isinstance(table, Mapping):
            names = list(table)
        else:
            names = list(table.column_names if hasattr(table, "column_names") else table.columns)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise DataError(
                source, "column names are missing or repeated", "name every column once"
            )
        sheet = Sheet(source, {name: _array(table[name]) for name in names})
        lengths = {len(column) for column in sheet.columns.values()}
        if len(lengths) > 1:
            raise DataError(source, "columns of different lengths", "give one cell per row")
        return sheet
    except DataError:
        raise
    except Exception as error:  # any error of an object that is converted to columns
        raise DataError(source, f"not a table: {error}", "give a data frame") from None


def _array(column: Any) -> NDArray[Any]:
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    return np.asarray(column)
