"""Writes ground truth and detections as COCO JSON, CSV, or a folder of VOC or YOLO.

What detmap reads back gives the same number. What a format cannot hold is counted in notes, or an
error where the number would change without a trace.

Source: the readers of `detmap.core.adapters`, and the formats that they name.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from detmap.annotation_tools.conversion import written_names
from detmap.core.adapters.coco import decode
from detmap.core.adapters.text_per_image.yolo import FAR_OUTSIDE, OUTSIDE
from detmap.core.adapters.voc import xml_boxes
from detmap.core.base import atomic_files
from detmap.core.base.sums import add_integers
from detmap.core.tables import Detections, Note, Truth, boxes_as
from detmap.errors import DataError, counted

Table = Truth | Detections
Files = dict[str, str]
"""Path in the folder, and content."""
ShapeKeys = Mapping[str, Sequence[Any]]

SPLIT = "test"
SHAPES_UNREAD = ("shape-and-box", "bbox-missing")
"""Codes of notes on detections whose shapes are not read."""
_ID_TEXT = "image ids are not kept: join detections by the file names of the images"
_ORDER = (
    "images are in another order when read again, by name: equal scores of different images may be "
    "ranked otherwise, which changes AP"
)
_ORDER_OF_DETECTIONS = (
    "detections have a score that another image has too; when read again, images or rows are in "
    "another order, by name, so AP may change"
)


def write(
    table: Table, path: Path, target: str, shapes: ShapeKeys = MappingProxyType({})
) -> tuple[Note, ...]:
    """Writes a table, and returns notes on what the format does not hold.

    Parameters
    ----------
    table : ground truth, or detections
    path : a file for coco and csv, a new folder for voc and yolo
    target : one of `TARGETS`
    shapes : keys of masks and keypoints, with a value of each object; COCO holds them

    Raises `DataError` if the format cannot hold the table, or the folder is there already.
    """
    _refuse_reversed(table, target)
    files = _coco(table, shapes) if target == "coco" else TARGETS[target](table)
    if target in FOLDERS:
        atomic_files.write_folder(path, files)
    else:
        atomic_files.write_text(path, files[""])
    left_out = {} if target == "coco" else shapes
    return tuple(_losses(table, target, left_out))


def _refuse_reversed(table: Table, target: str) -> None:
    """Refuses boxes of negative width or height, which other readers than that of VOC refuse."""
    count = int((_xywh(table)[:, 2:] < 0).any(axis=1).sum())
    if count and target != "voc":
        what = f"{counted(count, 'box')} of negative width or height, which {target} cannot hold"
        raise DataError(table.source, what, "fix the boxes, or write voc")


# --- what formats lose ----------------------------------------------------------------------------


def _losses(table: Table, target: str, shapes: ShapeKeys) -> Iterator[Note]:
    def note(code: str, text: str, rows: Any) -> Iterator[Note]:
        if count := int(np.sum(rows)):
            yield Note(code, text, count, table.source)

    shaped = np.zeros(len(table), dtype=bool)
    for values in shapes.values():
        shaped |= np.array(list(map(bool, values)), dtype=bool)
    unread = add_integers(each.count for each in table.notes if each.code in SHAPES_UNREAD)
    n_shapes = len(table) if table.shapes is not None else max(int(shaped.sum()), unread)
    yield from note("lost-shapes", "masks or keypoints are left out", n_shapes)
    stems, names = table.images.stems, written_names.names_of_images(table)
    if not all(stems) if target == "csv" else target != "coco" and names != list(stems):
        text = "images are named by their ids, since file stems are missing or repeated"
        yield from note("lost-image-names", text, len(table.images))
    moved = written_names.moved_images(table, target)
    if isinstance(table, Detections):
        if moved.any() or (target == "yolo" and written_names.rows_move(table)):
            tied = written_names.tied_between_images(table)
            yield from note("image-order", _ORDER_OF_DETECTIONS, tied)
        return
    yield from note("image-order", _ORDER, moved)
    yield from note("lost-image-ids", _ID_TEXT, written_names.new_ids(table, target))
    folders = [re.search(r"[/\\]", file) is not None for file in table.images.files]
    if target in FOLDERS and not any("/" in name for name in names):
        text = "images are in folders, and their names are written without them"
        yield from note("lost-folders", text, folders)
    crowd, difficult, ignore = table.crowd, table.difficult, table.role("ignore")
    if target == "yolo":
        flagged = crowd | difficult | ignore
        text = "objects are crowds, difficult or ignored: YOLO labels have no flag, all count"
        yield from note("lost-flags", text, flagged)
        ids = table.categories.ids
        text = "class ids change: YOLO counts classes from 0; join detections by class name"
        yield from note("lost-class-ids", text, ids != np.arange(len(ids)))
    if target == "voc":
        yield from note("lost-crowd", "crowds are written as difficult objects", crowd)
        yield from note("lost-ignore", "objects marked ignore lose the mark", ignore)
        if _voc_boxes(table)[1] == "xyxy":
            text = (
                "boxes have fractions of pixels: all are written as continuous pixels from 0, as "
                "CVAT does, and the files declare it; VOC itself counts whole pixels from 1"
            )
            yield from note("boxes-continuous", text, len(table))
    if target == "coco":
        text = "difficult objects are written as crowds: COCO has one flag"
        yield from note("lost-difficult", text, difficult & ~crowd)
    if target in FOLDERS:
        area = np.prod(boxes_as(table.boxes, table.box_format, "xywh")[:, 2:], axis=1)
        other = ~np.isclose(table.area, area, rtol=1e-6)
        text = "objects have an area that is not that of the box, which is not written"
        yield from note("lost-area", text, other)
    if target == "csv":
        unused = len(table.categories) - len(np.unique(table.label))
        yield from note("lost-class", "classes without objects are left out", unused)


def _voc_boxes(table: Truth) -> tuple[NDArray[np.float64], str]:
    """Returns corners as VOC XML has them, and their box format: VOC's for its own boxes and for
    whole pixels, else continuous.
    """
    boxes = table.boxes
    if table.box_format == "voc" or (boxes == np.floor(boxes)).all():
        return boxes_as(boxes, table.box_format, "voc"), "voc"
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]]), "xyxy"


# --- targets --------------------------------------------------------------------------------------


def _rows_per_image(table: Table, line: Callable[[int], str]) -> list[list[str]]:
    rows: list[list[str]] = [[] for _ in range(len(table.images))]
    for i, image in enumerate(table.image.tolist()):
        rows[image].append(line(i))
    return rows


def _words(*values: Any) -> str:
    return " ".join(map(str, values))


def _xywh(table: Table) -> NDArray[np.float64]:
    return boxes_as(table.boxes, table.box_format, "xywh")


def _coco(table: Table, shapes: ShapeKeys = MappingProxyType({})) -> Files:
    images, boxes = table.images, _xywh(table).tolist()
    whole = images.ids.dtype.kind == "i"
    ids: list[Any] = images.ids.tolist()
    classes = table.categories.ids.tolist()
    if isinstance(table, Detections):
        rows = [
            {"image_id": ids[i], "category_id": classes[k], "bbox": box, "score": score}
            for i, k, box, score in zip(
                table.image.tolist(), table.label.tolist(), boxes, table.score.tolist(), strict=True
            )
        ]
        return {"": json.dumps(rows)}
    ids = ids if whole else list(range(1, len(ids) + 1))
    names = [
        file if file and decode.file_stem(file) == stem else f"{file or name}.jpg"
        for file, stem, name in zip(
            images.files or [""] * len(ids),
            images.stems,
            written_names.names_of_images(table),
            strict=True,
        )
    ]
    flags = {"iscrowd": table.crowd | table.difficult, "ignore": table.role("ignore")}
    sizes = zip(images.width.tolist(), images.height.tolist(), strict=True)
    records = [
        {"id": i, "file_name": name} | ({"width": w, "height": h} if w == w and h == h else {})
        for i, name, (w, h) in zip(ids, names, sizes, strict=True)
    ]
    annotations = [
        {
            "id": row + 1,
            "image_id": ids[image],
            "category_id": classes[label],
            "bbox": boxes[row],
            "area": table.area[row].item(),
            **{
                name: int(flag[row]) for name, flag in flags.items() if flag.any() or name[0] == "i"
            },
            **{key: of[row] for key, of in shapes.items() if of[row] is not None},
        }
        for row, (image, label) in enumerate(
            zip(table.image.tolist(), table.label.tolist(), strict=True)
        )
    ]
    categories = [
        {"id": i, "name": name} for i, name in zip(classes, table.categories.names, strict=True)
    ]
    content = {"images": records, "annotations": annotations, "categories": categories}
    return {"": json.dumps(content)}


def _csv(table: Table) -> Files:
    names, classes = written_names.names_of_images(table), written_names.class_names(table, "CSV")
    images, ids = table.images, table.categories.ids.tolist()
    written_names.require_bare([*names, *images.stems], "image", "CSV")
    called, images_header = [[name] for name in names], ["image"]
    if isinstance(table, Truth) and (files := written_names.file_names(table)):
        called = [[str(i), file] for i, file in zip(images.ids.tolist(), files, strict=True)]
        images_header = ["image_id", "file_name"]
    header = [*images_header, "class", "class_id", "x", "y", "w", "h"]
    columns: dict[str, list[Any]] = {}
    if isinstance(table, Detections):
        columns["score"] = table.score.tolist()
    else:
        columns["area"] = table.area.tolist()
        roles = {"iscrowd": table.crowd} | {
            name: flag for name, flag in table.roles.items() if name != "crowd"
        }
        columns |= {name: flag.astype(int).tolist() for name, flag in roles.items()}
    sized = isinstance(table, Truth) and not np.isnan([images.width, images.height]).any()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*header, *columns, *(["image_width", "image_height"] if sized else [])])

    def size(image: int) -> list[float]:
        return [images.width[image].item(), images.height[image].item()] if sized else []

    for row, (image, label, box) in enumerate(
        zip(table.image.tolist(), table.label.tolist(), _xywh(table).tolist(), strict=True)
    ):
        more = [column[row] for column in columns.values()]
        writer.writerow([*called[image], classes[label], ids[label], *box, *more, *size(image)])
    if isinstance(table, Truth):
        for image in sorted(set(range(len(images))) - set(table.image.tolist())):
            writer.writerow([*called[image], *[""] * (6 + len(columns)), *size(image)])
    return {"": out.getvalue()}


def _voc(table: Table) -> Files:
    names, classes = written_names.names_of_images(table), written_names.class_names(table, "VOC")
    unread = ('"',) if isinstance(table, Truth) else ("\t", "  ")
    written_names.require_safe(names, "image", "VOC", unread)
    written_names.require_safe(classes, "class", "VOC")
    if isinstance(table, Detections):
        boxes = boxes_as(table.boxes, table.box_format, "voc").tolist()
        lines: list[list[str]] = [[] for _ in classes]
        for row, (image, label) in enumerate(
            zip(table.image.tolist(), table.label.tolist(), strict=True)
        ):
            lines[label].append(_words(names[image], table.score[row].item(), *boxes[row]) + "\n")
        return {
            f"comp4_det_{SPLIT}_{name}.txt": "".join(rows)
            for name, rows in zip(classes, lines, strict=True)
        }
    numbers, box_format = _voc_boxes(table)
    declared = next(text for text, kind in xml_boxes.DECLARED.items() if kind == box_format)
    source = f"<source><annotation>{declared}</annotation></source>"
    flags = table.crowd | table.difficult

    def item(row: int) -> str:
        sides = zip(("xmin", "ymin", "xmax", "ymax"), numbers[row].tolist(), strict=True)
        box = "".join(f"<{side}>{number!r}</{side}>" for side, number in sides)
        name = escape(classes[table.label[row]])
        flag = f"<difficult>{int(flags[row])}</difficult>"
        return f"  <object><name>{name}</name>{flag}<bndbox>{box}</bndbox></object>\n"

    files: Files = {}
    sizes = zip(table.images.width.tolist(), table.images.height.tolist(), strict=True)
    for name, objects, (w, h) in zip(names, _rows_per_image(table, item), sizes, strict=True):
        size = (
            f"<size><width>{w:g}</width><height>{h:g}</height></size>" if w == w and h == h else ""
        )
        head = f"  <filename>{escape(name)}.jpg</filename>{source}{size}\n"
        page = f"<annotation>\n{head}{''.join(objects)}</annotation>\n"
        files[f"Annotations/{name}.xml"] = page
    lists = "ImageSets/Main"
    quoted = [f'"{name}"' if " " in name or "\t" in name else name for name in names]
    files[f"{lists}/{SPLIT}.txt"] = "".join(f"{name}\n" for name in quoted)
    used = set(table.label.tolist())
    unused = [name for label, name in enumerate(classes) if label not in used]
    return files | {f"{lists}/{name}_{SPLIT}.txt": "" for name in unused}


def _yolo(table: Table) -> Files:
    names, classes = written_names.names_of_images(table), table.categories.names
    written_names.require_safe(names, "image", "YOLO")
    if isinstance(table, Detections):  # classes.txt has a name per line
        written_names.require_safe(classes, "class", "YOLO")
    sides = np.column_stack([table.images.width, table.images.height])
    used = sides[table.image] if isinstance(table, Detections) else sides
    if np.isnan(used).any():
        fix = "give them: --image-sizes PATH (in Python image_sizes=), or write coco, csv or voc"
        raise DataError(table.source, "images of unknown size, and YOLO has fractions", fix)
    boxes = _xywh(table)
    boxes = np.hstack([boxes[:, :2] + boxes[:, 2:] / 2, boxes[:, 2:]])
    boxes = boxes / np.tile(sides, 2)[table.image]
    most = FAR_OUTSIDE if isinstance(table, Detections) else OUTSIDE
    bad = ((boxes < -most) | (boxes > 1 + most)).any(axis=1)
    if bad.any():
        what = f"{counted(int(bad.sum()), 'box')} outside of the image, which YOLO cannot hold"
        raise DataError(table.source, what, "write coco, csv or voc")
    score = table.score.tolist() if isinstance(table, Detections) else None

    def line(row: int) -> str:
        end = () if score is None else (score[row],)
        return _words(table.label[row], *boxes[row].tolist(), *end) + "\n"

    rows = zip(names, _rows_per_image(table, line), strict=True)
    if score is not None:
        files = {f"{name}.txt": "".join(lines) for name, lines in rows}
        return files | {"classes.txt": "".join(f"{name}\n" for name in classes)}
    files = {f"labels/{SPLIT}/{name}.txt": "".join(lines) for name, lines in rows}
    quoted = [json.dumps(name, ensure_ascii=False) for name in classes]
    yaml = f"path: .\ntest: images/{SPLIT}\nnames: [{', '.join(quoted)}]\n"
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["image", "width", "height"])
    writer.writerows(
        [f"{name}.jpg", *size] for name, size in zip(names, sides.tolist(), strict=True)
    )
    return files | {"data.yaml": yaml, "sizes.csv": out.getvalue()}


TARGETS: dict[str, Callable[[Table], Files]] = {
    "coco": _coco,
    "voc": _voc,
    "yolo": _yolo,
    "csv": _csv,
}
FOLDERS = ("voc", "yolo")
