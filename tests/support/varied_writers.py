"""Writers of drawn data sets (`varied_exports`) as XML, YOLO, text and tables, one per layout.

`WHOLE` names those that need boxes of whole pixels.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tests.support.varied_exports import (
    Box,
    Case,
    Export,
    Writer,
    center,
    corners,
    pictures,
    plain_csv,
    save,
    scaled,
    sizes_csv,
    table,
    words,
)

# --- XML ------------------------------------------------------------------------------------------


def cvat(case: Case, folder: Path) -> Export:
    text = "<?xml version='1.0' encoding='utf-8'?>\n<annotations><version>1.1</version><meta/>"
    for i, (name, width, height) in enumerate(case.images):
        text += f'\n<image id="{i}" name={quoteattr(name)} width="{width}" height="{height}">'
        for n, label, box in case.on(i):
            sides = zip(("xtl", "ytl", "xbr", "ybr"), corners(box), strict=True)
            numbers = " ".join(f'{side}="{number}"' for side, number in sides)
            text += f'<box label={quoteattr(label)} occluded="{n % 2}" {numbers} z_order="0"/>'
        text += "</image>"
    return Export(save(folder / "annotations.xml", text + "\n</annotations>"), flags=False)


def voc_page(case: Case, i: int, sides: Any, owner: str, order: str = "xXyY") -> str:
    """An XML file of VOC; sides gives the four numbers of a box."""
    _, width, height = case.images[i]
    text = f"<annotation><folder/><filename>{escape(case.last(i))}</filename>{owner}<size><width>"
    text += f"{width}</width><height>{height}</height><depth>3</depth></size>"
    names = {"x": "xmin", "y": "ymin", "X": "xmax", "Y": "ymax"}
    for _, label, box in case.on(i):
        numbers = dict(zip("xyXY", sides(box), strict=True))
        inner = "".join(f"<{names[s]}>{numbers[s]}</{names[s]}>" for s in order)
        text += f"<object><name>{escape(label)}</name><pose>Unspecified</pose>"
        text += f"<truncated>0</truncated><bndbox>{inner}</bndbox></object>"
    return text + "</annotation>"


def first_and_last(box: Box) -> Box:
    x, y, w, h = box
    return x + 1, y + 1, x + w, y + h


def voc_cvat(case: Case, folder: Path) -> Export:
    """CVAT and datumaro: continuous pixels, an image without objects has no XML but is listed."""
    for i in range(len(case.images) - 1):
        save(folder / "Annotations" / f"{case.stem(i)}.xml", voc_page(case, i, corners, ""))
    stems = [case.stem(i) for i in range(len(case.images))]
    lines = "".join(f'"{stem}"\n' if " " in stem else f"{stem}\n" for stem in stems)
    save(folder / "ImageSets" / "Main" / "default.txt", lines)
    return Export(folder)


def voc_label_studio(case: Case, folder: Path) -> Export:
    """Label Studio: whole pixels from 0, no XML without objects, pictures beside."""
    owner = "<source><database>MyDatabase</database></source>"
    owner += "<owner><name>Label Studio</name></owner>"
    for i in range(len(case.images) - 1):
        page = voc_page(case, i, lambda box: map(int, corners(box)), owner)
        save(folder / "Annotations" / f"{case.stem(i)}.xml", page)
    pictures(case, folder / "images")
    return Export(folder)


def voc_labelimg(case: Case, folder: Path) -> Export:
    """LabelImg: pictures and XML in one folder, none for a picture that was never saved."""
    for i in range(len(case.images) - 1):
        page = voc_page(case, i, first_and_last, "<source><database>Unknown</database></source>")
        save(folder / f"{case.stem(i)}.xml", page)
    pictures(case, folder)
    return Export(folder)


def voc_roboflow(case: Case, folder: Path) -> Export:
    for i in range(len(case.images)):
        owner = "<source><database>roboflow.com</database></source>"
        page = voc_page(case, i, first_and_last, owner, "xXyY")
        save(folder / "test" / f"{case.stem(i)}.xml", page)
    pictures(case, folder / "test")
    return Export(folder / "test")


# --- YOLO -----------------------------------------------------------------------------------------


def labels(case: Case, folder: Path, *, empty: bool = True) -> Path:
    for i, image in enumerate(case.images):
        rows = [
            words(case.classes.index(label), *scaled(center(box), image))
            for _, label, box in case.on(i)
        ]
        if rows or empty:
            save(folder / f"{case.stem(i)}.txt", "\n".join(rows))
    return folder


def yaml(case: Case, rest: str) -> str:
    return f"{rest}nc: {len(case.classes)}\nnames: {json.dumps(case.classes)}\n"


def yolo_yaml(case: Case, folder: Path, *, pictured: bool = True) -> Export:
    """Ultralytics: labels beside images, one label file missing."""
    labels(case, folder / "labels" / "val", empty=False)
    if pictured:
        pictures(case, folder / "images" / "val")
    for i, image in enumerate(case.images):
        rows = [words(c, *scaled(center(box), image), s) for c, _, box, s in case.found(i)]
        if rows:
            save(folder / "run" / "labels" / f"{case.stem(i)}.txt", "\n".join(rows))
    return Export(
        save(folder / "data.yaml", yaml(case, "path: .\nval: images/val\n")), folder / "run"
    )


def yolo_roboflow(case: Case, folder: Path) -> Export:
    labels(case, folder / "test" / "labels")
    pictures(case, folder / "test" / "images")
    rest = "train: ../train/images\nval: ../valid/images\ntest: ../test/images\n"
    file = save(folder / "data.yaml", yaml(case, rest))
    return Export(file, truth_options={"split": "test"})


def yolo_cvat(case: Case, folder: Path, *, pictured: bool = False) -> Export:
    """CVAT's YOLO 1.1: paths in the list begin with a folder that does not exist."""
    labels(case, folder / "obj_train_data")
    save(folder / "obj.names", "\n".join(case.classes) + "\n")
    rows = [f"data/obj_train_data/{case.last(i)}\n" for i in range(len(case.images))]
    save(folder / "train.txt", "".join(rows))
    text = f"classes = {len(case.classes)}\ntrain = data/train.txt\nnames = data/obj.names\n"
    file = save(folder / "obj.data", text + "backup = backup/\n")
    if pictured:
        pictures(case, folder / "obj_train_data")
        return Export(file)
    return Export(folder, truth_options={"image_sizes": sizes_csv(case, folder.parent / "sizes")})


