"""Labels and scores of an image-level classifier from two CSV files.

Each file has a header, the sample id in the first column, and one column per class: 0 or 1 in the
labels, a score in the scores. The files are joined by class name and sample id, in the order of the
labels.
"""

import csv
import io
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import text_fields as text
from detmap.core.base.open_files import shown
from detmap.errors import DataError, few
from detmap.ranking.samples import Classified


def read(truth: Path, scores: Path) -> Classified:
    """Read two CSV files.

    Raises
    ------
    DataError : with file, line and column, the problem, and how to fix it
    """
    return _join(_sheet(truth), _sheet(scores))


@dataclass(frozen=True, slots=True, eq=False)
class _Sheet:
    """One CSV file: ids (N), classes (K), values (N, K) float64, and (N,) the line of each row."""

    path: Path
    ids: list[str]
    classes: list[str]
    values: NDArray[np.float64]
    lines: list[int]

    def place(self, row: int, column: int) -> str:
        return f"{self.path}: line {self.lines[row]}, column {self.classes[column]}"


def _join(truth: _Sheet, scores: _Sheet) -> Classified:
    bad = (truth.values != 0) & (truth.values != 1)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            truth.place(row, column),
            f"{truth.values[row, column]:g} is neither 0 nor 1",
            "the ground truth has 1 where the sample shows the class, else 0",
        )
    bad = ~(scores.values < np.inf)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise DataError(
            scores.place(row, column),
            f"{scores.values[row, column]} is not a score",
            "write a number, or -inf for no prediction",
        )
    columns = _positions("class", truth, truth.classes, scores, scores.classes)
    rows = _positions("sample", truth, truth.ids, scores, scores.ids)
    aligned = scores.values if columns is None else scores.values[:, columns]
    aligned = aligned if rows is None else aligned[rows]
    return Classified(
        tuple(truth.ids),
        tuple(truth.classes),
        truth.values == 1,
        np.ascontiguousarray(aligned),
        source=shown(truth.path),
    )


def _positions(
    kind: str, truth: _Sheet, wanted: list[str], scores: _Sheet, given: list[str]
) -> list[int] | None:
    """Positions in the scores of the names in the labels; None if the order is equal. Both must
    have the same names.
    """
    if wanted == given:
        return None
    place = {name: i for i, name in enumerate(given)}
    missing = [name for name in wanted if name not in place]
    known = set(wanted)
    extra = [name for name in given if name not in known]
    if missing or extra:
        sides = [f"lacks {_some(kind, missing)} of {truth.path}"] if missing else []
        sides += [f"has {_some(kind, extra)} that {truth.path} lacks"] if extra else []
        raise DataError(
            str(scores.path),
            " and ".join(sides),
            f"both files name the same, in any order: {kind} by {kind}",
        )
    return [place[name] for name in wanted]


def _some(kind: str, names: Sequence[str]) -> str:
    plural = {"class": "classes", "sample": "samples"}[kind]
    shown = few(names)
    return f"{kind} {shown}" if len(names) == 1 else f"{len(names)} {plural} ({shown})"


# --- one file -------------------------------------------------------------------------------------


def _sheet(path: Path) -> _Sheet:
    content = text.decoded(path)
    if content.lstrip().startswith(("{", "[")):
        raise DataError(str(path), "is JSON", "give CSV files, with one column per class")
    try:
        return _parse(path, io.StringIO(content, newline=""))
    except csv.Error as error:
        raise DataError(str(path), f"not CSV: {error}", "write the file as CSV text") from None


def _parse(path: Path, file: Iterable[str]) -> _Sheet:
    reader = csv.reader(file, skipinitialspace=True)
    classes = _header(path, next((row for row in reader if row), []))
    width = len(classes) + 1
    ids, lines, values = [], [], array("d")
    for row in reader:
        if len(row) != width:
            if not row:
                continue
            raise DataError(
                f"{path}: line {reader.line_num}",
                f"{len(row)} columns, the header has {width}",
                "one column for the sample id and one for each class",
            )
        try:
            values.extend(text.numbers(row[1:]))
        except ValueError:
            raise _not_a_number(f"{path}: line {reader.line_num}", classes, row) from None
        ids.append(row[0])
        lines.append(reader.line_num)
    if not ids:
        raise DataError(str(path), "holds no sample", "the header is followed by one line a sample")
    _unique(
        ids,
        [f"{path}: line {line}" for line in lines] if len(set(ids)) < len(ids) else [],
        "sample",
    )
    return _Sheet(
        path, ids, classes, np.frombuffer(values, dtype=np.float64).reshape(len(ids), -1), lines
    )


def _header(path: Path, row: list[str]) -> list[str]:
    classes = [name.strip(text.SPACE) for name in row[1:]]
    if not classes:
        raise DataError(
            f"{path}: line 1",
            f"the header {','.join(row)!r} names no class" if row else "the file is empty",
            "the header is the name of the id column, then one class a column, between commas",
        )
    for i, name in enumerate(classes):
        if not name:
            raise DataError(
                f"{path}: line 1, column {i + 2}", "a class without a name", "name every column"
            )
    _unique(classes, [f"{path}: line 1, column {i + 2}" for i in range(len(classes))], "class")
    return classes


def _unique(names: list[str], places: list[str], kind: str) -> None:
    seen: dict[str, int] = {}
    for i, name in enumerate(names if places else []):
        if name in seen:
            raise DataError(
                places[i],
                f"{kind} {name} for the second time",
                f"the first is at {places[seen[name]]}",
            )
        seen[name] = i


def _not_a_number(where: str, classes: list[str], row: list[str]) -> DataError:
    for name, cell in zip(classes, row[1:], strict=True):
        if text.number(cell.strip(text.SPACE)) is None:
            return DataError(
                f"{where}, column {name}",
                f"{text.short(cell)} is not a number",
                "write one plain number per sample and class; each class has its own column",
            )
    raise AssertionError("called for a row of numbers")
