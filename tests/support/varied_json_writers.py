"""Writers of drawn data sets (`varied_exports`) as annotation tools' JSON, Roboflow's and Hugging
Face's folders, one per layout.

`WHOLE` names those that need boxes of whole pixels.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.varied_exports import (
    Box,
    Case,
    Export,
    Writer,
    center,
    coco_trees,
    corners,
    picture,
    pictures,
    save,
    scaled,
    sizes_csv,
    table,
)

# --- JSON of annotation tools ---------------------------------------------------------------------


def region(label: str, box: Box, image: tuple[str, int, int], **more: Any) -> dict[str, Any]:
    numbers = zip(("x", "y", "width", "height"), scaled(box, image, 100), strict=True)
    value = {**dict(numbers), "rotation": 0, "rectanglelabels": [label]}
    size = {"original_width": image[1], "original_height": image[2], "image_rotation": 0}
    return {"id": "r", "type": "rectanglelabels", "from_name": "l", **size, "value": value, **more}


def label_studio(case: Case, folder: Path) -> Export:
    """Tasks with annotations and predictions; names of uploads are hashed and quoted."""
    tasks = []
    for i, image in enumerate(case.images):
        done = {"id": i, "result": [region(label, box, image) for _, label, box in case.on(i)]}
        found = [region(name, box, image, score=s) for _, name, box, s in case.found(i)]
        name = f"{0xA0B1C2D3 + i:08x}-{case.last(i)}"
        tasks.append(
            {"id": i, "annotations": [done], "predictions": [{"result": found}]}
            | {"file_upload": name, "data": {"image": f"/data/upload/1/{quote(name)}"}}
        )
    file = save(folder / "export.json", tasks)
    return Export(file, file)


def label_studio_local(case: Case, folder: Path) -> Export:
    """Images of local storage and of a bucket."""
    tasks = []
    for i, image in enumerate(case.images):
        done = {"id": i, "result": [region(label, box, image) for _, label, box in case.on(i)]}
        place = "/data/local-files/?d=set/" if i % 2 else "https://bucket.example/set/"
        url = place + quote(image[0])
        tasks.append({"id": i, "annotations": [done], "data": {"image": url}})
    return Export(save(folder / "export.json", tasks))


def label_studio_min(case: Case, folder: Path) -> Export:
    rows = []
    for i, image in enumerate(case.images):
        size = {"original_width": image[1], "original_height": image[2]}
        regions = [region(label, box, image)["value"] | size for _, label, box in case.on(i)]
        name = f"/data/upload/7/{0xA0B1C2D3 + i:08x}-{quote(case.last(i))}"
        row = {"image": name, "id": i, "annotator": 1, "annotation_id": i, "lead_time": 1.5}
        rows.append(row | ({"label": regions} if regions else {}))
    return Export(save(folder / "result.json", rows))


def label_studio_coco(case: Case, folder: Path) -> Export:
    """Ids from 0, hashed names in a folder images."""
    tree, _ = coco_trees(case.renamed("images/{:08x}-{}"))
    for kind in tree.values():
        for row in kind:
            row |= {key: row[key] - 1 for key in row.keys() & {"id", "image_id", "category_id"}}
    return Export(save(folder / "result.json", tree))


def roboflow_coco(case: Case, folder: Path) -> Export:
    """Renamed images, their own names in extra, and the unused category 0."""
    tree, _ = coco_trees(case)
    for i, image in enumerate(tree["images"]):
        stem, _, suffix = case.last(i).rpartition(".")
        image["extra"] = {"name": case.last(i)}
        image["file_name"] = f"{stem}_{suffix}.rf.{i:032x}.jpg"
        picture(folder / "test" / image["file_name"], image["width"], image["height"])
    tree["categories"] = [{"id": 0, "name": "shapes", "supercategory": "none"}] + [
        each | {"supercategory": "shapes"} for each in tree["categories"]
    ]
    save(folder / "test" / "_annotations.coco.json", tree)
    return Export(folder / "test", flags=True)


def roboflow_csv(case: Case, folder: Path) -> Export:
    head = ["filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax"]
    rows = [
        [case.last(i), *image[1:], label, *map(int, corners(box))]
        for i, image in enumerate(case.images)
        for _, label, box in case.on(i)
    ]
    table(folder / "test" / "_annotations.csv", [head, *rows])
    pictures(case, folder / "test")
    return Export(folder / "test")


def roboflow_retinanet(case: Case, folder: Path) -> Export:
    rows = [
        [case.last(i), *map(int, corners(box)), label]
        for i in range(len(case.images))
        for _, label, box in case.on(i)
    ]
    table(folder / "test" / "_annotations.csv", rows)
    table(folder / "test" / "_classes.csv", [[name, i] for i, name in enumerate(case.classes)])
    pictures(case, folder / "test")
    return Export(folder / "test")


def retinanet(case: Case, folder: Path) -> Export:
    """Paths, and a row of commas for an image without objects."""
    rows: list[list[Any]] = []
    for i in range(len(case.images)):
        own = [[f"/data/{case.images[i][0]}", *corners(box), label] for _, label, box in case.on(i)]
        rows += own or [[f"/data/{case.images[i][0]}", "", "", "", "", ""]]
    found = [
        [case.images[i][0], *corners(box), label, score]
        for i in range(len(case.images))
        for _, label, box, score in case.found(i)
    ]
    return Export(
        table(folder / "annotations.csv", rows),
        table(folder / "found.csv", found),
        {"image_sizes": sizes_csv(case, folder)},
    )


def createml(case: Case, folder: Path, *, name: str = "_annotations.createml.json") -> Export:
    def images(scored: bool) -> list[dict[str, Any]]:
        return [
            {"image": case.last(i), "annotations": [record(*row) for row in case.rows(i, scored)]}
            for i in range(len(case.images))
        ]

    def record(label: str, box: Box, score: float | None) -> dict[str, Any]:
        numbers = dict(zip(("x", "y", "width", "height"), center(box), strict=True))
        more = {} if score is None else {"confidence": score}
        return {"label": label, "coordinates": numbers} | more

    pictures(case, folder)
    file = save(folder / name, images(scored=False))
    return Export(file, save(folder / "found.json", images(scored=True)))


def labelme(case: Case, folder: Path) -> Export:
    for place in ("labels", "found"):
        for i, (_, width, height) in enumerate(case.images):
            shapes = []
            for k, (label, box, score) in enumerate(case.rows(i, place == "found")):
                left, top, right, bottom = corners(box)
                points = [[right, top], [left, bottom]] if k % 2 else [[left, top], [right, bottom]]
                shape = {"label": label, "points": points, "shape_type": "rectangle", "flags": {}}
                shapes.append(shape if score is None else shape | {"score": score})
            page = {"version": "5.4.1", "flags": {}, "shapes": shapes, "imageData": None}
            page |= {"imagePath": f"..\\p\\{case.last(i)}" if i % 2 else case.last(i)}
            page |= {"imageHeight": height, "imageWidth": width}
            save(folder / place / f"{case.stem(i)}.json", page)
    return Export(folder / "labels", folder / "found")


def fiftyone(case: Case, folder: Path, *, names: bool = False) -> Export:
    """labels.json with indices, crowds and pictures; null for an unlabelled sample."""

    def record(label: str, box: Box, i: int, **more: Any) -> dict[str, Any]:
        key = label if names else case.classes.index(label)
        return {"label": key, "bounding_box": scaled(box, case.images[i]), **more}

    def tree(rows: dict[str, Any]) -> dict[str, Any]:
        return {"classes": None if names else case.classes, "labels": rows}

    truth = {
        case.stem(i): [
            record(label, box, i, attributes={"iscrowd": int(n in case.flagged)})
            for n, label, box in case.on(i)
        ]
        or None
        for i in range(len(case.images))
    }
    found = {
        case.stem(i): [record(label, box, i, confidence=s) for _, label, box, s in case.found(i)]
        for i in range(len(case.images))
    }
    pictures(case, folder / "truth" / "data")
    save(folder / "truth" / "labels.json", tree(truth))
    return Export(folder / "truth", save(folder / "found" / "labels.json", tree(found)), flags=True)


def fiftyone_names(case: Case, folder: Path) -> Export:
    return fiftyone(case, folder, names=True)


def via(case: Case, folder: Path, *, project: bool = False) -> Export:
    """Rectangles; the class is the value of the user's own key."""
    images = {
        f"{case.last(i)}{100 + i}": {
            "filename": case.last(i),
            "size": 100 + i,
            "file_attributes": {},
            "regions": [
                {
                    "shape_attributes": {"name": "rect"}
                    | dict(zip(("x", "y", "width", "height"), box, strict=True)),
                    "region_attributes": {"my kind": label},
                }
                for _, label, box in case.on(i)
            ],
        }
        for i in range(len(case.images))
    }
    tree = {"_via_settings": {}, "_via_img_metadata": images, "_via_attributes": {}}
    sizes = {"image_sizes": sizes_csv(case, folder)}
    return Export(save(folder / "via.json", tree if project else images), truth_options=sizes)


