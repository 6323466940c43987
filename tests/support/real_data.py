"""Data with known answers: the folder of DETMAP_DATA, else ../shared/data beside the checkout.

They are no part of the repository. Only this module knows their place; a test that needs them is
skipped without them.
"""

import os
from pathlib import Path

import pytest

from tests.support.builders import ROOT

_DATA = Path(os.environ.get("DETMAP_DATA") or ROOT.parent / "shared" / "data")


def data_path(*parts: str) -> Path:
    """A file or folder of the data. Skips the test if it is absent."""
    path = _DATA.joinpath(*parts)
    if path.exists():
        return path
    if os.environ.get("DETMAP_DATA") and not _DATA.is_dir():
        pytest.fail(f"DETMAP_DATA is {_DATA}, which is not a folder")
    pytest.skip(f"no {path}: set DETMAP_DATA to the folder of the data")


def data_files(pattern: str) -> list[Path]:
    """Files of the data, for the parameters of tests; none if they are absent."""
    return sorted(_DATA.glob(pattern))
