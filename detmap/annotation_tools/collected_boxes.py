"""Collects the boxes of an export, image by image."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.annotation_tools import export_tables, typed_json
from detmap.annotation_tools.export_tables import Export
from detmap.core.adapters import folder_files
from detmap.core.adapters.joining import image_names, image_sizes
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Images, Note, Truth
from detmap.errors import DataError

Record = TypeVar("Record")
Content = TypeVar("Content")
JSON = ".json"
Corners = tuple[float, float, float, float]


class Boxes:
    """The boxes of an export, which are added one by one.

    Parameters
    ----------
    path : for messages
    box_format : one of `detmap.core.adapters.box_conventions.FORMATS`
    """

    def __init__(self, path: Path, box_format: str) -> None:
        self.source, self.box_format = shown(path), box_format
        self.files: list[str] = []
        self.sizes: list[tuple[float | None, float | None]] = []
        self.image: list[int] = []
        self.classes: list[str] = []
        self.boxes: list[Sequence[float]] = []
        self.places: list[str] = []
        self.scores: list[float | None] = []
        self.values: list[Mapping[str, Any]] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        self.bare: list[str] = []
        self.unread: tuple[Note, ...] = ()

    def add_image(
        self, name: str, where: str, width: float | None = None, height: float | None = None
    ) -> None:
        """Adds an image; boxes that follow are on it."""
        if not image_names.stem(name.strip()):
            raise DataError(where, f"{name!r} is not the name of an image", "name its file")
        self.files.append(name.strip())
        self.sizes.append((width, height))

    def add(
        self,
        name: str,
        box: Sequence[float],
        where: str,
        score: float | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds a box on the last image; `values` are its flags and numbers by name."""
        if not name.strip():
            raise DataError(where, "no class", "give every box a class name")
        self.image.append(len(self.files) - 1)
        self.classes.append(name)
        self.boxes.append(box)
        self.places.append(where)
        self.scores.append(score)
        self.values.append(values or {})

    def require(self, given: Content | msgspec.UnsetType, where: str) -> Content | tuple[()]:
        """Returns the records of the last image; notes a missing key, which may be misspelled."""
        if given is not msgspec.UNSET:
            return given
        self.bare.append(where)
        key = where.rpartition(".")[2]
        self.count("key-missing", f"images have no key {key}: read as images without objects")
        return ()

    def count(self, code: str, text: str) -> None:
        """Counts a record that a note reports."""
        self.counts[code, text] += 1

    def json_files(self, folder: Path) -> list[Path]:
        """Returns the JSON files of a folder, and counts those in its sub-folders."""
        self.unread += folder_files.unread(folder, JSON)
        return json_files(folder)

    def add_pictures(self, folders: Iterable[Path]) -> None:
        """Adds the pictures of the first folder that has a named one, as images without objects."""
        known = set(map(image_names.stem, self.files))
        for file in sorted(pictures(folders, known).values()):
            if file.stem not in known:
                self.add_image(file.name, self.source)
                text = "images of the folder are not in the file: read as images without objects"
                self.count("images-unannotated", text)

    def export(self, sizes_file: Path | None = None, folders: Iterable[Path] = ()) -> Export:
        """Returns the columns; sizes that the export lacks are those of a size file or of pictures.

        Raises `DataError` for invalid sizes.
        """
        across, down = np.array(self.sizes, dtype=np.float64).reshape(-1, 2).T.tolist()
        sizes = export_tables.sides(self.files, across, down, self.source)
        if self.bare and len(self.bare) == len(self.files):
            raise DataError(self.bare[0], "missing in all images", "write the key of the objects")
        if sizes_file is not None:
            sizes = image_sizes.from_path(sizes_file, [(name,) for name in self.files])
        elif np.isnan(sizes).any():
            found = pictures(folders, set(map(image_names.stem, self.files)))
            files = [found.get(image_names.stem(name)) for name in self.files]
            read = image_sizes.from_pictures(files)
            own = [np.where(np.isnan(a), b, a) for a, b in zip(sizes, read, strict=True)]
            sizes = own[0], own[1]
        notes = [(code, text, count) for (code, text), count in sorted(self.counts.items())]
        return Export(
            self.source,
            self.files,
            sizes,
            self.image,
            self.classes,
            np.array(self.boxes, dtype=np.float64).reshape(-1, 4),
            self.box_format,
            self.places.__getitem__,
            (*export_tables.notes(self.source, notes), *self.unread),
        )

    def truth(
        self,
        classes: Iterable[str] = (),
        *,
        roles: Sequence[str] = (),
        attributes: Sequence[str] = (),
        sizes_file: Path | None = None,
        folders: Iterable[Path] = (),
    ) -> Truth:
        """Returns the boxes as ground truth.

        Parameters
        ----------
        classes : declared names, which may have no object
        roles, attributes : names of flags and numbers to read
        sizes_file, folders : see `export`
        """
        export = self.export(sizes_file, folders)
        named = export_tables.named_values(self.values, roles, attributes, export.place)
        return export.truth(classes, *named)

    def detections(self, truth: Truth, policy: Policy) -> Detections:
        """Returns the boxes as detections; each needs a score."""
        if None in self.scores:
            row = self.scores.index(None)
            fix = "give the file of a detector, whose boxes have a score"
            raise DataError(self.places[row], "no confidence", fix)
        scores = np.array(self.scores, dtype=np.float64)
        return self.export().detections(truth, scores, policy)


