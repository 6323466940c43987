"""Damaged results, a list or JSON lines: what is read in pieces is what is read as a whole."""

import json
import random
from typing import Any

import numpy as np

from detmap.core.adapters import pieces, read_detections
from detmap.core.adapters.coco import result_pieces
from detmap.core.tables import Detections
from detmap.errors import DataError
from tests.support.lanes import COCO_TRUTH, always_scan
from tests.support.mutation import damaged, results_file
from tools.fuzzing._files import scratch

COUNTS = {"read": 0, "refused by both": 0, "refused in pieces": 0}
WHOLE_ONLY = ("as a whole", "neither a list of records", "another form than those before")
SCRATCH = scratch("pieces.json")


def case(seed: int) -> str | None:
    """Whether a damaged file is read differently in pieces."""
    rng = random.Random(seed)
    always_scan(rng)
    result_pieces.PIECE = rng.choice([1, 20, 90, 300, 1 << 20])
    text = results_file(rng)
    if seed % 3 == 0:
        text = b"\n".join(json.dumps(row).encode() for row in json.loads(text))
    SCRATCH.write_bytes(damaged(rng, text) if seed % 5 else text)
    unknown = rng.choice(["error", "drop"])
    whole, error = _read(lambda: [read_detections(SCRATCH, COCO_TRUTH, unknown=unknown)])
    parts, refusal = _read(lambda: _pieces(unknown))
    if parts is None:
        own = any(text in str(refusal) for text in WHOLE_ONLY)
        COUNTS["refused in pieces" if own else "refused by both"] += 1
        return None if own or whole is None else f"only in pieces: {refusal}"
    COUNTS["read"] += 1
    if whole is None:
        return f"only as a whole: {error}"
    for name in ("image", "label", "boxes", "score"):
        one, other = (np.concatenate([getattr(t, name) for t in made]) for made in (parts, whole))
        if one.tobytes() != other.tobytes():
            return f"{name}: {one.tolist()} in pieces, {other.tolist()} as a whole"
    return None


def _pieces(unknown: str) -> list[Detections]:
    """The pieces after a table without rows."""
    summary = pieces.Summary(str(SCRATCH))
    made = [COCO_NOTHING]
    for piece in pieces.source(SCRATCH, COCO_TRUTH, unknown=unknown).pieces():
        summary.add(piece.detections)
        made.append(piece.detections)
    return made


def _read(read: Any) -> tuple[list[Detections] | None, DataError | None]:
    try:
        return read(), None
    except DataError as error:
        return None, error


COCO_NOTHING = Detections(
    COCO_TRUTH.images,
    COCO_TRUTH.categories,
    np.zeros(0, dtype=np.int32),
    np.zeros(0, dtype=np.int32),
    np.zeros((0, 4)),
    np.zeros(0),
    box_format="xywh",
)
