"""The rules of ranking metrics, by name."""

from dataclasses import asdict, dataclass
from typing import Any

from detmap.core import protocol as protocols
from detmap.core.protocol import AveragePrecision
from detmap.core.protocol.integrators import COCO_POINTS, VOC_POINTS
from detmap.errors import ProtocolError

PROTOCOLS = ("plain", "voc2007", "voc2012")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of AP, AUC and their averages.

    Parameters
    ----------
    name, version : of the default rules
    average : over classes; None for no average
    ap : the AP interpolation
    ties : ``together`` or ``input``
    undefined : ``skip``, ``zero`` or ``one``
    """

    name: str
    version: int
    average: str | None
    ap: AveragePrecision
    ties: str
    undefined: str


def stock(name: str) -> Rules:
    """Default rules by name.

    ``plain``: step AP, tied scores together, as in scikit-learn. ``voc2007`` and ``voc2012``: the
    AP, ties and classes without objects of the detection protocols with these names; VOCevalcls.m
    and VOCevaldet.m share them.
    """
    if name == "plain":
        ap = AveragePrecision("step", grid=COCO_POINTS, eleven=VOC_POINTS, epsilon=0.0)
        return Rules(name, 1, "macro", ap, "together", "skip")
    if not isinstance(name, str) or name not in PROTOCOLS:
        raise ProtocolError(
            "protocol", f"no ranking protocol {name!r}", f"there are {', '.join(PROTOCOLS)}"
        )
    shared = protocols.load(name)
    return Rules(
        name, shared.version, "macro", shared.ap, shared.ranking.ties, shared.mean.undefined
    )


def to_dict(chosen: Rules) -> dict[str, Any]:
    """The rules as plain values, the keys of `AveragePrecision` beside the others."""
    ap = asdict(chosen.ap) | {"grid": str(chosen.ap.grid), "eleven": str(chosen.ap.eleven)}
    of_detectors = [key.removeprefix("ap.") for key in protocols.LATER if key.startswith("ap.")]
    for key in ("recall_over", *of_detectors):  # recall counts all positives of a class
        del ap[key]
    return {key: value for key, value in asdict(chosen).items() if key != "ap"} | ap
