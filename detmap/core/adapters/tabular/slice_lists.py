"""Reads slices of a data set: named sets of its images.

A JSON file lists the images of each slice: ``{"night": ["000012", "000047"]}``. A CSV file has one
row per image and one column per attribute; every attribute value is a slice, ``weather=rain``.
Images are named by id or file stem.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import registry, text_fields
from detmap.core.adapters.joining import image_keys, unknown_policy
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.base import json_faults
from detmap.core.base.flat_rows import first_repeated
from detmap.core.base.open_files import shown
from detmap.core.tables import Truth
from detmap.errors import DataError, few

MOST_VALUES = 100  # of an attribute: more are measurements, not slices
MOST_SLICES = 2000  # that anybody looks at
FORMS = (
    'write a JSON object such as {"night": [1, 2]}, or CSV with a column of images and one per '
    "attribute"
)


def read_slices(
    path: str | Path, truth: Truth, image_key: str | None = None
) -> dict[str, NDArray[Any]]:
    """Returns the ascending image ids of each slice.

    >>> import detmap
    >>> from pathlib import Path
    >>> size = Path("slices.json").write_text('{"night": ["000001"], "day": ["000002"]}')
    >>> list(detmap.read_slices("slices.json", detmap.read_truth("shapes")))
    ['night', 'day']

    Parameters
    ----------
    path : a JSON file of lists, or a CSV file of attributes
    truth : whose images are named
    image_key : "id" or "name", what texts are that may be both; default: the header of a CSV file

    Raises `DataError` for invalid files, unknown or repeated images, and for texts that are ids of
    some images and names of others.
    """
    path = registry.checked_path(path)
    content = text_fields.decoded(path)
    is_json = path.suffix.lower() == ".json" or content.lstrip()[:1] in ("{", "[")
    named, header = (_read_json_slices if is_json else _read_csv_slices)(path, content)
    if not named:
        raise DataError(shown(path), "no slices", FORMS)
    if len(named) > MOST_SLICES:
        what = f"{len(named)} slices, where {MOST_SLICES} are plenty"
        raise DataError(shown(path), what, "write several files")
    key = unknown_policy.chosen_key("image_key", image_key)
    place_of: dict[Any, int] = {}
    for where, images in named.values():
        if not ({*map(type, images)} <= {str} or {*map(type, images)} <= {int}):
            what = "not all images are strings, or all integers"
            raise DataError(where, what, "use one kind of ids")
    for kind in (str, int):  # all texts of the file are ids, or all are names
        some = [image for _, images in named.values() for image in images if type(image) is kind]
        if some:
            places = image_keys.find_listed(truth, some, shown(path), key, header)
            place_of |= zip(some, places.tolist(), strict=True)
    return {
        name: truth.images.ids[np.sort(_places(where, images, place_of, truth))]
        for name, (where, images) in named.items()
    }


Named = dict[str, tuple[str, list[Any]]]
"""Where each slice stands, and what its images are called."""


def _places(
    where: str, names: list[Any], place_of: dict[Any, int], truth: Truth
) -> NDArray[np.int32]:
    """Returns positions of images, each named once."""
    places = np.array([place_of[name] for name in names], dtype=np.int32)
    if (places < 0).any():
        strange = [name for name, place in zip(names, places.tolist(), strict=True) if place < 0]
        what = f"no image {few(map(repr, strange))} in {truth.source}"
        raise DataError(where, what, "name images by id or file stem")
    if (row := first_repeated(places.tolist())) is not None:
        raise DataError(where, f"image {names[row]!r} occurs twice", "list each image once")
    return places


def _read_json_slices(path: Path, content: str) -> tuple[Named, None]:
    try:
        pairs = json.loads(content, object_pairs_hook=tuple)
        json.dumps(pairs)  # what is nested too deeply for this is for messages too
    except (ValueError, RecursionError) as error:
        what, fix = json_faults.explain(content, error, "write a JSON object of lists of images")
        what = "nested too deeply" if isinstance(error, RecursionError) else what
        raise DataError(shown(path), what, fix) from None
    if not isinstance(pairs, tuple):
        kind = "a list" if isinstance(pairs, list) else text_fields.short(str(pairs))
        raise DataError(shown(path), f"{kind}, where slices have names", FORMS)
    slices: Named = {}
    for name, images in pairs:
        where = f"{shown(path)}: {name}"
        if not name.strip():
            raise DataError(shown(path), f"a slice has the name {name!r}", "give it a visible name")
        if name in slices:
            raise DataError(where, "a slice of this name already exists", "name each slice once")
        if not isinstance(images, list):
            raise DataError(
                where, f"{text_fields.short(str(images))} is not a list", "list the images"
            )
        slices[name] = (where, images)
    return slices, None


def _read_csv_slices(path: Path, content: str) -> tuple[Named, str]:
    """Returns slices, and the normalized name of the column of images."""
    rows = csv.reader(io.StringIO(content, newline=""), skipinitialspace=True, strict=True)
    try:
        header = next((row for row in rows if row), [])
        lines = [(rows.line_num, row) for row in rows if row]
    except csv.Error as error:
        raise DataError(shown(path), f"not CSV: {error}", "write the file as CSV text") from None
    if len(header) < 2:
        raise DataError(
            f"{shown(path)}: line 1",
            "the header names no attribute",
            "the header is the name of the image column, then one attribute per column",
        )
    if len(set(header)) < len(header):
        raise DataError(f"{shown(path)}: line 1", "a column twice", "name every column once")
    if not all(name.strip() for name in header[1:]):
        raise DataError(f"{shown(path)}: line 1", "a column without a name", "name each attribute")
    seen: set[str] = set()
    for line, row in lines:
        where = f"{shown(path)}: line {line}"
        if len(row) != len(header):
            what = f"{len(row)} columns, the header has {len(header)}"
            raise DataError(where, what, "write an image and its attributes per line")
        if row[0] in seen:
            raise DataError(where, f"image {row[0]!r} is repeated", "write one line per image")
        seen.add(row[0])
    named = _value_slices(path, header, [row for _, row in lines])
    return named, csv_parquet.spelled(header[0])


def _value_slices(path: Path, header: list[str], rows: list[list[str]]) -> Named:
    """Returns a slice per value of each attribute; an empty cell belongs to none."""
    slices: Named = {}
    for c, attribute in list(enumerate(header))[1:]:
        where = f"{shown(path)}: column {attribute}"
        values = sorted({row[c] for row in rows if row[c].strip()})
        if len(values) > MOST_VALUES:
            what = f"{len(values)} values, the limit for slices is {MOST_VALUES}"
            raise DataError(where, what, "write ranges instead of numbers")
        for value in values:
            slices[f"{attribute}={value}"] = (where, [row[0] for row in rows if row[c] == value])
    return slices
