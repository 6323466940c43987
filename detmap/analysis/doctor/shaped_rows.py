"""Rows of results with masks, keypoints or corners. Hypotheses compare the boxes around them; a fix
of boxes becomes an affine map per row, which `shapes_of` applies to the shapes.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from detmap.analysis.doctor.explanation import ON
from detmap.analysis.doctor.raw_rows import Raw, best_objects
from detmap.analysis.doctor.repair import Repair
from detmap.analysis.doctor.trial import Sample
from detmap.analysis.doctor.truth_checks import is_many
from detmap.analysis.doctor.turned_images import turn_single
from detmap.core.overlaps import KINDS, kind_of
from detmap.core.overlaps.keypoints import Keypoints
from detmap.core.overlaps.ragged_runs import unpacked
from detmap.core.overlaps.rotated_boxes import RotatedBoxes
from detmap.core.overlaps.shape_records import ShapeReader
from detmap.core.results.findings import Finding
from detmap.core.tables import Shapes, Truth, apart
from detmap.errors import DataError

Boxes = NDArray[np.float64]
Apply = Callable[[Raw, Truth], Raw]

BROKEN = (DataError, TypeError, ValueError, KeyError, IndexError, OverflowError)
"""What values that are no shapes raise."""
LOOKED_AT = 300  # masks that are decoded to look for another order of pixels
FITS, TIMES = 0.2, 3.0  # share of these that fit an object then, and times as many as before
NOTHING = (0.0, 0.0, 0.0, 0.0)


def reader_of(shapes: Shapes | None) -> ShapeReader | None:
    """Returns the reader of shapes of this kind."""
    readers = [row.reader for row in KINDS if row.reader is not None]
    return next((each for each in readers if isinstance(shapes, each.kind)), None)


def records_of(path: Path) -> list[dict[str, Any]] | None:
    """Returns the records of a COCO results file; None for others."""
    try:
        rows: Any = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    rows = rows.get("annotations") if isinstance(rows, dict) else rows
    good = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    return rows if good else None


def with_values(raw: Raw, values: list[tuple[Any, Any]], reader: ShapeReader) -> Raw:
    """Returns the rows with their shapes, and the boxes around these in place of their own."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    runs = [i for i, (value, _) in enumerate(values) if isinstance(value, dict)]
    boxes = np.zeros((len(values), 4))
    try:  # all at once: one at a time takes ten times as long
        boxes[runs] = _around_runs([values[i][0] for i in runs], reader) if runs else 0.0
        rest = [i for i, (value, _) in enumerate(values) if not isinstance(value, dict)]
    except BROKEN:
        rest = list(range(len(values)))
    for i in rest:
        boxes[i] = around(*values[i], reader)
    return replace(raw, boxes=boxes, box_format="xywh", values=column)


def around(value: Any, box: Any, reader: ShapeReader) -> tuple[float, float, float, float]:
    """Returns the box around a shape as JSON has it; that of the record where it has none."""
    try:
        if isinstance(value, dict):
            x, y, w, h = _around_runs([value], reader)[0].tolist()
            return (x, y, w, h)
        points = points_of(value, reader)
        if not len(points):
            x, y, w, h = box
            return (float(x), float(y), float(w), float(h))
        low, high = points.min(axis=0), points.max(axis=0)
        return (*map(float, low), *map(float, high - low))  # type: ignore[return-value]
    except BROKEN:
        return NOTHING


def _around_runs(values: list[Any], reader: ShapeReader) -> Boxes:
    shapes = [plain_text(each) for each in values]
    sizes = np.array([each["size"] for each in shapes], dtype=np.float64).reshape(-1, 2)
    return reader.around(reader.read(shapes, sizes, str))


def points_of(value: Any, reader: ShapeReader) -> Boxes:
    """Returns (k, 2) the points of keypoints, polygons or corners."""
    if reader.field == "keypoints":
        return np.array(value, dtype=np.float64).reshape(-1, 3)[:, :2]
    rings = value if value and isinstance(value[0], list) else [value]
    return np.concatenate([np.array(ring, dtype=np.float64).reshape(-1, 2) for ring in rings])


def is_text_of_bytes(value: Any) -> bool:
    """Returns whether run lengths are the text of Python bytes."""
    return isinstance(value, dict) and str(value.get("counts")).startswith(("b'", 'b"'))


def plain_text(value: Any) -> Any:
    """Returns run lengths whose counts are no text of Python bytes."""
    if not is_text_of_bytes(value):
        return value
    try:
        return value | {"counts": ast.literal_eval(value["counts"]).decode()}
    except (SyntaxError, ValueError):
        return value


# --- fixes ----------------------------------------------------------------------------------------


