"""The official programs of FROC: LUNA16 and DeepLesion."""

import csv
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import numpy as np
from stand_ins import Numbers, package

NAMES = ("1/8", "1/4", "1/2", "1", "2", "4", "8", "16")
RATES = 2.0 ** np.arange(-3, 5)


def luna16(folder: Path, checkout: Path) -> Numbers:
    """noduleCADEvaluationLUNA16, whose Python 2 is translated, without its bootstrap."""
    text = (checkout / "noduleCADEvaluationLUNA16.py").read_text()
    text = re.sub(r"^(\s*)print (.*)$", r"\1print(\2)", text, flags=re.MULTILINE)
    for old, new in (
        ("iteritems", "items"),
        ("basex=2", "base=2"),
        ("grid(b=True", "grid(visible=True"),
    ):
        text = text.replace(old, new)
    package("utilities", readCSV=lambda path: list(csv.reader(Path(path).read_text().splitlines())))
    module = ModuleType("noduleCADEvaluationLUNA16")
    exec(compile(text, "noduleCADEvaluationLUNA16.py", "exec"), module.__dict__)
    names = ("annotations", "annotations_excluded", "seriesuids")
    nodules, scans = module.collect(*(str(folder / f"{name}.csv") for name in names))
    with TemporaryDirectory() as output:
        results = str(folder / "results.csv")
        fps, found, *_ = module.evaluateCAD(scans, results, output, nodules, "drawn", 100)
    at = np.interp(RATES[:7], fps, found)
    return {"CPM": float(at.mean())} | named(NAMES, at)


def deeplesion(folder: Path, checkout: Path) -> Numbers:
    """MULAN's detection_eval."""
    root = checkout / "MULAN_universal_lesion_analysis" / "maskrcnn"
    package("maskrcnn")
    package("maskrcnn.config", cfg=None)
    sys.path.insert(0, str(root / "data" / "datasets" / "evaluation" / "DeepLesion"))
    from detection_eval import sens_at_FP
    from pycocotools.coco import COCO

    truth = COCO(str(folder / "truth.json"))
    found = truth.loadRes(str(folder / "dets.json"))
    objects, marks = [], []
    for image in sorted(truth.getImgIds()):
        objects.append(corners(truth.imgToAnns[image], 4))
        marks.append(corners(found.imgToAnns[image], 5))
    at = sens_at_FP(marks, objects, RATES[2:], 0.5)
    return {"CPM": float(at[:4].mean())} | named(NAMES[2:], at)


def corners(records: list[dict], columns: int) -> np.ndarray:
    """(N, 4) inclusive corners of COCO boxes, or (N, 5) with the score."""
    rows = []
    for record in records:
        x, y, w, h = record["bbox"]
        rows.append((x, y, x + w - 1, y + h - 1, record.get("score", 0)))
    return np.array(rows).reshape(-1, 5)[:, :columns]


def named(names: tuple[str, ...], values: np.ndarray) -> Numbers:
    return {f"sensitivity@{name}": float(x) for name, x in zip(names, values, strict=False)}