def yolo_cvat_pictures(case: Case, folder: Path) -> Export:
    return yolo_cvat(case, folder, pictured=True)


def yolo_cvat_ultralytics(case: Case, folder: Path) -> Export:
    labels(case, folder / "labels" / "train")
    rows = [f"images/train/{case.last(i)}\n" for i in range(len(case.images))]
    save(folder / "train.txt", "".join(rows))
    names = "".join(f"  {i}: {json.dumps(name)}\n" for i, name in enumerate(case.classes))
    file = save(folder / "data.yaml", f"path: .\ntrain: train.txt\nnames:\n{names}")
    sizes = sizes_csv(case, folder.parent / "sizes")
    return Export(file, truth_options={"split": "train", "image_sizes": sizes})


def yolo_label_studio(case: Case, folder: Path, *, name: str = "{:08x}-{}") -> Export:
    """Names with eight digits before them; notes.json and classes.txt."""
    hashed = case.renamed(name)
    labels(hashed, folder / "labels")
    pictures(hashed, folder / "images")
    save(folder / "classes.txt", "\n".join(case.classes) + "\n")
    categories = [{"id": i, "name": name} for i, name in enumerate(case.classes)]
    save(folder / "notes.json", {"categories": categories, "info": {"version": "1.0"}})
    return Export(folder)


