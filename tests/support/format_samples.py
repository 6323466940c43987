"""A tiny sample in each format that detmap reads: the same boxes, by `varied_writers` and others.

A function writes the sample into a folder and returns the paths of the ground truth and of the
detections: COCO JSON or CSV where the format has no such file. All samples hold the same boxes of
the same two classes on three images of 64 x 32 pixels, the last of them without objects, so that
all give the same number.

CORE, TOOLS : formats with a row in the registry, of the core and of annotation tools
VARIANTS : further files of these formats
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.support import varied_exports as exports
from tests.support import varied_json_writers as tools
from tests.support import varied_writers as texts

STEMS = ("a", "b", "c")
NAMES = ("cat", "dog")
OBJECTS = (("a", "cat", (8, 4, 16, 8)), ("a", "dog", (32, 8, 16, 16)), ("b", "cat", (0, 0, 32, 16)))
"""Stem, class, and left, top, width, height in continuous pixels from 0."""
DETECTIONS = (
    ("a", "cat", (8, 4, 16, 8), 0.875),
    ("a", "dog", (32, 8, 16, 12), 0.75),
    ("b", "dog", (4, 4, 8, 8), 0.625),
    ("b", "cat", (4, 0, 28, 16), 0.5),
    ("c", "cat", (16, 8, 32, 16), 0.25),
)
Paths = tuple[Path, Path]


def case() -> exports.Case:
    """The sample."""
    return exports.Case(
        [(f"{stem}.png", 64, 32) for stem in STEMS],
        list(NAMES),
        [(STEMS.index(stem), NAMES.index(name), box) for stem, name, box in OBJECTS],
        [(STEMS.index(stem), NAMES.index(name), *rest) for stem, name, *rest in DETECTIONS],
    )


def pictures(folder: Path) -> Path:
    """Writes the three images, gray PNG files."""
    return exports.pictures(case(), folder)


def sample(
    writer: exports.Writer,
    detections: exports.Writer | None = None,
    *,
    truth: str | None = None,
    found: str | None = None,
) -> Callable[[Path], Paths]:
    """A function that writes the sample. It returns the paths `truth` and `found` of its folder in
    place of the writer's own; `detections` writes the detections if another writer does.
    """

    def write(folder: Path) -> Paths:
        made = writer(case(), folder)
        other = made if detections is None else detections(case(), folder)
        return (
            folder / truth if truth is not None else made.truth or coco(folder / "coco")[0],
            folder / found if found else other.found or exports.plain_csv(case(), folder / "csv"),
        )

    return write


def coco(folder: Path) -> Paths:
    return exports.coco(case(), folder)


CORE: dict[str, Callable[[Path], Paths]] = {
    "coco": coco,
    "voc": sample(texts.comp4),
    "yolo": sample(texts.yolo_yaml),
    "csv": sample(texts.plain),
    "cartucho": sample(texts.cartucho),
    "kitti": sample(texts.kitti),
}
TOOLS = {
    "roboflow": sample(tools.roboflow_coco, truth=""),
    "retinanet": sample(tools.retinanet),
    "cvat": sample(texts.cvat),
    "labelstudio": sample(tools.label_studio),
    "labelme": sample(tools.labelme),
    "darknet": sample(tools.darknet),
    "fiftyone": sample(tools.fiftyone),
    "createml": sample(partial(tools.createml, name="t.json")),
    "via": sample(tools.via),
    "supervisely": sample(tools.supervisely),
    "vott": sample(tools.vott_json),
    "huggingface": sample(tools.hf_names),
    "ultralytics-json": sample(texts.to_json),
    "mmdet-preds": sample(tools.fiftyone, tools.mmdet, found="outputs"),
}
VARIANTS = {
    "roboflow-csv": sample(tools.roboflow_csv),
    "roboflow-retinanet": sample(tools.roboflow_retinanet),
    "labelstudio-min": sample(tools.label_studio_min),
    "yolo-darknet": sample(texts.yolo_cvat_pictures, truth=""),
    "yolo-labels": sample(partial(texts.yolo_label_studio, name="{1}")),
    "datumaro-kitti": sample(texts.kitti_datumaro, texts.deepstream),
    "via-project": sample(tools.via_project),
    "huggingface-parquet": sample(partial(tools.hf_parquet, sized=False), truth="data"),
    "rotated-predictions": sample(texts.rotated_predictions),
}
SAMPLES = CORE | TOOLS | VARIANTS
