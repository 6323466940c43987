"""Files of matches are not believed: what is forged, damaged or too large is refused by name."""

import io
import json
import resource
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, Evaluator, Matches
from detmap.core.base import npz_archive
from detmap.core.base.resources import folder
from detmap.core.matching.matches import read
from detmap.core.matching.matches_file import ASSIGNMENT_ARRAYS
from detmap.core.output import formats
from detmap.core.tables import Note
from tests.matching.test_matches import assert_same
from tests.tables.test_box_tables import tables

Arrays = dict[str, Any]


@pytest.fixture(scope="module")
def matches() -> Matches:
    return detmap.match(*tables(9), detmap.load_protocol("coco-bbox"))


def arrays_of(matches: Matches, path: Path) -> Arrays:
    matches.save(path)
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def set_last(array: np.ndarray, value: object) -> np.ndarray:
    copy = array.copy()
    copy.reshape(-1)[-1] = value
    return copy


def header(change: Callable[[dict[str, Any]], object]) -> Callable[[Arrays], object]:
    def forge(arrays: Arrays) -> None:
        tree = json.loads(arrays["header"].tobytes())
        change(tree)
        arrays["header"] = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)

    return forge


def column(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[Arrays], object]:
    return lambda arrays: arrays.update({name: change(arrays[name])})


def beyond_unicode(array: np.ndarray) -> np.ndarray:
    return (np.arange(len(array), dtype="u4") + 0x110000).view("<U1")


def half_characters(array: np.ndarray) -> np.ndarray:
    return np.array([f"\ud800{i}" for i in range(len(array))])


def long_names(array: np.ndarray) -> np.ndarray:
    return np.array([f"{i:02000}" for i in array])