def via_project(case: Case, folder: Path) -> Export:
    return via(case, folder, project=True)


def vott_json(case: Case, folder: Path) -> Export:
    assets = {}
    for i, (name, width, height) in enumerate(case.images):
        asset = {"format": "jpg", "id": f"{i:032x}", "name": case.last(i), "type": 1}
        asset |= {"path": f"file:/p/{quote(name)}", "size": {"width": width, "height": height}}
        regions = [
            {"id": "r", "type": "RECTANGLE", "tags": [label]}
            | {"boundingBox": dict(zip(("left", "top", "width", "height"), box, strict=True))}
            for _, label, box in case.on(i)
        ]
        assets[f"{i:032x}"] = {"asset": asset, "regions": regions, "version": "2.1.0"}
    tree = {"name": "p", "tags": [{"name": n} for n in case.classes], "assets": assets}
    return Export(save(folder / "vott-json-export" / "p-export.json", tree))


def supervisely(case: Case, folder: Path) -> Export:
    """A project; detections have a tag with their confidence."""
    for place in ("truth", "found"):
        kinds = [{"title": name, "shape": "rectangle"} for name in case.classes]
        save(folder / place / "meta.json", {"classes": kinds, "tags": []})
        for i, (_, width, height) in enumerate(case.images):
            objects = []
            for label, box, score in case.rows(i, place == "found"):
                left, top, right, bottom = corners(box)
                points = {"exterior": [[left, top], [right, bottom]], "interior": []}
                tags = [] if score is None else [{"name": "confidence", "value": score}]
                kind = {"classTitle": label, "geometryType": "rectangle"}
                objects.append(kind | {"tags": tags, "points": points})
            page = {"description": "", "tags": [], "size": {"width": width, "height": height}}
            file = folder / place / "set 1" / "ann" / f"{case.last(i)}.json"
            save(file, page | {"objects": objects})
    return Export(folder / "truth", folder / "found")


