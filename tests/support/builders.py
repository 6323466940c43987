"""Small files of the formats that detmap reads, written to order.

The COCO builders begin with two images, one class and one object on the first image; the VOC
builders with the same in VOC's terms, so that a test spells out only what it is about."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Tree = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ROOT / "datasets" / "shapes"

# ---- COCO


def image(**fields: Any) -> Tree:
    return {"id": 1, "file_name": "000001.jpg", "width": 100, "height": 80} | fields


def annotation(**fields: Any) -> Tree:
    return {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        "bbox": [10, 10, 20, 20],
        "area": 400,
        "iscrowd": 0,
    } | fields


def category(**fields: Any) -> Tree:
    return {"id": 1, "name": "cat"} | fields


def detection(**fields: Any) -> Tree:
    return {"image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20], "score": 0.5} | fields


def instances(**groups: Any) -> Tree:
    return {
        "images": [image(), image(id=2, file_name="000002.jpg")],
        "annotations": [annotation()],
        "categories": [category()],
    } | groups


def without(record: Tree, *names: str) -> Tree:
    return {name: value for name, value in record.items() if name not in names}


def write(path: Path, content: Any) -> Path:
    """A file of these bytes, this text, or anything else as JSON."""
    if not isinstance(content, bytes | str):
        content = json.dumps(content)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# ---- VOC


def bndbox(*corners: Any) -> str:
    return "<bndbox>{}</bndbox>".format(
        "".join(
            f"<{side}>{value}</{side}>"
            for side, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
        )
    )


def voc_object(
    name: str = "cat", box: Iterable[Any] = (11, 11, 30, 30), *more: str, difficult: Any = 0
) -> str:
    flag = "" if difficult is None else f"<difficult>{difficult}</difficult>"
    return f"<object><name>{name}</name>{flag}{bndbox(*box)}{''.join(more)}</object>"


def page(*parts: str) -> str:
    """An annotation file of these parts."""
    return f"<annotation>{''.join(parts)}</annotation>"


def write_voc(
    root: Path,
    pages: Mapping[str, str | bytes] | None = None,
    lists: Mapping[str, str] | None = None,
) -> Path:
    """A VOC folder with these annotation files and lists; without lists, ``test`` has all the
    images."""
    pages = {"000001": page(voc_object()), "000002": page()} if pages is None else pages
    lists = {"test": "".join(f"{stem}\n" for stem in pages)} if lists is None else lists
    for stem, content in pages.items():
        write(root / "Annotations" / f"{stem}.xml", content)
    for name, content in lists.items():
        write(root / "ImageSets" / "Main" / f"{name}.txt", content)
    return root


def write_voc_text(folder: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """A folder of VOC detections, each file by the end of its name: ``{"test_cat": lines}``."""
    files = {"test_cat": "000001 0.5 11 11 30 30\n"} if files is None else files
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write(
            folder / (f"{name}.txt" if name.startswith("comp") else f"comp4_det_{name}.txt"),
            content,
        )
    return folder
