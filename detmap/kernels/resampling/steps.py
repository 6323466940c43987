"""The rows that AP depends on, listed once per cell (class, area) for all replicates.

Match results do not change between replicates. So each replicate only needs, per cell, the images
of the counted rows in rank order, and per threshold the true positives. Rows after the last true
positive do not matter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detmap.kernels import kernel

TRUE, PARTLY = 1, 2
"""Bits of a step: a true positive; a row that is ignored at some other threshold."""


class Steps(NamedTuple):
    """The rows of K * A cells, class by class, in rank order up to the last true positive.

    row (R,) int32, images of the rows that count at all T thresholds; event (E,) int32, images of
    the rows that are a true positive, or count, at some thresholds only; upto (E,) int64, the end
    in `row` of the rows up to and with the event; step (N,) int32, the events of a threshold:
    4 times the place in its cell, plus TRUE, plus PARTLY. row_off, event_off (K * A + 1,) and
    step_off (K * A * T + 1,) int64, their starts.
    """

    row_off: NDArray[np.int64]
    event_off: NDArray[np.int64]
    step_off: NDArray[np.int64]
    row: NDArray[np.int32]
    event: NDArray[np.int32]
    upto: NDArray[np.int64]
    step: NDArray[np.int32]


@kernel
def last_true_positive(k: Any, a: Any, ranked: Any) -> Any:
    """The end of the rows of a class up to its last true positive in an area.

    Source: COCOeval.accumulate, which reads precision at recalls that are reached.
    """
    end = ranked.off[k + 1]
    while end > ranked.off[k] and np.uint64(ranked.tp[end - 1, a]) == np.uint64(0):
        end -= 1
    return end


@kernel
def list_steps(ranked: Any, image: Any, fill: int, at: Any, steps: Any) -> None:
    """Count the rows, events and steps of each cell into the starts, one place later (fill 0); or
    list them from these starts on (fill 1).

    image (D,) int32; at (T,) int64 is scratch space; out: steps. Source: as `find_weighted`.
    """
    n_areas, n_thresholds = ranked.tp.shape[1], at.size
    zero = np.uint64(0)
    full = ~zero >> np.uint64(64 - n_thresholds)
    for cell in range(steps.row_off.size - 1):
        k, a = cell // n_areas, cell % n_areas
        n_rows = steps.row_off[cell] if fill else 0
        first = steps.event_off[cell] if fill else 0
        n_events = first
        for t in range(n_thresholds):
            at[t] = steps.step_off[cell * n_thresholds + t] if fill else 0
        for r in range(ranked.off[k], last_true_positive(k, a, ranked)):
            hits, ignored = np.uint64(ranked.tp[r, a]), np.uint64(ranked.ignored[r, a])
            if hits == zero and ignored == full:
                continue
            if ignored == zero:
                if fill:
                    steps.row[n_rows] = image[r]
                n_rows += 1
                if hits == zero:
                    continue
            if fill:
                steps.event[n_events], steps.upto[n_events] = image[r], n_rows
            for t in range(n_thresholds):
                bit = np.uint64(1) << np.uint64(t)
                true = hits & bit != zero
                if true or (ignored != zero and ignored & bit == zero):
                    if fill:
                        steps.step[at[t]] = (
                            4 * (n_events - first)
                            + (TRUE if true else 0)
                            + (PARTLY if ignored != zero else 0)
                        )
                    at[t] += 1
            n_events += 1
        if not fill:
            steps.row_off[cell + 1], steps.event_off[cell + 1] = n_rows, n_events
            for t in range(n_thresholds):
                steps.step_off[cell * n_thresholds + t + 1] = at[t]