def darknet(case: Case, folder: Path) -> Export:
    keys = ("center_x", "center_y", "width", "height")
    frames = [
        {
            "frame_id": i + 1,
            "filename": f"data/{image[0]}",
            "objects": [
                {"class_id": c, "name": label, "confidence": score}
                | {"relative_coordinates": dict(zip(keys, scaled(center(box), image), strict=True))}
                for c, label, box, score in case.found(i)
            ],
        }
        for i, image in enumerate(case.images)
    ]
    return Export(None, save(folder / "result.json", frames))


def mmdet(case: Case, folder: Path) -> Export:
    """predictions of the inferencer, with the class names beside."""
    for i in range(len(case.images)):
        rows = case.found(i)
        page = {"labels": [row[0] for row in rows], "scores": [row[3] for row in rows]}
        page["bboxes"] = [list(corners(row[2])) for row in rows]  # type: ignore[misc]
        save(folder / "outputs" / "preds" / f"{case.stem(i)}.json", page)
    names = save(folder / "names.txt", "\n".join(case.classes) + "\n")
    return Export(None, folder / "outputs" / "preds", found_options={"class_names": names})


# --- Hugging Face ---------------------------------------------------------------------------------


def hf_jsonl(case: Case, folder: Path) -> Export:
    """metadata.jsonl with class numbers, beside the pictures."""
    lines = []
    for i in range(len(case.images)):
        rows = case.on(i)
        objects = {"bbox": [list(box) for _, _, box in rows]}
        objects["categories"] = [case.classes.index(label) for _, label, _ in rows]  # type: ignore[misc]
        line = {"file_name": case.last(i), "objects": objects}
        lines.append(json.dumps(line, ensure_ascii=False))
    save(folder / "test" / "metadata.jsonl", "\n".join(lines) + "\n")
    pictures(case, folder / "test")
    names = save(folder / "names.txt", "\n".join(case.classes) + "\n")
    return Export(folder / "test" / "metadata.jsonl", found_options={"class_names": names})


