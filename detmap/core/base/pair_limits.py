"""Limits for crowded images, where the number of pairs is the square of the number of boxes.

They grow with the number of boxes: many images with few boxes each never reach them.
"""

from detmap.errors import CrowdedError

MOST_LISTED, LISTED_PER_ROW = 3_000_000, 20
"""Pairs in memory, of about 100 bytes each."""
MOST_COMPARED, COMPARED_PER_ROW = 3_000_000_000, 10_000
"""Pairs whose overlap is computed: about 10 s of processor time."""
WAY_OUT = "evaluate fewer images or classes, or remove detections of low score"


def most_listed(n_rows: int) -> int:
    """Returns the number of pairs that may be in memory, for so many boxes."""
    return max(MOST_LISTED, LISTED_PER_ROW * n_rows)


def limit_listed(where: str, n_pairs: int, n_rows: int) -> None:
    """Raises `CrowdedError` if there are more overlapping pairs than may be in memory.

    Parameters
    ----------
    where : place of the error
    n_pairs : pairs so far
    n_rows : detections and objects
    """
    most = most_listed(n_rows)
    if n_pairs > most:
        what = f"the boxes are too crowded: more than {most:,} pairs overlap"
        raise CrowdedError(where, what, WAY_OUT)


def limit_compared(where: str, n_pairs: int, n_rows: int, cost: int = 1) -> None:
    """Raises `CrowdedError` if comparing the pairs takes too long.

    Parameters
    ----------
    where : place of the error
    n_pairs : pairs to compare
    n_rows : detections and objects
    cost : of a pair: how often it is compared, or how much slower than in a kernel
    """
    most = max(MOST_COMPARED, COMPARED_PER_ROW * n_rows) // cost
    if n_pairs > most:
        what = f"the images are too crowded: {n_pairs:,} pairs of boxes (the limit is {most:,})"
        raise CrowdedError(where, what, WAY_OUT)
