"""What ``accumulate`` takes of an evaluation, and the arrays that it makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.compat.annotation_rows import Unusual
from detmap.compat.drop_in_engine import Part
from detmap.curves.scores import sample


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """What ``accumulate`` takes of an evaluation.

    Parameters
    ----------
    points : (R,) float64 recall points, in any order
    classes, areas, images : places among those that were evaluated; `images` is None for all of
        them
    limits : within what was evaluated, in any order
    displaced : whether these places are of other ids or ranges than the parameters name
    """

    points: NDArray[np.float64]
    classes: list[int]
    areas: list[int]
    images: list[int] | None
    limits: list[int]
    displaced: bool


def choose(evaluated: Any, params: Any) -> Chosen:
    """What the parameters of ``accumulate`` take of an evaluation under other parameters.

    As pycocotools has it: an id that was evaluated stands for the result at its own place in the
    list, not for its result.

    Raises
    ------
    Unusual : parameters that only pycocotools itself can make sense, or an error, of
    """
    try:
        points = np.asarray(params.recThrs)
        together = params.useCats == 0
        category_ids, known = ([-1], [-1]) if together else (params.catIds, evaluated.catIds)
        ranges, known_ranges = (
            [tuple(pair) for pair in given.areaRng] for given in (params, evaluated)
        )
        classes = _places(category_ids, known)
        areas = _places(ranges, known_ranges)
        images = _places(params.imgIds, evaluated.imgIds)
        limits = [limit for limit in params.maxDets if limit in evaluated.maxDets]
        usual = (
            params.useCats in (0, 1)
            and params.useCats == evaluated.useCats
            and points.ndim == 1
            and points.dtype.kind in "if"
            and not np.isnan(points).any()
            and classes
            and areas
            and images
            and limits
            and min(limits) > 0
            and classes[-1] < len(known)
            and areas[-1] < len(known_ranges)
            and images[-1] < len(evaluated.imgIds)
        )
        displaced = bool(usual) and (
            any(category_ids[k] != known[k] for k in classes)
            or any(ranges[a] != known_ranges[a] for a in areas)
            or any(params.imgIds[i] != evaluated.imgIds[i] for i in images)
        )
    except (TypeError, ValueError, AttributeError):
        raise Unusual from None
    if not usual:
        raise Unusual
    whole = len(images) == len(evaluated.imgIds)
    return Chosen(
        points.astype(np.float64), classes, areas, None if whole else images, limits, displaced
    )


def _places(wanted: Any, known: Any) -> list[int]:
    """The places of those values that are known, wherever they are known."""
    there = set(known)
    return [place for place, value in enumerate(wanted) if value in there]


def arrays(parts: list[Part], chosen: Chosen, counts: list[int]) -> dict[str, NDArray[np.float64]]:
    """The arrays precision and scores (T, R, K, A, M),
    recall (T, K, A, M), -1 where nothing is defined.

    parts : of an evaluation, or of `chosen` alone, its area ranges being classes of their own
    counts : T, R, K, A, M; what is chosen fills the first places of each axis
    """
    shape = len(chosen.classes), len(chosen.areas), len(chosen.limits)
    k, a, m = (slice(n) for n in shape)
    dims = {"precision": counts, "recall": [counts[0], *counts[2:]], "scores": counts}
    whole: dict[str, NDArray[np.float64]] = {}
    for part in parts:
        sampled = sample(part.matches, chosen.points, np.array(chosen.limits, dtype=np.int64))
        for name in tuple(sampled):
            cells = sampled.pop(name)  # each is let go before the next is copied
            if part.apart:
                cells = cells.reshape(*cells.shape[:-3], *shape)
            else:
                for axis, places in ((-3, chosen.classes), (-2, chosen.areas)):
                    if places != list(range(cells.shape[axis])):
                        cells = cells.take(places, axis)
            whole.setdefault(name, np.full(dims[name], -1.0))[part.where, ..., k, a, m] = cells
    return whole or {name: np.full(dims[name], -1.0) for name in dims}  # of no threshold
