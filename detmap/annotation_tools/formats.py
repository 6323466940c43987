"""The table of formats of annotation tools."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from detmap.core.adapters.format_rows import Format, Place, lazy, nothing
from detmap.core.base.open_files import shown
from detmap.errors import DataError

HERE = "detmap.annotation_tools"
SIZES, NAMED = ("image_sizes",), ("roles", "attributes")


def tool(
    name: str,
    place: Place,
    what: str,
    options: tuple[str, ...] = (),
    detection_options: tuple[str, ...] = (),
    *,
    module: str = "",
    looks: tuple[str, str] | None = None,
) -> Format:
    """Returns the row of a format.

    Parameters
    ----------
    module : of its readers; default: the name of the format
    looks : functions of `detmap.annotation_tools.looks` for ground truth and detections, "" for
        none; default: one of the module's name for both
    """
    module = module or name
    truth, found = (
        lazy(f"{HERE}.looks:{each}") if each else nothing for each in looks or (module, module)
    )
    home = f"{HERE}.{module}"
    readers = lazy(f"{home}:read_truth"), lazy(f"{home}:read_detections")
    return Format(name, place, truth, found, *readers, options, detection_options, what)


def no_detections(path: Path, *_: Any, **__: Any) -> NoReturn:
    """Raises the error for a format that has ground truth only."""
    fix = "give the detector's own output, such as COCO results or CSV with a column score"
    raise DataError(shown(path), "a file of annotations, without scores", fix)


def no_truth(writer: str, example: str) -> Callable[..., NoReturn]:
    """Returns a reader that raises the error for a format that has detections only."""

    def read_truth(path: Path, **_: Any) -> NoReturn:
        what = f"detections of {writer}, not a ground truth"
        raise DataError(shown(path), what, f"give the {example}")

    return read_truth


FORMATS: tuple[Format, ...] = (
    tool(
        "roboflow",
        "a file or a folder",
        "Roboflow: _annotations.coco.json or .csv of a split",
        ("split", "shapes", "box_format", *SIZES, *NAMED),
        looks=("roboflow", ""),
    )._replace(read_detections=no_detections),
    tool(
        "retinanet",
        "a file",
        "CSV without a header: image, four corners, class, and score",
        ("box_format", *SIZES, *NAMED),
        ("box_format",),
        module="retinanet_csv",
        looks=("retinanet", "retinanet_detections"),
    ),
    tool(
        "cvat",
        "a file or a folder",
        "CVAT for images 1.1: annotations.xml",
        NAMED,
        looks=("cvat", ""),
    )._replace(read_detections=no_detections),
    tool(
        "labelstudio",
        "a file",
        "Label Studio: JSON or JSON-MIN, and predictions in JSON",
        module="label_studio",
        looks=("labelstudio", "labelstudio_detections"),
    ),
    tool(
        "labelme",
        "a file or a folder",
        "LabelMe: one JSON file per image",
        NAMED,
        looks=("labelme", "labelme_detections"),
    ),
    tool(
        "darknet",
        "a file",
        "Darknet: detections of -out result.json",
        module="darknet_json",
        looks=("", "darknet"),
    )._replace(read_truth=no_truth("Darknet", "labels of the data set, such as its obj.data")),
    tool("fiftyone", "a file or a folder", "FiftyOne's labels.json", SIZES + NAMED),
    tool("createml", "a file or a folder", "CreateML JSON, a list of images", SIZES),
    tool("via", "a file", "VGG Image Annotator JSON", SIZES)._replace(
        read_detections=no_detections
    ),
    tool("supervisely", "a folder", "a Supervisely project or dataset", NAMED),
    tool("vott", "a file", "VoTT's JSON export", SIZES)._replace(read_detections=no_detections),
    tool(
        "huggingface",
        "a file or a folder",
        "Hugging Face: metadata.jsonl, or Parquet with a column objects",
        ("split", "box_format", *SIZES, *NAMED),
        ("box_format",),
    ),
    *(
        tool(
            name, "a folder", f"{what}, one file per image", module=module, looks=("", module)
        )._replace(read_truth=no_truth(writer, example))
        for name, module, what, writer, example in (
            (
                *("ultralytics-json", "ultralytics_json", "Results.to_json() of Ultralytics"),
                *("Ultralytics", "labels of the data set, such as its data.yaml"),
            ),
            (
                *("mmdet-preds", "mmdet_predictions", "predictions of mmdetection's inferencer"),
                *("mmdetection", "annotations of the data set, such as its COCO JSON"),
            ),
        )
    ),
)
