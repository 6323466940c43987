"""VoTT's JSON export."""

from pathlib import Path
from typing import Any

import pytest

from detmap import DataError, read_truth
from tests.support.edited_json import GONE, edit
from tests.support.format_samples import SAMPLES

AT, SECOND = (("assets", f"{i:032x}") for i in (0, 1))


def test_one_object_a_tag(tmp_path: Path) -> None:
    file = edit(SAMPLES["vott"](tmp_path)[0], (*AT, "regions", 0, "tags"), ["cat", "dog"])
    edit(file, (*SECOND, "regions", 0, "tags"), [])
    edit(file, (*SECOND, "asset", "name"), "five%20b.png")
    truth = read_truth(file)
    assert truth.boxes.tolist() == [[8, 4, 16, 8], [8, 4, 16, 8], [32, 8, 16, 16]]
    assert truth.label.tolist() == [0, 1, 1]
    assert truth.images.stems == ("a", "c", "five b")
    assert [(note.code, note.count) for note in truth.notes] == [("box-without-class", 1)]


BAD: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    "frame": ((*AT, "asset", "type"), 3, r"assets\['0{32}'\].asset.type: asset type 3.*\(export"),
    "no box": ((*AT, "regions", 0, "boundingBox"), GONE, r"regions\[0\].boundingBox: missing"),
    "side": ((*AT, "regions", 0, "boundingBox", "left"), GONE, r"boundingBox.left: missing"),
    "negative": ((*AT, "regions", 0, "boundingBox", "width"), -2, r"regions\[0\]: box .* negative"),
    "tags": ((*AT, "regions", 0, "tags"), "cat", r"regions\[0\].tags: type str"),
    "size": ((*AT, "asset", "size", "width"), -1, r"image a.png: a size of -1 x 32"),
    "assets": (("assets",), [], r"assets: type array.*\(assets is an object"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    keys, value, message = BAD[name]
    with pytest.raises(DataError, match=message):
        read_truth(edit(SAMPLES["vott"](tmp_path)[0], keys, value), format="vott")