CHANGED = [["iou.thresholds", "[0.9]"]]
FORGED: dict[str, tuple[str, Callable[[Arrays], object]]] = {
    "image empty": ("image", column("image", lambda a: a[:0])),
    "image one short": ("image", column("image", lambda a: a[:-1])),
    "image beyond": ("image", column("image", lambda a: set_last(a, 10**6))),
    "image negative": ("image", column("image", lambda a: set_last(a, -1))),
    "obj_image empty": ("counted", column("obj_image", lambda a: a[:0])),
    "obj_image beyond": ("obj_image", column("obj_image", lambda a: set_last(a, 99))),
    "obj_image disordered": ("obj_image", column("obj_image", lambda a: a[::-1].copy())),
    "obj_off empty": ("obj_off", column("obj_off", lambda a: a[:0])),
    "obj_off short of the end": ("obj_off", column("obj_off", lambda a: set_last(a, 3))),
    "off falls": ("off", column("off", lambda a: np.array([0, 12, 9]))),
    "off begins later": ("off", column("off", lambda a: np.array([1, 5, 9]))),
    "too few classes": ("category_ids", header(lambda h: h["categories"].pop())),
    "ranks of a million": ("rank", column("rank", lambda a: a + np.int32(10**6))),
    "beyond -1": ("beyond", column("beyond", lambda a: set_last(a, -1))),
    "position -1": ("position", column("position", lambda a: set_last(a, -1))),
    "ids beyond Unicode": ("image_ids", column("image_ids", beyond_unicode)),
    "ids of half a character": ("image_ids", column("image_ids", half_characters)),
    "lines in a name": ("header.protocol", header(lambda h: h["protocol"].update(name="x\nAP 1"))),
    "changes that are none": ("header.changes", header(lambda h: h.update(changes=CHANGED))),
    "score NaN": ("score", column("score", lambda a: set_last(a, np.nan))),
    "score unsorted": ("score", column("score", lambda a: a[::-1].copy())),
    "score big-endian": ("score", column("score", lambda a: a.astype(">f8"))),
    "score in float32": ("score", column("score", lambda a: a.astype(np.float32))),
    "tp and ignored": (
        "tp",
        lambda a: a.update(ignored=a["ignored"] | a["tp"] | 1, tp=a["tp"] | 1),
    ),
    "objects found twice": ("tp", column("counted", np.zeros_like)),
    "an eleventh threshold": ("ignored", column("tp", lambda a: set_last(a, 1 << 10))),
    "category ids disordered": ("category_ids", column("category_ids", lambda a: a[::-1].copy())),
    "image ids twice": ("image_ids", column("image_ids", lambda a: set_last(a, 0))),
    "image ids of objects": ("image_ids", column("image_ids", lambda a: a.astype(object))),
    "image ids in fractions": ("image_ids", column("image_ids", lambda a: a + 0.5)),
    "long image ids": ("image_ids", column("image_ids", long_names)),
    "counted as numbers": ("counted", column("counted", lambda a: a.astype(np.uint8))),
    "digest of one column": ("digest", column("digest", lambda a: a[:, :1])),
    "digest by column": ("digest", column("digest", np.asfortranarray)),
    "unknown member": ("extra", lambda a: a.update(extra=np.zeros(3))),
    "no scores": ("score", lambda a: a.pop("score")),
    "no header": ("header", lambda a: a.pop("header")),
    "no JSON": ("header", column("header", lambda a: a[:-1])),
    "a list": ("header", column("header", lambda a: np.frombuffer(b"[]", np.uint8))),
    "deep JSON": ("header", column("header", lambda a: np.frombuffer(b"[" * 99999, np.uint8))),
    "the old format": ("header.format: format 1", header(lambda h: h.update(format=1))),
    "a format in words": ("header.format", header(lambda h: h.update(format="2"))),
    "no protocol": ("header.protocol", header(lambda h: h.pop("protocol"))),
    "a protocol of nothing": ("header.protocol", header(lambda h: h.update(protocol={}))),
    "changes in words": ("header.changes", header(lambda h: h.update(changes="x"))),
    "stock in words": ("header.stock", header(lambda h: h.update(stock="yes"))),
    "classes by number": ("header.categories", header(lambda h: h.update(categories=[1, 2]))),
    "notes of three": ("header.notes", header(lambda h: h.update(notes=[["a", "b", 1]]))),
    "remarks as a list": ("header.remarks", header(lambda h: h.update(remarks=[]))),
    "1e99 images": ("images_of_truth", header(lambda h: h["remarks"].update(images_of_truth=1e99))),
    "few images": ("images_of_truth", header(lambda h: h["remarks"].update(images_of_truth=1))),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused_by_array(matches: Matches, tmp_path: Path, name: str) -> None:
    where, forge = FORGED[name]
    arrays = arrays_of(matches, tmp_path / "good.npz")
    forge(arrays)
    path = tmp_path / "forged.npz"
    np.savez_compressed(path, **arrays)
    for load in (Matches.load, Evaluator.load):
        with pytest.raises(DataError) as caught:
            load(path)
        assert str(caught.value).startswith(str(path))
        assert where in str(caught.value)


@pytest.mark.parametrize(
    "remark", [{"box_format": "?"}, {"box_format": []}, {"numbered": "yes"}, {"numbered": None}]
)
def test_forged_evaluators(matches: Matches, tmp_path: Path, remark: dict[str, Any]) -> None:
    path = tmp_path / "forged.npz"
    matches.save(path, **remark)
    with pytest.raises(DataError, match=next(iter(remark))):
        Evaluator.load(path)


def test_numbers_of_arrival_that_are_none(matches: Matches, tmp_path: Path) -> None:
    path = tmp_path / "forged.npz"
    replace(matches, image_ids=matches.image_ids + 5).save(path, numbered=True)
    with pytest.raises(DataError, match="not numbered from 0"):
        Evaluator.load(path)


@pytest.fixture(params=["smaller", "all"])
def by_byte(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small arrays are stored by byte as large ones are."""
    monkeypatch.setattr(npz_archive, "BY_BYTE_FROM", 0)
    if request.param == "all":
        kinds = npz_archive.BY_BYTE
        monkeypatch.setattr(
            npz_archive, "_is_smaller_by_byte", lambda a: f"{a.dtype.kind}{a.itemsize}" in kinds
        )


def members(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as file:
        return file.namelist()


@pytest.mark.usefixtures("by_byte")
@pytest.mark.parametrize("seed", range(5))
def test_arrays_by_byte_come_back(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "matches.npz"
    for taken in (False, True):
        matches = detmap.match(*tables(seed), detmap.load_protocol("coco-bbox"), taken=taken)
        matches.save(path)
        assert any("-" in name for name in members(path))
        for found in (Matches.load(path), Matches.from_bytes(matches.to_bytes())):
            assert_same(replace(found, taken=None), replace(matches, taken=None))
            for name in ASSIGNMENT_ARRAYS if taken else ():
                one, other = (getattr(each.taken, name) for each in (found, matches))
                assert (one.dtype, one.tobytes()) == (other.dtype, other.tobytes())


def test_small_arrays_are_plain(matches: Matches, tmp_path: Path) -> None:
    """numpy reads them, and so does any version of detmap."""
    matches.save(tmp_path / "matches.npz")
    assert not any("-" in name for name in members(tmp_path / "matches.npz"))


@pytest.mark.parametrize(
    ("array", "smaller"),
    [
        (np.random.default_rng(0).permutation(10**5).astype(np.int32), True),
        (np.sort(np.random.default_rng(0).random(10**5)), True),
        (np.sort(np.random.default_rng(0).random(10**5).round(5)), False),
        (np.zeros(10**5, dtype=np.bool_), False),
        (np.array(["a", "b"]), False),
    ],
)
def test_arrays_are_stored_the_smaller_way(array: Any, smaller: bool) -> None:
    assert npz_archive._is_smaller_by_byte(array) == smaller


def load_with(matches: Matches, folder: Path, name: str, member: bytes | None = None) -> None:
    """Loads the file after its array score.npy has this name and content."""
    matches.save(folder / "good.npz")
    path = folder / "forged.npz"
    with zipfile.ZipFile(folder / "good.npz") as good, zipfile.ZipFile(path, "w") as forged:
        for info in good.infolist():
            own = info.filename == "score.npy"
            content = good.read(info) if member is None or not own else member
            forged.writestr(name if own else info.filename, content)
    Matches.load(path)


@pytest.mark.parametrize("suffix", ["f4", "f2", "x", "O", "U4", "f8-f8", ""])
def test_forged_arrays_by_byte(matches: Matches, tmp_path: Path, suffix: str) -> None:
    with pytest.raises(DataError, match=r"forged\.npz.*score"):
        load_with(matches, tmp_path, f"score-{suffix}.npy")


def npy(declared: tuple[int, ...], content: bytes, dtype: str = "<f8") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": declared}
    )
    return file.getvalue() + content


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(npy((1 << 40,), b"\0" * 64), id="shape beyond the bytes"),
        pytest.param(npy((-1,), b"\0" * 64), id="negative shape"),
        pytest.param(npy((8,), b"\0" * 64, "|O"), id="objects"),
        pytest.param(b"\x93NUMPY\x07\0", id="version"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x93NUMPY\x01\0\xff\xff" + b"(" * 70000, id="brackets"),
    ],
)
def test_members_that_are_no_arrays(matches: Matches, tmp_path: Path, member: bytes) -> None:
    with pytest.raises(DataError, match=r"forged\.npz: score: "):
        load_with(matches, tmp_path, "score.npy", member)


@pytest.mark.slow
def test_a_bomb_is_refused_before_it_is_inflated(matches: Matches, tmp_path: Path) -> None:
    """Half a megabyte that would inflate to half a gigabyte, and more rows than `off` has."""
    path, n = tmp_path / "bomb.npz", 1 << 26
    matches.save(tmp_path / "good.npz")
    with (
        zipfile.ZipFile(tmp_path / "good.npz") as good,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as forged,
    ):
        for info in good.infolist():
            if info.filename != "score.npy":
                forged.writestr(info.filename, good.read(info))
        with forged.open("score.npy", "w") as out:
            out.write(npy((n,), b""))
            for _ in range(n >> 17):
                out.write(bytes(8 << 17))
    assert path.stat().st_size < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match=r"bomb\.npz: image: shape"):
        Matches.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_arrays_much_larger_than_the_file_are_refused(
    matches: Matches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million zeros are objects of the first image."""
    arrays = arrays_of(matches, tmp_path / "m.npz")
    n = 1_000_000
    arrays["obj_image"] = np.zeros(n, arrays["obj_image"].dtype)
    arrays["counted"] = np.ones((n, arrays["counted"].shape[1]), bool)
    arrays["obj_off"] = np.where(np.arange(len(arrays["obj_off"])) > 0, n, arrays["obj_off"])
    np.savez_compressed(tmp_path / "bomb.npz", **arrays)
    with pytest.raises(detmap.DataError, match="more true positives than objects"):
        Matches.load(tmp_path / "bomb.npz")
    monkeypatch.setattr(npz_archive, "PLENTY", 1_000_000)
    with pytest.raises(detmap.DataError, match=r"bomb.npz: unpacks to [\d,]+ bytes, of [\d,]+"):
        Matches.load(tmp_path / "bomb.npz")


def test_sizes_that_cannot_be(matches: Matches, tmp_path: Path) -> None:
    """A directory that declares more than deflate can hold."""
    path = tmp_path / "forged.npz"
    matches.save(path)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"score.npy") - 46  # of the directory
    content[entry + 24 : entry + 28] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"score: \d+ bytes with a stated size of 1073741824"):
        Matches.load(path)


