"""Lines and files of detections, one file per image, as several benchmarks have them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import text_fields
from detmap.core.adapters.text_per_image.label_files import Lines
from detmap.core.tables import Note
from detmap.core.tables.notes import listed_names
from detmap.errors import DataError


def require_columns(lines: Lines, allowed: Sequence[int], form: str) -> None:
    """Raises `DataError` for the first line with another number of columns, or with another one
    than the lines before it in its file.
    """
    first = np.searchsorted(lines.file, lines.file)
    bad = np.flatnonzero(~np.isin(lines.count, allowed) | (lines.count != lines.count[first]))
    if len(bad):
        row = int(bad[0])
        what = f"{lines.count[row]} columns: {text_fields.short(lines.text(row))}"
        raise DataError(lines.place(row), what, f"a line is: {form}")


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
