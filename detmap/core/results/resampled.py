"""Confidence intervals of results, whose numbers are evaluated again on subsets of the images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from detmap.core.base.suggestions import proposes_arguments

if TYPE_CHECKING:
    from detmap.core.statistics.evaluations import Evaluated
    from detmap.core.statistics.intervals import Intervals
    from detmap.core.tables import Truth


class Resampled:
    """Base class of results with intervals.

    A result has `evaluate_subsets`, its numbers on subsets of the images, and `_sampled`: the ids
    of the images, the truth that a file of groups names them by, and the names of the classes.
    """

    if TYPE_CHECKING:
        evaluate_subsets: Callable[..., Evaluated]
        _sampled: Callable[[], tuple[NDArray[Any], Truth | None, Sequence[str]]]

    @proposes_arguments
    def intervals(
        self,
        level: float = 0.95,
        seed: int = 0,
        groups: Mapping[Any, Any] | str | Path | None = None,
        *,
        method: str = "jackknife",
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Intervals:
        """Computes standard error, bias and confidence interval of every metric and class.

        Every number is evaluated on 57 subsets of the images (docs/statistics.md).

        Parameters
        ----------
        level : confidence level
        seed : of the random subsets
        groups : groups of dependent images (for example, frames of one video), as a mapping from
            image to group or a CSV file ``image,group``
        method : ``jackknife``
        threads : number of threads; has no effect on the result
        progress : called with the numbers of finished and of all evaluations

        Raises
        ------
        DataError : invalid level, seed or method; images without a group
        """
        from detmap.core.statistics import intervals

        image_ids, truth, names = self._sampled()
        dealt = intervals.sample(
            image_ids,
            truth,
            level=level,
            seed=seed,
            groups=groups,
            method=method,
            progress=progress,
        )
        found = self.evaluate_subsets(dealt, threads=threads, progress=progress)
        return intervals.intervals(found, names, level, seed)
