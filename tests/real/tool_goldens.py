"""detmap's numbers beside those that the original codes of tools printed."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import detmap
from detmap.core.tables import Categories, Detections, Images, Truth
from detmap.reproducibility.parity.restated_tools import MatchedOnce

LIMIT = 1e-14

YOLO = {"mAP50": "mAP50", "mAP50_95": "mAP50-95", "P": "P", "R": "R"}
COCO = {name: name for name in ("AP", "AP50", "AP75", "APs", "APm", "APl")}
RECALL = {name: name for name in ("AR1", "AR10", "AR100", "ARs", "ARm", "ARl")}
SIZES = (("small", "s"), ("medium", "m"), ("large", "l"))
OD_METRICS = {
    "mAP@[.5 | all | 100]": "AP50",
    "mAP@[.5:.95 | all | 100]": "AP",
    "mAP@[.75 | all | 100]": "AP75",
    "mAR@[.5 | all | 100]": "AR50",
    "mAR@[.75 | all | 100]": "AR75",
    **{f"mAP@[.5:.95 | {size} | 100]": f"AP{s}" for size, s in SIZES},
    **{f"mAR@[.5:.95 | all | {n}]": f"AR{n}" for n in (1, 10, 100)},
    **{f"mAR@[.5:.95 | {size} | 100]": f"AR{s}" for size, s in SIZES},
}
REVIEW = {name: name for name in ("AP", "AP50", "AP75", "AR1", "AR10", "AR100")}
LONG = {f"{kind}{size}": f"{kind}{s}" for kind in ("AP", "AR") for size, s in SIZES}
TORCH = ("map", "map_50", "map_75", "map_small", "map_medium", "map_large")
TORCH += ("mar_1", "mar_10", "mar_100", "mar_small", "mar_medium", "mar_large")

# Golden -> protocol, and further numbers of the golden -> rows of the result.
TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "besdev": ("bes-dev", {}),
    "cartucho": ("cartucho", {}),
    "chainercv_07": ("chainercv-07", {}),
    "chainercv_area": ("chainercv-12", {}),
    "darknet_0": ("darknet-0", {}),
    "darknet_11": ("darknet-11", {}),
    "darknet_101": ("darknet-101", {}),
    "detectron2_07": ("detectron2-voc07", {k: k for k in ("AP", "AP50", "AP75")}),
    "detectron2_12": ("detectron2-voc12", {k: k for k in ("AP", "AP50", "AP75")}),
    "devkit_octave_07": ("voc-devkit-07", {}),
    "devkit_octave_12": ("voc-devkit-12", {}),
    "effdet_oidchallenge": ("tfod-oidchallenge", {}),
    "effdet_oidv2": ("tfod-oidv2", {}),
    "effdet_pascal": ("tfod-pascal", {}),
    "effdet_weighted": ("tfod-weighted", {}),
    "fiftyone": ("fiftyone", {"AP50": "AP50"}),
    "globox": ("globox", REVIEW | COCO),
    "gluoncv_07": ("gluoncv-07", {}),
    "gluoncv_area": ("gluoncv-12", {}),
    "keras_retinanet": ("keras-retinanet", {}),
    "mmdet_11points": ("mmdet-voc07", {}),
    "mmdet_area": ("mmdet-voc12", {}),
    "mmdet_area_nolegacy": ("mmdet-voc12-nolegacy", {}),
    "mmdet_cocometric": ("mmdet-coco", {}),
    "mmeval_11points": ("mmeval-07", {}),
    "mmeval_area": ("mmeval-12", {}),
    "od_metrics": ("od-metrics", OD_METRICS),
    "podm_voc_11": ("podm-11", {}),
    "podm_voc_area": ("podm-area", {}),
    "pycocotools": ("pycocotools", COCO | RECALL),
    "pyfrcnn_07": ("py-faster-rcnn-07", {}),
    "pyfrcnn_area": ("py-faster-rcnn-12", {}),
    "rafael_odm_11": ("rafaelpadilla-odm-11", {}),
    "rafael_odm_area": ("rafaelpadilla-odm-area", {}),
    "rafael_review_coco": ("rafaelpadilla-review-coco", REVIEW | LONG),
    "rafael_review_voc_11": ("rafaelpadilla-review-11", {}),
    "rafael_review_voc_area": ("rafaelpadilla-review-area", {}),
    "ssd_pytorch_07": ("ssd-pytorch-07", {}),
    "ssd_pytorch_area": ("ssd-pytorch-12", {}),
    "supervision": ("supervision", {k: k for k in ("AP50", "AP75", "APs", "APm", "APl")}),
    "tfod_pascal": ("tfod-ava", {}),
    "tfod_weighted": ("tfod-ava-weighted", {}),
    "tide": ("tide", {"AP": "AP", "AP75": "AP75"}),
    "torchmetrics": ("torchmetrics", {name: name for name in TORCH}),
    "ultralytics_8_3_0": ("ultralytics-8.3", YOLO),
    "ultralytics_8_4_190": ("ultralytics-8.4", YOLO),
    "yolov5": ("yolov5", YOLO),
}
IN_PERCENT = ("detectron2_07", "detectron2_12", "tide")
AT_25 = ("darknet-25", {"P25": "P", "R25": "R", "F1_25": "F1"})
ALSO: dict[str, tuple[str, dict[str, str]]] = {
    "keras_retinanet": ("keras-retinanet-weighted", {"weighted": "mAP"}),
    "darknet_0": AT_25,
    "darknet_11": AT_25,
    "darknet_101": AT_25,
    "besdev": ("bes-dev-07", {"voc07": "mAP"}),
    "mmdet_cocometric": (
        "mmdet-coco-1000",
        {f"mAP_{what}": f"mAP_{what}" for what in (50, 75, "s", "m", "l")}
        | {f"AR@{n}": f"AR@{n}" for n in (100, 300, 1000)}
        | {f"AR_{s}@1000": f"AR_{s}@1000" for s in "sml"},
    ),
}
"""Numbers of a golden that are rows of another protocol."""
CLASSES = ("per_class", "per_class_AP50", "voc_area_per_class")


@dataclass(frozen=True)
class Difference:
    """Of one number: its golden, where, what, and detmap's number less the golden."""

    tool: str
    data: str
    what: str
    found: float
    golden: float

    @property
    def size(self) -> float:
        undefined = math.isnan(self.golden) or self.golden == -1
        if undefined:
            return 0.0 if math.isnan(self.found) or self.found == self.golden else math.inf
        return math.inf if math.isnan(self.found) else abs(self.found - self.golden)


