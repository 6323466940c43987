"""The terms of the log-average miss rate: log(1 - recall) at the reference points."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.base import memory
from detmap.core.curves import terms as blocks
from detmap.core.matching.matches import Matches
from detmap.core.protocol import Protocol

Floats = NDArray[np.float64]


def terms(
    matches: Matches,
    positives: NDArray[Any],
    judged: NDArray[np.int64],
    weight: Floats | None,
    asked: Sequence[tuple[int, int]],
) -> Floats:
    """(A, T, R, J) log miss rates at R references; see `detmap.core.curves.own_terms`.

    -inf where all objects are found, NaN where it is undefined or where no row asks.
    """
    protocol = matches.protocol
    n_thresholds, n_references = len(protocol.thresholds()), len(protocol.miss_rate.references)
    shape = (matches.tp.shape[1], n_thresholds, n_references, len(judged))
    memory.require(8 * int(np.prod(shape)), "protocol", "the miss rates", blocks.WAY_OUT)
    values = np.full(shape, np.nan)
    n_images = float(matches.n_images if weight is None else weight.sum())
    for j, k in enumerate(judged.tolist()):
        mine = slice(int(matches.off[k]), int(matches.off[k + 1]))
        gain = None if weight is None else weight[matches.image[mine]]
        for a, t in asked:
            if positives[k, a] > 0 and n_images > 0:
                bit = matches.tp.dtype.type(1 << t)
                listed = matches.ignored[mine, a] & bit == 0
                hit = (matches.tp[mine, a][listed] & bit) != 0
                each = np.ones(len(hit)) if gain is None else gain[listed]
                found = np.cumsum(hit * each) / float(positives[k, a])
                with np.errstate(divide="ignore"):
                    fppi = np.cumsum(~hit * each) / n_images
                    missed = 1 - _read_references(fppi, found, protocol)
                    values[a, t, :, j] = np.log(np.maximum(missed, 0))
    return values


def final(mean: Any) -> Any:
    """The miss rate of a mean of logarithms."""
    return np.exp(mean)


def _read_references(fppi: Floats, recall: Floats, protocol: Protocol) -> Floats:
    """(R,) recall at the references, of a curve of false positives per image.

    Without ranks it is 0, or undefined by ``first_reached``.
    """
    references = np.array(protocol.miss_rate.references)
    first_reached = protocol.miss_rate.lookup == "first_reached"
    if not len(fppi):
        return np.full(len(references), np.nan if first_reached else 0.0)
    if first_reached:
        return recall[np.minimum(np.searchsorted(fppi, references), len(fppi) - 1)]
    rank = np.searchsorted(fppi, references, side="right") - 1  # -1, if there is none: the last
    read = recall[rank]
    return np.where(rank < 0, 0.0, read) if protocol.miss_rate.before == "zero" else read
