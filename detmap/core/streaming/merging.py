"""Merging of partial evaluations."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from detmap.core.matching.matches import Matches, distinct, join_images, read, require_same_kind
from detmap.core.streaming.unmatched import Unmatched
from detmap.core.tables import Note
from detmap.errors import DataError, MergeError


def merge_files(paths: Sequence[str | Path]) -> Matches:
    """Merges the files of `Matches.save`; a note counts the ground-truth images in none of them.

    Raises
    ------
    DataError : a file cannot be read
    MergeError : parts of different evaluations; the message names the files
    """
    opened = [read(path) for path in paths]
    parts = [part for part, _ in opened]
    if all(remarks.get("numbered") for _, remarks in opened):  # of evaluators without image ids
        ends = accumulate((part.n_images for part in parts), initial=0)
        moved = zip(parts, ends, strict=False)
        parts = [replace(part, image_ids=part.image_ids + by) for part, by in moved]
    if not parts:
        raise DataError("merge", "no parts", "give the files that `detmap match` wrote")
    try:
        whole = parts[0].merge(*parts[1:])
    except MergeError as error:
        first, second = _conflict(parts)
        raise MergeError(f"{paths[first]} and {paths[second]}", error.what, error.fix) from None
    of_truth = {remarks.get("images_of_truth", 0) for _, remarks in opened}
    missing = of_truth.pop() - whole.n_images
    if of_truth or missing <= 0:
        return whole
    text = "ground-truth images are in none of the parts; the result does not cover them"
    return replace(whole, notes=distinct(whole.notes, [Note("images-left-out", text, missing)]))


def _conflict(parts: Sequence[Matches]) -> tuple[int, int]:
    """The first two parts that do not merge."""
    for second in range(len(parts)):
        for first in range(second):
            try:
                require_same_kind(parts[first], parts[second])
                join_images([part for part in (parts[first], parts[second]) if part.n_images])
            except MergeError:
                return first, second
    return 0, len(parts) - 1


def renumbered(part: Matches | Unmatched, by: int) -> Matches | Unmatched:
    """Adds a number to all image ids."""
    if isinstance(part, Unmatched):
        return part.renumbered(by)
    return replace(part, image_ids=part.image_ids + by)
