"""The limit of one-to-one assignments in crowded images."""

from detmap.core.base.pair_limits import WAY_OUT
from detmap.errors import CrowdedError

MOST_ASSIGNED = 16_000_000
"""Values of an assignment of rows to columns, in memory."""
MOST_STEPS, STEPS_PER_ROW = 2_000_000_000, 40_000
"""Steps of all assignments together, see `detmap.core.base.assignment`: about 10 s of processor
time.
"""


class Effort:
    """What assignments cost that are made one after the other.

    Parameters
    ----------
    n_rows : detections and objects of all of them
    """

    def __init__(self, n_rows: int) -> None:
        self.where, self.left = "evaluate", max(MOST_STEPS, STEPS_PER_ROW * n_rows)

    def begin(self, where: str) -> None:
        """Takes the place of errors from here on."""
        self.where = where

    def limit(self, n_rows: int, n_columns: int) -> None:
        """Raises `CrowdedError` if boxes are too many to be assigned one-to-one."""
        if n_rows * n_columns > MOST_ASSIGNED:
            what = f"{n_rows:,} and {n_columns:,} boxes are too many to be assigned one-to-one"
            raise CrowdedError(self.where, what, WAY_OUT)

    def spend(self, n_steps: int) -> None:
        """Raises `CrowdedError` if no steps are left."""
        self.left -= n_steps
        if self.left < 0:
            what = "the boxes are too crowded: assigning them one-to-one takes too long"
            raise CrowdedError(self.where, what, WAY_OUT)
