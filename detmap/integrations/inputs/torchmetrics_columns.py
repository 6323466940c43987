"""The boxes of a torchmetrics metric as columns of the drop-in, without a dict per box."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from detmap.compat.annotation_rows import MOST_EXACT, Rows, Unusual, good_boxes
from detmap.core.base.immutable import own
from detmap.core.base.sums import add_integers

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def read_classes(labels: Sequence[Any]) -> list[int]:
    """Returns the labels without duplicates, ascending.

    Raises `Unusual` without a label, and for other dtypes: torch would convert all to one.
    """
    if any(each.dtype not in INTEGERS for each in labels):
        raise Unusual
    found: list[int] = torch.cat(list(labels)).unique().tolist() if labels else []
    if not found:
        raise Unusual
    return found


def read_rows(
    classes: Sequence[int],
    labels: Sequence[Any],
    boxes: Sequence[Any],
    scores: Sequence[Any] | None = None,
    crowds: Sequence[Any] | None = None,
    area: Sequence[Any] | None = None,
) -> Rows:
    """Returns boxes of all images, numbered from 0, as torchmetrics writes them into its dicts.

    Parameters
    ----------
    classes : all labels, ascending
    labels : a tensor (n,) of integers per image
    boxes : a tensor (n, 4) per image: left, top, width, height in pixels
    scores : a tensor (n,) of floats per image; None for ground truth
    crowds : a tensor (n,) of 0 and 1 per image; None for detections
    area : a tensor (n,) per image, square pixels; where it is not above 0, or None, that of the box

    Raises
    ------
    Unusual : other shapes, dtypes or values; torchmetrics' own code has the rule or the error
    """
    counts = [each.numel() for each in labels]
    n = add_integers(counts)
    sides = good_boxes(_joined(boxes, counts, (*INTEGERS, *FLOATS), width=(4,)))
    areas = sides[:, 2] * sides[:, 3]
    if area is not None:
        given = _joined(area, counts, (*INTEGERS, *FLOATS))
        areas = np.where(given > 0, given, areas)
    score = np.zeros(n) if scores is None else _joined(scores, counts, FLOATS)
    crowd = np.zeros(n) if crowds is None else _joined(crowds, counts, (*INTEGERS, torch.bool))
    usual = (
        (np.abs(areas) < MOST_EXACT).all()
        and not np.isnan(score).any()
        and ((crowd == 0) | (crowd == 1)).all()
    )
    if not usual:
        raise Unusual
    label = _joined(labels, counts, INTEGERS, dtype=torch.int64)
    return Rows(
        image_ids=range(len(counts)),
        category_ids=classes,
        image=np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        category=np.searchsorted(np.array(classes, dtype=np.int64), label).astype(np.int32),
        boxes=own(sides),
        area=areas,
        score=own(score),
        crowd=crowd != 0,
        ids=np.arange(1, n + 1),
    )


def _joined(
    tensors: Sequence[Any],
    counts: Sequence[int],
    kinds: Sequence[Any],
    width: tuple[int, ...] = (),
    dtype: Any = torch.float64,
) -> NDArray[Any]:
    """All tensors of a column as one array (n, *width); `Unusual` for other shapes and dtypes."""
    if len(tensors) != len(counts):
        raise Unusual
    filled = []
    for each, n in zip(tensors, counts, strict=True):
        if n == each.numel() == 0:  # of any shape and dtype
            continue
        if each.shape != (n, *width) or each.dtype not in kinds:
            raise Unusual
        filled.append(each)
    if len({(each.dtype, each.device) for each in filled}) > 1:  # torch would round to one dtype
        filled = [each.cpu().to(dtype) for each in filled]
    whole = torch.cat(filled) if filled else torch.zeros((0, *width))
    array: NDArray[Any] = whole.detach().cpu().to(dtype).numpy()
    return array
