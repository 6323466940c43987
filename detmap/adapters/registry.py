"""The table of formats: how to detect a format, its readers, and their options.

To add a format: one module that reads it, and one row here (`docs/add-a-format.md`). Rows name
functions as text, so that only the module of the chosen format is imported. More than 400 lines:
it is a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from detmap.base.open_files import shown
from detmap.errors import DataError
from detmap.tables import Detections, Truth

Place = Literal["a file", "a folder", "a file or a folder"]
Looks = Callable[[Path], int]
"""How sure one is that a path is of a format: 0 no, 1 it may be, 2 it shows a mark of it, 3 its
files have names or content of its own, 4 also if another format reads one of its files, -1 only
where it is asked for by name."""


class Row(Protocol):
    """The common interface of formats."""

    @property
    def name(self) -> str:
        """The name of the format."""

    @property
    def place(self) -> Place:
        """Whether it is a file or a folder."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of its reader."""


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class Format:
    """A detection format: its ground truth and its detections.

    Parameters
    ----------
    name : of the format
    place : whether it is a file or a folder
    truth_looks, detections_look : score how well a path matches the format
    read_truth : called with the path, and the options by name
    read_detections : called with the path, the truth, the ``policy`` about unknown images and
        classes, and the options by name
    options, detection_options : options of `read_truth` and `read_detections`
    what : description
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


def _nothing(path: Path) -> int:
    del path
    return 0


NO_DETECTIONS = _lazy("annotation_tools/export_tables.no_detections")
CSV, PARQUET = _file_with(".csv", ".tsv"), _file_with(".parquet", ".pq")
TABLES: tuple[tuple[str, Place, Looks, Looks], ...] = (
    ("csv", "a file or a folder", CSV, _folder_or(CSV, "tabular/column_tables.looks")),
    ("parquet", "a file", PARQUET, PARQUET),
)

SIZES, NAMED = ("image_sizes",), ("roles", "attributes")
LOOKS = "annotation_tools/looks"


def _export(
    name: str, place: Place, what: str, options: tuple[str, ...], *, scored: bool = True
) -> Format:
    """Returns the row of an annotation tool, whose module has the name of the format."""
    module = f"annotation_tools/{name}"
    looks, read = _lazy(f"{LOOKS}.{name}"), _lazy(f"{module}.read_truth")
    found = _lazy(f"{module}.read_detections") if scored else NO_DETECTIONS
    return Format(name, place, looks, looks, read, found, options=options, what=what)


FORMATS: tuple[Format, ...] = (
    Format(
        "coco",
        "a file",
        _file,
        _file,
        _lazy("coco/shapes.read_truth"),
        _lazy("coco/shapes.read_detections"),
        options=("shapes", "roles", "attributes"),
        what="COCO JSON: instances, and results or annotations",
    ),
    Format(
        "voc",
        "a folder",
        _folder_or(_nothing, "voc/folder_layout.looks"),
        _folder_or(_nothing, "voc/result_files.looks"),
        _lazy("voc/devkit.read_truth"),
        _lazy("voc/devkit.read_detections"),
        options=("split", "box_format"),
        what="VOC: Annotations/*.xml, and a text file a class",
    ),
    Format(
        "yolo",
        "a file or a folder",
        _folder_or(_file_with(".yaml", ".yml", ".data"), "text_per_image/yolo.truth_looks"),
        _folder_or(_predictions, "text_per_image/yolo.detections_look"),
        _lazy("text_per_image/yolo.read_truth"),
        _lazy("text_per_image/yolo.read_detections"),
        options=("split", "image_sizes"),
        what="YOLO: data.yaml, obj.data or a folder of labels, and predictions",
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
            what=f"{name} with a row a box, in named columns",
        )
        for name, place, truth_looks, detections_look in TABLES
    ),
    *(
        Format(
            name.lower(),
            "a folder",
            _folder_or(_nothing, f"text_per_image/cartucho_rafaelpadilla.{name}.truth_looks"),
            _folder_or(_nothing, f"text_per_image/cartucho_rafaelpadilla.{name}.detections_look"),
            _lazy(f"text_per_image/cartucho_rafaelpadilla.{name}.read_truth"),
            _lazy(f"text_per_image/cartucho_rafaelpadilla.{name}.read_detections"),
            options=("box_format", "image_sizes"),
            detection_options=("box_format",),
            what=f"text of {name.lower()}'s tool, a file an image",
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
    Format(
        "retinanet",
        "a file",
        _closer("retinanet_csv.looks"),
        _closer("retinanet_csv.detections_look"),
        _lazy("annotation_tools/retinanet_csv.read_truth"),
        _lazy("annotation_tools/retinanet_csv.read_detections"),
        options=("box_format", "image_sizes", "roles", "attributes"),
        detection_options=("box_format",),
        what="CSV without a header: image, four corners, class, and score",
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
    Format(
        "labelstudio",
        "a file",
        _closer("label_studio.looks"),
        _closer("label_studio.detections_look"),
        _lazy("annotation_tools/label_studio.read_truth"),
        _lazy("annotation_tools/label_studio.read_detections"),
        what="Label Studio: JSON or JSON-MIN, and predictions in JSON",
    ),
    Format(
        "labelme",
        "a file or a folder",
        _closer("labelme.looks"),
        _closer("labelme.detections_look"),
        _lazy("annotation_tools/labelme.read_truth"),
        _lazy("annotation_tools/labelme.read_detections"),
        options=("roles", "attributes"),
        what="LabelMe: a JSON file an image",
    ),
    Format(
        "darknet",
        "a file",
        _nothing,
        _closer("darknet_json.looks"),
        _lazy("annotation_tools/darknet_json.read_truth"),
        _lazy("annotation_tools/darknet_json.read_detections"),
        what="Darknet: detections of -out result.json",
    ),
    Format(
        "kitti",
        "a folder",
        _folder_or(_nothing, "text_per_image/kitti.truth_looks"),
        _folder_or(_nothing, "text_per_image/kitti.detections_look"),
        _lazy("text_per_image/kitti.read_truth"),
        _lazy("text_per_image/kitti.read_detections"),
        options=("image_sizes",),
        what="KITTI text: label_2 and results, a file an image",
    ),
    _export("fiftyone", "a file or a folder", "FiftyOne's labels.json", SIZES + NAMED),
    _export("createml", "a file or a folder", "CreateML JSON, a list of images", SIZES),
    _export("via", "a file", "JSON of the VGG Image Annotator", SIZES, scored=False),
    _export("supervisely", "a folder", "a Supervisely project or dataset", NAMED),
    _export("vott", "a file", "VoTT's JSON export", SIZES, scored=False),
    Format(
        "huggingface",
        "a file or a folder",
        _lazy(f"{LOOKS}.huggingface"),
        _lazy(f"{LOOKS}.huggingface"),
        _lazy("annotation_tools/huggingface.read_truth"),
        _lazy("annotation_tools/huggingface.read_detections"),
        options=("split", "box_format", *SIZES, *NAMED),
        detection_options=("box_format",),
        what="Hugging Face: metadata.jsonl, or Parquet with a column objects",
    ),
    *(
        Format(
            name,
            "a folder",
            _nothing,
            _lazy(f"{LOOKS}.{module}"),
            _lazy(f"annotation_tools/{module}.read_truth"),
            _lazy(f"annotation_tools/{module}.read_detections"),
            what=f"{what}, a file an image",
        )
        for name, module, what in (
            ("ultralytics-json", "ultralytics_json", "Results.to_json() of Ultralytics"),
            ("mmdet-preds", "mmdet_predictions", "predictions of mmdetection's inferencer"),
        )
    ),
    Format(
        "dota",
        "a folder",
        _folder_or(_nothing, "rotated/dota.truth_looks"),
        _folder_or(_nothing, "rotated/dota.detections_look"),
        _lazy("rotated/dota.read_truth"),
        _lazy("rotated/dota.read_detections"),
        options=("shapes",),
        what="DOTA: labelTxt, and Task1_<class>.txt",
    ),
    Format(
        "rotated-xml",
        "a folder",
        _folder_or(_nothing, "rotated/xml_folder.truth_looks"),
        _nothing,
        _lazy("rotated/xml_folder.read_truth"),
        _lazy("rotated/dota.read_detections"),
        options=("shapes", "split"),
        what="HRSC2016 and DIOR-R: a folder of XML; detections as of dota",
    ),
    Format(
        "coco-wholebody",
        "a file",
        _file_if_asked,
        _file_if_asked,
        _lazy("coco/whole_body.read_truth"),
        _lazy("coco/whole_body.read_detections"),
        options=("shapes", "roles", "attributes"),
        what="COCO-WholeBody: COCO JSON with keypoints of body, feet, face and hands",
    ),
    Format(
        "open-images",
        "a file",
        _file_like(".csv", "open_images.looks"),
        _file_like(".csv", "open_images.looks"),
        _lazy("open_images.read_truth"),
        _lazy("open_images.read_detections"),
        what="Open Images: CSV of boxes, with labels, label map and hierarchy beside it",
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
    Format(
        "visdrone",
        "a folder",
        _folder_or(_nothing, "visdrone.looks"),
        _folder_or(_nothing, "visdrone.looks"),
        _lazy("visdrone.read_truth"),
        _lazy("visdrone.read_detections"),
        what="VisDrone DET: text of annotations and results, a file an image",
    ),
    Format(
        "uavdt",
        "a folder",
        _folder_or(_nothing, "uavdt.truth_looks"),
        _folder_or(_nothing, "uavdt.detections_look"),
        _lazy("uavdt.read_truth"),
        _lazy("uavdt.read_detections"),
        what="UAVDT: text of ground truth, ignored regions and results, a file a sequence",
    ),
    Format(
        "scalabel",
        "a file",
        _file_like(".json", "scalabel.looks"),
        _file_like(".json", "scalabel.looks"),
        _lazy("scalabel.read_truth"),
        _lazy("scalabel.read_detections"),
        what="BDD100K: Scalabel JSON of frames and labels",
    ),
    Format(
        "odgt",
        "a file",
        _lazy("people/odgt.looks"),
        _lazy("people/odgt.looks"),
        _lazy("people/odgt.read_truth"),
        _lazy("people/odgt.read_detections"),
        what="CrowdHuman odgt: a JSON record per image and line",
    ),
    Format(
        "wider",
        "a folder",
        _folder_or(_nothing, "people/wider.truth_looks"),
        _folder_or(_nothing, "people/wider.detections_look"),
        _lazy("people/wider.read_truth"),
        _lazy("people/wider.read_detections"),
        what="WIDER FACE: wider_face_val.mat and its three lists, and EVENT/*.txt",
    ),
    Format(
        "bbgt",
        "a folder",
        _folder_or(_nothing, "people/bbgt.truth_looks"),
        _folder_or(_nothing, "people/bbgt.detections_look"),
        _lazy("people/bbgt.read_truth"),
        _lazy("people/bbgt.read_detections"),
        what="Caltech: text of bbGt.m (version 3), and x y w h score, a file an image",
    ),
    Format(
        "luna16",
        "a file",
        _file_like(".csv", "tabular/luna16.truth_looks"),
        _file_like(".csv", "tabular/luna16.detections_look"),
        _lazy("tabular/luna16.read_truth"),
        _lazy("tabular/luna16.read_detections"),
        what="LUNA16: annotations.csv and results.csv, spheres",
    ),
    Format(
        "sa-co",
        "a file",
        _lazy("coco/sa_co.truth_looks"),
        _lazy("coco/sa_co.detections_look"),
        _lazy("coco/sa_co.read_truth"),
        _lazy("coco/sa_co.read_detections"),
        what="SA-Co: COCO JSON of image and phrase, a file per annotator",
    ),
)


IN_MEMORY = (
    "write the records with json.dump and give the path, or pass arrays to "
    "`detmap.truth_from_arrays` and `detmap.detections_from_arrays`"
)


def checked_path(path: Any) -> Path:
    """Returns an existing path, or raises `DataError`."""
    if not isinstance(path, str | os.PathLike):
        from detmap.adapters import recognition

        seen = recognition.recognized(path)
        if seen is not None:
            raise DataError("path", f"{seen.name}, where a path is needed", seen.fix)
        if isinstance(path, list | tuple | dict):
            raise DataError("path", f"a {type(path).__name__} where a path is needed", IN_MEMORY)
        raise DataError("path", f"{path!r:.60} is not a path", "give a string or a pathlib.Path")
    place = Path(path)
    try:
        os.stat(place)
    except FileNotFoundError:
        raise DataError(shown(place), "no such file or folder", "check the path") from None
    except (OSError, ValueError) as error:
        what = getattr(error, "strerror", None) or error
        raise DataError(
            shown(place), f"cannot be read: {what}", "check the path and its permissions"
        ) from None
    return place


def choose(
    rows: Sequence[AnyRow],
    path: Path,
    looks: Callable[[AnyRow], Looks],
    wanted: str | None = None,
    preferred: str | None = None,
) -> AnyRow:
    """Returns the row of the requested format, or of the one that matches the path best.

    `preferred` is the format of the protocol's benchmark: it is taken if it matches at all, or
    nothing shows another one.
    Raises `DataError` if the format is unknown, ambiguous, or does not fit the path.
    """
    names = [row.name for row in rows]
    if wanted is not None:
        if wanted not in names:
            raise DataError(
                "format", f"no format {wanted!r}", f"the formats are {', '.join(names)}"
            )
        row = rows[names.index(wanted)]
        here = "a folder" if path.is_dir() else "a file"
        if here not in row.place:
            raise DataError(
                shown(path),
                f"format {wanted} is {row.place}, this is {here}",
                f"give {row.place}, or remove the format",
            )
        return row
    sure = [looks(row)(path) for row in rows]
    here = "a folder" if path.is_dir() else "a file"
    for row, each in zip(rows, sure, strict=True):
        if row.name == preferred and (each or (max(sure) <= 1 and here in row.place)):
            return row
    best = [row for row, each in zip(rows, sure, strict=True) if each and each == max(sure)]
    if len(best) != 1:
        like = " and ".join(row.name for row in best)
        raise DataError(
            shown(path),
            f"the format is ambiguous: {like}" if best else "the format is unknown",
            f"choose the format: {', '.join(names)}",
        )
    return best[0]


def told(name: str, known: Sequence[str], path: Path, **options: Any) -> dict[str, Any]:
    """Returns the options that were given.

    Parameters
    ----------
    name : of the format
    known : the options it supports
    path : for the message
    options : by name; None if not given

    Raises `DataError` for unsupported options.
    """
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in known:
            raise DataError(
                shown(path),
                f"{option} {str(value)!r} is not an option of {name.upper()} files",
                f"remove {option}",
            )
    return given
