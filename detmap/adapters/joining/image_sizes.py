"""Reads widths and heights of images from a CSV file or from image headers."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.adapters.joining import image_names
from detmap.adapters.tabular import csv_parquet
from detmap.base import open_files
from detmap.base.open_files import shown
from detmap.base.parallel import map_ordered
from detmap.errors import DataError, counted, few, hint

Sizes = tuple[NDArray[np.float64], NDArray[np.float64]]

ORIENTATION = 274  # EXIF 2.32, table 4: orientations 5 to 8 lie on their side
LYING = (5, 6, 7, 8)
MOST = 1e6  # pixels of a side


def listed(path: Path) -> list[str]:
    """Returns the images that a size file lists, each once."""
    sheet = csv_parquet.read_csv(path)
    return list(dict.fromkeys(sheet.texts(sheet.find(csv_parquet.IMAGE, "image"))))


def from_csv(path: Path, names: Sequence[Sequence[str]]) -> Sizes:
    """Returns the size of each image, from a file with columns image, width and height.

    Parameters
    ----------
    path : the file
    names : allowed names of each image: file name, stem, path

    Raises `DataError` for missing columns, and invalid, contradictory or missing sizes.
    """
    sheet = csv_parquet.read_csv(path)
    columns = [
        sheet.find(each) for each in (csv_parquet.IMAGE, csv_parquet.WIDTH, csv_parquet.HEIGHT)
    ]
    given, width, height = (
        sheet.texts(columns[0]),
        sheet.numbers(columns[1]),
        sheet.numbers(columns[2]),
    )
    for column, sides in zip(columns[1:], (width, height), strict=True):
        bad = ~((sides > 0) & (sides <= MOST))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(
                f"{sheet.place(row)}, column {column}", f"{sides[row]:g} pixels", "write a size"
            )
    size_of: dict[str, tuple[float, float]] = {}
    for row, (name, *each) in enumerate(zip(given, width.tolist(), height.tolist(), strict=True)):
        if size_of.setdefault(name, (each[0], each[1])) != (each[0], each[1]):
            raise DataError(sheet.place(row), f"a second size for {name!r}", "give one")
    by_stem: dict[str, set[tuple[float, float]]] = {}
    for name, size in size_of.items():
        by_stem.setdefault(image_names.stem(name), set()).add(size)
    rows = []
    for called in names:
        exact = [size_of[name] for name in called if name in size_of]
        near = by_stem.get(image_names.stem(called[0]), set())
        rows.append(exact[0] if exact else next(iter(near)) if len(near) == 1 else None)
    missing = [each[0] for each, size in zip(names, rows, strict=True) if size is None]
    if missing:
        raise DataError(
            shown(path),
            f"has no unique size for {counted(len(missing), 'image')}: {few(map(repr, missing))}",
            "add every image of the truth, by file name or stem",
        )
    sides = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(sides[:, 0]), np.ascontiguousarray(sides[:, 1])


def from_headers(files: Sequence[Path]) -> Sizes:
    """Returns the size of each image file, after EXIF rotation.

    Source: Ultralytics loads images by cv2.imread, which applies the EXIF orientation. Raises
    `DataError` for unreadable images or if Pillow is not installed.
    """
    try:
        from PIL import Image
    except ImportError:
        raise DataError(
            shown(files[0]) if files else "images",
            "the sizes of images are read from their headers by Pillow, which is not installed",
            f"{hint('images')}, or give the sizes: --image-sizes FILE",
        ) from None

    def size(path: Path) -> tuple[int, int]:
        with open_files.opened(path) as file:
            try:
                with Image.open(io.BufferedReader(_Stream(file), 1 << 14)) as image:
                    width, height = image.size
                    turned = image.format in ("JPEG", "MPO") and (
                        image.getexif().get(ORIENTATION) in LYING
                    )
            except open_files.UnreadableError:
                raise
            except Image.DecompressionBombError:  # its own limit, though nothing is unpacked
                most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
                raise DataError(
                    shown(path),
                    f"an image of more than {most // 1_000_000} million pixels, whose header "
                    "Pillow does not read",
                    "give the sizes of the images: --image-sizes FILE",
                ) from None
            except Exception as error:  # whatever a library does with a broken image
                raise DataError(
                    shown(path),
                    f"not an image that Pillow can read ({type(error).__name__})",
                    "fix or remove the file, or give all sizes: --image-sizes FILE",
                ) from None
        return (height, width) if turned else (width, height)

    with warnings.catch_warnings():  # a large image is not decoded: only its header is read
        warnings.simplefilter("ignore")
        sizes = list(map_ordered(size, files))
    sides = np.array(sizes, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(sides[:, 0]), np.ascontiguousarray(sides[:, 1])


def from_pictures(files: Sequence[Path | None]) -> Sizes:
    """Returns the size of each image file as `from_headers`; NaN for None, and without Pillow.

    For formats whose boxes need no sizes.
    """
    sides = np.full((2, len(files)), np.nan)
    there = [i for i, file in enumerate(files) if file is not None]
    if there and find_spec("PIL") is not None:
        sides[:, there] = from_headers([file for file in files if file is not None])
    return sides[0], sides[1]


class _Stream(io.RawIOBase):
    """Adapts a file of `detmap.base.open_files` for Pillow."""

    def __init__(self, file: open_files.InputFile) -> None:
        super().__init__()
        self._file, self._at = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
