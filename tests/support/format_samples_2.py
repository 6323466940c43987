"""Samples of annotation tools' exports, as those of `tests.support.format_samples`: the same boxes.

SAMPLES : of formats with a row of their own in the registry
VARIANTS : further files of these formats and of YOLO
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.format_samples import (
    DETECTIONS,
    HEIGHT,
    NAMES,
    OBJECTS,
    STEMS,
    WIDTH,
    Paths,
    coco,
    corners,
    csv_files,
    fractions,
    pictures,
    save,
    table,
    words,
)

HASH = "0123456789abcdef0123456789abcdef"
RENAMED = {stem: f"{stem}_png.rf.{HASH}" for stem in STEMS}


def objects(stem: str) -> Iterator[tuple[str, Any]]:
    """Class and box of the objects of an image."""
    return ((name, box) for owner, name, box in OBJECTS if owner == stem)


def found(stem: str) -> Iterator[tuple[str, Any, float]]:
    """Class, box and score of the detections on an image."""
    return ((name, box, score) for owner, name, box, score in DETECTIONS if owner == stem)


def csv_found(folder: Path) -> Path | None:
    """Detections as CSV, for formats of ground truth alone."""
    (folder / "csv").mkdir(parents=True, exist_ok=True)
    return csv_files(folder / "csv")[1]


def roboflow(folder: Path) -> Paths:
    """COCO in the folder of a split, with the category that no object has."""
    images = [
        {"id": i, "file_name": f"{RENAMED[stem]}.jpg", "width": WIDTH, "height": HEIGHT}
        | {"extra": {"name": f"{stem}.png"}}
        for i, stem in enumerate(STEMS)
    ]
    rows = [
        {"id": i, "image_id": STEMS.index(stem), "category_id": 1 + NAMES.index(name)}
        | {"bbox": list(box), "area": box[2] * box[3], "iscrowd": 0}
        for i, (stem, name, box) in enumerate(OBJECTS)
    ]
    classes = [{"id": 0, "name": "animals", "supercategory": "none"}]
    classes += [{"id": i, "name": n, "supercategory": "animals"} for i, n in enumerate(NAMES, 1)]
    tree = {"images": images, "annotations": rows, "categories": classes}
    save(folder / "data" / "test" / "_annotations.coco.json", tree)
    return folder / "data", csv_found(folder)


def roboflow_csv(folder: Path) -> Paths:
    """TensorFlow's CSV; the image without objects is only in the folder."""
    head = ["filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax"]
    rows = [[f"{stem}.png", WIDTH, HEIGHT, name, *corners(box)] for stem, name, box in OBJECTS]
    pictures(folder / "test")
    return table(folder / "test" / "_annotations.csv", [head, *rows]).parent, csv_found(folder)


def roboflow_retinanet(folder: Path) -> Paths:
    pictures(folder / "test")
    table(folder / "test" / "_classes.csv", [[name, i] for i, name in enumerate(NAMES)])
    rows = [[f"{stem}.png", *corners(box), name] for stem, name, box in OBJECTS]
    return table(folder / "test" / "_annotations.csv", rows).parent, csv_found(folder)


def retinanet(folder: Path) -> Paths:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [[f"images/{stem}.png", *corners(box), name] for stem, name, box in OBJECTS]
    scored = [
        [f"images/{stem}.png", *corners(box), name, score] for stem, name, box, score in DETECTIONS
    ]
    return (
        table(folder / "annotations.csv", [*rows, ["images/c.png", *[""] * 5]]),
        table(folder / "found.csv", scored),
    )


def cvat(folder: Path) -> Paths:
    labels = "".join(f"<label><name>{name}</name><type>any</type></label>" for name in NAMES)
    text = f"<annotations><version>1.1</version><meta><task><labels>{labels}</labels></task></meta>"
    for i, stem in enumerate(STEMS):
        text += f'\n<image id="{i}" name="{stem}.png" width="{WIDTH}" height="{HEIGHT}">'
        for name, box in objects(stem):
            sides = zip(("xtl", "ytl", "xbr", "ybr"), corners(box), strict=True)
            numbers = " ".join(f'{side}="{number}.00"' for side, number in sides)
            text += f'\n<box label="{name}" occluded="{int(name == "dog")}" {numbers}></box>'
        text += "</image>"
    return save(folder / "annotations.xml", text + "</annotations>"), csv_found(folder)


