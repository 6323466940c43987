"""Recognizes formats by their first bytes; see `detmap.core.adapters.format_rows.Looks`.

It imports no reader, since each evaluation calls it, whatever its formats.
"""

import itertools
import re
from collections.abc import Iterator, Set
from pathlib import Path

from detmap.core.adapters import folder_files
from detmap.core.adapters.coco import record_errors
from detmap.core.adapters.joining import image_names
from detmap.core.base.open_files import has, head, is_file, is_folder, plain_head

ROBOFLOW = ("_annotations.coco.json", "_annotations.csv", "_annotations.createml.json")
ROBOFLOW_SPLITS = ("test", "valid", "train")
LABEL_STUDIO_MIN = {"annotator", "annotation_id", "lead_time"}
CVAT = "annotations.xml"
FIFTYONE, CREATEML = "labels.json", ROBOFLOW[2]
SUPERVISELY, MMDET = "ann", "preds"  # folders
METADATA, PARQUET = "metadata.jsonl", (".parquet", ".pq")
LOOKED_AT, FILES_LOOKED_AT = 1 << 12, 40  # bytes, files
_FIFTYONE = rb'\{\s*("classes"\s*:\s*(null|\[\s*[\]"])|"labels"\s*:\s*\{\s*"[^"]*"\s*:\s*(null|\[))'
_VIA = re.compile(
    rb'\{\s*("_via_|"[^"]*"\s*:\s*\{\s*"(filename|fileref|size|base64_img_data|regions)"\s*:)'
)
VOTT = b'"videoSettings"', b'"activeLearningSettings"', b'"assets"'
_VOTT = re.compile(rb"(%s)\s*:\s*\{" % b"|".join(VOTT))


def file_in(path: Path, name: str) -> Path:
    """Returns the file itself, or the one of this name in a folder."""
    return path / name if is_folder(path) else path


def _first_keys(path: Path) -> Set[str]:
    """Returns the keys of the first record of a JSON list."""
    return record_errors.first_record(path).keys()


def roboflow(path: Path) -> int:
    """Matches the annotations of a split, its folder, and that of the splits: above the formats of
    the files.
    """
    if not is_folder(path):
        return 4 * (path.name in ROBOFLOW)
    folders = (path, *(path / name for name in ROBOFLOW_SPLITS))
    return 4 * any((folder / name).is_file() for folder in folders for name in ROBOFLOW)


def retinanet(path: Path) -> int:
    """Matches rows of an image and a box, or none."""
    return 3 * _is_row(_first_row(path), (6,))


def retinanet_detections(path: Path) -> int:
    """Matches such rows with a score or without, which the reader reports."""
    return 3 * _is_row(_first_row(path), (6, 7))


def _first_row(path: Path) -> list[str]:
    if path.suffix.lower() != ".csv" or is_folder(path):
        return []
    import csv  # no other file needs them

    from detmap.core.adapters import text_fields

    text = head(path, LOOKED_AT).decode("utf-8", "replace").lstrip("\r\n")
    try:
        return next(csv.reader([text_fields.LINE_END.split(text)[0]]), [])
    except csv.Error:
        return []


def _is_row(row: list[str], lengths: tuple[int, ...]) -> bool:
    if len(row) not in lengths or not image_names.is_image(row[0].strip()):
        return False
    from detmap.core.adapters import text_fields

    return not any(row[1:]) or None not in [text_fields.number(word.strip()) for word in row[1:5]]


def cvat(path: Path) -> int:
    """Matches XML of CVAT for images, or its folder."""
    file = file_in(path, CVAT)
    begin = head(file, LOOKED_AT) if file.suffix.lower() == ".xml" else b""
    return 3 * (b"<annotations" in begin and b"<track" not in begin)


def _tasks(path: Path) -> Set[str]:
    """Returns the keys of the first task of Label Studio; none for a list of COCO results."""
    begin = plain_head(path)[:LOOKED_AT] if path.suffix.lower() == ".json" else b""
    return _first_keys(path) if begin[:1] == b"[" and b'"image_id"' not in begin else set()


def labelstudio(path: Path) -> int:
    """Matches tasks with annotations, and records of JSON-MIN."""
    keys = _tasks(path)
    is_min = len(keys & LABEL_STUDIO_MIN) > 1 and "id" in keys
    return 3 * (keys >= {"data", "annotations"} or is_min)


def labelstudio_detections(path: Path) -> int:
    """Matches tasks with predictions."""
    return 3 * (_tasks(path) >= {"data", "predictions"})


def labelme(path: Path) -> int:
    """Matches a JSON file with shapes, or a folder whose first one has them."""
    return 3 * _has_shapes(next(_heads(path), b""))


def labelme_detections(path: Path) -> int:
    """Matches such files if the first shape has a score; an image may have none."""
    heads = itertools.takewhile(_has_shapes, itertools.islice(_heads(path), FILES_LOOKED_AT))
    return 3 * (b'"score"' in next((begin for begin in heads if b'"points"' in begin), b""))


