"""Says what is wrong with run lengths."""

from typing import Any


def text_of_bytes(counts: str | bytes) -> str:
    """Returns what is wrong if the counts are the text of Python bytes; "" for others."""
    start = counts[:2] if isinstance(counts, str) else counts[:2].decode("ascii", "replace")
    if start not in ("b'", 'b"'):
        return ""
    return "counts is the text of Python bytes, b'...': write counts.decode(), not str(counts)"


def not_runs(value: Any) -> str:
    """Says why a value is no run lengths; names the key that is missing."""
    if isinstance(value, dict):
        has = [name for name in ("counts", "size") if name in value]
        if len(has) == 1:
            lacking = "size" if has == ["counts"] else "counts"
            return f"run lengths without {lacking!r}"
    return "neither polygons nor run lengths"


def wrong_count(runs: list[Any]) -> str:
    """Says which count is none; "" if all are."""
    if not runs:
        return "the counts are empty; they are whole numbers >= 0"
    for i, run in enumerate(runs):
        if type(run) is not int or run < 0:
            return f"counts[{i}] is {run!r:.40}; counts are whole numbers >= 0"
    return ""
