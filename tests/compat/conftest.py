"""Every test of the drop-in runs twice: with the compiled reader for files of every size, and with
dicts for every size (in the slow tier).
"""

from collections.abc import Iterator

import pytest

from detmap.compat import annotation_sources as sources


@pytest.fixture(
    scope="module",
    autouse=True,
    params=["lane for every size", pytest.param("dicts for every size", marks=pytest.mark.slow)],
)
def lane(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the compiled reader reads."""
    forced = request.param == "lane for every size"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "LEAST_SIZE", 1 if forced else 1 << 60)
        yield forced
