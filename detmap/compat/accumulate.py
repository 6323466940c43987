"""The results that ``accumulate`` selects, and its arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.compat.annotation_rows import Unusual
from detmap.compat.drop_in_engine import Part
from detmap.core.curves.scores import sample


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The results of an evaluation that ``accumulate`` selects.

    Parameters
    ----------
    points : (R,) float64 recall points, in any order
    classes, areas, images : evaluated positions; `images` is None for all
    limits : evaluated detection limits, in any order
    displaced : whether the positions belong to other ids or ranges than the parameters list
    """

    points: NDArray[np.float64]
    classes: list[int]
    areas: list[int]
    images: list[int] | None
    limits: list[int]
    displaced: bool


def select(evaluated: Any, params: Any) -> Selection:
    """Selects results by parameters that may differ from the evaluated ones.

    As in pycocotools, an evaluated id selects the result at its position in the given list.

    Raises
    ------
    Unusual : parameters that only pycocotools handles
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
    return Selection(
        points.astype(np.float64), classes, areas, None if whole else images, limits, displaced
    )


def _places(wanted: Any, known: Any) -> list[int]:
    """Positions of the values that occur in `known`."""
    there = set(known)
    return [place for place, value in enumerate(wanted) if value in there]


def arrays(
    parts: list[Part], chosen: Selection, counts: list[int]
) -> dict[str, NDArray[np.float64]]:
    """Computes precision and scores (T, R, K, A, M) and recall (T, K, A, M); -1 where undefined.

    parts : of an evaluation, or of the selection alone with one class per area range
    counts : T, R, K, A, M; the selection fills the first cells of each axis
    """
    shape = len(chosen.classes), len(chosen.areas), len(chosen.limits)
    k, a, m = (slice(n) for n in shape)
    dims = {"precision": counts, "recall": [counts[0], *counts[2:]], "scores": counts}
    whole: dict[str, NDArray[np.float64]] = {}
    for part in parts:
        sampled = sample(part.matches, chosen.points, np.array(chosen.limits, dtype=np.int64))
        if _are_all(sampled["precision"].shape, counts, part, chosen):
            return sampled
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


def _are_all(shape: tuple[int, ...], counts: list[int], part: Part, chosen: Selection) -> bool:
    """Whether arrays of this shape are the results, with each cell in its place."""
    places = part.where.tolist(), chosen.classes, chosen.areas
    there = [list(range(n)) for n in (shape[0], *shape[-3:-1])]
    return not part.apart and shape == tuple(counts) and list(places) == there
