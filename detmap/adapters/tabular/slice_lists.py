"""Reads slices of a data set: named sets of its images.

A JSON file lists the images of each slice: ``{"night": ["000012", "000047"]}``. A CSV file has one
row per image and one column per attribute; every attribute value is a slice, ``weather=rain``.
Images are named by id or file stem.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.adapters import registry, text_fields
from detmap.adapters.joining import join
from detmap.base import json_faults
from detmap.base.open_files import shown
from detmap.errors import DataError, few
from detmap.tables import Truth

MOST_VALUES = 100  # of an attribute: more are measurements, not slices
MOST_SLICES = 2000  # that anybody looks at
FORMS = (
    'write a JSON object such as {"night": [1, 2]}, or CSV with a column of images and one per '
    "attribute"
)


def read_slices(path: str | Path, truth: Truth) -> dict[str, NDArray[Any]]:
    """Returns the ascending image ids of each slice.

    Parameters
    ----------
    path : a JSON file of lists, or a CSV file of attributes
    truth : whose images are named

    Raises `DataError` for invalid files and unknown or repeated images.
    """
    path = registry.checked_path(path)
    content = text_fields.decoded(path)
    is_json = path.suffix.lower() == ".json" or content.lstrip()[:1] in ("{", "[")
    named = (_read_json_slices if is_json else _read_csv_slices)(path, content)
    if not named:
        raise DataError(shown(path), "no slices", FORMS)
    if len(named) > MOST_SLICES:
        what = f"{len(named)} slices, where {MOST_SLICES} are plenty"
        raise DataError(shown(path), what, "write several files")
    return {
        name: truth.images.ids[np.sort(_places(where, images, truth))]
        for name, (where, images) in named.items()
    }


Named = dict[str, tuple[str, list[Any]]]
"""Where each slice stands, and what its images are called."""


def _places(where: str, names: list[Any], truth: Truth) -> NDArray[np.int32]:
    """Returns positions of images, each named once."""
    if all(isinstance(name, str) for name in names):
        places = join.images_by_stem(truth, names, where)
    elif all(type(name) is int and abs(name) < 2**63 for name in names):
        places = join.images_by_id(truth, np.array(names, dtype=np.int64), where)
    else:
        raise DataError(where, "not all images are strings, or all integers", "use one kind of ids")
    if (places < 0).any():
        strange = [name for name, place in zip(names, places.tolist(), strict=True) if place < 0]
        what = f"no image {few(map(repr, strange))} in {truth.source}"
        raise DataError(where, what, "name images by id or file stem")
    if len(np.unique(places)) < len(places):
        twice = next(name for i, name in enumerate(names) if places[i] in places[:i])
        raise DataError(where, f"image {twice!r} occurs twice", "list each image once")
    return places


def _read_json_slices(path: Path, content: str) -> Named:
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
    return slices


def _read_csv_slices(path: Path, content: str) -> Named:
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
    return _value_slices(path, header, [row for _, row in lines])


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