def test_a_file_read_again_is_the_same(matches: Matches, tmp_path: Path) -> None:
    path = tmp_path / "part.npz"
    matches.save(path, images_of_truth=20)
    again, remarks = read(path)
    assert_same(again, matches)
    assert remarks == {"images_of_truth": 20}
    assert not again.image.flags.writeable


def forged(matches: Matches, path: Path, change: Callable[[dict[str, Any]], object]) -> Matches:
    arrays = arrays_of(matches, path)
    header(change)(arrays)
    np.savez_compressed(path, **arrays)
    return Matches.load(path)


def test_a_header_cannot_call_other_rules_stock(matches: Matches, tmp_path: Path) -> None:
    """Once the signature said stock where the thresholds were others."""

    def other_rules(tree: dict[str, Any]) -> None:
        tree["protocol"]["iou"]["thresholds"] = [i / 100 for i in range(50, 60)]

    path = tmp_path / "part.npz"
    told = detmap.summarize(forged(matches, path, other_rules)).signature
    assert "|iou.thresholds=[0.5,0.51," in told

    def another_name(tree: dict[str, Any]) -> None:
        tree["protocol"]["name"] = "mine"

    assert "|custom|" in detmap.summarize(forged(matches, path, another_name)).signature


SETTINGS = [{}, {"limits.max_dets": [1, 100, 300]}, {"subsets.tiny.area": [0, 9]}]


