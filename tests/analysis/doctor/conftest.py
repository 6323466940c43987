import pytest

import detmap
from tests.analysis.doctor.sample import TRUTH, Columns, columns, with_mistakes


@pytest.fixture(scope="module")
def truth() -> detmap.Truth:
    return detmap.read_truth(TRUTH)


@pytest.fixture(scope="module")
def right() -> Columns:
    return columns(with_mistakes().rows)
