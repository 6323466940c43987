"""Finds images by path, file name, file stem, number of a stem, or id as a string.

An ambiguous name is an error that lists both images. Case and Unicode normalization count.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.coded_names import coded
from detmap.core.adapters.joining import image_names, unknown_policy
from detmap.core.tables import Note, Truth
from detmap.core.tables.grouping import positions
from detmap.core.tables.join_keys import Column, Evidence, Key, choose
from detmap.errors import DataError

_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_DIGITS = re.compile(r"[0-9]+")
_WHOLE = re.compile(r"[0-9]+(?:_[0-9]+)*")


class Lookup:
    """The images of a ground truth, by each of their names."""

    def __init__(self, truth: Truth) -> None:
        images = truth.images
        self.truth = truth
        self.ids: list[Any] = images.ids.tolist()
        self.files = [_clean(name) for name in images.files or images.stems]
        self.by_id = {each: i for i, each in enumerate(self.ids)}
        self.by_last: dict[str, list[int]] = {}
        self.by_stem: dict[str, list[int]] = {}
        for i, (file, stem) in enumerate(zip(self.files, images.stems, strict=True)):
            if file:
                self.by_last.setdefault(_last(file), []).append(i)
                self.by_stem.setdefault(stem, []).append(i)

    def find_text(self, text: str) -> tuple[int, str]:
        """Returns the image with a text as its id, -1 if there is none, and how it was found."""
        if text in self.by_id:
            return self.by_id[text], "id"
        if (bare := _without_suffix(text)) in self.by_id:
            return self.by_id[bare], "path"
        number = int(text) if _NUMBER.fullmatch(text) else None
        return (self.by_id[number], "id as a string") if number in self.by_id else (-1, "")

    def exact(self, name: str) -> list[int]:
        """Returns the images with exactly this file name, folders included."""
        path = _clean(name)
        return [i for i in self.by_last.get(_last(path), []) if self.files[i] == path]

    def named(self, name: str) -> tuple[list[int], str]:
        """Returns the images that a path, name or stem may refer to."""
        path = _clean(name)
        last = _last(path)
        whole = self.by_last.get(last, [])
        if whole:
            if "/" in path:
                near = [i for i in whole if _is_end(self.files[i], path)]
                exact = [i for i in near if self.files[i] == path]
                if exact or len(near) == 1:
                    return exact or near, "path"
            # A name without a suffix may be the stem of another as well.
            both = [*whole, *(i for i in self.by_stem.get(last, []) if i not in whole)]
            return both, "path" if "/" in path else "file name"
        for stem in dict.fromkeys((last, image_names.stem(last))):
            if stem in self.by_stem:
                return self.by_stem[stem], "file stem"
        return [], ""

    def ambiguous(self, where: str, name: Any, places: Sequence[int]) -> DataError:
        """Returns the error for an ambiguous name."""
        two = [
            f"{self.ids[i]!r}" + (f" ({self.files[i]})" if self.files[i] else "")
            for i in places[:2]
        ]
        return DataError(
            where,
            f"{unknown_policy.short(name)} may be image {two[0]} or {two[1]} of "
            f"{self.truth.source}",
            "name images by the ids or paths in the ground truth",
        )


def exact_positions(truth: Truth, names: Sequence[str]) -> dict[str, int]:
    """Returns the positions of images that are named by their path, where stems are not enough:
    two images share one, or the ids are paths.
    """
    stems, ids = truth.images.stems, truth.images.ids
    paths = ids.dtype.kind != "i" and any("/" in each for each in ids.tolist())
    if len(set(stems)) == len(stems) and not paths:
        return {}
    lookup = Lookup(truth)
    found = {name: lookup.exact(name) if truth.images.files else [] for name in names}
    for name in names:
        bare = _without_suffix(name)
        if found[name] or not bare:
            continue
        same = lookup.by_stem.get(image_names.stem(name), [])
        ends = [i for i in same if f"/{lookup.ids[i]}".endswith(f"/{bare}")]
        found[name] = [lookup.by_id[bare]] if bare in lookup.by_id else ends
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def positions_by_name(
    lookup: Lookup,
    names: Sequence[str],
    place: Callable[[int], str],
    key: Key = "name",
    evidence: Evidence | None = None,
) -> tuple[NDArray[np.int32], Counter[str]]:
    """Returns positions of images by name or by id (-1 if unknown), and row counts per way of
    finding them.

    Parameters
    ----------
    lookup : of the ground truth
    place : place of row i, for messages
    key : what the field or the format prefers; one key is that of all names
    evidence : of the pieces that were read before

    Raises `DataError` for ambiguous names.
    """
    truth, rows = lookup.truth, coded(names)
    ids = [lookup.find_text(name) for name in rows.names]
    named = [
        ([own], how) if how in ("id", "path") else lookup.named(name)
        for name, (own, how) in zip(rows.names, ids, strict=True)
    ]
    lost = [image_names.stem(n) for n, (at, _) in zip(rows.names, named, strict=True) if not at]
    if lost:
        stems, originals = truth.images.stems, truth.images.originals
        found = image_names.matches_before_upload(stems, set(lost), originals)
        named = [
            (at or [found[stem]] if (stem := image_names.stem(name)) in found else at, how)
            for name, (at, how) in zip(rows.names, named, strict=True)
        ]
    several = len(truth.images)
    by_id = np.array([own for own, _ in ids], dtype=np.int32)
    by_name = np.array(
        [several if len(at) > 1 else at[0] if at else -1 for at, _ in named], dtype=np.int32
    )
    apart = (by_id >= 0) & (by_name >= 0) & (by_id != by_name)
    if apart.any():
        i = int(np.argmax(apart))
        places = [*named[i][0], int(by_id[i])]
        row = int(np.argmax(rows.code == i))
        raise lookup.ambiguous(place(row), rows.names[i], list(dict.fromkeys(places)))
    where = place(0) if len(rows) else truth.source
    column = Column("image", where, lambda i: _described(lookup, i), key)
    chosen = choose(column, rows.names, by_id, by_name, evidence).key
    image, ways = (by_id, ids) if chosen == "id" else (by_name, named)
    if (image == several).any():
        i = int(np.argmax(image == several))
        row = int(np.argmax(rows.code == i))
        raise lookup.ambiguous(place(row), rows.names[i], named[i][0])
    n_rows = np.bincount(rows.code, minlength=len(ways)).tolist()
    counts = Counter[str]()
    for (_, how), n in zip(ways, n_rows, strict=True):
        counts[how] += n
    return image[rows.code], counts


def _described(lookup: Lookup, place: int) -> str:
    if place >= len(lookup.ids):
        return "two images"
    file = lookup.files[place]
    return f"image {lookup.ids[place]!r}" + (f" ({file})" if file else "")


def positions_by_number(truth: Truth) -> dict[int, list[int]]:
    """Returns the positions of images whose stems are numbers, ignoring leading zeros."""
    places: dict[int, list[int]] = {}
    for i, stem in enumerate(truth.images.stems):
        if _DIGITS.fullmatch(stem) and len(stem) <= 18:
            places.setdefault(int(stem), []).append(i)
    return places


def positions_by_stem_id(truth: Truth, given: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """Returns positions of images whose string ids read as these numbers; None unless all are
    different numbers.
    """
    numbers = stems_as_numbers(truth)
    if numbers is None:
        return None
    order = np.argsort(numbers)
    place = positions(numbers[order], given)
    return np.where(place < 0, -1, order[place]).astype(np.int32)


def stems_as_numbers(truth: Truth) -> NDArray[np.int64] | None:
    """Returns (I,) image ids as numbers: ``000012`` is 12, ``2008_000003`` is 2008000003; None
    unless all are different numbers.
    """
    stems = truth.images.ids.tolist()
    if not all(_WHOLE.fullmatch(stem) for stem in stems):
        return None
    try:
        numbers = np.array([int(stem) for stem in stems], dtype=np.int64)
    except (ValueError, OverflowError):  # thousands of digits, more than 64 bits
        return None
    return numbers if len(np.unique(numbers)) == len(numbers) else None


def doubtful_names(
    truth: Truth, names: Sequence[Any] | NDArray[Any], image: NDArray[np.int32], source: str
) -> tuple[Note, ...]:
    """Returns notes on detections whose image has another name, or whose name another image."""
    return (*_renamed(truth, names, image, source), *two_meanings(truth, names, image, source))


def _renamed(
    truth: Truth, names: Sequence[Any] | NDArray[Any], image: NDArray[np.int32], source: str
) -> tuple[Note, ...]:
    """Returns a note on detections whose image was found by its name before an upload."""
    first = names[0] if len(names) else None
    if not isinstance(first, str):
        return ()
    rows = coded(names)
    places = np.full(len(rows.names), -1, dtype=np.int32)
    places[rows.code] = image
    ids, stems = truth.images.ids, truth.images.stems
    originals = truth.images.originals or tuple(map(image_names.before_upload, stems))
    known = zip(rows.names, places.tolist(), strict=True)
    ways = [
        i >= 0
        and name not in (own := (stems[i], str(ids[i])))
        and (stem := image_names.stem(name)) not in own
        and not set(image_names.spellings(image_names.before_upload(stem))).isdisjoint(
            image_names.spellings(originals[i])
        )
        for name, i in known
    ]
    count = int(np.array(ways)[rows.code].sum())
    text = (
        "detections name their image as it was before Label Studio or Roboflow renamed it, or "
        "after: joined without what the tool added"
    )
    return (Note("image-renamed", text, count, source),) if count else ()


STEM_IS_ID, ID_IS_STEM = "image-stem-is-id", "image-id-is-stem"
"""Codes of notes: detections were joined by file stem, or by id, and the other is another image."""


def two_meanings(
    truth: Truth, names: Sequence[Any] | NDArray[Any], image: NDArray[np.int32], source: str
) -> tuple[Note, ...]:
    """Returns a note on detections whose image was found by its file stem, which is the id of
    another image, or the other way round.
    """
    if not (len(names) and isinstance(names[0], str)):
        return ()
    by_stem = {stem: i for i, stem in enumerate(truth.images.stems)}
    by_id = {str(i): place for place, i in enumerate(truth.images.ids.tolist())}
    if all(by_stem[name] == by_id[name] for name in by_stem.keys() & by_id.keys()):
        return ()
    rows = coded(names)
    places = np.full(len(rows.names), -1, dtype=np.int32)
    places[rows.code] = image
    notes = []
    for code, way, other, used, unused in (
        (STEM_IS_ID, "file stem", "id", by_stem, by_id),
        (ID_IS_STEM, "id", "file stem", by_id, by_stem),
    ):
        own = zip(rows.names, places.tolist(), strict=True)
        both = [i >= 0 and used.get(name) == i != unused.get(name, i) for name, i in own]
        if any(both):
            count = int(np.array(both)[rows.code].sum())
            text = f"detections name their image by the {way} of one image and the {other} of "
            text += f"another: joined by {way}; `detmap doctor` tries the other"
            notes.append(Note(code, text, count, source))
    return tuple(notes)


def notes_of(counts: Counter[str], source: str) -> tuple[Note, ...]:
    """Returns notes on images that were not found by the ground truth's own ids."""
    return tuple(
        Note("image-joined", f"detections identify their image by {how}", n, source)
        for how, n in sorted(counts.items())
        if how not in ("", "id")
    )


def _clean(name: str) -> str:
    return re.sub(r"^(\./)+", "", name.replace("\\", "/")).rstrip("/")


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _without_suffix(name: str) -> str:
    """Returns a path with folders without the suffix of an image; "" for other names."""
    path = _clean(name)
    return os.path.splitext(path)[0] if "/" in path and image_names.is_image(path) else ""


def _is_end(one: str, other: str) -> bool:
    """Checks if one of two paths ends with the other, folder by folder."""
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