def yolo_labelimg(case: Case, folder: Path) -> Export:
    """Labels, pictures and classes.txt in one folder."""
    labels(case, folder, empty=False)
    pictures(case, folder)
    save(folder / "classes.txt", "\n".join(case.classes) + "\n")
    return Export(folder)


def predictions(case: Case, folder: Path, *, rotated: bool = False, first: int = 1) -> Export:
    """Ultralytics' predictions.json: a number where the stem is one, classes from 1, or `first`."""
    rows = []
    for i in range(len(case.images)):
        stem = case.stem(i)
        for c, _, box, score in case.found(i):
            row = {"image_id": int(stem) if stem.isnumeric() else stem, "file_name": case.last(i)}
            row |= {"category_id": c + first, "score": score}
            shape = {"rbox": [*center(box), 0], "poly": around(box)}
            rows.append(row | (shape if rotated else {"bbox": list(box)}))
    truth = yolo_yaml(case, folder).truth
    return Export(truth, save(folder / "predictions.json", rows))


def rotated_predictions(case: Case, folder: Path) -> Export:
    return predictions(case, folder, rotated=True)


def around(box: Box) -> list[float]:
    """The four corners of a box."""
    left, top, right, bottom = corners(box)
    return [left, top, right, top, right, bottom, left, bottom]


def rotated_labels(case: Case, folder: Path) -> Export:
    """Labels of oriented boxes: class and eight fractions, and the score."""

    def row(c: int, box: Box, image: tuple[str, int, int], *score: float) -> str:
        return words(c, *scaled(around(box), image), *score)

    for i, image in enumerate(case.images):
        rows = [row(case.classes.index(label), box, image) for _, label, box in case.on(i)]
        save(folder / "labels" / "val" / f"{case.stem(i)}.txt", "\n".join(rows))
        found = [row(c, box, image, score) for c, _, box, score in case.found(i)]
        save(folder / "runs" / "labels" / f"{case.stem(i)}.txt", "\n".join(found))
    pictures(case, folder / "images" / "val")
    file = save(folder / "data.yaml", yaml(case, "val: images/val\n"))
    return Export(file, folder / "runs" / "labels")


def to_json(case: Case, folder: Path) -> Export:
    for i in range(len(case.images)):
        rows = [
            {"name": label, "class": c, "confidence": score}
            | {"box": dict(zip(("x1", "y1", "x2", "y2"), corners(box), strict=True))}
            for c, label, box, score in case.found(i)
        ]
        save(folder / "json" / f"{case.stem(i)}.json", rows)
    return Export(None, folder / "json")


def pandas(case: Case, folder: Path) -> Export:
    """YOLOv5's frames with a column of images: class is a number, name the class."""
    head = ["image", "xmin", "ymin", "xmax", "ymax", "confidence", "class", "name"]
    rows = [
        [case.last(i), *corners(box), score, c, label]
        for i in range(len(case.images))
        for c, label, box, score in case.found(i)
    ]
    return Export(None, table(folder / "all.csv", [head, *rows]))


def pandas_folder(case: Case, folder: Path) -> Export:
    head = ["", "xmin", "ymin", "xmax", "ymax", "confidence", "class", "name"]
    for i in range(len(case.images)):
        rows = [
            [k, *corners(box), score, c, label]
            for k, (c, label, box, score) in enumerate(case.found(i))
        ]
        table(folder / "frames" / f"{case.stem(i)}.csv", [head, *rows])
    return Export(None, folder / "frames")


# --- text and tables ------------------------------------------------------------------------------

REST = "1.50 1.60 3.90 1.00 1.70 20.00 -1.50"


