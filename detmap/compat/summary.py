"""The summary of an evaluation whose limits or area labels are not pycocotools' defaults."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

AREAS = ("small", "medium", "large")
FIRST_LIMIT = {"bbox": 100, "segm": 100, "boundary": 100, "keypoints": 20}
"""The limit that pycocotools reads, whatever ``maxDets`` lists."""
WHOLE = (0, 1e10)
"""The range of the label ``all``."""


class Row(NamedTuple):
    """A line of the summary: AP or AR, at one IoU threshold or over all."""

    precision: bool
    iou: float | None
    area: str
    limit: int


def follows_parameters(evaluation: Any) -> bool:
    """Whether pycocotools would read limits or labels that the parameters do not list."""
    p = evaluation.params
    if not evaluation.eval or p.iouType not in FIRST_LIMIT:
        return False  # pycocotools says so
    shape = np.shape(evaluation.eval["precision"])
    if shape[3:] != (len(p.areaRngLbl), len(p.maxDets)) or 0 in shape[3:]:
        return False
    n_limits = 1 if p.iouType == "keypoints" else 3
    limits = FIRST_LIMIT[p.iouType] in list(p.maxDets) and len(p.maxDets) >= n_limits
    labels = {"all", *(AREAS[1:] if p.iouType == "keypoints" else AREAS)}
    return not (limits and labels <= set(p.areaRngLbl))


def summarize(evaluation: Any) -> Any:
    """Prints the rows of pycocotools, and returns their values, (12,) or (10,) float64.

    Where pycocotools gives a value, it is the same. A row whose limit is not in ``maxDets`` reads
    the last of the limits that the other rows read; a row whose area label does not exist reads the
    next label that no other row reads; -1 if there is none.
    """
    rows = list(_rows(evaluation.params))
    values = np.array([_value(evaluation, row) for row in rows], dtype=np.float64)
    for row, value in zip(rows, values.tolist(), strict=True):
        _print(evaluation.params, row, value)
    return values


def _rows(params: Any) -> Iterator[Row]:
    limits = [int(limit) for limit in params.maxDets]
    whole, areas = _labels(params)
    if params.iouType == "keypoints":
        limit = 20 if 20 in limits else limits[-1]
        for precision in (True, False):
            yield from (Row(precision, iou, whole, limit) for iou in (None, 0.5, 0.75))
            yield from (Row(precision, None, area, limit) for area in areas)
        return
    first, second, last = (limits[min(at, len(limits) - 1)] for at in range(3))
    yield Row(True, None, whole, 100 if 100 in limits else last)
    yield from (Row(True, iou, whole, last) for iou in (0.5, 0.75))
    yield from (Row(True, None, area, last) for area in areas)
    yield from (Row(False, None, whole, limit) for limit in (first, second, last))
    yield from (Row(False, None, area, last) for area in areas)


def _labels(params: Any) -> tuple[str, list[str]]:
    """The labels of the whole range and of the rows of single areas."""
    known = list(params.areaRngLbl)
    ranges = dict(zip(known, params.areaRng, strict=False))
    full = [name for name, (low, high) in ranges.items() if low <= WHOLE[0] and high >= WHOLE[1]]
    whole = "all" if "all" in known or not full else full[0]
    names: Sequence[str] = AREAS[1:] if params.iouType == "keypoints" else AREAS
    unused = iter([name for name in known if name not in (*names, whole)])
    return whole, [name if name in known else next(unused, name) for name in names]


def _value(evaluation: Any, row: Row) -> float:
    """The mean of the defined cells of a row; -1 without any."""
    p = evaluation.params
    cells = evaluation.eval["precision" if row.precision else "recall"]
    if row.iou is not None:
        cells = cells[np.flatnonzero(row.iou == np.asarray(p.iouThrs))]
    area = [i for i, name in enumerate(p.areaRngLbl) if name == row.area]
    limit = [i for i, most in enumerate(p.maxDets) if most == row.limit]
    if len(area) != 1 or len(limit) != 1:
        return -1.0
    # Lists, not numbers: the order of the cells decides the last bit of the mean.
    cells = cells[..., area, limit]
    defined = cells[cells > -1]
    return float(np.mean(defined)) if len(defined) else -1.0


def _print(params: Any, row: Row, value: float) -> None:
    title, short = ("Precision", "(AP)") if row.precision else ("Recall", "(AR)")
    ends = params.iouThrs[0], params.iouThrs[-1]
    iou = "{:0.2f}:{:0.2f}".format(*ends) if row.iou is None else f"{row.iou:0.2f}"
    place = f"IoU={iou:<9} | area={row.area:>6s} | maxDets={row.limit:>3d}"
    print(f" {'Average ' + title:<18} {short} @[ {place} ] = {value:0.3f}")
