"""The table of formats: how to detect a format, its readers, and their options.

To add a format: one module that reads it, and one row here (`docs/add-a-format.md`). Rows name
functions as text, so that only the module of the chosen format is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from detmap.tables import Detections, Truth

Place = Literal["a file", "a folder", "a file or a folder"]
Looks = Callable[[Path], int]
"""How well a path matches a format: 0 no, 1 possibly, 2 it has a mark of the format, 3 its files
have names or content of their own, 4 also if another format reads one of its files, -1 only if the
user names the format."""


class Format(NamedTuple):
    """A detection format: its ground truth and its detections.

    Parameters
    ----------
    truth_looks, detections_look : score how well a path matches the format
    read_truth : called with the path, and the options by name
    read_detections : called with the path, the ground truth, the ``policy`` about unknown images
        and classes, and the options by name
    options, detection_options : options of `read_truth` and `read_detections`
    """

    name: str
    place: Place
    truth_looks: Looks
    detections_look: Looks
    read_truth: Callable[..., Truth]
    read_detections: Callable[..., Detections]
    options: tuple[str, ...] = ()
    detection_options: tuple[str, ...] = ()
    what: str = ""


def _lazy(place: str) -> Callable[..., Any]:
    """Returns a function that imports ``module.function`` of this folder when it is called."""
    module, *names = place.split(".")

    def call(*given: Any, **told: Any) -> Any:
        function: Any = import_module("detmap.adapters." + module.replace("/", "."))
        for name in names:
            function = getattr(function, name)
        return function(*given, **told)

    return call


def _file(path: Path) -> int:
    return int(not path.is_dir())


def _file_if_asked(path: Path) -> int:
    """Matches any file, but never before another format."""
    return -_file(path)


def _file_with(*suffixes: str) -> Looks:
    """Matches files with one of these suffixes, ignoring case."""
    return lambda path: 2 * (not path.is_dir() and path.suffix.lower() in suffixes)


def _predictions(path: Path) -> int:
    """Matches file names of Ultralytics' predictions."""
    return 2 * (path.name.lower() == "predictions.json")


def _folder_or(file: Looks, folder: str) -> Looks:
    """Scores files by `file` and folders by the named function."""
    return lambda path: _lazy(folder)(path) if path.is_dir() else file(path)


def _closer(function: str) -> Looks:
    """Calls a function of a reader's module only for folders, and files that may be of it."""
    may_be, looks = _lazy("annotation_tools/looks.may_be"), _lazy(f"annotation_tools/{function}")
    module = function.partition(".")[0]
    return lambda path: looks(path) if may_be(path, module) else 0


def _file_like(suffix: str, look: str) -> Looks:
    """Scores files with this suffix by the named function, so that others do not import it."""
    return lambda path: _lazy(look)(path) if _file_with(suffix)(path) else 0


def _nothing(_: Path) -> int:
    return 0


NO_DETECTIONS = _lazy("annotation_tools/export_tables.no_detections")
CSV, PARQUET = _file_with(".csv", ".tsv"), _file_with(".parquet", ".pq")
TABLES: tuple[tuple[str, Place, Looks, Looks], ...] = (
    ("csv", "a file or a folder", CSV, _folder_or(CSV, "tabular/column_tables.looks")),
    ("parquet", "a file or a folder", PARQUET, _folder_or(PARQUET, "tabular/csv_parquet.looks")),
)

SIZES, NAMED = ("image_sizes",), ("roles", "attributes")
LOOKS = "annotation_tools/looks"


def _row(
    name: str,
    place: Place,
    module: str,
    truth_looks: Looks,
    detections_look: Looks,
    what: str,
    options: tuple[str, ...] = (),
    detection_options: tuple[str, ...] = (),
) -> Format:
    """Returns the row of a format whose module has `read_truth` and `read_detections`."""
    readers = (_lazy(f"{module}.read_truth"), _lazy(f"{module}.read_detections"))
    return Format(
        name, place, truth_looks, detections_look, *readers, options, detection_options, what
    )


def _export(
    name: str, place: Place, what: str, options: tuple[str, ...], *, scored: bool = True
) -> Format:
    """Returns the row of an annotation tool, whose module has the name of the format."""
    module = f"annotation_tools/{name}"
    looks, read = _lazy(f"{LOOKS}.{name}"), _lazy(f"{module}.read_truth")
    found = _lazy(f"{module}.read_detections") if scored else NO_DETECTIONS
    return Format(name, place, looks, looks, read, found, options=options, what=what)