def kitti(case: Case, folder: Path, *, space: str = "_", tail: str = "") -> Export:
    """label_2 with pictures, results in data; a class with spaces has `_`."""
    for i in range(len(case.images)):
        rows = [
            words(label.replace(" ", space), 0.25, 1, -1.57, *corners(box), REST) + tail
            for _, label, box in case.on(i)
        ]
        if rows or not tail:
            save(folder / "training" / "label_2" / f"{case.stem(i)}.txt", "\n".join(rows))
        found = [
            words(label.replace(" ", space), -1, -1, -10, *corners(box), REST, score)
            for _, label, box, score in case.found(i)
        ]
        save(folder / "results" / "data" / f"{case.stem(i)}.txt", "\n".join(found))
    pictures(case, folder / "training" / "image_2")
    return Export(folder / "training", folder / "results")


def kitti_datumaro(case: Case, folder: Path) -> Export:
    made = kitti(case, folder, space=" ", tail=" 1.0")
    return Export(folder / "training" / "label_2", made.found)


def deepstream(case: Case, folder: Path) -> Export:
    """Frames by number in the order of the file names."""
    order = sorted(range(len(case.images)), key=lambda i: case.images[i][0])
    for k, i in enumerate(order):
        rows = [
            words(label, 0.0, 0, 0.0, *corners(box), "0.0 " * 7, score).replace("  ", " ")
            for _, label, box, score in case.found(i)
        ]
        save(folder / "dump" / f"00_000_{k:06}.txt", "\n".join(rows))
    return Export(None, folder / "dump")


def comp4(case: Case, folder: Path) -> Export:
    """The devkit's folders; names of images have no space, those of classes no slash."""
    case.classes = [name.replace("/", "") for name in case.classes]
    case.images = [(name.replace(" ", "_"), *size) for name, *size in case.images]  # type: ignore[misc]
    for i in range(len(case.images)):
        save(
            folder / "VOC/Annotations" / f"{case.stem(i)}.xml",
            voc_page(case, i, first_and_last, ""),
        )
    lines = "".join(f"{case.stem(i)}\n" for i in range(len(case.images)))
    save(folder / "VOC/ImageSets/Main/test.txt", lines)
    return Export(folder / "VOC", voc_text(case, folder / "results"))


def voc_text(case: Case, folder: Path, sides: Callable[[Box], Box] = first_and_last) -> Path:
    """A text file of each class."""
    for c, name in enumerate(case.classes):
        rows = [
            words(case.stem(i), score, *sides(box))
            for i, label, box, score in case.detections
            if label == c
        ]
        save(folder / f"comp4_det_test_{name}.txt", "\n".join(rows) + "\n")
    return folder


def vott_csv(case: Case, folder: Path) -> Export:
    head = ["image", "xmin", "ymin", "xmax", "ymax", "label"]
    rows = [
        [case.last(i), *corners(box), label]
        for i in range(len(case.images))
        for _, label, box in case.on(i)
    ]
    return Export(table(folder / "vott-csv-export" / "p-export.csv", [head, *rows]), listed=False)


