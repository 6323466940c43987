"""The table of a protocol for the log-average miss rate."""

from dataclasses import dataclass
from typing import Annotated

from detmap.core.base.immutable import Value
from detmap.core.protocol.key_checks import REFERENCES, Key, choice


@dataclass(slots=True, eq=False, repr=False)
class MissRate(Value):
    """The log-average miss rate, the rows MR: exp(mean(log(1 - recall))) over reference points."""

    references: Annotated[
        tuple[float, ...],
        Key(
            "the false positives per image at which the miss rate is read",
            REFERENCES,
            "CrowdDet database.py, eval_MR; eval_MR_multisetup.py (fppiThrs); dbEval.m (samples)",
            [0.0100, 0.0178, 0.0316, 0.0562, 0.1000, 0.1778, 0.3162, 0.5623, 1.0],
        ),
    ]
    lookup: Annotated[
        str,
        Key(
            "the rank that is read: the last with at most so many false positives (`last_within`),"
            " or the first with at least so many, else the last rank (`first_reached`), undefined "
            "without detections",
            choice("last_within", "first_reached"),
            "last_within: bbGt.m, compRoc; first_reached: CrowdDet database.py, eval_MR",
            "last_within",
        ),
    ]
    before: Annotated[
        str,
        Key(
            "the recall of `last_within` if even the first rank has more false positives: `zero`, "
            "or that of the `last` rank",
            choice("zero", "last"),
            "zero: bbGt.m, compRoc; last: eval_MR_multisetup.py, accumulate (index -1)",
            "zero",
        ),
    ]
