"""The registry of published results: every entry is whole, and those whose files are here hold."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

import detmap
from detmap.errors import DataError
from detmap.reproducibility.reproducing import published
from detmap.reproducibility.reproducing.published import Number
from tests.reproducibility.test_truth_by_protocol import FLAGGED, draw
from tests.support import builders as make
from tests.support.running import run

SAMPLE = ("--truth", make.SHAPES / "instances_test.json")
FOUND = make.SHAPES / "detections" / "contours.json"
ENTRIES = published.entries()


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_whole(name: str) -> None:
    entry = ENTRIES[name]
    assert entry.title
    assert entry.files
    assert entry.number_source
    assert bool(entry.detections) == bool(entry.verified)
    for number in entry.numbers:
        number.rules()


def test_the_sample_prints_its_numbers() -> None:
    outcome = run("published", "shapes-contours", *SAMPLE, "--detections", FOUND)
    assert (outcome.code, outcome.err) == (0, "")
    other = FOUND.with_name("template.json")
    outcome = run("published", "shapes-contours", *SAMPLE, "--detections", other)
    assert outcome.code == 1
    assert "detections: the digest is" in outcome.err
    assert "truth: the content" not in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["yolov2-voc", "tiny-yolov2-voc", "detector-8603"])
def test_detectors_on_voc_print_their_numbers(voc2007: Path, name: str) -> None:
    truth = detmap.read_truth(voc2007 / "VOCdevkit")
    found = published.check(ENTRIES[name], truth, detmap.read_detections(voc2007 / name, truth))
    assert found.same
    assert found.other == ()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_the_demo_of_the_coco_api_prints_its_numbers(data: Path, kind: str) -> None:
    folder = data / "coco-val2014-100"
    results = folder / f"instances_val2014_fake{kind}100_results.json"
    truth = folder / "instances_val2014_100.json"
    outcome = run("published", f"coco-demo-{kind}", "--truth", truth, "--detections", results)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count(" yes") == 12


@pytest.mark.parametrize(("least", "code"), [("0.3", 0), ("0.5", 1)])
def test_an_entry_has_settings_and_a_box_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: str, code: int
) -> None:
    for name, line in (("groundtruths", "cat 20 20 10 10"), ("detections", "cat .9 20 20 10 4")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(line)
    (tmp_path / "published").mkdir()
    texts = ("title", "who", "where", "split", "files", "number_source", "truth", "detections")
    entry = "".join(f'{key} = ""\n' for key in (*texts, "verified")) + 'box_format = "voc xywh"\n'
    entry += '[[numbers]]\nprotocol = "rafaelpadilla-odm-area"\nmetric = "mAP"\nnumber = "100.0"\n'
    entry += f"settings = {{ 'iou.thresholds' = [{least}] }}\n"
    (tmp_path / "published" / "one.toml").write_text(entry)
    monkeypatch.setattr(published, "folder", lambda name: tmp_path)
    files = ("--truth", tmp_path / "groundtruths", "--detections", tmp_path / "detections")
    assert run("published", "one", *files).code == code


def test_files_are_read_in_the_format_of_the_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "seriesuid,coordX,coordY,coordZ,"
    truth = make.write(tmp_path / "annotations.csv", f"{head}diameter_mm\na,1,2,3,4\n")
    make.write(tmp_path / "annotations_excluded.csv", f"{head}diameter_mm\n")
    make.write(tmp_path / "seriesuids.csv", "a\n")
    marks = make.write(tmp_path / "marks.csv", f"{head}probability\na,1,2,4,0.5\n")
    list_of_one(tmp_path, monkeypatch, (("froc-luna16", "CPM"),))
    assert run("published", "two", "--truth", truth, "--detections", marks).code == 0


def list_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: Iterable[tuple[str, str]]
) -> None:
    """A list with one entry ``two``, whose numbers are all 1.00."""
    (tmp_path / "published").mkdir()
    texts = ("title", "who", "where", "split", "files", "number_source", "truth", "detections")
    entry = "".join(f'{key} = ""\n' for key in (*texts, "verified"))
    for protocol, metric in numbers:
        entry += f'[[numbers]]\nprotocol = "{protocol}"\nmetric = "{metric}"\nnumber = "1.00"\n'
    (tmp_path / "published" / "two.toml").write_text(entry)
    monkeypatch.setattr(published, "folder", lambda name: tmp_path)


def flagged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Files with `difficult`, and an entry with numbers of two protocols, named ``two``."""
    files = draw(tmp_path, FLAGGED)
    list_of_one(tmp_path, monkeypatch, TWO)
    return files


