"""Reads folders of XML with rotated boxes, one file per image: HRSC2016, DIOR-R and roLabelImg.

HRSC2016 has five numbers per object, and all its objects are of the class ``ship``. DIOR-R has four
corners, and roLabelImg five numbers (its angle is in radians, clockwise in the image), both with
the name of a class. Detections come in any other format of rotated boxes.

Source: mmrotate datasets/hrsc.py (b030f38), datasets/dior.py (d50ab76); roLabelImg, the corners
that its canvas draws.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from detmap.core.adapters import folder_files, text_fields
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.voc.annotation_xml import _Reader, _root
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.core.overlaps.rotated_boxes import require_rotated, rotated_boxes, upright
from detmap.core.tables import Categories, Truth
from detmap.errors import DataError

FOLDERS = ("", "Annotations", "FullDataSet/Annotations", "Annotations/Oriented Bounding Boxes")
LOOKED_AT = 1 << 14  # bytes


@dataclass(frozen=True, slots=True)
class Kind:
    """A form of XML.

    Parameters
    ----------
    root : the top element
    mark : an element that only this form has
    objects : path of the objects
    box : path of the element with the numbers of an object
    numbers : elements of the numbers
    name : element of the class; "" if all are of the class `only`
    size : path of the element with the image's sides, and their elements
    """

    root: str
    mark: bytes
    objects: str
    box: str
    numbers: tuple[str, ...]
    name: str
    size: tuple[str, str, str]
    only: str = ""


KINDS = (
    Kind(
        "HRSC_Image",
        b"<HRSC_Image",
        "HRSC_Objects/HRSC_Object",
        ".",
        ("mbox_cx", "mbox_cy", "mbox_w", "mbox_h", "mbox_ang"),
        "",
        (".", "Img_SizeWidth", "Img_SizeHeight"),
        only="ship",
    ),
    Kind(
        "annotation",
        b"<cx>",
        "object",
        "robndbox",
        ("cx", "cy", "w", "h", "angle"),
        "name",
        ("size", "width", "height"),
    ),
    Kind(
        "annotation",
        b"<robndbox>",
        "object",
        "robndbox",
        tuple(
            f"{axis}_{corner}"
            for corner in ("left_top", "right_top", "right_bottom", "left_bottom")
            for axis in "xy"
        ),
        "name",
        ("size", "width", "height"),
    ),
)


def truth_looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    files = _files(path)[:1]
    return 3 * any(_kind(file) is not None for file in files)


def _files(path: Path) -> list[Path]:
    """The annotation files in the first folder that has any."""
    folders = (path / name for name in FOLDERS)
    return next((files for folder in folders if (files := folder_files.listed(folder, ".xml"))), [])


def _kind(file: Path) -> Kind | None:
    data = open_files.head(file, LOOKED_AT)
    return next((kind for kind in KINDS if kind.mark in data), None)


def read_truth(path: Path, shapes: str = "boxes", split: str | None = None) -> Truth:
    """Reads a folder of XML, or with `split` the images of ``ImageSets/<split>.txt`` beside it.

    Raises `DataError` for invalid XML and missing or wrong elements.
    """
    require_rotated(shapes, path, "ROTATED-XML")
    files = _files(path)
    if split is not None:
        files = _listed(path, files, split)
    kind = next((kind for file in files if (kind := _kind(file))), None)
    if kind is None:
        what = "no XML of HRSC2016 (HRSC_Image), DIOR-R or roLabelImg (robndbox)"
        raise DataError(shown(path), what, "give the folder of the annotations")
    rows, sides, names, places, flags, image = [], [], [], [], [], []
    for i, file in enumerate(files):
        page = _Page(file, kind)
        sides.append(page.sides())
        for place, name, box, difficult in page.objects():
            rows.append(box)
            names.append(name)
            places.append(f"{shown(file)}: {place}")
            flags.append(difficult)
            image.append(i)
    table = np.array(rows, dtype=np.float64).reshape(-1, len(kind.numbers))
    boxes = rotated_boxes(table, places.__getitem__)
    known = [kind.only] if kind.only else sorted(set(names))
    width, height = np.array(sides, dtype=np.float64).reshape(-1, 2).T
    images, place_of = image_names.table(
        shown(path), [file.stem for file in files], (width, height)
    )
    return Truth(
        images,
        Categories(np.arange(1, len(known) + 1, dtype=np.int64), tuple(known)),
        image=place_of[np.array(image, dtype=np.int64)],
        label=np.array([known.index(name) for name in names], dtype=np.int32),
        boxes=upright(boxes.corners()),
        roles={"difficult": np.array(flags, dtype=bool)},
        attributes={"area": boxes.area},
        box_format="xywh",
        family="voc",
        split=split or "",
        source=shown(path),
        shapes=boxes,
    )


def _listed(path: Path, files: list[Path], split: str) -> list[Path]:
    """The annotation files of the images in a list."""
    lists = [folder / "ImageSets" / f"{split}.txt" for folder in (path, *path.parents[:3])]
    lists += [each.parent / "Main" / each.name for each in lists]
    file = next((each for each in lists if each.is_file()), None)
    if file is None:
        what = f"no ImageSets/{split}.txt in or above it"
        raise DataError(shown(path), what, "check the split, or leave it out")
    of = {each.stem: each for each in files}
    stems = {line: words[0] for line, words in text_fields.lines(file)}
    for line, stem in stems.items():
        if stem not in of:
            where = f"{shown(file)}: line {line}"
            raise DataError(where, f"no annotation of image {stem!r:.60}", "add the XML file")
    return [of[stem] for stem in dict.fromkeys(stems.values())]


class _Page:
    """The objects of one file."""

    def __init__(self, file: Path, kind: Kind) -> None:
        self.file, self.kind, self.root, self.reader = file, kind, _root(file), _Reader(file)
        if self.root.tag != kind.root:
            what = f"the top element is <{self.root.tag}>, not <{kind.root}>"
            raise DataError(shown(file), what, "keep files of one kind in a folder")

    def sides(self) -> list[float]:
        """Width and height of the image; NaN if unknown."""
        where, *names = self.kind.size
        node = self.root.find(where)
        values = (
            [self.reader.one(node, name, "", self.reader.number) for name in names]
            if node is not None
            else []
        )
        return [np.nan if each is None or each <= 0 else each for each in values] or [np.nan] * 2

    def objects(self) -> Iterator[tuple[str, str, list[float], bool]]:
        """Place, class, numbers and difficult flag of each object."""
        kind = self.kind
        for i, node in enumerate(self.root.findall(kind.objects)):
            place = f"{kind.objects.rpartition('/')[2]}[{i}]"
            name = kind.only or self.reader.one(node, kind.name, place, self.reader.word)
            if not name:
                where = f"{shown(self.file)}: {place}.{kind.name}"
                raise DataError(where, "missing", "every object names its class")
            box = node.find(kind.box)
            values = [
                None if box is None else self.reader.one(box, tag, place, self.reader.number)
                for tag in kind.numbers
            ]
            numbers = [each for each in values if each is not None]
            if len(numbers) < len(values):
                tag = kind.numbers[values.index(None)]
                where = f"{shown(self.file)}: {place}.{tag}"
                raise DataError(where, "missing", f"an object has {', '.join(kind.numbers)}")
            flag = self.reader.one(node, "difficult", place, self.reader.flag)
            yield place, name, numbers, bool(flag)
