"""Folders whose files the system does not list are errors, not empty folders."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detmap import DataError
from detmap.core.adapters import folder_files


@pytest.mark.parametrize(
    "look",
    [
        lambda place: folder_files.has(place, ".txt"),
        lambda place: folder_files.first(place, ".txt"),
        lambda place: folder_files.listed(place, ".txt"),
        lambda place: folder_files.nested(place.parent, ".txt"),
        lambda place: folder_files.images(place.parent, nested=True),
        lambda place: folder_files.unread(place.parent, ".txt"),
        lambda place: folder_files.hidden(place, "label", ".txt"),
        lambda place: folder_files.existing([place / "a.txt"]),
    ],
)
def test_a_folder_that_may_not_be_read_is_named(
    look: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses to list it, whoever runs the test."""
    locked, scan = tmp_path / "labels", os.scandir
    locked.mkdir()

    def refusing(place: str | Path) -> Any:
        if Path(place) == locked:
            raise PermissionError(13, "Permission denied", str(place))
        return scan(place)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(DataError) as caught:
        look(locked)
    assert caught.value.where == str(locked)
    assert caught.value.what == "the folder cannot be read: Permission denied"
    assert caught.value.fix == "check the path and its permissions"


def test_a_file_and_a_missing_folder_hold_no_files(tmp_path: Path) -> None:
    file = tmp_path / "labels.txt"
    file.touch()
    for place in (file, tmp_path / "none"):
        assert folder_files.nested(place, ".txt") == []
        assert folder_files.images(place, nested=True) == []
        assert folder_files.unread(place, ".txt") == ()
        assert not folder_files.has(place, ".txt")