FORMATS: tuple[Format, ...] = (
    _row(
        "coco",
        "a file",
        "coco/shapes",
        _file,
        _file,
        "COCO JSON: instances, and results or annotations",
        options=("shapes", "roles", "attributes"),
    ),
    _row(
        "voc",
        "a folder",
        "voc/devkit",
        _folder_or(_nothing, "voc/folder_layout.looks"),
        _folder_or(_nothing, "voc/result_files.looks"),
        "VOC: Annotations/*.xml, and one text file per class",
        options=("split", "box_format"),
    ),
    _row(
        "yolo",
        "a file or a folder",
        "text_per_image/yolo",
        _folder_or(_file_with(".yaml", ".yml", ".data"), "text_per_image/yolo.truth_looks"),
        _folder_or(_predictions, "text_per_image/yolo.detections_look"),
        "YOLO: data.yaml, obj.data or a folder of labels, and predictions",
        options=("split", "image_sizes"),
    ),
    *(
        Format(
            name,
            place,
            truth_looks,
            detections_look,
            _lazy(f"tabular/column_tables.read_{name}_truth"),
            _lazy(f"tabular/column_tables.read_{name}_detections"),
            options=("box_format", "image_sizes", "shapes", "roles", "attributes"),
            detection_options=("box_format",),
            what=f"{name} with one row per box, in named columns",
        )
        for name, place, truth_looks, detections_look in TABLES
    ),
    *(
        _row(
            name.lower(),
            "a folder",
            f"text_per_image/cartucho_rafaelpadilla.{name}",
            _folder_or(_nothing, f"text_per_image/cartucho_rafaelpadilla.{name}.truth_looks"),
            _folder_or(_nothing, f"text_per_image/cartucho_rafaelpadilla.{name}.detections_look"),
            f"text of {name.lower()}'s tool, one file per image",
            options=("box_format", "image_sizes"),
            detection_options=("box_format",),
        )
        for name in ("CARTUCHO", "RAFAELPADILLA")
    ),
    Format(
        "roboflow",
        "a file or a folder",
        _closer("roboflow.looks"),
        _nothing,
        _lazy("annotation_tools/roboflow.read_truth"),
        NO_DETECTIONS,
        options=("split", "shapes", "box_format", "image_sizes", "roles", "attributes"),
        what="Roboflow: _annotations.coco.json or .csv of a split",
    ),
    _row(
        "retinanet",
        "a file",
        "annotation_tools/retinanet_csv",
        _closer("retinanet_csv.looks"),
        _closer("retinanet_csv.detections_look"),
        "CSV without a header: image, four corners, class, and score",
        options=("box_format", "image_sizes", "roles", "attributes"),
        detection_options=("box_format",),
    ),
    Format(
        "cvat",
        "a file or a folder",
        _closer("cvat.looks"),
        _nothing,
        _lazy("annotation_tools/cvat.read_truth"),
        NO_DETECTIONS,
        options=("roles", "attributes"),
        what="CVAT for images 1.1: annotations.xml",
    ),
    _row(
        "labelstudio",
        "a file",
        "annotation_tools/label_studio",
        _closer("label_studio.looks"),
        _closer("label_studio.detections_look"),
        "Label Studio: JSON or JSON-MIN, and predictions in JSON",
    ),
    _row(
        "labelme",
        "a file or a folder",
        "annotation_tools/labelme",
        _closer("labelme.looks"),
        _closer("labelme.detections_look"),
        "LabelMe: one JSON file per image",
        options=("roles", "attributes"),
    ),
    _row(
        "darknet",
        "a file",
        "annotation_tools/darknet_json",
        _nothing,
        _closer("darknet_json.looks"),
        "Darknet: detections of -out result.json",
    ),
    _row(
        "kitti",
        "a folder",
        "text_per_image/kitti",
        _folder_or(_nothing, "text_per_image/kitti.truth_looks"),
        _folder_or(_nothing, "text_per_image/kitti.detections_look"),
        "KITTI text: label_2 and results, one file per image",
        options=("image_sizes",),
    ),
    _export("fiftyone", "a file or a folder", "FiftyOne's labels.json", SIZES + NAMED),
    _export("createml", "a file or a folder", "CreateML JSON, a list of images", SIZES),
    _export("via", "a file", "VGG Image Annotator JSON", SIZES, scored=False),
    _export("supervisely", "a folder", "a Supervisely project or dataset", NAMED),
    _export("vott", "a file", "VoTT's JSON export", SIZES, scored=False),
    _row(
        "huggingface",
        "a file or a folder",
        "annotation_tools/huggingface",
        _lazy(f"{LOOKS}.huggingface"),
        _lazy(f"{LOOKS}.huggingface"),
        "Hugging Face: metadata.jsonl, or Parquet with a column objects",
        options=("split", "box_format", *SIZES, *NAMED),
        detection_options=("box_format",),
    ),
    *(
        _row(
            name,
            "a folder",
            f"annotation_tools/{module}",
            _nothing,
            _lazy(f"{LOOKS}.{module}"),
            f"{what}, one file per image",
        )
        for name, module, what in (
            ("ultralytics-json", "ultralytics_json", "Results.to_json() of Ultralytics"),
            ("mmdet-preds", "mmdet_predictions", "predictions of mmdetection's inferencer"),
        )
    ),
    _row(
        "dota",
        "a folder",
        "rotated/dota",
        _folder_or(_nothing, "rotated/dota.truth_looks"),
        _folder_or(_nothing, "rotated/dota.detections_look"),
        "DOTA: labelTxt, and Task1_<class>.txt",
        options=("shapes",),
    ),
    Format(
        "rotated-xml",
        "a folder",
        _folder_or(_nothing, "rotated/xml_folder.truth_looks"),
        _nothing,
        _lazy("rotated/xml_folder.read_truth"),
        _lazy("rotated/dota.read_detections"),
        options=("shapes", "split"),
        what="HRSC2016 and DIOR-R: a folder of XML; detections as for dota",
    ),
    _row(
        "coco-wholebody",
        "a file",
        "coco/whole_body",
        _file_if_asked,
        _file_if_asked,
        "COCO-WholeBody: COCO JSON with keypoints of body, feet, face and hands",
        options=("shapes", "roles", "attributes"),
    ),
    _row(
        "open-images",
        "a file",
        "open_images",
        _file_like(".csv", "open_images.looks"),
        _file_like(".csv", "open_images.looks"),
        "Open Images: CSV of boxes, with labels, label map and hierarchy beside it",
    ),
    *(
        Format(
            f"imagenet-{name}",
            "a file or a folder",
            _folder_or(_nothing, f"ilsvrc.{name}_looks"),
            _file_like(".txt", "ilsvrc.detections_look"),
            _lazy(f"ilsvrc.read_{name}"),
            _lazy("ilsvrc.read_detections"),
            what=f"ImageNet {name.upper()}: XML with WordNet ids, and a text file of detections",
        )
        for name in ("det", "vid")
    ),
    _row(
        "visdrone",
        "a folder",
        "visdrone",
        _folder_or(_nothing, "visdrone.looks"),
        _folder_or(_nothing, "visdrone.looks"),
        "VisDrone DET: text of annotations and results, one file per image",
        options=SIZES,
    ),
    _row(
        "uavdt",
        "a folder",
        "uavdt",
        _folder_or(_nothing, "uavdt.truth_looks"),
        _folder_or(_nothing, "uavdt.detections_look"),
        "UAVDT: text of ground truth, ignored regions and results, one file per sequence",
    ),
    _row(
        "scalabel",
        "a file",
        "scalabel",
        _lazy(f"{LOOKS}.scalabel"),
        _lazy(f"{LOOKS}.scalabel"),
        "BDD100K: Scalabel JSON of frames and labels",
        options=("classes",),
    ),
    _row(
        "odgt",
        "a file",
        "people/odgt",
        _lazy(f"{LOOKS}.odgt"),
        _lazy(f"{LOOKS}.odgt"),
        "CrowdHuman odgt: a JSON record per image and line",
    ),
    _row(
        "wider",
        "a folder",
        "people/wider",
        _folder_or(_nothing, "people/wider.truth_looks"),
        _folder_or(_nothing, "people/wider.detections_look"),
        "WIDER FACE: wider_face_val.mat and its three lists, and EVENT/*.txt",
    ),
    _row(
        "bbgt",
        "a folder",
        "people/bbgt",
        _folder_or(_nothing, "people/bbgt.truth_looks"),
        _folder_or(_nothing, "people/bbgt.detections_look"),
        "Caltech: text of bbGt.m (version 3), and x y w h score, one file per image",
    ),
    _row(
        "luna16",
        "a file",
        "tabular/luna16",
        _file_like(".csv", "tabular/luna16.truth_looks"),
        _file_like(".csv", "tabular/luna16.detections_look"),
        "LUNA16: annotations.csv and results.csv, spheres",
    ),
    _row(
        "sa-co",
        "a file",
        "coco/sa_co",
        lambda path: _file_if_asked(path) * (path.suffix.lower() == ".json"),
        _nothing,
        "SA-Co: COCO JSON of image and phrase, a file per annotator",
    ),
)
