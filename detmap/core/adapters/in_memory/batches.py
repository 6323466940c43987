"""Reads batches of a training loop: lists of per-image dicts of small arrays.

Arrays are numpy's, or convert to numpy on the CPU (``__array__``, DLPack): torch, JAX, CuPy. None
of these packages is imported.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detmap.core.adapters.joining.join import MAX_PIXEL, box_fault
from detmap.core.tables import BoxFormat, Shapes
from detmap.errors import DataError

Fields = Mapping[str, Any]

ON_CPU = (1, 3, 11)
"""DLPack device types whose memory the processor reads: CPU, and the pinned memory of CUDA and of
ROCm."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The n boxes of a batch of B images, image by image.

    Parameters
    ----------
    count : (B,) int64, boxes per image
    boxes : (n, 4) float64, pixels, in the format of `table_format`
    label : (n,) int64 class ids, or names
    more : further columns by key, each (n,)
    shapes : n masks, keypoints or rotated boxes; None if there are only boxes
    """

    count: NDArray[np.int64]
    boxes: NDArray[np.float64]
    label: NDArray[Any]
    more: Mapping[str, NDArray[Any]]
    shapes: Shapes | None = None

    def take(self, kept: NDArray[np.bool_]) -> "Rows":
        """Selects rows; every image stays."""
        rows = np.flatnonzero(kept)
        before = np.searchsorted(rows, np.cumsum(self.count))  # kept rows up to each image's end
        return Rows(
            np.diff(before, prepend=0),
            self.boxes.take(rows, axis=0),
            self.label.take(rows),
            {key: column.take(rows) for key, column in self.more.items()},
            None if self.shapes is None else self.shapes.take(rows),
        )


def table_format(box_format: str) -> BoxFormat:
    """Returns the table format for one of `FORMATS`."""
    return "voc" if box_format == "voc" else "xywh"


def batch(where: str, images: Any) -> list[Fields]:
    """Returns the images of a batch as dicts.

    Accepts objects with ``xyxy``, ``confidence`` and ``class_id`` (supervision), and a dict from
    image id to dict (``{target["image_id"]: output}`` in torchvision's references).
    """
    if isinstance(images, Mapping) and all(map(_is_image, images.values())):
        images = [
            _with_id(where, key, _fields(f"{where}[{key!r:.60}]", image))
            for key, image in images.items()
        ]
    if isinstance(images, Mapping) or not isinstance(images, Sequence) or isinstance(images, str):
        raise DataError(
            where,
            f"a {type(images).__name__} where a list of images is needed",
            "give a list, one dict an image",
        )
    return [
        image if type(image) is dict else _fields(f"{where}[{i}]", image)
        for i, image in enumerate(images)
    ]


def _is_image(thing: Any) -> bool:
    return isinstance(thing, Mapping) or hasattr(thing, "xyxy")


def _with_id(where: str, key: Any, image: Fields) -> Fields:
    """Adds the id to an image."""
    own = identifier(f"{where}[{key!r:.60}]", image)
    given = identifier(f"{where}[{key!r:.60}]", {"image_id": key})
    if own is not None and own != given:
        what = f"{own!r} where the key is {given!r}"
        raise DataError(f"{where}[{key!r:.60}].image_id", what, "give each image one id")
    return {**image, "image_id": given}


FLAG_KEYS = {"iscrowd": "crowd", "difficult": "difficult", "ignore": "ignore"}
"""Optional keys of targets, and the roles that they set; without a key no object has the role."""

FROM_DATA = (*FLAG_KEYS, "area")
"""Keys of `data` of supervision's ``Detections`` that are read."""


def _fields(where: str, image: Any) -> Fields:
    if isinstance(image, Mapping):
        return image
    try:
        fields = {"boxes": image.xyxy, "labels": image.class_id, "box_format": "xyxy"}
        data = getattr(image, "data", None) or {}
        optional = {
            "scores": getattr(image, "confidence", None),
            **{key: data[key] for key in FROM_DATA if key in data},
            **(getattr(image, "metadata", None) or {}),
        }
    except Exception:  # any error of its properties
        raise DataError(
            where,
            f"a {type(image).__name__} where a dict is needed",
            "a dict has boxes, scores and labels, an object xyxy, confidence and class_id",
        ) from None
    return {**{key: value for key, value in optional.items() if value is not None}, **fields}


FILES = ("file_name", "filename", "image_path", "image", "path")
"""Keys of an image's file, as text."""


def file_of(image: Fields) -> str | None:
    """Returns the image's file, None if no key of `FILES` holds a text."""
    texts = (image[key] for key in FILES if isinstance(image.get(key), str))
    return next(texts, None)


def identifier(where: str, image: Fields) -> int | str | None:
    """Returns the image's own id, None if it has none."""
    value = image.get("image_id")
    if value is None or type(value) is int or type(value) is str:
        return value
    given = (
        value
        if isinstance(value, str)
        else np.asarray(to_array(f"{where}.image_id", value)).ravel().tolist()
    )
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if isinstance(given, bool) or not isinstance(given, int | str):
        raise DataError(
            f"{where}.image_id", f"{value!r}", "an image id is one whole number or one string"
        )
    return given


def read_rows(
    where: str, images: Sequence[Fields], box_format: str, keys: Mapping[str, Any]
) -> Rows:
    """Returns the columns of a batch.

    Parameters
    ----------
    where : name of the batch, for messages
    images : B dicts with ``boxes`` (n, 4), ``labels`` (n,), and ``orig_size`` (height, width) if
        boxes are normalized
    box_format : one of `FORMATS`
    keys : further keys with (n,) numbers, and their defaults; a key with None is required

    Raises `DataError` for missing keys, different lengths, invalid boxes and labels.
    """
    images, names = _class_names(where, images)
    boxes, count = _column(where, images, "boxes", None)
    columns = {}
    for key in ("labels", *keys):
        columns[key], lengths = _column(where, images, key, keys.get(key), count)
        if lengths != count:
            i = next(i for i in range(len(count)) if lengths[i] != count[i])
            raise DataError(
                f"{where}[{i}].{key}",
                f"{lengths[i]} values for {count[i]} boxes",
                f"give one of the {key} per box",
            )
    label = columns.pop("labels")
    if label.dtype.kind != "i":
        label = _whole(where, images, label)
    counts = np.array(count, dtype=np.int64)
    xywh = _pixel_boxes(where, images, boxes, counts, box_format)
    sides = xywh[:, 2:] - xywh[:, :2] + 1 if box_format == "voc" else xywh[:, 2:]
    if not (np.abs(xywh).max(initial=0.0) <= MAX_PIXEL and sides.min(initial=0.0) >= 0):
        bad = ~(np.abs(xywh) <= MAX_PIXEL).all(axis=1) | (sides < 0).any(axis=1)
        first = int(np.argmax(bad))
        i, row = place_at(counts, first)
        value = to_array(where, images[i]["boxes"])[row].tolist()
        raise DataError(
            f"{where}[{i}].boxes[{row}]",
            box_fault(xywh[first], value),
            f"boxes are read as {box_format}; set box_format= if those of predictions and of "
            "targets are others, and convert the boxes if only one of them is",
        )
    return Rows(
        counts, xywh, label.astype(np.int64, copy=False) if names is None else names, columns
    )


def _class_names(
    where: str, images: Sequence[Fields]
) -> tuple[Sequence[Fields], NDArray[np.str_] | None]:
    """Returns class names of a batch whose labels are strings, and images with numbers for them."""
    if not any(_is_text(image.get("labels")) for image in images):
        return images, None
    names = [np.asarray(image.get("labels", ())) for image in images]
    first = next(each for each in names if each.size).dtype
    for i, each in enumerate(names):
        if each.size and ((each.dtype.kind == "U") != (first.kind == "U") or each.ndim != 1):
            what = f"dtype {each.dtype}, where other labels are {first}"
            raise DataError(f"{where}[{i}].labels", what, "give names everywhere, or class ids")
    numbers = [
        {**image, "labels": np.zeros(len(each), dtype=np.int64)} if "labels" in image else image
        for image, each in zip(images, names, strict=True)
    ]
    return numbers, np.concatenate([each for each in names if each.size])


def _is_text(labels: Any) -> bool:
    if isinstance(labels, np.ndarray):
        return labels.dtype.kind == "U" and labels.size > 0
    return isinstance(labels, list | tuple) and len(labels) > 0 and isinstance(labels[0], str)


def place_of(count: NDArray[np.int64], bad: ArrayLike) -> tuple[int, int]:
    """Returns image and row within it of the first bad row of a batch."""
    return place_at(count, int(np.argmax(bad)))


def place_at(count: NDArray[np.int64], row: int) -> tuple[int, int]:
    """Returns image and row within it of a row of a batch."""
    ends = np.cumsum(count)
    image = int(np.searchsorted(ends, row, side="right"))
    return image, row - int(ends[image] - count[image])


def to_array(where: str, value: Any) -> NDArray[Any]:
    """Returns a numpy array of the same numbers. Raises `DataError` if they are not on the CPU."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise DataError(where, "is a masked array", "remove the masked rows")
    if hasattr(value, "detach"):  # torch: numbers without their history of gradients
        value = value.detach()
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            if value.__dlpack_device__()[0] not in ON_CPU:
                raise TypeError(f"a {type(value).__name__} on another device")
            return np.from_dlpack(value)
        try:
            return np.asarray(value)
        except TypeError:
            if not hasattr(value, "float"):
                raise
            return np.asarray(
                value.float()
            )  # torch's bfloat16, which numpy does not know; float32 holds the same numbers
    except Exception as error:  # any error of an object that is converted to numbers
        raise DataError(
            where,
            f"not an array of numbers on the CPU ({error})",
            "give arrays of numpy, torch, JAX or CuPy; .cpu() moves a tensor",
        ) from None


def _column(
    where: str, images: Sequence[Fields], key: str, missing: Any, count: Sequence[int] = ()
) -> tuple[NDArray[Any], list[int]]:
    """Returns one key of all images, concatenated, and the length of each."""
    try:
        arrays = [image[key] for image in images]
    except KeyError:
        lacking = next(i for i, image in enumerate(images) if key not in image)
        if missing is None:
            swapped = "; or ground truth and predictions are in the wrong order"
            fix = f"every image needs {key}{swapped * (key == 'scores')}"
            raise DataError(f"{where}[{lacking}]", f"no {key!r}", fix) from None
        arrays = [
            image.get(key, np.full(n, missing)) for image, n in zip(images, count, strict=True)
        ]
    arrays = [
        each if type(each) is np.ndarray else to_array(f"{where}[{i}].{key}", each)
        for i, each in enumerate(arrays)
    ]
    columns = 4 if key == "boxes" else 1
    if key in ("boxes", "scores"):
        for i, each in enumerate(arrays):
            if each.dtype.kind == "b" and each.size:
                raise DataError(f"{where}[{i}].{key}", "dtype bool", "give numbers")
    try:
        none = np.zeros((0, columns) if columns > 1 else 0)
        whole = np.concatenate(arrays) if arrays else none
        if (
            whole.size == whole.shape[0] * columns
            and whole.ndim == 1 + (columns > 1)
            and whole.dtype.kind in "fiub"
        ):
            return whole, [len(each) for each in arrays]
    except ValueError:  # shapes that differ
        pass
    arrays = [_shaped(f"{where}[{i}].{key}", each, columns) for i, each in enumerate(arrays)]
    return np.concatenate([each for each in arrays if each.size] or arrays[:1]), [
        len(each) for each in arrays
    ]


def _shaped(where: str, array: NDArray[Any], columns: int) -> NDArray[Any]:
    """Checks the shape of an array (empty: any). numpy need not know the float type."""
    if array.size == 0:
        array = np.zeros((0, 4) if columns == 4 else 0, dtype=array.dtype)
    if array.dtype.kind == "V":  # JAX's bfloat16 and smaller floats
        with suppress(TypeError, ValueError):
            array = array.astype(np.float32)
    if array.dtype.kind not in "fiub":
        raise DataError(where, f"dtype {array.dtype}", "give numbers")
    wanted = "(n, 4)" if columns == 4 else "(n,)"
    if array.ndim != (2 if columns == 4 else 1) or array.size != len(array) * columns:
        raise DataError(
            where, f"shape {array.shape} where {wanted} is needed", "give one row per box"
        )
    return array


def _whole(where: str, images: Sequence[Fields], label: NDArray[Any]) -> NDArray[np.int64]:
    """Checks that labels are whole numbers, ignoring images without boxes."""
    kinds = [to_array(where, image["labels"]) for image in images]
    for i, each in enumerate(kinds):
        if each.size and each.dtype.kind not in "iu":
            raise DataError(
                f"{where}[{i}].labels", f"dtype {each.dtype}", "labels are class ids, whole numbers"
            )
        if each.dtype.kind == "u" and each.max(initial=0) >= 2**63:
            raise DataError(
                f"{where}[{i}].labels", f"{each.max()} has 64 bits", "class ids have 63 at most"
            )
    whole = [each.ravel().astype(np.int64) for each in kinds if each.size]
    return np.concatenate([label[:0].astype(np.int64), *whole])


def _pixel_boxes(
    where: str,
    images: Sequence[Fields],
    given: NDArray[Any],
    count: NDArray[np.int64],
    box_format: str,
) -> NDArray[np.float64]:
    """Returns (n, 4) table boxes; each corner and side is at most one rounding away."""
    boxes = np.ascontiguousarray(given.reshape(-1, 4), dtype=np.float64)
    for i, image in enumerate(images):
        if image.get("box_format", box_format) != box_format:
            raise DataError(
                f"{where}[{i}]",
                f"boxes are {image['box_format']}, not {box_format}",
                "remove box_format=",
            )
    kind, _, corners = box_format.rpartition(" ")
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # the caller reports numbers that are not finite
        if kind == "normalized":
            boxes *= np.repeat(_sizes(where, images), count, axis=0)
        if corners == "xyxy":
            boxes[:, 2:] -= boxes[:, :2]
        elif corners == "cxcywh":
            boxes[:, :2] -= boxes[:, 2:] / 2
    return boxes


def require_same_sizes(predicted: Sequence[Fields], annotated: Sequence[Fields]) -> None:
    """Raises `DataError` if predictions and targets give an image different sizes."""
    sizes = [
        _sizes(where, each) for where, each in (("predictions", predicted), ("targets", annotated))
    ]
    other = (sizes[0] != sizes[1]).any(axis=1)
    if other.any():
        i = int(np.argmax(other))
        shown = [size[i, 1::-1].tolist() for size in sizes]
        raise DataError(
            f"targets[{i}].orig_size",
            f"{shown[1]}, but {shown[0]} in predictions[{i}]",
            "an image has one height and width",
        )


def _sizes(where: str, images: Sequence[Fields]) -> NDArray[np.float64]:
    """Returns (B, 4) width, height, width, height of each image."""
    sizes = np.array([image_size(where, i, image) for i, image in enumerate(images)])
    return sizes.reshape(-1, 2)[:, [1, 0, 1, 0]]


def image_size(where: str, i: int, image: Fields) -> tuple[float, float]:
    """Returns the height and width of image i of a batch."""
    try:
        given = to_array(f"{where}[{i}].orig_size", image["orig_size"])
        if given.dtype.kind not in "iuf":
            raise ValueError
        height, width = given.ravel().tolist()
    except (KeyError, ValueError):
        raise DataError(
            f"{where}[{i}].orig_size",
            "missing, or not two numbers",
            "normalized boxes need the height and width of their image",
        ) from None
    if not (0 < width < MAX_PIXEL and 0 < height < MAX_PIXEL):
        raise DataError(
            f"{where}[{i}].orig_size", f"{[height, width]}", "height and width are positive pixels"
        )
    return height, width
