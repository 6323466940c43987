"""The requested protocol, or the default protocol of a ground truth."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from detmap.core import protocol as protocols
from detmap.core.protocol import Protocol
from detmap.core.tables import Truth
from detmap.errors import ProtocolError


def choose_protocol(
    wanted: Protocol | str | None, truth: Truth, settings: Mapping[str, Any] | None = None
) -> Protocol:
    """Load the requested protocol, or the default of this ground truth, and apply `settings`.

    The default is ``coco-bbox`` for COCO files, ``lvis`` if these are not exhaustive for all
    classes, ``voc2007`` for VOC trees of 2007 to 2009, ``voc2012`` for other VOC trees, and
    ``dota`` for rotated boxes.
    """
    if wanted is None:
        of_shapes = getattr(truth.shapes, "protocol", None)
        if of_shapes is not None:
            wanted = str(of_shapes)
        elif truth.family == "coco":
            wanted = "coco-bbox" if truth.scope is None else "lvis"
        else:
            wanted = "voc2007" if 2007 <= truth.year <= 2009 else "voc2012"
    return prepare(wanted, settings)


def prepare(wanted: Protocol | str, settings: Mapping[str, Any] | None = None) -> Protocol:
    """Load a protocol by name or path and apply `settings`."""
    if not isinstance(wanted, Protocol | str | Path):
        what = f"a {type(wanted).__name__} where a protocol is needed"
        raise ProtocolError(
            "protocol", what, "give a name such as 'coco-bbox', or the path of a TOML file"
        )
    if not isinstance(settings, Mapping | None):
        what = f"a {type(settings).__name__} where a dict is needed"
        raise ProtocolError(
            "settings", what, 'give a dict such as {"limits.max_dets": [1, 10, 300]}'
        )
    rules = wanted if isinstance(wanted, Protocol) else protocols.load(wanted)
    return rules if settings is None else rules.override(settings)
