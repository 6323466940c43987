"""Judges the errors of readers: part of every target of file formats."""

from detmap.errors import DetmapError


def judge_refusal(
    counts: dict[str, int], kind: str, error: DetmapError, *, whole: bool
) -> str | None:
    """Counts a refusal; returns its fault: an undamaged file, or an error without place or fix."""
    counts[f"{kind} refused"] += 1
    if whole:
        return f"{kind}: refused: {error}"
    return None if error.where and error.what and error.fix else f"{kind}: no fix: {error}"
