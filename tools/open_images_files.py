"""Draws files of Open Images' size: boxes, labels, label map, hierarchy and predictions in CSV.

python tools/open_images_files.py FOLDER [IMAGES]
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

IMAGES, CLASSES, OBJECTS, FOUND = 41_620, 500, 12, 30  # the last two per image


def write(folder: Path, n_images: int = IMAGES) -> None:
    """Writes the files; 20 classes are below the root, 80 below these, and 400 below those."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    ids = np.array([f"{i * 0x9E3779B97F4A7C15 % 2**64:016x}" for i in range(n_images)])
    names = np.array([f"/m/{k:05x}" for k in range(CLASSES)])
    nodes: list[dict[str, Any]] = [{"LabelName": str(name)} for name in names]
    for begin, end, above in ((100, CLASSES, (20, 100)), (20, 100, (0, 20))):
        for k in range(begin, end):
            parent = nodes[int(rng.integers(*above))]
            parent.setdefault("Subcategory", []).append(nodes[k])
    tree = {"LabelName": "/m/0bl9f", "Subcategory": nodes[:20]}
    (folder / "hierarchy.json").write_text(json.dumps(tree))
    items = (f'item {{\n  name: "{name}"\n  id: {k}\n}}\n' for k, name in enumerate(names, 1))
    (folder / "labelmap.pbtxt").write_text("".join(items))

    n = n_images * OBJECTS
    image = np.sort(rng.integers(0, n_images, n))
    present = rng.integers(0, CLASSES, (n_images, 4))
    label = present[image, rng.integers(0, 4, n)]
    first = rng.random((n, 2)) * 0.7
    boxes = np.hstack([first, first + 0.02 + rng.random((n, 2)) * 0.28])
    groups = (rng.random(n) < 0.06).astype(int)
    _rows(folder / "boxes.csv", "IsGroupOf", ids[image], names[label], [], boxes, groups)
    with (folder / "labels.csv").open("w") as file:
        file.write("ImageID,LabelName,Confidence\n")
        for i, own in enumerate(present):
            absent = np.setdiff1d(rng.integers(0, CLASSES, 5), own)
            for kind, classes in ((1, np.unique(own)), (0, absent)):
                file.writelines(f"{ids[i]},{names[k]},{kind}\n" for k in classes)

    source = np.sort(rng.integers(0, n, n_images * FOUND))
    moved = np.clip(boxes[source] + rng.normal(0, 0.02, (len(source), 4)), 0, 1)
    corners = (np.minimum(moved[:, :2], moved[:, 2:]), np.maximum(moved[:, :2], moved[:, 2:]))
    other = rng.integers(0, CLASSES, len(source))
    found = np.where(rng.random(len(source)) < 0.6, label[source], other)
    score, where = rng.random(len(source)), folder / "predictions.csv"
    _rows(where, "", ids[image[source]], names[found], score, np.hstack(corners), [])


def _rows(path: Path, last: str, ids: Any, names: Any, score: Any, boxes: Any, flags: Any) -> None:
    scores = [f"{each:.7f}," for each in score] or [""] * len(ids)
    ends = [f",{each}" for each in flags] or [""] * len(ids)
    columns = zip(ids, names, scores, boxes[:, [0, 2, 1, 3]].tolist(), ends, strict=True)
    head = ["ImageID,LabelName", *["Score"] * bool(len(score)), "XMin,XMax,YMin,YMax"]
    with path.open("w") as file:
        file.write(",".join([*head, *[last] * bool(last)]) + "\n")
        for each, name, value, box, end in columns:
            file.write(f"{each},{name},{value}{','.join(f'{x:.6f}' for x in box)}{end}\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:]))