def tables(content: dict[str, Any]) -> tuple[Truth, Detections]:
    """A small set: boxes of VOC, lists in the order of the file."""
    stems, names = sorted(content["images"]), sorted(content["classes"])
    unknown = np.full(len(stems), np.nan)
    images = Images(np.array(stems), tuple(stems), unknown, unknown)
    classes = Categories(np.arange(1, len(names) + 1), tuple(names))

    def columns(rows: list[dict[str, Any]]) -> tuple[Any, Any, Any]:
        return (
            np.array([stems.index(row["image"]) for row in rows], dtype=np.int32),
            np.array([names.index(row["class"]) for row in rows], dtype=np.int32),
            np.array([row["box"] for row in rows], dtype=float).reshape(-1, 4),
        )

    image, label, boxes = columns(content["truth"])
    sides = boxes[:, 2:] - boxes[:, :2] + 1
    truth = Truth(
        images,
        classes,
        image,
        label,
        boxes,
        roles={"difficult": np.array([bool(row["difficult"]) for row in content["truth"]], bool)},
        attributes={"area": sides[:, 0] * sides[:, 1]},
        box_format="voc",
        family="voc",
    )
    image, label, boxes = columns(content["detections"])
    score = np.array([row["score"] for row in content["detections"]], dtype=float)
    return truth, Detections(images, classes, image, label, boxes, score, box_format="voc")


def crashed(golden: dict[str, Any]) -> bool:
    """Whether the original code stopped with an error on this input."""
    classes = golden.get("per_class") or {}
    return "error" in golden or any(isinstance(ap, str) for ap in classes.values())


def compared(
    name: str, known: MatchedOnce, goldens: dict[str, Any]
) -> Iterator[tuple[str, list[Difference], list[str]]]:
    """For each tool with a golden on this data: its differences, and the codes of its notes."""
    for tool, (protocol, rows) in TOOLS.items():
        golden = goldens[tool].get(name)
        if golden is None:
            continue
        result = known.result(detmap.load_protocol(protocol))
        codes = [note.code for note in result.notes]
        if crashed(golden):
            yield tool, [], codes
            continue
        scale = 100 if tool in IN_PERCENT else 1
        first = next(iter(result.metrics.values()))
        wanted = {"mAP": (first, golden.get("mAP", golden.get("AP")))}
        wanted |= {key: (result.metrics[row], golden[key]) for key, row in rows.items()}
        found = [Difference(tool, name, k, a, b / scale) for k, (a, b) in wanted.items()]
        if tool in ALSO:
            other, also = ALSO[tool]
            second = known.result(detmap.load_protocol(other))
            values = second.metrics
            found += [Difference(tool, name, k, values[row], golden[k]) for k, row in also.items()]
            found += _class_numbers(tool, name, second, golden, ["voc07_per_class"])
        found += _class_numbers(tool, name, result, golden, CLASSES)
        yield tool, found, codes


def _class_numbers(
    tool: str, name: str, result: detmap.Result, golden: dict[str, Any], keys: Iterable[str]
) -> Iterator[Difference]:
    classes = next((golden[key] for key in keys if key in golden), {})
    at_50 = "per_class_AP50" in golden or "mAP50" in golden
    for row in result.per_class:
        expected = classes.get(row["name"])
        if expected is not None:
            value = row["AP50"] if at_50 and "AP50" in row else row.get("mAP50", row.get("AP"))
            yield Difference(tool, name, f"class {row['name']}", value, expected)
