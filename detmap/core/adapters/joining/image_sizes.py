"""Reads widths and heights of images from a CSV or COCO JSON file, or from image headers."""

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters import folder_files
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.base import open_files, unique_keys
from detmap.core.base.flat_rows import first_true
from detmap.core.base.open_files import shown
from detmap.core.base.parallel import map_ordered
from detmap.core.tables import Truth
from detmap.core.tables.join_keys import FILE_COLUMNS, ID_COLUMNS, Column, choose
from detmap.errors import DataError, counted, few, hint

Sizes = tuple[NDArray[np.float64], NDArray[np.float64]]

ORIENTATION = 274  # EXIF 2.32, table 4: orientations 5 to 8 lie on their side
LYING = (5, 6, 7, 8)
MOST = 1e6  # pixels of a side
SIDES = ("width", "height")
JSON_DECODED = 8  # bytes of memory that a byte of JSON takes


class _Image(msgspec.Struct):
    file_name: str
    width: float
    height: float


class _Instances(msgspec.Struct):
    images: list[_Image]


def listed(path: Path) -> list[str]:
    """Returns the images that a source of sizes lists, each once."""
    if path.is_dir():
        return [file.relative_to(path).as_posix() for file in _images_in(path)]
    if _is_json(path):
        return list(dict.fromkeys(image.file_name for image in _instances(path)))
    sheet = csv_parquet.read_csv(path)
    return list(dict.fromkeys(sheet.texts(sheet.find(csv_parquet.IMAGE, "image"))))


def from_path(path: Path, names: Sequence[Sequence[str]]) -> Sizes:
    """Returns the size of each image, from a CSV file with columns image, width and height, the
    images of a COCO JSON file, or a folder of image files.

    Parameters
    ----------
    path : the file or folder
    names : allowed names of each image: file name, stem, path

    Raises `DataError` for missing columns, and invalid, contradictory or missing sizes.
    """
    given, width, height, place = _given(path)
    size_of: dict[str, tuple[float, float]] = {}
    for row, (name, *each) in enumerate(zip(given, width.tolist(), height.tolist(), strict=True)):
        if size_of.setdefault(name, (each[0], each[1])) != (each[0], each[1]):
            raise DataError(place(row), f"a second size for {name!r}", "give one")
    by_stem: dict[str, set[tuple[float, float]]] = {}
    names_of: dict[str, list[str]] = {}
    for name, size in size_of.items():
        by_stem.setdefault(image_names.stem(name), set()).add(size)
        names_of.setdefault(image_names.stem(name), []).append(name)
    stems = [image_names.stem(called[0]) for called in names]
    known = list(by_stem)
    renamed = image_names.matches_before_upload(known, set(stems) - by_stem.keys())
    rows = []
    for called, stem in zip(names, stems, strict=True):
        exact = [size_of[name] for name in called if name in size_of]
        near = by_stem.get(known[renamed[stem]] if stem in renamed else stem, set())
        if not exact and len(near) > 1:
            same = names_of[stem]
            near = {
                size_of[each]
                for each in same
                if any(f"/{own}".endswith(f"/{each}") for own in called)
            }
        rows.append(exact[0] if exact else next(iter(near)) if len(near) == 1 else None)
    missing = [each[0] for each, size in zip(names, rows, strict=True) if size is None]
    if missing:
        raise DataError(
            shown(path),
            f"has no unique size for {counted(len(missing), 'image')}: {few(map(repr, missing))}",
            "add every image of the ground truth, by file name or stem",
        )
    sides = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(sides[:, 0]), np.ascontiguousarray(sides[:, 1])


def choose_names(
    path: Path, ids: Sequence[str], called: Sequence[Sequence[str]]
) -> Sequence[Sequence[str]]:
    """Returns the names by which a file of sizes lists each image: its id, or its file names.

    Parameters
    ----------
    ids : of the images, as texts
    called : their paths, file names and stems

    Raises `DataError` if the file may list ids as well as names, and these are other images.
    """
    place_of_id = {each: i for i, each in enumerate(ids)}
    place_of: dict[str, int] = {}
    for i, names in enumerate(called):
        for name in names:
            place_of.setdefault(name, i)
    values, header = listed(path), "filename"
    if not (path.is_dir() or _is_json(path)):
        sheet = csv_parquet.read_csv(path)
        header = csv_parquet.spelled(sheet.find(csv_parquet.IMAGE, "image"))
    stems = list(map(image_names.stem, values))
    pairs = list(zip(values, stems, strict=True))
    by_name = np.array([place_of.get(x, place_of.get(stem, -1)) for x, stem in pairs], np.int32)
    by_id = np.array([place_of_id.get(x, -1) for x in values], dtype=np.int32)
    if (by_id < 0).all():
        return called
    column = Column(
        "image",
        shown(path),
        lambda i: f"image {ids[i]!r:.60} ({called[i][0]})",
        "id" if header in ID_COLUMNS else "name" if header in FILE_COLUMNS else None,
        fix="name the column image_id or file_name",
    )
    key, doubt = choose(column, values, by_id, by_name)
    if doubt is not None:
        raise doubt
    return [(each,) for each in ids] if key == "id" else called


