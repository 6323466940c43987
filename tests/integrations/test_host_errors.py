"""Hosts that are missing or broken, and errors in a host's own type."""

from pathlib import Path

import pytest

from detmap.errors import DataError, DetmapError, require
from detmap.integrations.host_errors import value_errors


def test_a_missing_host_and_a_broken_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_host.py").write_text("from os import no_such_name")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DetmapError, match=r"absent_host: is required.*'detmap-eval\[yolo\]'"):
        require("absent_host.part", "yolo")
    with pytest.raises(DetmapError, match=r"broken_host: cannot be imported: .*no_such_name"):
        require("broken_host", "yolo")
    with pytest.raises(DetmapError, match=r"json: cannot be imported: .*json.no_such_part"):
        require("json.no_such_part", "yolo")


def test_an_error_keeps_place_cause_and_fix() -> None:
    with (
        pytest.raises(ValueError, match=r"^metric: boxes\[0\]: is odd \(remove it\)$"),
        value_errors("metric"),
    ):
        raise DataError("boxes[0]", "is odd", "remove it")
