"""Parts of one evaluation, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from detmap.adapters.in_memory.batch_tables import source_of
from detmap.errors import DataError, MergeError
from detmap.matching.matches import Matches, distinct, join_images, read, require_same_kind
from detmap.tables import Note


def merge_files(paths: Sequence[str | Path]) -> Matches:
    """The parts that `Matches.save` wrote to these files, merged; a note counts the images of the
    truth that none has.

    Raises
    ------
    DataError : a file that cannot be read
    MergeError : parts that do not belong together; the message names the files
    """
    opened = [read(path) for path in paths]
    parts = [part for part, _ in opened]
    if not parts:
        raise DataError("merge", "no parts", "give the files that `detmap match` wrote")
    try:
        whole = parts[0].merge(*parts[1:])
    except MergeError as error:
        first, second = _quarrel(parts)
        raise MergeError(f"{paths[first]} and {paths[second]}", error.what, error.fix) from None
    of_truth = {remarks.get("images_of_truth", 0) for _, remarks in opened}
    missing = of_truth.pop() - whole.n_images
    if of_truth or missing <= 0:
        return whole
    text = "images of the truth are in none of the parts and are left out"
    return replace(whole, notes=distinct(whole.notes, [Note("images-left-out", text, missing)]))


def _quarrel(parts: Sequence[Matches]) -> tuple[int, int]:
    """The first two parts that do not merge."""
    for second in range(len(parts)):
        for first in range(second):
            try:
                require_same_kind(parts[first], parts[second])
                join_images([part for part in (parts[first], parts[second]) if part.n_images])
            except MergeError:
                return first, second
    return 0, len(parts) - 1


def numbered_on(part: Matches, by: int) -> Matches:
    """Match rows whose images are numbered from a later number on, in the notes on batches too."""
    notes = tuple(
        replace(note, source=source_of(int(note.source.rpartition(" ")[2]) + by))
        if note.source.startswith(source_of(""))
        else note
        for note in part.notes
    )
    return replace(part, image_ids=part.image_ids + by, notes=notes)
