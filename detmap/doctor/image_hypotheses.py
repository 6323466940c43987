"""Hypotheses about images: how they are named and numbered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from detmap.doctor.findings import Finding, Repair
from detmap.doctor.raw_rows import Key, Raw, are_numbers, image_places
from detmap.errors import few
from detmap.tables import Truth

KNOWN = 0.9  # share of the named images that a numbering has to know
OTHER = 0.5  # share of the rows on unknown images that makes them another split's


def repairs(raw: Raw, truth: Truth) -> tuple[Repair, ...]:
    """Other readings of the images that rows name."""
    used = tuple(raw.images[code] for code in np.unique(raw.image).tolist())
    return readings(used, raw.by_stem, truth) if used and len(truth.images) else ()


@lru_cache(maxsize=4)
def readings(used: tuple[Key, ...], stems: bool, truth: Truth) -> tuple[Repair, ...]:
    """Other readings of the names of images; an examination clears this at its end."""
    return tuple(_readings(used, image_places(truth, used, stems), truth))


def _readings(used: tuple[Key, ...], as_is: NDArray[np.int32], truth: Truth) -> Iterator[Repair]:
    by_stem = _index_stems(used, truth)
    if (by_stem >= 0).mean() >= KNOWN and not np.array_equal(by_stem, as_is):
        text = (
            f"images are named by file stem, such as {used[0]!r}; ids of the ground truth are such "
            f"as {truth.images.ids[0].item()!r}"
        )
        sure = bool((as_is < 0).mean() > OTHER)
        yield Repair("images-by-stem", text, _repair(used, by_stem, truth), 1, sure)
    if not are_numbers(used):
        return
    numbers = np.array([int(key) for key in used])
    if numbers.dtype != np.int64:  # beyond 64 bits
        return
    n, low, high = len(truth.images), int(numbers.min()), int(numbers.max())
    for start in (0, 1):
        if start <= low and high < start + n:
            counted = numbers - start
            if not np.array_equal(counted, as_is):
                ids = truth.images.ids
                shifted = ids.dtype.kind == "i" and int(ids[-1]) - int(ids[0]) == n - 1
                name = "images-shifted" if shifted else "images-by-position"
                text = f"image ids count the ground truth's images from {start}"
                yield Repair(name, text, _repair(used, counted, truth), 1 if shifted else 2)
    if truth.images.ids.dtype.kind == "i":
        first, last = int(truth.images.ids[0]), int(truth.images.ids[-1])
        for step in sorted({1, -1, first - low, last - high} - {0}):
            place = image_places(truth, tuple(int(i) + step for i in numbers), False)
            if (place >= 0).mean() >= KNOWN:
                text = f"image ids are {abs(step)} too {'low' if step > 0 else 'high'}"
                yield Repair("images-shifted", text, _repair(used, place, truth), 1)


def _repair(used: Sequence[Key], place: NDArray[np.integer], truth: Truth) -> partial[Raw]:
    ids = truth.images.ids.tolist()
    known = {key: ids[p] for key, p in zip(used, place.tolist(), strict=True) if p >= 0}
    return partial(renamed, known=known)


def renamed(raw: Raw, truth: Truth, *, known: dict[Key, Key]) -> Raw:
    """The rows with the ground truth's image ids; unknown images get an unused id."""
    del truth
    nobody: Key = "" if any(isinstance(i, str) for i in known.values()) else -(2**62)
    images = tuple(known.get(key, nobody) for key in raw.images)
    return replace(raw, images=images, by_stem=False)


def stem(name: str) -> str:
    """The file stem in a path of any system; a stem itself stays."""
    inner = PureWindowsPath(PurePosixPath(name).name).name
    return re.sub(r"\.(?:jpe?g|png|bmp|webp|tiff?|gif|xml|txt|json)$", "", inner, flags=re.I)


def _index_stems(used: Sequence[Key], truth: Truth) -> NDArray[np.int64]:
    """Positions of images by file stem, or by the number that a stem ends with; -1 for none."""
    stems = [each or str(i) for each, i in zip(truth.images.stems, truth.images.ids, strict=True)]
    place = {each: p for p, each in enumerate(stems)}
    inner = [str(key) if isinstance(key, int) else stem(key) for key in used]
    places = np.array([place.get(name, -1) for name in inner], dtype=np.int64)
    if (places >= 0).mean() >= KNOWN:
        return places
    folded = {each.casefold(): p for p, each in enumerate(stems)}
    named = [folded.get(name.casefold(), -1) for name in inner]
    if np.mean([p >= 0 for p in named]) >= KNOWN:
        return np.array(named, dtype=np.int64)
    ending: dict[int, int] = {}
    for p, each in enumerate(stems):
        number = _number(each)
        if number is not None:
            ending[number] = -1 if number in ending else p
    ids = truth.images.ids
    own = {int(i): p for p, i in enumerate(ids.tolist())} if ids.dtype.kind == "i" else {}
    keys = [_number(name) for name in inner]
    for table in (own, ending) if not are_numbers(used) else (ending,):
        numbered = [-1 if key is None else table.get(key, -1) for key in keys]
        if np.mean([p >= 0 for p in numbered]) >= KNOWN:
            return np.array(numbered, dtype=np.int64)
    return places


def _number(name: str) -> int | None:
    digits = re.search(r"([0-9]{1,18})$", name)
    return int(digits[1]) if digits else None


def strangers(raw: Raw, truth: Truth) -> Iterator[Finding]:
    """Rows on images that the ground truth lacks, of which no numbering makes sense."""
    place = image_places(truth, raw.images, raw.by_stem)
    unknown = place[raw.image] < 0
    if not len(raw) or unknown.mean() < OTHER:
        return
    lacking = [raw.images[code] for code in np.unique(raw.image[unknown]).tolist()]
    yield Finding(
        "images-other-split",
        f"{unknown.sum():,} of {len(raw):,} detections are on {len(lacking):,} images that the "
        f"truth lacks, such as {few(map(repr, lacking[:3]))}: probably of another split",
        fix="",
    )
