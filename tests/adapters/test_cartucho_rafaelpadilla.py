"""Text of Cartucho's and rafaelpadilla's tools: the same numbers as the files they were made of."""

import dataclasses
from pathlib import Path

import pytest

import detmap
from detmap import DataError, read_detections, read_truth
from tests.support import builders as make
from tests.support import varied_writers as texts
from tests.support import writers
from tests.support.running import run
from tests.support.varied_exports import sizes_csv


@pytest.mark.parametrize("protocol", ["voc2007", "voc2012", "coco-bbox"])
def test_cartucho_gives_the_numbers_of_the_files_it_was_made_of(
    sample: tuple[detmap.Truth, detmap.Detections], tmp_path: Path, protocol: str
) -> None:
    made = texts.cartucho(writers.case(*sample), tmp_path, "difficult")
    got = detmap.evaluate(made.truth, made.found, protocol).metrics
    assert got == detmap.evaluate(*sample, protocol).metrics
    assert sample[0].difficult.sum() == read_truth(made.truth).difficult.sum()


@pytest.mark.slow
@pytest.mark.parametrize("box_format", ["voc", "voc xywh", "xywh", "normalized cxcywh"])
def test_rafaelpadilla_gives_the_numbers_of_the_files_it_was_made_of(
    sample: tuple[detmap.Truth, detmap.Detections], tmp_path: Path, box_format: str
) -> None:
    case = writers.case(*sample)
    made = texts.rafaelpadilla(case, tmp_path, box_format)
    read = read_truth(made.truth, box_format=box_format, image_sizes=sizes_csv(case, tmp_path))
    detections = read_detections(made.found, read, box_format=box_format)
    got = detmap.evaluate(read, detections, "coco-bbox").metrics
    plain = dataclasses.replace(sample[0], roles={})  # that tool knows no difficult objects
    wanted = detmap.evaluate(plain, sample[1], "coco-bbox").metrics
    exact = "normalized" not in box_format
    assert got == (wanted if exact else pytest.approx(wanted, abs=1e-12))


def test_what_rafaelpadillas_numbers_mean_is_never_guessed(tmp_path: Path) -> None:
    make.write(tmp_path / "groundtruths" / "a.txt", "cat 1 2 3 4\n")
    with pytest.raises(DataError, match=r"is missing here.*--truth-box-format.*voc xywh"):
        read_truth(tmp_path / "groundtruths")
    with pytest.raises(DataError, match=r"unknown box format 'xyhw' \(choose one of: xyxy,"):
        read_truth(tmp_path / "groundtruths", box_format="xyhw")
    truth = read_truth(tmp_path / "groundtruths", box_format="voc xywh")
    assert (truth.box_format, truth.boxes.tolist()) == ("voc", [[1, 2, 4, 6]])


def test_fractions_need_the_size_of_their_image(tmp_path: Path) -> None:
    make.write(tmp_path / "groundtruths" / "a.txt", "cat .5 .5 .2 .4\n")
    with pytest.raises(DataError, match=r"a.txt: line 1: a normalized box.*--image-sizes FILE"):
        read_truth(tmp_path / "groundtruths", box_format="normalized cxcywh")


def test_which_tool_wrote_a_folder(tmp_path: Path) -> None:
    gt, dt = tmp_path / "gt", tmp_path / "dt"
    make.write(gt / "a.txt", "cat 1 2 3 4\n")
    make.write(dt / "a.txt", "cat .5 1 2 3 4\n")
    with pytest.raises(DataError, match=r"the format is ambiguous: cartucho and rafaelpadilla"):
        read_truth(gt)
    truth = read_truth(gt, format="cartucho")
    with pytest.raises(DataError, match="the format is ambiguous: cartucho and rafaelpadilla"):
        read_detections(dt, truth)
    make.write(gt / "b.txt", "cat 1 2 3 4 difficult\n")
    assert read_truth(gt).difficult.tolist() == [False, True]


GOOD = {"truth": "cat 1 2 3 4\n", "detections": "cat .5 1 2 3 4\n"}
BAD = {
    "words": (b"cat 1 2 3 4\ncat 1 2 3\n", b"cat .5 1 2 3\n", r"a.txt: line \d: \d words"),
    "not a number": (b"cat 1 2 x 4\n", b"cat .5 1 2 x 4\n", r"a.txt: line 1, number 3.*'x' is not"),
    "nan": (b"cat 1 2 nan 4\n", b"cat nan 1 2 3 4\n", r"a.txt: line 1, .*'nan' is not a finite"),
    "inf": (b"cat 1 2 inf 4\n", b"cat .5 1 2 inf 4\n", r"line 1, number 3 of the box: 'inf' is"),
    "negative": (b"\ncat 9 2 3 4\n", b"\ncat .5 9 2 3 4\n", r"line 2: box 9 2 3 4 has a negative"),
    "encoding": (b"k\xe4 1 2 3 4\n", b"k\xe4 .5 1 2 3 4\n", r"a.txt: line 1: not UTF-8"),
    "garbage": (b"\x00\xff\x13" * 99, b"\x89PNG\r\n\x1a\n\x00" * 9, r"a.txt: line 1: not UTF-8"),
}


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, kind: str, name: str) -> None:
    make.write(tmp_path / "truth" / "a.txt", GOOD["truth"])
    make.write(tmp_path / "detections" / "a.txt", GOOD["detections"])
    make.write(tmp_path / kind / "a.txt", BAD[name][kind == "detections"])

    def read() -> None:
        truth = read_truth(tmp_path / "truth", format="cartucho")
        read_detections(tmp_path / "detections", truth, format="cartucho")

    with pytest.raises(DataError, match=BAD[name][2]):
        read()
    outcome = run(
        *("eval", tmp_path / "truth", tmp_path / "detections"),
        *("--truth-format", "cartucho", "--detections-format", "cartucho"),
    )
    assert outcome.code == 2
    assert f"{kind}/a.txt" in outcome.err
    assert "fix:" in outcome.err


def test_byte_order_marks_line_ends_and_empty_files(tmp_path: Path) -> None:
    make.write(
        tmp_path / "t" / "a.txt", b"\xef\xbb\xbfcat 1 2 3 4\r\n\r\ndog 5 6 7 8 difficult\r\n"
    )
    make.write(tmp_path / "t" / "a-b.txt", b"")
    make.write(tmp_path / "d" / "a.txt", b"dog 5e-1 5 6 7 8")
    truth = read_truth(tmp_path / "t", format="cartucho")
    assert truth.images.stems == ("a", "a-b")
    assert truth.categories.names == ("cat", "dog")
    found = read_detections(tmp_path / "d", truth, format="cartucho")
    assert (found.image.tolist(), found.label.tolist(), found.score.tolist()) == ([0], [1], [0.5])


def test_an_empty_folder_and_a_file_too_large(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with pytest.raises(DataError, match=r"no \.txt files"):
        read_truth(tmp_path / "t", format="cartucho")
    with open(tmp_path / "t" / "a.txt", "wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(DataError, match=r"a\.txt.*memory"):
        read_truth(tmp_path / "t", format="cartucho")
