import pytest


@pytest.fixture(scope="module", autouse=True)
def every_page_is_small(small_pages: None) -> None:
    """`small_pages` in all modules of this folder."""
