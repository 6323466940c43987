"""MAT files: numbers, texts and cells, packed or not; damaged files name the byte."""

import random
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest

from detmap.benchmarks.shared import mat_file
from detmap.benchmarks.shared.mat_file import read_variables
from detmap.errors import DataError
from tests.support.mat import HEADER, array, cells, element, mat, saved, text, value
from tests.support.tier import drawn

CONTENT = {
    "names": ["a.jpg", "", "zwölf"],
    "boxes": [np.array([[1.5, 2], [3, 4]]), np.zeros((0, 4))],
}


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("packed", [False, True])
def test_cells_texts_and_numbers(tmp_path, order, packed):
    table, file = np.arange(6.0).reshape(2, 3), tmp_path / "x.mat"
    listed = [text("", "Straße", order), array("", np.zeros((0, 0)), order)]
    variables = array("table", table, order), cells("list", listed, order)
    file.write_bytes(mat(*variables, packed=packed, order=order))
    numbers, found = read_variables(file, ("table", "list"))
    assert (numbers == table).all()
    name, nothing = found.ravel()
    assert (name, nothing.size) == ("Straße", 0)
    file.write_bytes(saved(CONTENT, packed))
    boxes, names = read_variables(file, ("boxes", "names"))
    assert (boxes.shape, boxes[0, 0].tolist()) == ((2, 1), [[1.5, 2], [3, 4]])
    assert (names.shape, [*names.ravel()]) == ((3, 1), CONTENT["names"])


def test_as_scipy_reads(tmp_path):
    scipy = pytest.importorskip("scipy.io")
    cells = np.empty((2, 1), dtype=object)
    cells[0, 0], cells[1, 0] = np.arange(6, dtype=np.int16).reshape(2, 3), "text"
    for packed in (False, True):
        scipy.savemat(
            tmp_path / "x.mat", {"c": cells, "d": np.ones((2, 3, 4))}, do_compression=packed
        )
        c, d = read_variables(tmp_path / "x.mat", ("c", "d"))
        assert (c[0, 0].tolist(), c[1, 0]) == ([[0, 1, 2], [3, 4, 5]], "text")
        assert d.shape == (2, 3, 4)


ONE, FOUR = np.zeros((1, 1)), array("x", np.zeros((2, 2)))
BAD = {
    "nothing": (b"", "not a MAT file of level 5"),
    "HDF5": (b"MATLAB 7.3 MAT-file".ljust(HEADER), "HDF5"),
    "other": (saved({"other": 1.0}), "no variable 'x'; there are other"),
    "cut": (saved({"x": 1.0})[:-3], "ends in the middle"),
    "cut mark": (mat(bytes(5)), "ends in the middle"),
    "type 0": (mat(element(14, bytes(8))), "element of type 0"),
    "type 6": (mat(element(6, bytes(8))), "an element of type 6"),
    "no zlib": (mat(element(15, b"no zlib")), "cannot be decompressed"),
    "packed mark": (mat(element(15, zlib.compress(bytes(5)))), "ends in the middle"),
    "cut zlib": (mat(element(15, zlib.compress(bytes(5))[:-3])), "ends in the middle"),
    "sides": (mat(FOUR.replace(struct.pack("<II", 2, 2), struct.pack("<II", 2, 9))), "4 numbers"),
    "class": (mat(array("x", ONE, of=2)), "class 2"),
    "complex": (mat(array("x", ONE, of=0x806)), "complex"),
    "type 9": (
        mat(array("x", ONE).replace(struct.pack("<I", 5), struct.pack("<I", 9), 1)),
        "type 9",
    ),
    "utf-16": (
        mat(text("x", "ab").replace("ab".encode("utf-16-le"), b"\0\xd8a\0")),
        "not utf-16-le",
    ),
    "utf-8": (saved({"x": "ab"}, packed=False).replace(b"ab", b"\xff\xff"), "not utf-8"),
    "twice": (saved({"x": 1.0}, packed=False) + value("x", 2.0), "occurs twice"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    content, what = BAD[name]
    (tmp_path / "x.mat").write_bytes(content)
    with pytest.raises(DataError, match=what) as error:
        read_variables(tmp_path / "x.mat", ("x",))
    assert "x.mat" in error.value.where


def test_cells_are_not_nested_without_end(tmp_path):
    inner = array("", ONE)
    for _ in range(20):
        inner = cells("", [inner])
    (tmp_path / "a.mat").write_bytes(mat(inner))
    with pytest.raises(DataError, match="cell array"):
        read_variables(tmp_path / "a.mat", ("",))


def test_what_unpacks_to_far_more_is_refused(tmp_path, monkeypatch):
    """Zeros are packed a thousand times smaller."""
    file = tmp_path / "x.mat"
    file.write_bytes(saved({"x": np.zeros((1000, 100))}))
    assert read_variables(file, ("x",))[0].shape == (1000, 100)
    monkeypatch.setattr(mat_file, "PLENTY", 1000)
    with pytest.raises(DataError, match="unpacks to more than"):
        read_variables(file, ("x",))
    damaged = bytearray(saved({"x": np.arange(100.0)}))
    damaged[132:136] = (int.from_bytes(damaged[132:136], "little") - 9).to_bytes(4, "little")
    file.write_bytes(damaged)
    with pytest.raises(DataError, match="ends in the middle"):
        read_variables(file, ("x",))


def test_damaged_files_are_read_or_refused(tmp_path):
    draw, file = random.Random(0), tmp_path / "x.mat"
    good = saved(CONTENT, packed=False)
    for _ in range(drawn(800)):
        data = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(126, len(data))] = draw.choice((0, 1, 14, 255, draw.randrange(256)))
        file.write_bytes(data[: draw.choice((len(data), draw.randrange(len(data))))])
        with suppress(DataError):
            read_variables(file, ("names", "boxes"))
