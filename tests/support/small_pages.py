"""Reports with few replicates: what they compute is tested in tests/statistics and
tests/analysis/diagnosis.

Reports with all replicates are made by the blocks of the pages and by `tools/fuzz.py reports`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from detmap.analysis.html_report import gather

FEW = {"REPLICATES": (96, 96), "OF_SUMS": (80, 80), "OF_LISTS": (16, 16)}


@contextmanager
def few_replicates() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, numbers in FEW.items():
            patch.setattr(gather, name, numbers)
        yield