def open_images(case: Case, folder: Path) -> Export:
    codes = [f"/m/0{i}g3" for i in range(len(case.classes))]
    flags = ["IsOccluded", "IsTruncated", "IsGroupOf", "IsDepiction", "IsInside"]
    head = ["ImageID", "Source", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax", *flags]
    rows: list[list[Any]] = []
    for i, image in enumerate(case.images):
        for n, label, box in case.on(i):
            left, top, right, bottom = scaled(corners(box), image)
            row = [case.stem(i), "xclick", codes[case.classes.index(label)], 1]
            rows.append([*row, left, right, top, bottom, 1, 0, int(n in case.flagged), 0, -1])
    found: list[list[Any]] = [["ImageID", "LabelName", "Score", "XMin", "XMax", "YMin", "YMax"]]
    for i, image in enumerate(case.images):
        for c, _, box, score in case.found(i):
            left, top, right, bottom = scaled(corners(box), image)
            found.append([case.stem(i), codes[c], score, left, right, top, bottom])
    return Export(
        table(folder / "truth-bbox.csv", [head, *rows]),
        table(folder / "predictions.csv", found),
        {"image_sizes": sizes_csv(case, folder)},
        {"unknown": "drop"},
        flags=True,
    )


def plain(case: Case, folder: Path) -> Export:
    """CSV with a header; an image without objects has a row of commas."""
    head = ["image", "class", "xmin", "ymin", "xmax", "ymax"]
    rows: list[list[Any]] = [head]
    for i, image in enumerate(case.images):
        own = [[image[0], label, *corners(box)] for _, label, box in case.on(i)]
        rows += own or [[image[0], *[""] * 5]]
    return Export(table(folder / "objects.csv", rows), plain_csv(case, folder))


BOXES: dict[str, Callable[[Box, tuple[str, int, int]], Sequence[float]]] = {
    "voc": lambda box, image: first_and_last(box),
    "voc xywh": lambda box, image: (box[0] + 1, box[1] + 1, box[2] - 1, box[3] - 1),
    "xywh": lambda box, image: box,
    "xyxy": lambda box, image: corners(box),
    "cxcywh": lambda box, image: center(box),
    "normalized cxcywh": lambda box, image: scaled(center(box), image),
}


def text_folders(case: Case, folder: Path, names: tuple[str, str], form: str, flag: str) -> Export:
    """Two folders with a row per box; `flag` is the last word of flagged objects."""
    for i, image in enumerate(case.images):
        rows = [
            words(label, *BOXES[form](box, image), *[flag] * (n in case.flagged)).rstrip()
            for n, label, box in case.on(i)
        ]
        found = [
            words(label, score, *BOXES[form](box, image)) for _, label, box, score in case.found(i)
        ]
        for name, lines in zip(names, (rows, found), strict=True):
            save(folder / name / f"{case.stem(i)}.txt", "\n".join(lines))
    return Export(folder / names[0], folder / names[1])


def cartucho(case: Case, folder: Path, flag: str = "") -> Export:
    """As in Cartucho/mAP's README; names of classes have no space."""
    case.classes = [name.replace(" ", "_") for name in case.classes]
    return text_folders(case, folder, ("ground-truth", "detection-results"), "voc", flag)


def rafaelpadilla(case: Case, folder: Path, form: str) -> Export:
    """As in rafaelpadilla/Object-Detection-Metrics' README."""
    return text_folders(case, folder, ("groundtruths", "detections"), form, "")


def columns(
    case: Case, names: str, form: str, *, scored: bool = False, empty: bool = True
) -> dict[str, list[Any]]:
    """Named columns: an image, a class, four numbers, and the score of detections, or `difficult`
    of objects and, if `empty`, a row for each image without objects.
    """
    image, label, *sides = names.split()
    rows: Sequence[tuple[Any, ...]] = case.detections if scored else case.objects
    boxes = [BOXES[form](row[2], case.images[row[0]]) for row in rows]
    written = {image: [case.last(row[0]) for row in rows]}
    written |= {label: [case.classes[row[1]] for row in rows]}
    written |= {side: [box[i] for box in boxes] for i, side in enumerate(sides)}
    if scored:
        return written | {"score": [row[3] for row in rows]}
    written["difficult"] = [int(n in case.flagged) for n in range(len(rows))]
    for i in (i for i in range(len(case.images)) if empty and not case.on(i)):
        for name, column in written.items():
            column.append(case.last(i) if name == image else None)
    return written


WRITERS: dict[str, Writer] = {
    writer.__name__: writer
    for writer in (
        *(plain, cvat, voc_cvat, yolo_yaml, yolo_roboflow, yolo_cvat, yolo_cvat_pictures),
        *(yolo_cvat_ultralytics, yolo_label_studio, yolo_labelimg, predictions),
        *(rotated_predictions, rotated_labels, to_json, pandas, pandas_folder, kitti),
        *(kitti_datumaro, deepstream, vott_csv, open_images, voc_label_studio, voc_labelimg),
        *(voc_roboflow, comp4, cartucho),
    )
}
WHOLE = ("voc_label_studio", "voc_labelimg", "voc_roboflow", "comp4")