def following(repair: Repair) -> Repair:
    """Returns a repair of boxes that moves shapes too."""
    if repair.apply is turn_single:  # which guesses anew, and moves shapes itself
        return repair
    apply = partial(follow, apply=repair.apply)
    return Repair(repair.name, repair.sentence, apply, repair.weight, repair.sure)


def can_move(raw: Raw) -> bool:
    """Returns whether a repair of boxes can move the shapes: run lengths it cannot."""
    if raw.values is None:
        return raw.shapes is None or isinstance(raw.shapes, Keypoints | RotatedBoxes)
    return not any(isinstance(value, dict) for value, _ in raw.values[:LOOKED_AT])


def follow(raw: Raw, truth: Truth, *, apply: Apply) -> Raw:
    """Returns the rows after a repair of boxes, and what it does to points: found from three of
    them, boxes without a size.
    """
    made = apply(raw, truth)
    ends = []
    for point in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
        boxes = np.tile(np.array([*point, 0.0, 0.0]), (len(raw), 1))
        ends.append(apply(replace(raw, boxes=boxes, box_format="xywh"), truth).boxes[:, :2])
    linear = np.stack([ends[1] - ends[0], ends[2] - ends[0]], axis=2)
    change = np.concatenate([linear, ends[0][:, :, None]], axis=2)
    if raw.affine is not None:
        offset = change[:, :, :2] @ raw.affine[:, :, 2:] + change[:, :, 2:]
        change = np.concatenate([change[:, :, :2] @ raw.affine[:, :, :2], offset], axis=2)
    return replace(made, affine=change)


def shapes_of(raw: Raw, truth: Truth) -> Shapes | None:
    """Returns the shapes of the rows after all repairs, as the protocol compares them.

    Raises `DataError` for run lengths of another size, or that a fix of boxes cannot move.
    """
    reader = reader_of(truth.shapes)
    if raw.values is None or reader is None:
        return raw.shapes if raw.affine is None else _moved_table(raw)
    image, _ = raw.places(truth)
    size = np.stack([truth.images.height, truth.images.width], axis=1)[image]
    values = []
    for i, (value, box) in enumerate(raw.values.tolist()):
        shape = reader.from_box(box) if value is None and box is not None else value
        if image[i] < 0:
            size[i] = shape["size"] if isinstance(shape, dict) else (1, 1)
        values.append(shape if raw.affine is None else _moved(shape, raw.affine[i], reader, raw))
    shapes: Any = reader.read(values, size, lambda i: f"{raw.source}: row {i}", truth.shapes)
    if reader.box_gives_area and all(box is not None for _, box in raw.values.tolist()):
        boxes = np.array([box for _, box in raw.values.tolist()], dtype=np.float64)
        grown = 1.0 if raw.affine is None else np.abs(np.linalg.det(raw.affine[:, :, :2]))
        shapes = replace(shapes, area=boxes[:, 2] * boxes[:, 3] * grown)
    found: Shapes = shapes
    return found


def _moved_table(raw: Raw) -> Shapes:
    """The shapes of a table after an affine map per row."""
    assert raw.affine is not None
    turn, offset = raw.affine[:, :, :2].transpose(0, 2, 1), raw.affine[:, None, :, 2]
    grown = np.abs(np.linalg.det(raw.affine[:, :, :2]))
    if isinstance(raw.shapes, Keypoints):
        points = raw.shapes.points.copy()
        points[:, :, :2] = points[:, :, :2] @ turn + offset
        return Keypoints(points, raw.shapes.area * grown)
    assert isinstance(raw.shapes, RotatedBoxes)
    corners = raw.shapes.corners() @ turn + offset
    return RotatedBoxes(np.ascontiguousarray(corners.reshape(-1, 8)))


def _moved(value: Any, change: Boxes, reader: ShapeReader, raw: Raw) -> Any:
    """A shape after an affine map (2, 3)."""
    if value is None or np.array_equal(change, [[1, 0, 0], [0, 1, 0]]):
        return value
    if isinstance(value, dict):
        what = "run lengths cannot be moved or scaled"
        raise DataError(raw.source, what, "write the masks in the pixels of their images")
    if reader.field == "keypoints":
        points = np.array(value, dtype=np.float64).reshape(-1, 3)
        points[:, :2] = points[:, :2] @ change[:, :2].T + change[:, 2]
        return points.ravel().tolist()
    rings = value if value and isinstance(value[0], list) else [value]
    moved = [
        (np.array(ring, dtype=np.float64).reshape(-1, 2) @ change[:, :2].T + change[:, 2]).ravel()
        for ring in rings
    ]
    return [each.tolist() for each in moved]


# --- what masks mean ------------------------------------------------------------------------------