def region(name: str, box: Any, **more: Any) -> dict[str, Any]:
    """A region of Label Studio, in percent."""
    x, y, w, h = box
    percent = {"x": 100 * x / WIDTH, "y": 100 * y / HEIGHT}
    percent |= {"width": 100 * w / WIDTH, "height": 100 * h / HEIGHT, "rotation": 0}
    value = {**percent, "rectanglelabels": [name]}
    size = {"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0}
    return {"id": "x", "type": "rectanglelabels", **size, "value": value, **more}


def labelstudio(folder: Path) -> Paths:
    tasks = [
        {
            "id": i,
            "annotations": [{"id": i, "result": [region(*each) for each in objects(stem)]}],
            "predictions": [
                {"result": [region(name, box, score=score) for name, box, score in found(stem)]}
            ],
            "data": {"image": f"/data/upload/1/{stem}.png"},
        }
        for i, stem in enumerate(STEMS)
    ]
    file = save(folder / "export.json", tasks)
    return file, file


def labelstudio_min(folder: Path) -> Paths:
    records = []
    for i, stem in enumerate(STEMS):
        size = {"original_width": WIDTH, "original_height": HEIGHT}
        regions = [region(*each)["value"] | size for each in objects(stem)]
        record = {"image": f"/data/upload/1/{stem}.png", "id": i, "annotator": 1}
        records.append(record | {"annotation_id": i, "lead_time": 1.5, "label": regions})
    return save(folder / "result.json", records), csv_found(folder)


def labelme(folder: Path) -> Paths:
    for place, rows in (
        ("labels", {stem: [(*each, None) for each in objects(stem)] for stem in STEMS}),
        ("found", {stem: list(found(stem)) for stem in STEMS}),
    ):
        for stem, shapes in rows.items():
            page = {
                "version": "5.5.0",
                "flags": {},
                "shapes": [
                    {"label": name, "score": score, "flags": {}, "shape_type": "rectangle"}
                    | {"points": [list(corners(box)[2:]), list(corners(box)[:2])]}
                    for name, box, score in shapes
                ],
                "imagePath": f"..\\pictures\\{stem}.png",
                "imageData": None,
                "imageHeight": HEIGHT,
                "imageWidth": WIDTH,
            }
            save(folder / place / f"{stem}.json", page)
    return folder / "labels", folder / "found"


def darknet(folder: Path) -> Paths:
    frames = [
        {
            "frame_id": i,
            "filename": f"data/obj/{stem}.png",
            "objects": [
                {"class_id": NAMES.index(name), "name": name, "confidence": score}
                | {"relative_coordinates": dict(zip(CENTERS, fractions(box), strict=True))}
                for name, box, score in found(stem)
            ],
        }
        for i, stem in enumerate(STEMS, 1)
    ]
    return coco(folder)[0], save(folder / "result.json", frames)


CENTERS = ("center_x", "center_y", "width", "height")


def yolo_rows(stem: str) -> str:
    return "\n".join(words(NAMES.index(name), *fractions(box)) for name, box in objects(stem))


def darknet_root(folder: Path) -> Paths:
    """CVAT's YOLO 1.1: paths in the lists begin with a folder that does not exist."""
    pictures(folder / "obj_train_data")
    for stem in STEMS:
        save(folder / "obj_train_data" / f"{stem}.txt", yolo_rows(stem))
    save(folder / "obj.names", "cat\ndog\n")
    save(folder / "train.txt", "".join(f"data/obj_train_data/{stem}.png\n" for stem in STEMS))
    text = "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n"
    return save(folder / "obj.data", text).parent, csv_found(folder)


def labels_root(folder: Path) -> Paths:
    """Label Studio's YOLO: classes.txt beside images and labels."""
    pictures(folder / "images")
    for stem in STEMS:
        save(folder / "labels" / f"{stem}.txt", yolo_rows(stem))
    return save(folder / "classes.txt", "cat\ndog\n").parent, csv_found(folder)


SAMPLES: dict[str, Callable[[Path], Paths]] = {
    "roboflow": roboflow,
    "retinanet": retinanet,
    "cvat": cvat,
    "labelstudio": labelstudio,
    "labelme": labelme,
    "darknet": darknet,
}
VARIANTS: dict[str, Callable[[Path], Paths]] = {
    "roboflow-csv": roboflow_csv,
    "roboflow-retinanet": roboflow_retinanet,
    "labelstudio-min": labelstudio_min,
    "yolo-darknet": darknet_root,
    "yolo-labels": labels_root,
}