# --- images and classes ---------------------------------------------------------------------------


def pictures(folders: Iterable[Path], stems: set[str]) -> dict[str, Path]:
    """Returns the pictures of the first folder that has one of these stems, by stem."""
    for folder in folders:
        if folder.is_dir():
            found = {file.stem: file for file in folder_files.images(folder)}
            if found.keys() & stems:
                return found
    return {}


def with_class_ids(truth: Truth, names: Sequence[str], ids: NDArray[Any] | None = None) -> Truth:
    """Returns the ground truth with classes in this order; ids count from 0 by default.

    Raises `DataError` if a name occurs twice.
    """
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(truth.source, f"class {twice!r} occurs twice", "give each class one name")
    place = {name: i for i, name in enumerate(names)}
    order = np.array([place[name] for name in truth.categories.names], dtype=np.int32)
    ids = np.arange(len(names)) if ids is None else ids
    label = order[truth.label] if len(order) else truth.label
    return replace(truth, categories=Categories(ids, tuple(names)), label=label, named=False)


def with_image_ids(truth: Truth, ids: NDArray[np.int64]) -> Truth:
    """Returns the ground truth with these image ids, one per image in its order."""
    order = np.argsort(ids, kind="stable")
    images = truth.images
    taken = Images(
        ids[order],
        tuple(images.stems[i] for i in order.tolist()),
        images.width[order],
        images.height[order],
        tuple(images.files[i] for i in order.tolist()) if images.files else (),
    )
    place = np.argsort(order).astype(np.int32)
    return replace(truth, images=taken, image=place[truth.image])


def around(points: Sequence[Sequence[float]], where: str, least: int = 2) -> Corners:
    """Returns left, top, right and bottom of points. Raises `DataError` for too few or others."""
    if len(points) < least or any(len(point) < 2 for point in points):
        what = f"{len(points)} points, or points without x and y"
        raise DataError(where, what, f"write at least {least} points of x and y")
    x, y = [point[0] for point in points], [point[1] for point in points]
    return min(x), min(y), max(x), max(y)


def entries(
    given: Mapping[str, msgspec.Raw], kind: type[Record], where: str, shape: str
) -> Iterator[tuple[str, str, Record]]:
    """Yields key, place and typed value of each entry of a JSON object.

    Parameters
    ----------
    given : the entries
    kind : the type of a value, of msgspec's structs
    where : the object, for messages
    shape : the type in words

    Raises `DataError` for values of other types.
    """
    for key, value in given.items():
        place = f"{where}[{key!r:.200}]"
        try:
            yield key, place, msgspec.json.decode(value, type=kind)
        except msgspec.ValidationError as error:
            raise typed_json.invalid(place, error, shape) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(place, f"not JSON: {error}", shape) from None


def json_files(folder: Path) -> list[Path]:
    """Returns the JSON files of a folder; see `folder_files.listed`.

    Raises `DataError` if there are none.
    """
    found = folder_files.listed(folder, JSON)
    if not found:
        raise DataError(shown(folder), "no .json files", "give the folder that holds them")
    return found