def facts(raw: Raw) -> Iterator[Finding]:
    """Yields masks and keypoints that do not lie in the box beside them."""
    if raw.values is None or raw.affine is not None:
        return
    boxes = [box if isinstance(box, list) and len(box) == 4 else NOTHING for _, box in raw.values]
    odd = apart(raw.boxes, np.array(boxes, dtype=np.float64).reshape(-1, 4))
    if is_many(odd):
        text = (
            f"shapes of {odd.sum():,} of {len(raw):,} detections do not lie in their bbox: shapes "
            "are compared, and bbox gives the area; remove bbox or correct it"
        )
        yield Finding("shapes-outside-boxes", text)


def texts_of_bytes(raw: Raw) -> Iterator[Repair]:
    """Run lengths that are the text of bytes."""
    values = () if raw.values is None else raw.values[:LOOKED_AT]
    if any(is_text_of_bytes(value) for value, _ in values):
        text = "counts of masks are the text of Python bytes, b'...': write counts.decode()"
        yield Repair("masks-as-bytes", text, partial(_changed, change=plain_text), 1, True)


def repairs(sample: Sample) -> Iterator[Repair]:
    """Run lengths that go along the rows, or have x and y swapped."""
    values = sample.raw.values
    if values is None or reader_of(sample.trial.shaped_truth.shapes) is None:
        return
    if any(is_text_of_bytes(value) for value, _ in values[:LOOKED_AT]):
        return
    few = sample.rows.take(np.arange(min(LOOKED_AT, len(sample.rows))))
    if few.values is None or not all(isinstance(value, dict) for value, _ in few.values):
        return
    now = _share(few, sample.truth)
    for name, apply, text in (
        (
            "masks-c-order",
            partial(_changed, change=along_columns),
            "run lengths of masks go along the rows; COCO's go down",
        ),
        ("masks-xy-swapped", _swapped, "masks have x and y swapped"),
    ):
        try:
            share = _share(apply(few, sample.truth), sample.truth)
        except BROKEN:  # the reader of the file says what is wrong with a mask
            return
        if share >= FITS and share >= TIMES * now:
            yield Repair(name, text, apply, 1, True)


def _share(rows: Raw, truth: Truth) -> float:
    return float(len(best_objects(rows, truth, ON).row) / max(1, len(rows)))


def _changed(raw: Raw, truth: Truth, *, change: Callable[[Any], Any]) -> Raw:
    """The rows with other masks, and the boxes around these."""
    assert raw.values is not None
    values = [(change(value), box) for value, box in raw.values]
    return with_values(raw, values, _mask_reader())


def _mask_reader() -> ShapeReader:
    reader = kind_of("masks").reader
    assert reader is not None
    return reader


def decoded(value: dict[str, Any]) -> NDArray[np.bool_]:
    """Returns (height, width) the mask of run lengths."""
    return next(all_decoded([value]))


def all_decoded(values: Sequence[dict[str, Any]]) -> Iterator[NDArray[np.bool_]]:
    """Yields the mask of each: reading them one at a time takes ten times as long."""
    reader: Any = _mask_reader()
    sizes = np.array([each["size"] for each in values], dtype=np.float64).reshape(-1, 2)
    runs = reader.read(list(values), sizes, str).runs
    off, counts = unpacked(runs.off, runs.counts)
    for (height, width), begin, end in zip(sizes.astype(int), off, off[1:], strict=False):
        flat = np.repeat(np.arange(end - begin) % 2 == 1, counts[begin:end])
        yield flat.reshape(width, height).T


def encoded(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Returns the run lengths of a mask."""
    flat = np.concatenate([[False], mask.T.ravel(), [True]])
    flat[-1] = not flat[-2]
    ends = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    counts = np.diff(np.concatenate([[1], ends])).tolist()
    return {"size": list(mask.shape), "counts": counts}


def along_columns(value: dict[str, Any]) -> dict[str, Any]:
    """Returns the mask whose run lengths go along the rows."""
    mask = decoded(value)
    return encoded(mask.ravel(order="F").reshape(mask.shape))


def _swapped(raw: Raw, truth: Truth) -> Raw:
    """The rows with x and y of their masks swapped: masks of the size height, width of their image
    keep it, others are of the size width, height.
    """
    image, _ = raw.places(truth)
    size = np.column_stack([truth.images.width, truth.images.height])[image].tolist()
    given = raw.values.tolist() if raw.values is not None else []
    masks = all_decoded([value for value, _ in given])
    values = [
        (transposed(mask, whole=list(value["size"]) == size[i]), box)
        for i, (mask, (value, box)) in enumerate(zip(masks, given, strict=True))
    ]
    return with_values(raw, values, _mask_reader())


def transposed(mask: NDArray[np.bool_], *, whole: bool) -> dict[str, Any]:
    """Returns the run lengths of a mask with x and y swapped, on a canvas with `whole` swapped
    too.
    """
    if whole:
        return encoded(mask.T)
    out = np.zeros_like(mask)
    side = min(mask.shape)
    out[:side, :side] = mask[:side, :side].T
    return encoded(out)