TWO = (("coco-bbox", "AP50"), ("voc2012", "mAP"), ("coco-bbox", "AP"))


@pytest.mark.parametrize("n_images", [12, 6])
def test_every_number_of_an_entry_has_the_flags_of_its_protocol(
    n_images: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = flagged(tmp_path, monkeypatch)
    ids = make.write(tmp_path / "ids.txt", "".join(f"{i + 1}\n" for i in range(n_images)))
    words = ("published", "two", "--truth", files[0], "--detections", files[1], "--format", "json")
    outcome = run(*words, *(("--images", ids) if n_images < 12 else ()))
    values = [row["value"] for row in json.loads(outcome.out)["check"]]
    images = range(1, n_images + 1)
    assert values == pytest.approx(
        [detmap.evaluate(*files, p, images=images).metrics[m] for p, m in TWO], abs=1e-4
    )
    plain = detmap.evaluate(detmap.read_truth(files[0]), files[1], "voc2012", unknown="error")
    assert plain.metrics["mAP"] != pytest.approx(detmap.evaluate(*files, "voc2012").metrics["mAP"])


def test_the_list_and_an_entry(tmp_path: Path) -> None:
    assert "yolov2-voc" in run("published").out
    told = run("published", "yolov2-voc").out
    assert "pytorch-yolo2" in told
    assert "mean of 20 committed files" in told
    assert "printed" not in told
    assert run("published", "-o", tmp_path / "list.json").code == 0
    assert json.loads((tmp_path / "list.json").read_text())


def test_a_part_of_the_images(tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("1\n2\n3\n")
    words = ("published", "shapes-contours", *SAMPLE, "--detections", FOUND, "--images", ids)
    outcome = run(*words)
    assert outcome.code == 1
    assert "truth: the digest is" in outcome.err
    assert run(*words, "-o", ids).code == 2
    assert ids.read_text().startswith("1")


def test_an_entry_without_files_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    entry = 'title = "T"\nwho = "W"\nwhere = "a paper"\nsplit = "VOC2007 test"\n'
    entry += 'files = "nobody has the detections"\ntruth = ""\ndetections = ""\nverified = ""\n'
    entry += 'number_source = "printed in Table 3"\n'
    entry += '[[numbers]]\nprotocol = "voc2007"\nmetric = "mAP"\nnumber = "70.0"\n'
    (folder / "paper.toml").write_text(entry)
    monkeypatch.setattr(published, "folder", lambda name: tmp_path)
    assert "never" in run("published").out
    assert "never: the detections are not available" in run("published", "paper").out


def test_what_cannot_be_checked() -> None:
    assert run("published", "no such").code == 2
    assert run("published", *SAMPLE).code == 2
    assert run("published", "shapes-contours", *SAMPLE).code == 2
    assert run("published", "shapes-contours", "--detections", FOUND).code == 2
    outcome = run("published", "shapes-contours", *SAMPLE, "--detections", FOUND, "--split", "a")
    assert outcome.code == 2
    entry = replace(ENTRIES["shapes-contours"], numbers=(Number("coco-bbox", "mAP", "1.0"),))
    truth = detmap.read_truth(SAMPLE[1])
    with pytest.raises(DataError, match="no metric mAP"):
        published.check(entry, truth, detmap.read_detections(FOUND, truth))


@pytest.mark.parametrize(
    "text", ["", 'title = "a"', "numbers = 1", "[[numbers]]\nprotocol = 1\n", "title = 1"]
)
def test_what_is_no_entry(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(DataError):
        published.read(file)
