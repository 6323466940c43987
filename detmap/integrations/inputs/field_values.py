"""Fields of a host's predictions as arrays. Tensors may be on any device and of half precision."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.errors import DataError


def array(values: Any, dtype: Any = np.float64, where: str = "values") -> NDArray[Any]:
    """Converts a list or tensor to an array on the CPU.

    Raises `DataError` for values that are not numbers, or of different lengths.
    """
    try:
        return to_numpy(values).astype(dtype)
    except (TypeError, ValueError):
        raise DataError(where, "not an array of numbers", "give a tensor or an array") from None


def to_numpy(values: Any) -> NDArray[Any]:
    """Returns a list or tensor of any device as an array of its own type; bfloat16, which NumPy
    lacks, as float32.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values
    return np.asarray(values)


def label_list(values: Any, where: str) -> list[int]:
    """Returns labels as whole numbers. Raises `DataError` for other numbers."""
    labels = array(values, where=where).reshape(-1)
    bad = ~(np.isfinite(labels) & (labels == np.round(labels)))
    if bad.any():
        what = f"{labels[bad][0]} is not a whole number"
        raise DataError(f"{where}[{int(bad.argmax())}]", what, "labels are class ids")
    return [int(each) for each in labels.tolist()]


def field(found: Any, name: str, where: str) -> Any:
    """Returns a field of predictions: a key, or an attribute of an object without keys.

    Raises `DataError` if it is missing.
    """
    try:
        return found[name] if hasattr(found, "keys") else getattr(found, name)
    except (KeyError, AttributeError):
        fix = "give the boxes, scores and labels of the model"
        raise DataError(where, f"no {name!r}", fix) from None
