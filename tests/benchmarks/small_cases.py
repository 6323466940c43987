"""Small files of each benchmark: truth, detections and what is beside them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.support import builders as make
from tests.support.mat import saved

Files = dict[str, str | bytes]

OPEN_IMAGES: Files = {
    "boxes.csv": "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf\n"
    "a,/m/cat,.1,.3,.1,.3,0\na,/m/animal,.5,.9,.5,.9,1\nb,/m/dog,0,.5,0,.5,0\n",
    "labels.csv": "ImageID,LabelName,Confidence\na,/m/cat,1\nb,/m/dog,1\nc,/m/animal,0\n",
    "labelmap.pbtxt": "".join(
        f'item {{\n  name: "/m/{name}"\n  id: {i}\n}}\n'
        for i, name in enumerate(("animal", "cat", "dog"), 1)
    ),
    "hierarchy.json": json.dumps(
        {
            "LabelName": "/m/root",
            "Subcategory": [
                {
                    "LabelName": "/m/animal",
                    "Subcategory": [{"LabelName": "/m/cat"}, {"LabelName": "/m/dog"}],
                }
            ],
        }
    ),
    "predictions.csv": "ImageID,LabelName,Score,XMin,XMax,YMin,YMax\n"
    "a,/m/cat,.9,.1,.3,.1,.3\na,/m/animal,.8,.1,.3,.1,.3\na,/m/animal,.7,.6,.7,.6,.7\n"
    "b,/m/cat,.6,0,.5,0,.5\nc,/m/cat,.5,0,.5,0,.5\n",
}


def page(*objects: tuple[str, tuple[int, int, int, int]]) -> str:
    return f"<annotation>{''.join(make.voc_object(n, b) for n, b in objects)}</annotation>"


DET: Files = {
    "xml/x.xml": page(("n01", (1, 1, 10, 10)), ("n02", (30, 30, 80, 80))),
    "xml/y.xml": page(("n01", (5, 5, 60, 60))),
    "val.txt": "x 2\ny 1\n",
    "synsets.txt": "n01\nn02\n",
    "blacklist.txt": "1 n01\n",
    "dets.txt": "2 1 .9 1 1 10 4\n2 2 .8 30 30 80 80\n1 1 .7 5 5 60 60\n2 1 .6 40 40 50 50\n",
}
VID: Files = {
    "Annotations/VID/v/0.xml": page(("n02691156", (1, 1, 50, 50)), ("n02419796", (60, 60, 99, 99))),
    "Annotations/VID/v/1.xml": page(),
    "VID_val_frames.txt": "v/0 1\nv/1 2\n",
    "motion_iou.mat": saved({"motion_iou": [np.array([[0.95], [0.5]]), np.zeros((0, 0))]}, False),
    "dets.txt": "1 1 .9 1 1 50 50\n1 1 .8 60 60 99 99\n2 1 .7 5 5 60 60\n1 2 .6 200 200 220 220\n",
}
VISDRONE: Files = {
    "annotations/a.txt": "1,1,20,20,1,4,0,0\n40,40,20,20,0,4,0,0,\n60,1,30,30,0,0,0,0\n"
    "62,5,10,10,1,4,0,0\n1,60,9,9,1,11,0,0\n",
    "annotations/b.txt": "10,10,30,10,1,1,0,0\n",
    "results/a.txt": "40,40,20,20,.5,4,-1,-1\n1,1,20,20,.9,4,-1,-1\n61,4,10,10,.8,4,-1,-1\n",
    "results/b.txt": "10,10,30,10,.7,1,-1,-1\n10,10,30,10,.6,11,-1,-1\n",
    "sizes.txt": "a 100 90\nb 100 90\n",
}
UAVDT: Files = {
    "M1_gt_whole.txt": "1,1,10,10,50,40,1,1,0\n2,1,12,10,50,40,1,1,0\n",
    "M1_gt_ignore.txt": "1,-1,100,100,60,60,1,-1,-1\n",
    "M1_det.txt": "1,-1,10,10,50,40,.9,1,-1\n1,-1,101,101,20,20,.8,1,-1\n2,-1,90,10,50,40,.7,1,-1\n"
    "1,-1,100,101,20,20,.6,1,-1\n",
}


def frame(name: str, *labels: tuple[str, float, tuple[int, int, int, int], dict[str, Any]]) -> Any:
    """A frame of Scalabel: labels of a class, a score, a box and attributes."""
    return {
        "name": name,
        "labels": [
            {
                "category": kind,
                "score": score,
                "attributes": more,
                "box2d": dict(zip(("x1", "y1", "x2", "y2"), box, strict=True)),
            }
            for kind, score, box, more in labels
        ],
    }


BDD100K: Files = {
    "truth.json": json.dumps(
        [
            frame("b.jpg", ("car", 1, (0, 0, 9, 9), {}), ("lane", 1, (0, 0, 5, 5), {})),
            frame("a.jpg", ("car", 1, (0, 0, 99, 99), {"ignored": True})),
        ]
    ),
    "dets.json": json.dumps(
        [
            frame("a.jpg", ("car", 0.9, (5, 5, 20, 20), {})),
            frame("b.jpg", ("car", 0.8, (0, 0, 9, 9), {})),
        ]
    ),
}

CASES: dict[str, tuple[Files, str, str]] = {
    "openimages-v2": (OPEN_IMAGES, "boxes.csv", "predictions.csv"),
    "openimages-challenge": (OPEN_IMAGES, "boxes.csv", "predictions.csv"),
    "imagenet-det": (DET, "xml", "dets.txt"),
    "imagenet-vid": (VID, "Annotations", "dets.txt"),
    "visdrone": (VISDRONE, "annotations", "results"),
    "uavdt": (UAVDT, ".", "."),
    "bdd100k": (BDD100K, "truth.json", "dets.json"),
}
"""Files, truth and detections, by protocol."""


def written(folder: Path, protocol: str, **changed: str | bytes | None) -> tuple[Path, Path, str]:
    """Writes a case, with some files changed (None: left out); the arguments of `evaluate`."""
    files, truth, detections = CASES[protocol]
    for name, content in {**files, **changed}.items():
        if content is None:
            (folder / name).unlink(missing_ok=True)
        else:
            make.write(folder / name, content)
    return folder / truth, folder / detections, protocol
