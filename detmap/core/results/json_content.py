"""The content of the JSON output of a result."""

from typing import Any

from detmap.core.output.cell_text import or_none
from detmap.core.results.signature import environment


def json_content(result: Any, iou: float | None) -> dict[str, Any]:
    """Returns plain values, undefined ones as None.

    Parameters
    ----------
    result : a `detmap.Result`, or a result of a benchmark's own rule
    iou : threshold of the counts
    """
    return {
        "schema": "detmap-result-1",  # docs/schemas
        "metrics": {name: or_none(value) for name, value in result.metrics.items()},
        "per_class": [
            {key: or_none(value) for key, value in row.items()} for row in result.classes(iou)
        ],
        "counts": result.counts(iou),
        "lowest_score": or_none(result.lowest_score),
        "protocol": {**result.protocol.to_dict(), "changes": dict(result.protocol.changes)},
        "signature": result.signature,
        **({"fixes": list(result.fixes)} if result.fixes else {}),
        "notes": [note.to_dict() for note in result.notes],
        "environment": environment(),
    }
