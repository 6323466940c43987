"""Grids of thresholds and recall points, bit-identical to their references."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from detmap.core.base.immutable import Value


@dataclass(slots=True, eq=False, repr=False)
class Grid(Value):
    """A grid of numbers, bit-identical to its reference.

    Parameters
    ----------
    recipe : the numbers as a tuple, or one of these texts:
        ``start:step:stop`` spaced as ``np.linspace`` (pycocotools);
        ``matlab start:step:stop`` spaced from both ends as MATLAB's colon (VOC devkit);
        ``arange start:step:stop`` spaced as ``np.arange(start, stop+step, step)`` (py-faster-rcnn);
        ``decimal start:step:stop`` the numbers nearest to the decimals (TIDE, darknet);
        ``float32 start:step:stop`` spaced as ``torch.linspace`` in float32 (torchmetrics)
    """

    recipe: str | tuple[float, ...]

    def values(self) -> NDArray[np.float64]:
        """Returns (n,) float64 numbers. Raises `ValueError` if the recipe is invalid."""
        if isinstance(self.recipe, tuple):
            return np.array(self.recipe, dtype=np.float64)
        return _spaced(self.recipe).copy()

    def __str__(self) -> str:
        if isinstance(self.recipe, str):
            return self.recipe
        return ", ".join(f"{x:g}" for x in self.recipe)


NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A number of a recipe: ASCII digits, so that no ``inf``, ``1_0`` or foreign digit slips in."""
SPACINGS = ("matlab", "arange", "decimal", "float32")


def _parse(recipe: str) -> tuple[str, float, float, float]:
    kind, space, numbers = recipe.strip(" ").rpartition(" ")
    parts = numbers.split(":")
    if (space and kind not in SPACINGS) or not all(re.fullmatch(NUMBER, part) for part in parts):
        raise ValueError
    start, step, stop = map(float, parts)
    finite = all(math.isfinite(x) for x in (start, step, stop))
    if not (finite and step > 0 and stop >= start and (stop - start) / step < 1e6):
        raise ValueError
    return kind or "linspace", start, step, stop


@lru_cache(maxsize=16)  # parsed again for each batch of an `Evaluator`
def _spaced(recipe: str) -> NDArray[np.float64]:
    """The numbers of a text."""
    kind, start, step, stop = _parse(recipe)
    n = round((stop - start) / step) + 1
    if kind == "matlab":
        k = np.arange(n)
        return np.where(k <= (n - 1) / 2, start + k * step, stop - (n - 1 - k) * step)
    if kind == "arange":
        return np.asarray(start + np.arange(n) * step, dtype=np.float64)
    if kind == "decimal":
        return np.array([round(start + k * step, 9) for k in range(n)])
    if kind == "float32":  # from both ends, each number rounded once
        single, k = float(np.float32((stop - start) / max(n - 1, 1))), np.arange(n)
        spaced = np.where(k < n // 2, start + single * k, stop - single * (n - 1 - k))
        return spaced.astype(np.float32).astype(np.float64)
    return np.linspace(start, stop, n, endpoint=True)
