"""MAT files: numbers, texts and cells, packed or not; damaged files name the byte."""

import random
from contextlib import suppress

import numpy as np
import pytest

from detmap.benchmarks.shared import mat_file
from detmap.benchmarks.shared.mat_file import read_variables
from detmap.errors import DataError
from tests.support.mat_bytes import array, element, mat
from tests.support.tier import drawn

CONTENT = {
    "names": ["a.jpg", "", "zwölf"],
    "boxes": [np.array([[1.5, 2], [3, 4]]), np.zeros((0, 4))],
}


@pytest.mark.parametrize("packed", [False, True])
def test_cells_texts_and_numbers(tmp_path, packed):
    file = tmp_path / "x.mat"
    file.write_bytes(mat(CONTENT, packed))
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


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "not a MAT file"),
        (b"MATLAB 7.3 MAT-file".ljust(128), "HDF5"),
        (mat({"other": 1.0}), "no variable 'x'; there are other"),
        (mat({"x": 1.0})[:-3], "ends in the middle"),
        (mat({"x": "ab"}, packed=False).replace(b"ab", b"\xff\xff"), "not utf-8"),
        (mat({"x": 1.0}, packed=False) + array(2.0, "x"), "occurs twice"),
        (mat({}) + element(6, bytes(8)), "an element of type 6"),
    ],
)
def test_bad_files(tmp_path, content, what):
    (tmp_path / "x.mat").write_bytes(content)
    with pytest.raises(DataError, match=what) as error:
        read_variables(tmp_path / "x.mat", ("x",))
    assert "x.mat" in error.value.where


def test_what_unpacks_to_far_more_is_refused(tmp_path, monkeypatch):
    """Zeros are packed a thousand times smaller."""
    file = tmp_path / "x.mat"
    file.write_bytes(mat({"x": np.zeros((1000, 100))}))
    assert read_variables(file, ("x",))[0].shape == (1000, 100)
    monkeypatch.setattr(mat_file, "PLENTY", 1000)
    with pytest.raises(DataError, match="unpacks to more than"):
        read_variables(file, ("x",))
    damaged = bytearray(mat({"x": np.arange(100.0)}))
    damaged[132:136] = (int.from_bytes(damaged[132:136], "little") - 9).to_bytes(4, "little")
    file.write_bytes(damaged)
    with pytest.raises(DataError, match="ends in the middle"):
        read_variables(file, ("x",))


def test_damaged_files_are_read_or_refused(tmp_path):
    draw, file = random.Random(0), tmp_path / "x.mat"
    good = mat(CONTENT, packed=False)
    for _ in range(drawn(800)):
        data = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(126, len(data))] = draw.choice((0, 1, 14, 255, draw.randrange(256)))
        file.write_bytes(data[: draw.choice((len(data), draw.randrange(len(data))))])
        with suppress(DataError):
            read_variables(file, ("names", "boxes"))
