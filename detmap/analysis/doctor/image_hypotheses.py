"""Hypotheses about images: how they are named and numbered."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.raw_rows import ImageKey, Key, Raw, are_numbers, image_places
from detmap.analysis.doctor.repair import Repair
from detmap.core.results.findings import Finding
from detmap.core.tables import Truth
from detmap.errors import few

KNOWN = 0.9  # share of the named images that a numbering has to know
OTHER = 0.5  # share of the rows on unknown images that makes them another split's


def repairs(raw: Raw, truth: Truth) -> tuple[Repair, ...]:
    """Other readings of the images that rows name."""
    codes = np.unique(raw.image).tolist()
    if not codes or not len(truth.images):
        return ()
    used = tuple(raw.images[code] for code in codes)
    files = tuple(raw.files[code] for code in codes if raw.files)
    return (*_beside(used, files, truth), *readings(used, raw.key, truth))


def _beside(used: tuple[Key, ...], files: tuple[str, ...], truth: Truth) -> Iterator[Repair]:
    """The file names beside ids, where these are other images."""
    if not files:
        return
    by_file = _index_stems(files, truth)
    as_is = image_places(truth, used, "any")
    apart = np.flatnonzero((by_file >= 0) & (by_file != as_is)).tolist()
    if (by_file >= 0).mean() >= KNOWN and apart:
        text = (
            "file_name and image_id name different images, and file_name fits, such as "
            f"{files[apart[0]]!r} beside {used[apart[0]]!r}: remove image_id"
        )
        yield Repair("images-by-file-name", text, _use_file_names, 0)


def _use_file_names(raw: Raw, truth: Truth) -> Raw:
    """The rows on the images of their file names."""
    ids = truth.images.ids.tolist()
    nobody: Key = "" if ids and isinstance(ids[0], str) else -(2**62)
    places = _index_stems(raw.files, truth).tolist()
    images = tuple(ids[place] if place >= 0 else nobody for place in places)
    written = raw.image_names or raw.files
    return replace(raw, images=images, key="id", files=(), image_names=written)


@lru_cache(maxsize=4)
def readings(used: tuple[Key, ...], key: ImageKey, truth: Truth) -> tuple[Repair, ...]:
    """Other readings of the names of images; an examination clears this at its end."""
    return tuple(_readings(used, image_places(truth, used, key), truth))


def _readings(used: tuple[Key, ...], as_is: NDArray[np.int32], truth: Truth) -> Iterator[Repair]:
    by_stem = _index_stems(used, truth)
    if (by_stem >= 0).mean() >= KNOWN and not np.array_equal(by_stem, as_is):
        text = (
            f"images are named by file stem, such as {used[0]!r}; ids of the ground truth are such "
            f"as {truth.images.ids[0].item()!r}"
        )
        sure = bool((as_is < 0).mean() > OTHER)
        yield Repair("images-by-stem", text, _repair(used, by_stem, truth), 1, sure)
    by_id = _index_ids(used, truth)
    if (by_id >= 0).mean() >= KNOWN and not np.array_equal(by_id, as_is):
        text = f"images are named by id, such as {used[0]!r}, which is another image's file stem"
        yield Repair("images-by-id", text, _repair(used, by_id, truth), 1)
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
                weight, sure = 1 if shifted else 2, _shows(as_is, counted)
                yield Repair(name, text, _repair(used, counted, truth), weight, sure)
    if truth.images.ids.dtype.kind == "i":
        first, last = int(truth.images.ids[0]), int(truth.images.ids[-1])
        for step in sorted({1, -1, first - low, last - high} - {0}):
            place = image_places(truth, tuple(int(i) + step for i in numbers), "id")
            if (place >= 0).mean() >= KNOWN:
                text = f"image ids are {abs(step)} too {'low' if step > 0 else 'high'}"
                lost = [key for key, p in zip(used, place.tolist(), strict=True) if p < 0]
                if lost:
                    text += (
                        f"; the ground truth then lacks the images {few(map(str, lost))} of the "
                    )
                    text += "detections: add --unknown drop to leave these out"
                yield Repair(
                    "images-shifted", text, _repair(used, place, truth), 1, _shows(as_is, place)
                )


def _shows(as_is: NDArray[np.integer], place: NDArray[np.integer]) -> bool:
    """Whether some of the images are unknown as they are, and none in this numbering."""
    return bool((as_is < 0).any() and (place >= 0).all())


def _repair(used: Sequence[Key], place: NDArray[np.integer], truth: Truth) -> partial[Raw]:
    ids = truth.images.ids.tolist()
    known = {key: ids[p] for key, p in zip(used, place.tolist(), strict=True) if p >= 0}
    return partial(renamed, known=known)


def renamed(raw: Raw, _: Truth, *, known: dict[Key, Key]) -> Raw:
    """The rows with the ground truth's image ids; unknown images get an unused id."""
    nobody: Key = "" if any(isinstance(i, str) for i in known.values()) else -(2**62)
    images = tuple(known.get(key, nobody) for key in raw.images)
    written = raw.image_names or raw.images
    return replace(raw, images=images, key="id", files=(), image_names=written)


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


def _index_ids(used: Sequence[Key], truth: Truth) -> NDArray[np.int64]:
    """Positions of images by id, which may be written as text; -1 for none."""
    place = {str(each): p for p, each in enumerate(truth.images.ids.tolist())}
    return np.array([place.get(str(key), -1) for key in used], dtype=np.int64)


def _number(name: str) -> int | None:
    digits = re.search(r"([0-9]{1,18})$", name)
    return int(digits[1]) if digits else None


def strangers(raw: Raw, truth: Truth) -> Iterator[Finding]:
    """Rows on images that the ground truth lacks, of which no numbering makes sense."""
    place = image_places(truth, raw.images, raw.key)
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
