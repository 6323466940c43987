"""Results of a model as rows of a COCO results file, and their evaluation.

Boxes are corners.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap.core.base.flat_rows import flatten_rows
from detmap.core.overlaps.ragged_runs import run_lengths
from detmap.errors import DataError
from detmap.integrations.inputs.field_values import array, label_list

Row = dict[str, Any]
_IMAGE = re.compile(r"\[(\d+)\]\.image_id")
PROTOCOLS = {"bbox": "coco-bbox", "segm": "coco-segm", "keypoints": "coco-keypoints"}


def rows(
    image_id: Any, scores: Any, categories: Sequence[int], kind: str, shapes: Any
) -> list[Row]:
    """Returns the rows of one image.

    Parameters
    ----------
    image_id : in the ground truth
    scores, categories : n scores and ids of classes
    kind : ``bbox``: (n, 4) corners; ``segm``: (n, H, W) masks or n run-length encodings;
        ``keypoints``: (n, P, 3)

    Raises
    ------
    DataError : different lengths, another shape, a number that is not finite
    """
    where = f"image {image_id!r}"
    score = array(scores, where=f"{where}: scores").reshape(-1)
    fields = list(_fields(f"{where}: {kind}", kind, shapes))
    for name, values in (("scores", score), ("labels", categories)):
        if len(values) != len(fields):
            what = f"{len(values)} values for {len(fields)} of {kind}"
            raise DataError(f"{where}: {name}", what, f"give one of the {name} per row")
    bad = ~np.isfinite(score)
    if bad.any():
        what = f"{score[bad][0]} is not a finite number"
        raise DataError(f"{where}: scores[{int(bad.argmax())}]", what, "a score is a number")
    image = image_id if isinstance(image_id, str) else label_list([image_id], "image_id")[0]
    columns = zip(score.tolist(), categories, fields, strict=True)
    return [
        {"image_id": image, "category_id": int(category), "score": value, **field}
        for value, category, field in columns
    ]


def _fields(where: str, kind: str, shapes: Any) -> Iterator[Row]:
    """The geometry of each row, under COCO's key."""
    if kind == "segm" and len(shapes) and isinstance(shapes[0], Mapping):
        yield from ({"segmentation": _text_counts(where, each)} for each in shapes)
        return
    values = array(shapes, bool if kind == "segm" else np.float64, where)
    columns = {"bbox": (4,), "segm": values.shape[-2:], "keypoints": (*values.shape[-2:-1], 3)}
    if not values.size and len(values) == 0:
        return
    if values.shape[1:] != columns[kind]:
        raise DataError(where, f"shape {values.shape}", f"give (n, {columns[kind]})")
    bad = ~np.isfinite(flatten_rows(values)).all(axis=1)
    if bad.any():
        what = "not finite numbers"
        raise DataError(f"{where}[{int(bad.argmax())}]", what, "check the output of the model")
    if kind == "segm":
        yield from ({"segmentation": run_lengths(mask)} for mask in values)
    elif kind == "keypoints":
        yield from ({"keypoints": each} for each in flatten_rows(values).tolist())
    else:
        values[:, 2:] -= values[:, :2]
        yield from ({"bbox": box} for box in values.tolist())


def _text_counts(where: str, encoding: Mapping[str, Any]) -> Row:
    if not {"size", "counts"} <= encoding.keys():
        raise DataError(where, "no size or counts", "give run lengths as pycocotools encodes them")
    counts = encoding["counts"]
    return {**encoding, "counts": counts.decode() if isinstance(counts, bytes) else counts}


def class_ids(truth: detmap.Truth, names: Sequence[str] | None) -> list[int]:
    """Returns the category id of each label: by name, or ascending without names.

    Raises
    ------
    DataError : a name that the ground truth does not have
    """
    known = dict(zip(truth.categories.names, truth.categories.ids.tolist(), strict=True))
    if names is None:
        return list(known.values())
    for name in names:
        if name not in known:
            fix = f"the classes are {', '.join(known)[:200]}"
            raise DataError("class names", f"{name!r} is not in {truth.source}", fix)
    return [known[name] for name in names]


def categories(labels: Sequence[int], ids: Sequence[int], where: str, fix: str) -> list[int]:
    """Returns the category ids of labels 0, 1, 2 ... Raises `DataError` for other labels."""
    for label in labels:
        if not 0 <= label < len(ids):
            raise DataError(where, f"no class {label} of {len(ids)}", fix)
    return [ids[label] for label in labels]


def evaluate(
    truth: str | Path,
    found: Sequence[Row],
    kind: str,
    protocol: str | detmap.Protocol | None = None,
    file: str | Path | None = None,
) -> detmap.Result:
    """Writes rows to a file, temporary by default, and evaluates it under COCO's rules.

    Raises `DataError`, for an image that the ground truth does not have by its id.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(file or Path(folder, f"{kind}.json"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(list(found)))
        try:
            return detmap.evaluate(truth, path, protocol or PROTOCOLS[kind])
        except DataError as error:
            at = _IMAGE.fullmatch(error.where.removeprefix(str(path)))
            if at is None or not error.what.startswith("no image"):
                raise
            image = f"image {found[int(at[1])]['image_id']!r}"
            fix = "give the ground truth of the images that the model saw"
            raise DataError(image, f"is not in {truth}", fix) from None
