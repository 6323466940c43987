"""Group-of regions: their detections are ignored, or one of them is a true positive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detmap.core.matching.candidate_pairs import Candidates
from detmap.core.protocol import REGIONS, Protocol
from detmap.core.tables import Truth
from detmap.core.tables.grouping import runs

if TYPE_CHECKING:
    from detmap.kernels.cells import Verdicts
    from detmap.kernels.match import Takings


def find_regions(truth: Truth, protocol: Protocol) -> NDArray[np.bool_]:
    """(G,) whether an object has a role that the protocol treats as a region."""
    found = np.zeros(len(truth), dtype=bool)
    for role, what in protocol.matching.neutral:
        if what in REGIONS:
            found |= truth.role(role)
    return found


def match_regions(
    pairs: Candidates, verdicts: Verdicts, find: NDArray[np.uint64], late: NDArray[np.int32]
) -> Takings:
    """Ignores unmatched detections in a region; the best one in a counted region is true if its
    score is above 0.

    Source: TF OD API per_image_evaluation.py, compute_match_ioa (scores_group_of > 0).

    Parameters
    ----------
    pairs : of detections and regions, by the overlap over the detection's area
    verdicts : match results at this threshold; modified
    find : (G,) subsets in which an object counts
    late : (D,) the region found by a detection, from 1; modified
    """
    from detmap.kernels.match import Takings

    # The region with the highest overlap, the first of equals.
    order = np.lexsort((pairs.object, -pairs.overlap, pairs.detection))
    best = order[runs(pairs.detection[order])[:-1]]
    d, g = pairs.detection[best], pairs.object[best]
    above_0 = verdicts.score_bits.view(np.float64)[d] > 0
    words = np.zeros((len(best), verdicts.tp.shape[1]), dtype=verdicts.tp.dtype)
    for a in range(words.shape[1]):
        inside = (verdicts.tp[d, a] == 0) & (verdicts.ignored[d, a] == 0)
        verdicts.ignored[d[inside], a] = 1
        words[inside, a] = 1
        of_find: NDArray[Any] = np.flatnonzero(
            inside & above_0 & ((find[g] >> np.uint64(a)) & np.uint64(1) > 0)
        )
        first = of_find[np.lexsort((d[of_find], g[of_find]))]
        first = first[runs(g[first])[:-1]]
        verdicts.tp[d[first], a], verdicts.ignored[d[first], a] = 1, 0
        late[verdicts.position[d[first]]] = g[first] + 1
    taken = words.any(axis=1)
    return Takings(d[taken], g[taken], pairs.overlap[best][taken], words[taken])