def _heads(path: Path) -> Iterator[bytes]:
    """Yields the beginning of the file, or of the JSON files of a folder."""
    names = sorted(folder_files.names(path, ".json"))
    for file in [path / name for name in names] if is_folder(path) else [path]:
        if file.suffix.lower() == ".json":
            yield head(file, LOOKED_AT)


def _has_shapes(begin: bytes) -> bool:
    return b'"shapes"' in begin and re.match(rb'(?s)\s*\{.*"shapes"\s*:\s*\[', begin) is not None


def darknet(path: Path) -> int:
    """Matches a list of frames with objects."""
    may_be = path.suffix.lower() == ".json" and has(plain_head(path), b'"frame_id"')
    return 3 * (may_be and _first_keys(path) >= {"frame_id", "objects"})


def fiftyone(path: Path) -> int:
    """Matches labels.json of FiftyOneImageDetectionDataset, or its folder."""
    begin = plain_head(file_in(path, FIFTYONE))
    may_be = begin[:1] == b"{" and begin[1:].lstrip().startswith((b'"classes"', b'"labels"'))
    return 3 * bool(may_be and re.match(_FIFTYONE, begin))  # else the pattern is not compiled


def createml(path: Path) -> int:
    """Matches a list of images with annotations, or Roboflow's folder."""
    if is_folder(path):
        return 3 * is_file(path / CREATEML)
    keys = _first_keys(path)
    return 3 * (keys >= {"image", "annotations"} or keys >= {"imagefilename", "annotation"})


def via(path: Path) -> int:
    """Matches an export or a project of VIA."""
    return 3 * bool(not is_folder(path) and _VIA.match(plain_head(path)))


def vott(path: Path) -> int:
    """Matches an export of VoTT."""
    begin = b"" if is_folder(path) else plain_head(path)
    may_be = begin[:1] == b"{" and any(has(begin, key) for key in VOTT)
    return 3 * bool(may_be and _VOTT.search(begin))


def supervisely(path: Path) -> int:
    """Matches a project, a data set, or its folder of annotations."""
    folders = supervisely_folders(path) if is_folder(path) else []
    files = [folder_files.first(each, ".json") for each in folders]
    begin = next((plain_head(file) for file in files if file is not None), b"")
    return 3 * (b'"objects"' in begin and b'"size"' in begin)


def supervisely_folders(path: Path) -> list[Path]:
    """Returns the folders of annotations of a project, of a data set and those nested in its folder
    ``datasets``, or the folder itself.
    """
    if path.name == SUPERVISELY:
        return [path]
    found = [path / SUPERVISELY, *sorted(path.glob(f"*/{SUPERVISELY}"))]
    found = [folder for folder in found if folder.is_dir()]
    nested = [inner for each in found for inner in supervisely_folders(each.parent / "datasets")]
    return list(dict.fromkeys([*found, *nested]))


def ultralytics_json(path: Path) -> int:
    """Matches a folder of ``Results.to_json()``, some of which may be empty lists."""
    for file in sorted(folder_files.names(path, ".json"))[:FILES_LOOKED_AT]:
        if keys := _first_keys(path / file):
            return 3 * (keys >= {"name", "confidence", "box"})
    return 0


def mmdet_predictions(path: Path) -> int:
    """Matches a folder of mmdetection's predictions, or the folder above it."""
    first = folder_files.first(mmdet_folder(path), ".json")
    begin = b"" if first is None else plain_head(first)
    return 3 * (begin[:1] == b"{" and b'"labels"' in begin and b'"scores"' in begin)


def mmdet_folder(path: Path) -> Path:
    """Returns the folder ``preds`` in a folder, or the folder itself."""
    return path / MMDET if (path / MMDET).is_dir() else path


def huggingface(path: Path) -> int:
    """Matches metadata.jsonl and Parquet with ``objects``, and folders of them."""
    if is_folder(path):
        return 3 * bool(huggingface_splits(path))
    if path.suffix.lower() in PARQUET:
        return 3 * _has_objects(path)
    begin = plain_head(path) if path.suffix.lower() == ".jsonl" else b""
    return 3 * (b'file_name"' in begin and b'"objects"' in begin)


def huggingface_splits(path: Path) -> dict[str, list[Path]]:
    """Returns the files of each split of a folder; one without a name is the folder itself."""
    if (path / METADATA).is_file():
        return {"": [path / METADATA]}
    found = {each.parent.name: [each] for each in sorted(path.glob(f"*/{METADATA}"))}
    folders = (path, path / "data")
    files = [each / name for each in folders for name in folder_files.names(each, *PARQUET)]
    for file in sorted(files):
        if _has_objects(file):
            found.setdefault(file.name.partition("-")[0], []).append(file)
    return found


def _has_objects(path: Path) -> bool:
    from detmap.annotation_tools import huggingface_parquet  # it imports CSV's module

    return huggingface_parquet.has_objects(path)
