"""Real data with known answers, where it is at hand: a folder named by DETMAP_DATA, else
../shared/data beside the checkout."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

DATA = Path(os.environ.get("DETMAP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Path:
    if not DATA.is_dir():
        if os.environ.get("DETMAP_DATA"):
            pytest.fail(f"DETMAP_DATA names {DATA}, which is not a folder")
        pytest.skip("real data is absent: set DETMAP_DATA to its folder")
    return DATA


@pytest.fixture(scope="session")
def voc2007(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with VOCdevkit and one folder a detector."""
    folder = tmp_path_factory.mktemp("voc2007")
    for archive in sorted((data / "voc2007-test").glob("*.tar.xz")):
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
    return folder
