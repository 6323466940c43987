"""Reports with few subsets of the images: what they compute is tested in tests/statistics and
tests/analysis/diagnosis.

Reports with all subsets are made by the blocks of the pages and by `tools/fuzz.py reports`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from detmap.core.statistics import subsets

FEW = {"PARTS": 6, "SPLITS": 2}


@contextmanager
def few_subsets() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, number in FEW.items():
            patch.setattr(subsets, name, number)
        yield