def hf_names(case: Case, folder: Path, *, sized: bool = True) -> Export:
    """Class names, sizes of images, and detections in a file of their own."""
    for place in ("test", "found"):
        text = ""
        for i, (_, width, height) in enumerate(case.images):
            rows = case.rows(i, place == "found")
            objects = {"bbox": [row[1] for row in rows], "category": [row[0] for row in rows]}
            if place == "found":
                objects["score"] = [row[2] for row in rows]  # type: ignore[misc]
            line: dict[str, Any] = {"file_name": case.last(i)}
            line |= {"width": width, "height": height} if sized else {}
            text += json.dumps(line | {"objects": objects}, ensure_ascii=False) + "\n"
        save(folder / place / "metadata.jsonl", text)
    return Export(folder / "test", folder / "found" / "metadata.jsonl")


def hf_parquet(case: Case, folder: Path, *, sized: bool = True) -> Export:
    import pyarrow
    from pyarrow import parquet

    label = {"names": case.classes, "_type": "ClassLabel"}
    features = {"objects": {"feature": {"bbox": {}, "category": label}, "_type": "Sequence"}}
    pictures(case, folder / "p")
    rows = [
        {
            "image": {"bytes": (folder / "p" / case.last(i)).read_bytes(), "path": case.last(i)},
            "image_id": 100 + i,
            "objects": {
                "bbox": [list(box) for _, _, box in case.on(i)],
                "category": [case.classes.index(label) for _, label, _ in case.on(i)],
            },
        }
        | ({"width": image[1], "height": image[2]} if sized else {})
        for i, image in enumerate(case.images)
    ]
    info = json.dumps({"info": {"features": features}})
    data = pyarrow.Table.from_pylist(rows).replace_schema_metadata({"huggingface": info})
    file = folder / "data" / "test-00000-of-00001.parquet"
    file.parent.mkdir(parents=True)
    parquet.write_table(data, file)
    return Export(file)


WRITERS: dict[str, Writer] = {
    writer.__name__: writer
    for writer in (
        *(label_studio, label_studio_local, label_studio_min, label_studio_coco, roboflow_coco),
        *(roboflow_csv, roboflow_retinanet, retinanet, createml, labelme, fiftyone),
        *(fiftyone_names, via, via_project, vott_json, supervisely, darknet, mmdet, hf_jsonl),
        *(hf_names, hf_parquet),
    )
}
WHOLE = ("roboflow_csv", "roboflow_retinanet")
