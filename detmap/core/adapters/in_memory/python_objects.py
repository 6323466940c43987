"""Ground truth and detections from Python objects: one function decides what an object is.

`KINDS` has a row per kind. Content of files (JSON, open files) goes through the readers of files,
so that formats, checks and messages are theirs.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from detmap.core.adapters.in_memory import image_lists
from detmap.core.adapters.joining import join
from detmap.core.adapters.joining.unknown_policy import Policy
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError, DetmapError

Table = TypeVar("Table", Truth, Detections)


class Kind(NamedTuple):
    """A kind of object: its name, what it is, and whether an object is one."""

    name: str
    what: str
    matches: Callable[[Any], bool]


def _is_coco(thing: Any) -> bool:
    return isinstance(getattr(type(thing), "loadRes", None), Callable) and hasattr(  # type: ignore[arg-type]
        thing, "dataset"
    )


def _is_columns(thing: Any) -> bool:
    if not csv_parquet.is_table(thing):
        return False
    if not isinstance(thing, Mapping):
        return True
    values = list(thing.values())
    return bool(values) and all(
        not isinstance(each, str | Mapping)
        and hasattr(each, "__len__")
        and (isinstance(each, np.ndarray) or not (len(each) and isinstance(each[0], Mapping)))
        for each in values
    )


KINDS: tuple[Kind, ...] = (
    Kind("file", "an open file, or an object with `read`", lambda each: hasattr(each, "read")),
    Kind("COCO", "`COCO` of pycocotools, or of detmap's drop-in", _is_coco),
    Kind(
        "images",
        "a list with one dict per image (torchmetrics, torchvision, Hugging Face) or supervision "
        "`Detections`; a dict from image id to these",
        image_lists.is_list_of_images,
    ),
    Kind(
        "table", "a data frame of pandas or polars, an Arrow table, a dict of columns", _is_columns
    ),
    Kind(
        "array",
        "an (n, 7) array: image id, x, y, width, height, score, class id (pycocotools' `loadRes`)",
        lambda each: getattr(each, "ndim", 0) == 2 and each.shape[1] == 7,
    ),
    Kind(
        "json",
        "the content of a JSON file: a COCO dict, a list of COCO results",
        lambda each: (
            isinstance(each, Mapping)
            or (
                isinstance(each, list | tuple) and all(isinstance(one, Mapping) for one in each[:1])
            )
        ),
    ),
)
"""What can be given in place of a path, in the order in which it is tried."""


def kind_of(thing: Any) -> str:
    """Returns the name of the kind of an object; "" for none of `KINDS`."""
    return next((each.name for each in KINDS if each.matches(thing)), "")


OWN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "images": ("box_format", "shapes", "roles", "attributes"),
    "table": ("box_format", "roles", "attributes"),
    "array": (),
}
"""Options of `detmap.read_truth` for each kind that is not the content of a file."""


def read_truth(given: Any, read: Callable[[Path], Truth], options: Mapping[str, Any]) -> Truth:
    """Reads ground truth from an object that is not a path.

    Parameters
    ----------
    given : a table, or an object of one of `KINDS`
    read : reads a path with these options
    options : of `detmap.read_truth`
    """
    if isinstance(given, Truth):
        return given
    if isinstance(given, list | tuple) and not given:
        raise DataError("truth", "is an empty list", "give one dict per image, or a COCO dict")
    kind = kind_of(given)
    if isinstance(given, Detections) or kind == "array":
        raise DataError("truth", "is a table of detections", "give the ground truth first")
    known = OWN_OPTIONS.get(kind)
    _refuse_options("truth", kind, known, options)
    if known is None:
        with _file("truth", kind, given) as path:
            return _renamed(read(path), path, "truth")
    own = {name: options[name] for name in known if name in options}
    if kind == "images":
        return image_lists.read_truth(given, **own)
    from detmap.core.adapters.in_memory.arrays import truth_from_arrays

    return truth_from_arrays(given, **own)


def read_detections(
    given: Any,
    truth: Truth,
    policy: Policy,
    read: Callable[[Path], Detections],
    options: Mapping[str, Any],
) -> Detections:
    """Reads detections from an object that is not a path.

    Parameters
    ----------
    given : a table, or an object of one of `KINDS`
    truth : the ground truth
    policy : about unknown images and classes
    read : reads a path with these options
    options : of `detmap.read_detections`
    """
    if isinstance(given, Detections):
        return given
    if isinstance(given, Truth):
        raise DataError("detections", "is a ground truth", "give the ground truth first")
    kind, box_format = kind_of(given), options["box_format"]
    if kind in OWN_OPTIONS:
        _refuse_options("detections", kind, OWN_OPTIONS[kind], {"format": options["format"]})
    if kind == "images":
        return image_lists.read_detections(given, truth, policy, box_format)
    if kind == "table":
        from detmap.core.adapters.tabular import column_tables

        sheet = csv_parquet.from_table(given, "detection table")
        table = column_tables.read_detections(sheet, truth, box_format, policy)
        join.require_numbered(truth, table)
        return table
    with _file("detections", kind, _results(given) if kind == "array" else given) as path:
        return _renamed(read(path), path, "detections")


def _results(array: Any) -> list[dict[str, Any]]:
    """The COCO results of an (n, 7) array. Source: pycocotools, COCO.loadNumpyAnnotations."""
    rows = np.asarray(array, dtype=np.float64).tolist()
    return [
        {"image_id": int(row[0]), "category_id": int(row[6]), "bbox": row[1:5], "score": row[5]}
        for row in rows
    ]


def _refuse_options(
    where: str, kind: str, known: Sequence[str] | None, options: Mapping[str, Any]
) -> None:
    """Raises `DataError` for options that the kind does not have; None: it has all."""
    for name, value in options.items():
        if known is not None and name not in known and value not in (None, "boxes", (), []):
            what = f"{name} {str(value)!r:.60} is not an option of {kind} in memory"
            raise DataError(where, what, f"remove {name}")


@contextmanager
def _file(where: str, kind: str, given: Any) -> Iterator[Path]:
    """Writes the content to a temporary file; messages name `where` in place of it.

    Raises
    ------
    DataError : an object of no kind, or one that has no such content
    """
    if not kind:
        from detmap.core.adapters import registry

        raise registry.not_a_path(given)
    data, suffix = _content(where, kind, given)
    with tempfile.TemporaryDirectory(prefix="detmap-") as folder:
        path = Path(folder) / f"{where}{suffix}"
        path.write_bytes(data)
        try:
            yield path
        except DetmapError as error:
            texts = (error.where, error.what, error.fix)
            place, what, fix = (each.replace(str(path), where) for each in texts)
            raise type(error)(place, what, fix) from None


def _content(where: str, kind: str, given: Any) -> tuple[bytes, str]:
    """Returns the bytes of a file with this content, and its suffix."""
    if kind == "file":
        return _read_whole(where, given)
    if kind == "COCO":
        given = given.dataset
        if where == "detections":
            given = given.get("annotations", [])
            if given and isinstance(given[0], Mapping) and "score" not in given[0]:
                fix = "give the ground truth first: the two may be exchanged"
                raise DataError(where, "annotations have no score, as of a ground truth", fix)
    plain = _without_bytes(given)
    try:
        data = msgspec.json.encode(plain, enc_hook=_plain)
        if b"null" in data:  # of None, or of a number that is not finite, which this refuses
            json.dumps(plain, default=_plain, allow_nan=False)
        return data, ".json"
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        what = f"cannot be written as JSON: {error}"
        raise DataError(where, what, "give plain dicts and lists of numbers and strings") from None


def _read_whole(where: str, stream: Any) -> tuple[bytes, str]:
    """Returns the bytes of an open file from its beginning, and the suffix of its name or kind."""
    try:
        if hasattr(stream, "seekable") and stream.seekable():
            stream.seek(0)
        data = stream.read()
    except (OSError, ValueError) as error:
        raise DataError(where, f"cannot be read: {error}", "give an open file") from None
    if not isinstance(data, str | bytes):
        raise DataError(where, f"read() returned a {type(data).__name__}", "give an open file")
    data = data.encode() if isinstance(data, str) else data
    name = getattr(stream, "name", "")
    suffix = "".join(Path(name).suffixes[-2:]) if isinstance(name, str) else ""
    if not suffix:
        head = data[:64].lstrip()
        is_json = head.startswith((b"{", b"["))
        suffix = ".json" if is_json else ".parquet" if head.startswith(b"PAR1") else ".csv"
    return data, suffix


def _without_bytes(content: Any) -> Any:
    """Returns COCO content whose compressed run lengths are text; pycocotools has them as bytes."""
    if isinstance(content, Mapping) and isinstance(content.get("annotations"), list | tuple):
        return {**content, "annotations": _without_bytes(content["annotations"])}
    if not isinstance(content, list | tuple):
        return content
    return [
        {**each, "segmentation": {**each["segmentation"], "counts": _text(each["segmentation"])}}
        if isinstance(each, Mapping)
        and isinstance(each.get("segmentation"), Mapping)
        and isinstance(each["segmentation"].get("counts"), bytes)
        else each
        for each in content
    ]


def _text(segmentation: Mapping[str, Any]) -> str:
    return str(segmentation["counts"], "ascii", "replace")


def _plain(value: Any) -> Any:
    """Returns numbers and arrays of NumPy, torch and JAX as plain values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__}")


def _renamed(table: Table, path: Path, name: str) -> Table:
    """Returns the table with the name of the object in place of the temporary file."""
    notes = tuple(
        replace(
            note,
            source=note.source.replace(str(path), name),
            template=note.template.replace(str(path), name),
        )
        for note in table.notes
    )
    return replace(table, source=table.source.replace(str(path), name), notes=notes)
