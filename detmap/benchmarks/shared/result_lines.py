"""Lines and files of detections, one file per image, as several benchmarks have them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coded_names import CodedNames
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.text_per_image.label_files import Lines
from detmap.core.base.flat_rows import first_true
from detmap.core.tables import Note, Truth
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError


def require_columns(lines: Lines, allowed: Sequence[int], form: str) -> None:
    """Raises `DataError` for the first line with another number of columns, or with another one
    than the lines before it in its file.
    """
    first = np.searchsorted(lines.file, lines.file)
    bad = ~np.isin(lines.count, allowed) | (lines.count != lines.count[first])
    lines.refuse(bad, f"a line is: {form}", "columns")


def whole_numbers(
    lines: Lines, values: NDArray[np.float64], name: str, fix: str = "write a whole number"
) -> NDArray[np.int64]:
    """Returns a column as whole numbers. Raises `DataError` for others, and for too large ones."""
    bad = (values != np.round(values)) | (np.abs(values) >= join.EXACT)
    if (row := first_true(bad)) is not None:
        where = f"{lines.place(row)}, {name}"
        raise DataError(where, f"{values[row]:g} is not a whole number", fix)
    return values.astype(np.int64)


def single_class(
    truth: Truth, name: str, n: int, source: str, policy: Policy
) -> tuple[CodedNames, NDArray[np.int32]]:
    """Returns name and class of n rows without one: the only class of the ground truth; of several
    the one of this name, -1 without any.
    """
    names = CodedNames([name], np.zeros(n, dtype=np.int32))
    if len(truth.categories) > 1:
        return names, join.classes_by_id(truth, names, source, policy)
    return names, np.full(n, len(truth.categories) - 1, dtype=np.int32)


def counted(source: str, *rows: tuple[str, str, int]) -> tuple[Note, ...]:
    """Returns a note of code, text and count for each row that counts something."""
    return tuple(Note(code, text, count, source) for code, text, count in rows if count)


def result_file_notes(
    known: Sequence[str],
    found: NDArray[Any],
    files: Sequence[str],
    lines: Lines,
    source: str,
    *,
    noun: str = "images",
    reference: str = "",
) -> tuple[Note, ...]:
    """Returns notes on images without a result file, and on empty result files of no image.

    Lines of unknown images are the policy's: an error, dropped or added.

    Parameters
    ----------
    known : names of the images
    found : (n,) the position of each file's image, -1 if unknown
    files : n names of the files
    lines : of the files
    noun : what has a file: images, classes
    reference : what the reference does about missing files
    """
    missing = np.setdiff1d(np.arange(len(known)), found).tolist()
    empty = (found < 0) & (np.bincount(lines.file, minlength=len(files)) == 0)
    others = [files[i] for i in np.flatnonzero(empty).tolist()]
    lacking = f"of the {{0}} {noun} have no result file{reference}: they have no detections"
    beyond = f"result files without detections are not of {noun} of the ground truth ({{names}})"
    absent, strange = listed_names(known[i] for i in missing), listed_names(others)
    total, lacking = (len(known),), f"{lacking} ({{names}})"
    notes = (
        Note("file-missing", lacking, len(missing), source, absent, total),
        Note("file-unknown", beyond, len(others), source, strange),
    )
    return tuple(note for note in notes if note.count)
