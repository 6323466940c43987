"""Every test of the drop-in runs twice: with the compiled lane for files of every size, and as it
comes (in the slow tier)."""

from collections.abc import Iterator

import pytest

from detmap.compat import annotation_sources as sources


@pytest.fixture(
    scope="module",
    autouse=True,
    params=["lane for every size", pytest.param("lane for large files", marks=pytest.mark.slow)],
)
def lane(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether small files count as large ones."""
    forced = request.param == "lane for every size"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "LEAST_SIZE", 1 if forced else sources.LEAST_SIZE)
        yield forced
