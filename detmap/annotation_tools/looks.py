"""Recognizes formats by their first bytes; see `detmap.core.adapters.format_rows.Looks`.

It imports no reader, since each evaluation calls it, whatever its formats.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from detmap.core.adapters import folder_files
from detmap.core.adapters.coco import record_errors
from detmap.core.base.open_files import has, is_file, is_folder, plain_head
from detmap.errors import DataError

FIFTYONE, CREATEML = "labels.json", "_annotations.createml.json"
SUPERVISELY, MMDET = "ann", "preds"  # folders
METADATA, PARQUET = "metadata.jsonl", (".parquet", ".pq")
LOOKED_AT, FILES_LOOKED_AT = 1 << 12, 40  # bytes, files
_FIFTYONE = rb'\{\s*("classes"\s*:\s*(null|\[\s*[\]"])|"labels"\s*:\s*\{\s*"[^"]*"\s*:\s*(null|\[))'
_VIA = re.compile(
    rb'\{\s*("_via_|"[^"]*"\s*:\s*\{\s*"(filename|fileref|size|base64_img_data|regions)"\s*:)'
)
VOTT = b'"videoSettings"', b'"activeLearningSettings"', b'"assets"'
_VOTT = re.compile(rb"(%s)\s*:\s*\{" % b"|".join(VOTT))


MAY_BE: Mapping[str, Callable[[Path], bool]] = {
    "roboflow": lambda path: path.name.startswith("_annotations."),
    "retinanet_csv": lambda path: path.suffix.lower() == ".csv",
    "cvat": lambda path: path.suffix.lower() == ".xml",
    "labelme": lambda path: b'"shapes"' in plain_head(path)[:LOOKED_AT],
    "darknet_json": lambda path: has(plain_head(path), b'"frame_id"'),
    "label_studio": lambda path: _is_list_of_others(plain_head(path)[:LOOKED_AT]),
}


def _is_list_of_others(begin: bytes) -> bool:
    """Checks for a list whose records are not those of COCO results."""
    return begin[:1] == b"[" and b'"image_id"' not in begin


def may_be(path: Path, module: str) -> bool:
    """Checks if a path needs a look by a module, which imports its reader."""
    return is_folder(path) or MAY_BE[module](path)


def file_in(path: Path, name: str) -> Path:
    """Returns the file itself, or the one of this name in a folder."""
    return path / name if is_folder(path) else path


def _first_keys(path: Path) -> set[str]:
    """Returns the keys of the first record of a JSON list."""
    try:
        return set(record_errors.first_record(path))
    except (DataError, OSError):
        return set()


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
