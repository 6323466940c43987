"""Names what a path or a Python object is, and what to do with it if no reader takes it.

The rows of `detmap.core.adapters.formats` come first: what they read is named by them. The tables
here and in `detmap.annotation_tools.unread_exports` have what detmap does not read, by its first
bytes, keys, columns, first line and the shape of its folder.

Source: the documentation or the writer of each tool (docs/formats.md).
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import msgspec

from detmap import wings
from detmap.core.adapters import registry, text_fields
from detmap.core.adapters.joining import image_names
from detmap.core.adapters.text_per_image import label_files
from detmap.core.base import open_files
from detmap.core.base.open_files import shown
from detmap.errors import DataError, few

ZIP_NAME = 30  # bytes before the name of the first file in a zip archive
HEAD = 1 << 16  # bytes of a file that are looked at
WHOLE = 1 << 26  # bytes of a JSON file that is decoded for its keys
FILES_LOOKED_AT, TEXTS_LOOKED_AT, FILES_LISTED = 3, 40, 2000


class Seen(NamedTuple):
    """What something is, in words, and what to do with it."""

    name: str
    fix: str


CONVERT = "write COCO JSON from it and compare the counts (docs/recipes.md)"
PATH = "give the path of the file, or arrays to detmap.truth_from_arrays, detections_from_arrays"
STREAM = "pass it to detmap.Evaluator.update with image_id, or give arrays"

ALL_FILES = "give the folder that holds all of these files, or the file of a whole export"
"""About files of formats that are read."""

PARQUET = b"PAR1"


def panlabel(name: str) -> str:
    """Returns the fix for a format that panlabel converts without a loss of boxes."""
    command = f"panlabel convert --from {name} --to coco --allow-lossy -i PATH -o instances.json"
    return f"{command}, then compare the counts (docs/recipes.md)"


BYTES: tuple[tuple[bytes, Seen], ...] = (
    (b"\x89PNG", Seen("an image (PNG)", "give the annotations, not an image")),
    (b"\xff\xd8\xff", Seen("an image (JPEG)", "give the annotations, not an image")),
    (b"%PDF", Seen("a PDF file", "give the annotations")),
    (PARQUET, Seen("a Parquet file", "name it .parquet")),
    (b"ARROW1", Seen("an Arrow file", "write it as Parquet: pyarrow.parquet.write_table")),
    (b"\x89HDF", Seen("an HDF5 file", "export COCO JSON or CSV from its tool")),
    (b"\x93NUMPY", Seen("a NumPy array", "load it and give detmap.detections_from_arrays arrays")),
    (b"SQLite format 3", Seen("an SQLite database", "export COCO JSON from its tool")),
    (b"MATLAB 5.0", Seen("a MATLAB file", "export COCO JSON or CSV from its tool")),
    (b"7z\xbc\xaf", Seen("a 7z archive", "unpack it, and give the file or folder inside")),
)
TORCH = Seen(
    "a dump of torch tensors, as detectron2's instances_predictions.pth",
    "give coco_instances_results.json, which detectron2 writes beside it",
)
MATCHES = Seen(
    "a saved match result", "use `detmap merge FILE`, or `detmap compare` with a second detector"
)
NPZ = Seen("a file of NumPy arrays", "load it and give detmap.detections_from_arrays arrays")
ZIP = Seen("a zip archive", "unpack it, and give the file or folder inside")
UTF16 = Seen("text in UTF-16", open_files.SAVE_UTF8)
TFRECORD = Seen(
    "a TFRecord file", "export COCO JSON or CSV from its tool, or " + panlabel("tfrecord")
)
FOLDERS: tuple[tuple[str, Seen], ...] = (("*.tfrecord*", TFRECORD), ("*.pth", TORCH))
XML: tuple[tuple[str, Seen], ...] = (
    (r"<annotation\b", Seen("one annotation file of VOC", ALL_FILES)),
    (r"<!DOCTYPE html|<html\b", Seen("a web page", "the download failed: download the file again")),
    (r"<\?xml|<[A-Za-z]", Seen("XML of an unknown tool", CONVERT)),
)

COCO: tuple[tuple[tuple[str, ...], Seen], ...] = (
    (("images", "annotations"), Seen("COCO instances", PATH)),
    (("image_id", "category_id", "score"), Seen("COCO results", PATH)),
    (("image_id", "category_id", "bbox"), Seen("COCO annotations without the images", PATH)),
)
READ = tuple(seen for _, seen in COCO)
"""Of COCO, whose readers know more about a damaged file."""
MOT = Seen(
    "text of MOT (frame,id,x,y,w,h,confidence,-1,-1,-1)",
    "write CSV with the header image,class,x,y,w,h,score and the file name of each frame's image",
)
BLANKS = Seen(
    "text of one file per image with blanks in class names",
    "write names without blanks (stop_sign), in ground truth and detections alike",
)
LINES: tuple[tuple[str, Seen], ...] = (
    (r"\d+, *-?\d+(?:, *-?[\d.]+(?:[eE][-+]?\d+)?){5}(?:, *-1){3}", MOT),
    (r"[^\W\d]\S*(?: [^\W\d]\S*)+(?: [01]?\.\d+)?(?: -?[\d.]+){4}(?: difficult)?", BLANKS),
)
EXPORTS = "detmap.annotation_tools.unread_exports"
"""Where the rows of annotation tools are: `KEYS`, `COLUMNS`, `XML`, `LINES` and `FOLDERS`."""


def _exports(table: str) -> tuple[tuple[Any, Seen], ...]:
    """Returns the rows of annotation tools; none if they are not installed."""
    rows: tuple[tuple[Any, Seen], ...] = ()
    return wings.load(f"{EXPORTS}:{table}") if wings.is_installed(EXPORTS) else rows


# --- errors ---------------------------------------------------------------------------------------


def better_error(path: Path, kind: str, error: DataError) -> DataError | None:
    """Returns the error that names what a path is; None if its reader knows more."""
    try:
        read = readings(path)
        blank = None if any(read.values()) or kind == "truth" else _without_detections(path)
        if blank:
            return DataError(shown(path), *blank)
        known = [row for rows in read.values() for row in rows if row not in GENERAL]
        seen = None if known else recognized(path)
    except (OSError, DataError):
        return None
    if seen is not None:
        near = _inside(path, kind) if path.is_dir() else ""
        what = f"{seen.name}, which detmap reads from another folder"
        if near:
            return DataError(shown(path), what, f"give {near}")
        here = " here" * (seen is MATCHES)
        what = f"{seen.name}, which detmap does not read{here}"
        if seen.fix.startswith(ALL_FILES):
            what = f"{seen.name}, which detmap reads with the other files of its data set"
        return DataError(shown(path), what, seen.fix)
    other = "detections" if kind == "truth" else "truth"
    alone = [row for row in read[other] if row not in (*GENERAL, *PLAIN)]
    if alone and set(read[kind]) <= set(GENERAL):
        what = f"{kind} expected, and this is {other} in the format {alone[0]}"
        if mixed := _formats_inside(path, kind):
            what += f"; other files of the folder are {kind} in the format {few(mixed)}"
        return DataError(shown(path), what, f"give {kind}, or exchange the two paths")
    if not read[kind] and read[other]:
        what = f"{kind} expected, and this looks like {other} in the format {read[other][0]}"
        fix = f"{error.fix}; or the two paths are in the wrong order"
        return DataError(error.where, f"{error.what}; {what}", fix)
    if not read[kind] and path.is_dir() and error.where == shown(path):
        inside = _inside(path, kind)
        formats = ", ".join(row.name for row in registry.FORMATS)
        ambiguous = error.what.startswith("the format is ambiguous")  # its fix lists the formats
        more = "" if ambiguous else f"; the formats are {formats}"
        if kind == "detections" and not _files(path):
            more = f"; {label_files.NO_DETECTIONS}"
        fix = f"give {inside}" if inside else f"{error.fix}{more}"
        return DataError(error.where, f"{error.what}; the folder has {_content(path)}", fix)
    return None


def _without_detections(path: Path) -> tuple[str, str] | None:
    """Returns what is wrong with a folder without a line of text, and the fix; else None."""
    suffixes = {file.suffix.lower() for file in _files(path) if not image_names.is_image(file.name)}
    alone = suffixes == {label_files.TEXT}
    if alone and any(label_files.are_blank(place) for place in (path, path / "labels")):
        what = "all text files are empty, so that none shows the format"
        return what, "name it: --detections-format yolo, cartucho, kitti or another"
    return None


def _formats_inside(folder: Path, kind: str) -> list[str]:
    """Returns the formats of the first JSON files of a folder."""
    files = sorted(folder.glob("*.json"))[: FILES_LOOKED_AT + 1]
    found = [readings(file)[kind] for file in files]
    return list(dict.fromkeys(row for rows in found for row in rows if row not in GENERAL))


GENERAL = ("csv", "parquet", "yolo")
"""Rows that know files by their suffix alone."""
PLAIN = ("coco", "voc")
"""Rows whose readers are tried on all other files and folders, and say what is wrong there."""


def readings(path: Path) -> dict[str, list[str]]:
    """Returns the formats that a path shows a mark of, as truth and as detections."""
    with open_files.looking():
        return _readings(path)


def _readings(path: Path) -> dict[str, list[str]]:
    looks = [(row, row.truth_looks(path), row.detections_look(path)) for row in registry.FORMATS]
    found = {
        "truth": [row.name for row, sure, _ in looks if sure >= registry.MARKED],
        "detections": [row.name for row, _, sure in looks if sure >= registry.MARKED],
    }
    for kind, names in found.items():
        names += ["coco"] * _is_coco(path, kind)
    return found


def recognized(thing: Any) -> Seen | None:
    """Returns what a path or a Python object is, as far as the tables here know it; else None."""
    if not isinstance(thing, Path):
        return _recognize_object(thing)
    if thing.is_dir():
        return _recognize_folder(thing)
    return _recognize_file(thing)


def _recognize_object(thing: Any) -> Seen | None:
    if isinstance(thing, Mapping | list | tuple):
        return _match_keys(thing)
    kind = type(thing)
    name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    if name in ("torch.Tensor", "numpy.ndarray", "jax.Array", "tensorflow.EagerTensor"):
        shape = tuple(getattr(thing, "shape", ()))
        what = f"an array or tensor of shape {shape}"
        return Seen(what, "give detmap.detections_from_arrays boxes, scores, labels and images")
    if hasattr(thing, "columns") or hasattr(thing, "column_names"):
        frame = "detmap.truth_from_arrays(frame) or detmap.detections_from_arrays(truth, frame)"
        return Seen(f"a table ({name})", f"give it to {frame}")
    if hasattr(thing, "xyxy") and hasattr(thing, "confidence"):
        return Seen("Detections of supervision", STREAM)
    return Seen(f"a {name}", PATH) if kind.__module__ != "builtins" else None


def _recognize_folder(path: Path) -> Seen | None:
    for pattern, seen in (*_exports("FOLDERS"), *FOLDERS):
        if any(path.glob(pattern)):
            return seen
    files = _files(path)
    texts = [file for file in files if file.suffix.lower() in (".txt", ".csv", ".xml")]
    if any(map(_is_utf16, texts[:TEXTS_LOOKED_AT])):
        return Seen("a folder with text in UTF-16", UTF16.fix)
    kinds = {_recognize_file(text) for text in texts[:TEXTS_LOOKED_AT]}
    for seen in (MOT, BLANKS):
        if seen in kinds:
            return Seen(f"a folder with {seen.name}", seen.fix)
    files = [file for file in files if file.suffix.lower() in (".json", ".jsonl", ".ndjson")]
    for file in files[:FILES_LOOKED_AT]:
        one = None if any(readings(file).values()) else _recognize_file(file)
        if one is not None:
            return Seen(f"a folder with {one.name}", one.fix)
    return None


def _is_utf16(path: Path) -> bool:
    with open_files.opened(path) as file:
        return open_files.is_utf16(file.read(0, TEXTS_LOOKED_AT))


def _recognize_file(path: Path) -> Seen | None:
    with open_files.opened(path) as file:
        head = file.read(0, HEAD)
        size = file.size
    for start, seen in BYTES:
        if head.startswith(start):
            return None if start == PARQUET and path.suffix.lower() in (".parquet", ".pq") else seen
    if head.startswith(b"PK\x03\x04"):
        first = head[ZIP_NAME:][: int.from_bytes(head[26:28], "little")]
        if first.endswith(b".npy"):
            return MATCHES if first == b"header.npy" else NPZ
        return TORCH if b"data.pkl" in head or path.suffix in (".pth", ".pt") else ZIP
    if path.suffix in (".pth", ".pt"):
        return TORCH
    if b"image/" in head[12:HEAD] and head[4:8] == bytes(4):
        return TFRECORD
    if open_files.is_utf16(head):
        return UTF16
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").lstrip()
    if text.startswith("<"):
        rows, text = (*_exports("XML"), *XML), _without_prolog(text)
        return next((seen for mark, seen in rows if re.match(mark, text, re.DOTALL)), None)
    if text[:1] in ("{", "["):
        known = _match_keys(_json(path, size, text))
        return None if known in READ else known
    return _recognize_lines(text)


def _without_prolog(text: str) -> str:
    rest = re.sub(r"^(<\?.*?\?>|<!--.*?-->|\s)+", "", text, flags=re.DOTALL)
    return rest if rest.startswith("<") else text


def _recognize_lines(text: str) -> Seen | None:
    """Names text without marks of JSON or XML: CSV and lists."""
    first = text_fields.LINE_END.split(text, maxsplit=1)[0].strip()
    for form, seen in (*_exports("LINES"), *LINES):
        if re.fullmatch(form, first):
            return seen
    names = {cell.strip(' "') for cell in re.split("[,;\t]", first)}
    return next((seen for marks, seen in _exports("COLUMNS") if names >= set(marks)), None)


def _json(path: Path, size: int, text: str) -> Any:
    """Returns the decoded file, or its first line if it has one record per line; None if neither
    is JSON.
    """
    first = text.partition("\n")[0]
    for data in (first, open_files.read_bytes(path, times=8) if size <= WHOLE else b""):
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue
    return None


def _match_keys(thing: Any) -> Seen | None:
    """Names a record, or a list of records, or a list per image, by the first record of it."""
    for _ in range(2):
        if isinstance(thing, list | tuple) and thing:
            thing = next((each for each in thing if each), thing[0])
    if not isinstance(thing, Mapping):
        return None
    for marks, seen in (*COCO, *_exports("KEYS")):
        if all(_has(thing, mark.split(".")) for mark in marks):
            return seen
    return None


def _has(thing: Any, keys: list[str]) -> bool:
    if not keys:
        return True
    if isinstance(thing, list | tuple):
        return bool(thing) and _has(thing[0], keys)
    if not isinstance(thing, Mapping):
        return False
    if keys[0] == "*":
        return bool(thing) and _has(next(iter(thing.values())), keys[1:])
    return keys[0] in thing and _has(thing[keys[0]], keys[1:])


# --- folders --------------------------------------------------------------------------------------


def _files(folder: Path) -> list[Path]:
    """Returns files of a folder and its folders, not all of many."""
    found: list[Path] = []
    for file in folder.rglob("*"):
        if file.is_file() and not file.name.startswith("."):
            found.append(file)
        if len(found) >= FILES_LISTED:
            break
    return sorted(found)


def _content(folder: Path) -> str:
    """Describes the files of a folder by their suffixes."""
    suffixes = Counter(file.suffix.lower() or file.name for file in _files(folder))
    parts = [f"{n} {suffix} file{'s' * (n > 1)}" for suffix, n in suffixes.most_common(4)]
    return ", ".join(parts) or "no files"


def _inside(folder: Path, kind: str) -> str:
    """Names what inside of a folder can be read."""
    places = [each for each in sorted(folder.rglob("*")) if each.is_dir()][:FILES_LOOKED_AT]
    places += [file for file in _files(folder) if not image_names.is_image(file.name)][:20]
    good = [place for place in places if readings(place)[kind]]
    if len(good) < 2:
        return "".join(map(shown, good))
    lists = kind == "detections" and good == sorted(folder.glob("*.json"))
    for file in good if lists else ():
        with open_files.opened(file) as content:
            lists = lists and content.read(0, 1) == b"["
    parts = f"; if each holds a part, join them: jq -s add {quote(shown(folder))}/*.json > all.json"
    return f"one of {few(map(shown, good))}{parts * lists}"


def _is_coco(path: Path, kind: str) -> bool:
    if path.suffix.lower() != ".json" or path.is_dir():
        return False
    with open_files.opened(path) as file:
        text = file.read(0, HEAD).decode("utf-8", "replace").lstrip()
        data = _json(path, file.size, text)
    if data == []:
        return kind == "detections"  # of a detector without detections
    seen = _match_keys(data)
    return seen == READ[0 if kind == "truth" else 1]