def completed(truth: Truth, path: Path) -> Truth:
    """Returns the ground truth with the unknown sizes of its images from a size file; see
    `from_path`.
    """
    images = truth.images
    unknown = np.flatnonzero(np.isnan(images.width + images.height))
    files, ids = images.files or images.stems, list(map(str, images.ids.tolist()))
    if not all(images.stems):  # images without a file name have ids alone
        files = tuple(file or each for file, each in zip(files, ids, strict=True))
    every = [(file, image_names.stem(file)) for file in files]
    called = choose_names(path, ids, every)
    names = [called[i] for i in unknown.tolist()]
    sides = images.width.copy(), images.height.copy()
    for side, found in zip(sides, from_path(path, names), strict=True):
        side[unknown] = found
    return replace(truth, images=replace(images, width=sides[0], height=sides[1]))


def _given(
    path: Path,
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64], Callable[[int], str]]:
    """Returns names, widths and heights of images, and the place of each for messages."""
    if path.is_dir():
        files = _images_in(path)
        width, height = from_headers(files)
        names = [file.relative_to(path).as_posix() for file in files]
        return names, width, height, lambda row: shown(files[row])
    if _is_json(path):
        images = _instances(path)
        names = [image.file_name for image in images]
        sizes = [np.array([getattr(image, side) for image in images]) for side in SIDES]
        columns = SIDES

        def place(row: int) -> str:
            return f"{shown(path)}: images[{row}]"

    else:
        sheet = csv_parquet.read_csv(path)
        names = sheet.texts(sheet.find(csv_parquet.IMAGE, "image"))
        columns = sheet.find(csv_parquet.WIDTH), sheet.find(csv_parquet.HEIGHT)
        sizes = [sheet.numbers(column) for column in columns]
        place = sheet.place
    for column, sides in zip(columns, sizes, strict=True):
        bad = ~((sides > 0) & (sides <= MOST))
        if (row := first_true(bad)) is not None:
            raise DataError(
                f"{place(row)}, column {column}", f"{sides[row]:g} pixels", "write a size"
            )
    return names, sizes[0], sizes[1], place


def _images_in(folder: Path) -> list[Path]:
    files = folder_files.images(folder, nested=True)
    if not files:
        fix = "give a CSV file (image, width, height), a COCO JSON file, or a folder of images"
        raise DataError(shown(folder), "no images, whose sizes are needed", fix)
    return files


def _is_json(path: Path) -> bool:
    with open_files.opened(path) as file:
        return file.read(0, 64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _instances(path: Path) -> list[_Image]:
    """Returns the images of a COCO JSON file."""
    try:
        data = open_files.read_bytes(path, times=JSON_DECODED).removeprefix(b"\xef\xbb\xbf")
        images = msgspec.json.decode(data, type=_Instances).images
        unique_keys.require(data, shown(path))
        return images
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        what = f"not a COCO JSON file with the sizes of images: {error}"
        fix = "give COCO instances, a CSV file (image, width, height), or a folder of images"
        raise DataError(shown(path), what, fix) from None


def from_headers(files: Sequence[Path]) -> Sizes:
    """Returns the size of each image file, after EXIF rotation.

    Source: Ultralytics loads images by cv2.imread, which applies the EXIF orientation. Raises
    `DataError` for unreadable images or if Pillow is not installed.
    """
    if find_spec("PIL") is None:
        raise DataError(
            shown(files[0]) if files else "images",
            "the sizes of images are read from their headers by Pillow, which is not installed",
            f"{hint('images')}, or give the sizes: --image-sizes FILE",
        )

    def size(path: Path) -> tuple[int, int]:
        with open_files.opened(path) as file:
            return _size(io.BufferedReader(_Stream(file), 1 << 14), shown(path))

    with warnings.catch_warnings():  # a large image is not decoded: only its header is read
        warnings.simplefilter("ignore")
        sizes = list(map_ordered(size, files))
    sides = np.array(sizes, dtype=np.float64).reshape(-1, 2)
    return np.ascontiguousarray(sides[:, 0]), np.ascontiguousarray(sides[:, 1])


def from_bytes(data: bytes, where: str) -> tuple[int, int] | tuple[None, None]:
    """Returns the size of an image in memory, after EXIF rotation; None without Pillow."""
    if find_spec("PIL") is None:
        return None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _size(io.BytesIO(data), where)


def _size(file: IO[bytes], where: str) -> tuple[int, int]:
    """Returns the size of an open image, after EXIF rotation."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            width, height = image.size
            turned = image.format in ("JPEG", "MPO") and image.getexif().get(ORIENTATION) in LYING
    except open_files.UnreadableError:
        raise
    except Image.DecompressionBombError:  # its own limit, though nothing is unpacked
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0)
        raise DataError(
            where,
            f"an image of more than {most // 1_000_000} million pixels, whose header "
            "Pillow does not read",
            "give the sizes of the images: --image-sizes FILE",
        ) from None
    except Exception as error:  # whatever a library does with a broken image
        raise DataError(
            where,
            f"not an image that Pillow can read ({type(error).__name__})",
            "fix or remove the file, or give all sizes: --image-sizes FILE",
        ) from None
    return (height, width) if turned else (width, height)


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
    """Adapts a file of `detmap.core.base.open_files` for Pillow."""

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
