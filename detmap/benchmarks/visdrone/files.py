"""Reads VisDrone DET: a folder of annotations and one of results, a text file per image.

A line of both is ``x,y,width,height,score,category,truncation,occlusion``. In annotations the score
is 0 for objects that are not evaluated, category 0 is an ignored region and 11 an object of another
kind. Objects and detections of which half of the pixels or more are in ignored regions are dropped.
That takes the sizes of the images: ``sizes.txt`` (``name width height``) beside the annotations, or
the images themselves in the folder ``images`` there.

Source: VisDrone2018-DET-toolkit saveAnnoRes.m, dropObjectsInIgr.m, calcAccuracy.m.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.benchmarks.shared import result_lines
from detmap.core.adapters import box_conventions, folder_files, text_fields
from detmap.core.adapters.joining import image_sizes, join
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.adapters.text_per_image import label_files
from detmap.core.base.flat_rows import first_true
from detmap.core.base.open_files import shown
from detmap.core.tables import Categories, Detections, Images, Truth
from detmap.core.tables.grouping import positions
from detmap.core.tables.regions import Regions
from detmap.errors import DataError, few

CLASSES = (
    *("ignored regions", "pedestrian", "people", "bicycle", "car", "van", "truck", "tricycle"),
    *("awning-tricycle", "bus", "motor", "others"),
)
"""By category. The first and the last have no objects; their detections count for the limit."""

IGNORED, OTHERS = 0, len(CLASSES) - 1
COLUMNS = ("x", "y", "width", "height", "score", "category")
LINE = "x,y,width,height,score,category,truncation,occlusion"


def looks(path: Path) -> int:
    """See `detmap.core.adapters.format_rows.Looks`."""
    if not path.is_dir() or folder_files.has(path, "_gt_whole.txt"):
        return 0
    return int(any("," in words[0] for words in label_files.look(path)))


def read_truth(path: Path, image_sizes: Path | None = None) -> Truth:
    """Reads a folder of annotations, or the folder with ``annotations``.

    Objects with score 0 have the role "unscored".

    Raises `DataError` for invalid lines and missing image sizes.
    """
    path = folder_files.inside(path, "annotations")
    files = label_files.required(path)
    lines, values, category = _read(files)
    if (row := first_true(~np.isin(category, range(len(CLASSES))))) is not None:
        raise DataError(f"{lines.place(row)}, category", f"{category[row]}", f"0 to {OTHERS}")
    if (row := first_true(~np.isin(values[:, 4], (0, 1)))) is not None:
        what = f"{values[row, 4]:g} in the ground truth"
        raise DataError(f"{lines.place(row)}, score", what, "1 for objects that are evaluated or 0")
    ignored = category == IGNORED
    regions = Regions("half", lines.file[ignored], values[ignored, :4])
    odd = (regions.boxes != np.round(regions.boxes)).any(axis=1)
    if (row := first_true(odd)) is not None:
        where = lines.place(int(np.flatnonzero(ignored)[row]))
        raise DataError(where, "an ignored region that is not of whole pixels", "round it")
    sizes = _sizes(path, files, lines.file[ignored], image_sizes)
    covered = regions.cover(lines.file, values[:, :4], sizes)
    others = category == OTHERS
    dropped = "objects lie in ignored regions and were dropped"
    kept_out = "objects are of the category others: not evaluated"
    notes = result_lines.counted(
        shown(path),
        ("region-ignored", dropped, int((covered & ~ignored).sum())),
        ("class-others", kept_out, int((~covered & others).sum())),
    )
    keep = ~(ignored | covered | others)
    stems = tuple(file.stem for file in files)
    return Truth(
        Images(np.array(stems, dtype=str), stems, *sizes),
        Categories(np.arange(len(CLASSES)), CLASSES),
        image=lines.file[keep],
        label=category[keep].astype(np.int32),
        boxes=np.ascontiguousarray(values[keep, :4]),
        roles={"unscored": values[keep, 4] == 0},
        attributes={"area": values[keep, 2] * values[keep, 3]},
        box_format="xywh",
        family="coco",
        source=shown(path),
        notes=(*notes, *label_files.unread(path)),
        regions=regions,
    )


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads a folder of results, or the folder with ``results``.

    Raises `DataError` for invalid lines, unknown images and classes. Notes count images without a
    file, and files without an image.
    """
    path = folder_files.inside(path, "results")
    files = label_files.required(path)
    lines, values, category = _read(files, (len(COLUMNS),))
    stems = lines.stems()
    label = positions(truth.categories.ids, category)
    if policy.class_names is not None:
        label = join.classes_by_id(truth, category, shown(path), policy)
    names = [file.stem for file in files]
    image_of = join.images_by_stem(truth, names, shown(path), policy.file_key)
    return join.joined(
        truth,
        image_of[lines.file],
        label,
        np.ascontiguousarray(values[:, :4]),
        np.ascontiguousarray(values[:, 4]),
        box_format="xywh",
        origin=join.Origin(shown(path), lines.place, stems, category),
        policy=policy,
        notes=(
            *result_lines.result_file_notes(
                truth.images.stems, image_of, names, lines, shown(path)
            ),
            *label_files.unread(path),
        ),
    )