@pytest.mark.parametrize("settings", SETTINGS)
def test_changed_protocols_survive_a_file(settings: dict[str, Any], tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_bytes((folder("configs") / "coco-bbox.toml").read_bytes())
    for name in ("coco-bbox", str(own)):
        protocol = detmap.load_protocol(name).override(settings)
        made = detmap.match(*tables(9), protocol)
        made.save(tmp_path / "part.npz")
        again = Matches.load(tmp_path / "part.npz")
        assert again.protocol == protocol
        assert detmap.summarize(again).signature == detmap.summarize(made).signature


def test_names_and_notes_of_a_file_write_no_lines(matches: Matches, tmp_path: Path) -> None:
    """Once a class name could clear a terminal, or write a row of the table."""

    def names(tree: dict[str, Any]) -> None:
        tree["categories"][0] = "a\x1b[2J\nAP  1.0000"
        tree["notes"] = [asdict(Note("x", "y\x1b[31m\nz", 1))]

    result = detmap.summarize(forged(matches, tmp_path / "part.npz", names))
    listed = result.tables(per_class=True)
    texts = [formats.text(listed), formats.markdown(listed), str(result)]
    for text in texts:
        assert all(c == "\n" or c.isprintable() for c in text)
    assert r"a\x1b[2J\nAP  1.0000" in texts[0]
    assert r"note: 1 y\x1b[31m\nz" in texts[2]


def test_a_part_of_a_file_is_called_truncated(matches: Matches, tmp_path: Path) -> None:
    path = tmp_path / "matches.npz"
    matches.save(path)
    content = path.read_bytes()
    for size, what in ((0, "is empty"), (100, "truncated"), (len(content) // 2, "truncated")):
        path.write_bytes(content[:size])
        with pytest.raises(DataError, match=what):
            read(path)


def test_an_error_without_a_text_has_a_reason() -> None:
    assert npz_archive._damaged(EOFError()) == "is damaged (EOFError)"


@pytest.mark.parametrize("dense", [False, True])
def test_what_is_saved_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dense: bool
) -> None:
    """Many images without boxes, or many detections of one score, are packed hundreds of times
    smaller: arrays of equal numbers are stored as they are then.
    """
    n = 30_000
    truth = detmap.truth_from_arrays([0], [1], [[0, 0, 9, 9]], images=np.arange(n))
    rows = np.zeros(n if dense else 1, int)
    boxes = np.tile([50.0, 50, 9, 9], (len(rows), 1))
    found = detmap.detections_from_arrays(truth, rows, rows + 1, boxes, rows + 0.5)
    made = detmap.match(truth, found, "voc2012")
    made.save(tmp_path / "packed.npz")
    monkeypatch.setattr(npz_archive, "PLENTY", 10_000)
    with pytest.raises(detmap.DataError, match="unpacks to"):
        Matches.load(tmp_path / "packed.npz")
    made.save(tmp_path / "stored.npz")
    loaded = Matches.load(tmp_path / "stored.npz")
    assert loaded.data_digest() == made.data_digest()
    assert detmap.summarize(loaded).metrics == detmap.summarize(made).metrics
    size = (tmp_path / "stored.npz").stat().st_size
    assert size > (tmp_path / "packed.npz").stat().st_size
