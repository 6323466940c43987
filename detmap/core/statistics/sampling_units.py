"""Sampling units: single images, or groups of dependent images (frames of a video, views of a
scene, tiles of a picture).
"""

import csv
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import text_fields
from detmap.core.adapters.joining import image_keys
from detmap.core.adapters.joining.unknown_policy import chosen_key
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.tables import Truth
from detmap.core.tables.join_keys import FILE_COLUMNS, ID_COLUMNS
from detmap.errors import DataError, counted, few


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The U units of the I images, numbered in the order of their first image.

    Parameters
    ----------
    of_image : (I,) int32
    n : U
    digest : of the groups; "" if each image is a unit
    """

    of_image: NDArray[np.int32]
    n: int
    digest: str = ""

    @property
    def noun(self) -> str:
        """The plural noun for a unit in texts."""
        return "groups" if self.digest else "images"

    def counted(self, n: int | None = None) -> str:
        """How many there are, or n of them: "1 image", "60 images"."""
        return counted(self.n if n is None else n, self.noun[:-1])


def units(image_ids: NDArray[Any], groups: Mapping[Any, Any] | str | Path | None = None) -> Units:
    """Units from single images, from a mapping of image id to group, or from a CSV file with one
    row ``image,group`` per image.

    Raises
    ------
    DataError : an image without a group or with two; groups of images that were not evaluated
    """
    if groups is None:
        every = np.arange(len(image_ids), dtype=np.int32)
        return Units(every, len(image_ids))
    if not isinstance(groups, Mapping | str | Path):
        what, fix = f"a {type(groups).__name__}", "give groups by image id, or the path of a file"
        raise DataError("groups", what, fix)
    where = "groups" if isinstance(groups, Mapping) else str(groups)
    of_image = groups if isinstance(groups, Mapping) else _read(Path(groups))[1]
    names = {str(key): str(value) for key, value in of_image.items()}
    ids = [str(each) for each in image_ids.tolist()]
    missing = [each for each in ids if each not in names]
    if missing:
        what = f"no group for {len(missing)} of {len(ids)} images: {few(missing)}"
        by_id = isinstance(groups, str | Path) and image_ids.dtype.kind == "i"
        known = " (saved matches have no file names)" * by_id
        fix = f"give each evaluated image one row: its id{known} and its group"
        raise DataError(where, what, fix)
    number: dict[str, int] = {}
    of = np.array([number.setdefault(names[each], len(number)) for each in ids], np.int32)
    digest = hashlib.sha256(of.astype("<i4").tobytes()).hexdigest()[:12]
    return Units(of, len(number), digest)


def groups_of(path: str | Path, truth: Truth, image_key: str | None = None) -> dict[Any, str]:
    """The group of each image of a ground truth that a file lists, by id.

    Parameters
    ----------
    path : a CSV file ``image,group``; images by id, file name or stem
    image_key : "id" or "name", what texts are that may be both; default: the name of the column

    Raises
    ------
    DataError : invalid rows; images that may be other ones by id than by name
    """
    header, groups = _read(Path(path))
    key = chosen_key("image_key", image_key)
    places = image_keys.find_listed(truth, list(groups), str(path), key, header)
    ids = truth.images.ids.tolist()
    pairs = zip(places.tolist(), groups.items(), strict=True)
    of_image: dict[Any, str] = {}
    for place, (name, group) in pairs:
        if place >= 0 and of_image.setdefault(ids[place], group) != group:
            what = f"image {name!r:.60} is in two groups"
            raise DataError(str(path), what, "give each image one group")
    return of_image


def _read(path: Path) -> tuple[str, dict[str, str]]:
    """The normalized name of the column of images, "" without a header, and the groups."""
    try:
        rows = list(csv.reader(io.StringIO(text_fields.decoded(path))))
    except csv.Error as error:
        raise DataError(str(path), f"not CSV: {error}", "give a CSV file: image,group") from None
    header, groups = "", dict[str, str]()
    for number, row in enumerate(rows, start=1):
        cells = [cell.strip() for cell in row]
        name = csv_parquet.spelled(cells[0]) if number == 1 and len(cells) == 2 else ""
        if name in ("image", *csv_parquet.IMAGE, *ID_COLUMNS, *FILE_COLUMNS):
            header = name
            continue
        if not any(cells):
            continue
        where = f"{path}:{number}"
        if len(cells) != 2 or not all(cells):
            raise DataError(where, f"{len(cells)} fields", "write two fields per row: image,group")
        if groups.setdefault(*cells) != cells[1]:
            what = f"image {cells[0]!r} is in two groups"
            raise DataError(where, what, "give each image one group")
    return header, groups