def _read(
    files: list[Path], also: tuple[int, ...] = ()
) -> tuple[label_files.Lines, NDArray[np.float64], NDArray[np.int64]]:
    """Returns the lines, the first six numbers of each, and the categories.

    `also` are the allowed numbers of columns besides all eight.
    """
    lines = label_files.read(files, b",")
    result_lines.require_columns(lines, (len(LINE.split(",")), *also), LINE)
    values = lines.numbers(COLUMNS)
    category = result_lines.whole_numbers(lines, values[:, 5], "category", f"0 to {OTHERS}")
    box_conventions.table_boxes(  # checks them
        values[:, :4], "xywh", sizes=box_conventions.unknown_sizes(len(values)), place=lines.place
    )
    return lines, values, category


def _sizes(
    path: Path, files: list[Path], needed: NDArray[np.int32], given: Path | None
) -> image_sizes.Sizes:
    """Returns the sizes of the images, from a list or their headers; NaN if no image needs one."""
    if given is not None:
        return image_sizes.from_path(given, [(file.stem,) for file in files])
    folder = path.resolve().parent
    listed = folder / "sizes.txt"
    if listed.is_file():
        return _listed(listed, files)
    images = [folder / "images" / f"{file.stem}.jpg" for file in files]
    if all(image.is_file() for image in images):
        return image_sizes.from_headers(images)
    if len(needed):
        raise DataError(
            shown(files[int(needed[0])]),
            "an ignored region on an image of unknown size",
            f"put the images in {shown(folder / 'images')}, or sizes.txt (name width height) "
            "there, or give --image-sizes FILE",
        )
    return box_conventions.unknown_sizes(len(files))


def _listed(path: Path, files: list[Path]) -> image_sizes.Sizes:
    sizes: dict[str, Any] = {}
    for line, words in text_fields.lines(path):
        sides = [text_fields.number(word) for word in words[1:]]
        right = len(sides) == 2 and all(
            side is not None and 1 <= side <= image_sizes.MOST and side == int(side)
            for side in sides
        )
        if not right or sizes.setdefault(words[0], sides) != sides:
            what = f"{text_fields.short(' '.join(words))}"
            raise DataError(f"{shown(path)}: line {line}", what, "a line is: name width height")
    missing = [file.stem for file in files if file.stem not in sizes]
    if missing:
        what = f"lacks {len(missing)} of {len(files)} images: {few(missing)}"
        raise DataError(shown(path), what, "add a line per image: name width height")
    width, height = np.array([sizes[file.stem] for file in files], dtype=np.float64).T
    return np.ascontiguousarray(width), np.ascontiguousarray(height)
