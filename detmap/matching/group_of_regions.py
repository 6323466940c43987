"""Regions: objects that stand for many; detections in one are excused, or one of them is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.matching.candidate_pairs import Candidates
from detmap.protocol import REGIONS, Protocol
from detmap.tables import Truth
from detmap.tables.grouping import runs

if TYPE_CHECKING:
    from detmap.kernels.cells import Verdicts
    from detmap.kernels.match import Takings


def regions(truth: Truth, protocol: Protocol) -> NDArray[np.bool_]:
    """(G,) whether an object has a role that the protocol calls a region."""
    found = np.zeros(len(truth), dtype=bool)
    for role, what in protocol.matching.neutral:
        if what in REGIONS:
            found |= truth.role(role)
    return found


def judge_regions(
    pairs: Candidates, verdicts: Verdicts, find: NDArray[np.uint64], late: NDArray[np.int32]
) -> Takings:
    """After the objects have been taken at a threshold: a detection that took none, and lies in a
    region by its own area, is ignored; of a region to find the one that scores best is true.

    Source: TF OD API per_image_evaluation.py, compute_match_ioa.

    Parameters
    ----------
    pairs : of detections and regions that reach the threshold, over the detection's own area
    verdicts : at this threshold, as they rank; changed
    find : (G,) subsets in which an object is one to find
    late : (D,) the region that a detection found, from 1; written
    """
    from detmap.kernels.match import Takings

    # Each detection with the region that holds most of it, the first of equals.
    order = np.lexsort((pairs.object, -pairs.overlap, pairs.detection))
    best = order[runs(pairs.detection[order])[:-1]]
    d, g = pairs.detection[best], pairs.object[best]
    words = np.zeros((len(best), verdicts.tp.shape[1]), dtype=verdicts.tp.dtype)
    for a in range(words.shape[1]):
        inside = (verdicts.tp[d, a] == 0) & (verdicts.ignored[d, a] == 0)
        verdicts.ignored[d[inside], a] = 1
        words[inside, a] = 1
        of_find: NDArray[Any] = np.flatnonzero(
            inside & ((find[g] >> np.uint64(a)) & np.uint64(1) > 0)
        )
        first = of_find[np.lexsort((d[of_find], g[of_find]))]
        first = first[runs(g[first])[:-1]]
        verdicts.tp[d[first], a], verdicts.ignored[d[first], a] = 1, 0
        late[verdicts.position[d[first]]] = g[first] + 1
    taken = words.any(axis=1)
    return Takings(d[taken], g[taken], pairs.overlap[best][taken], words[taken])
