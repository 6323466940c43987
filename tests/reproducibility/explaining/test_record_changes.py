"""Results against each other by what was written of them: receipts, JSON, signatures."""

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.core import protocol
from detmap.core.base.resources import folder
from detmap.core.protocol import load_toml as reading
from detmap.reproducibility import receipt
from detmap.reproducibility.explaining.records import signature_record
from tests.reproducibility.forging import forged
from tests.support import builders as make
from tests.support.running import Outcome, run

VOC, TEXT = make.SHAPES, make.SHAPES / "detections" / "contours"
COCO = make.SHAPES / "instances_test.json"
FIRST, OTHER = (make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template"))


def written(file: Path, *words: object) -> Path:
    done = run("eval", *words, "--receipt", file)
    assert done.code == 0, done.err
    return file


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The receipt of a COCO truth and of detections, which lie beside it."""
    root = tmp_path_factory.mktemp("known")
    for path in (COCO, FIRST, OTHER):
        shutil.copy(path, root)
    written(root / "run.json", root / COCO.name, root / FIRST.name)
    words = ["detmap", "eval", str(root / COCO.name), str(root / FIRST.name)]
    return forged(root / "run.json", root, lambda content: content.update(command=words))


def explained(code: int, *words: object) -> Any:
    done = run("explain", *words, "--format", "json")
    assert done.code == code, done.err
    content = json.loads(done.out)
    if "steps" in content:
        total = sum((Fraction(step["exact_change"]) for step in content["steps"]), Fraction(0))
        assert total == Fraction(content["after"]) - Fraction(content["before"])
    return content


def differing(content: Any) -> set[str]:
    return {part["part"] for part in content["parts"] if not part["same"]}


def test_a_receipt_of_the_same_result(known: Path) -> None:
    content = explained(0, COCO, FIRST, "--receipt", known)
    assert (differing(content), content["cause"], content["steps"]) == (set(), "", [])
    assert content["before"] == content["after"]
    out = run("explain", COCO, FIRST, "--receipt", known).out
    assert "no difference affects the numbers" in out
    assert "coco-bbox.2" in out


def test_other_rules_are_told_key_by_key_with_what_each_is_worth(known: Path) -> None:
    content = explained(1, COCO, FIRST, "--receipt", known, "-p", "voc2012")
    keys = {part["part"]: (part["first"], part["other"]) for part in content["parts"]}
    assert keys["ap.integrator"][1] == '"all_points"'
    assert content["cause"] == "other rules"
    steps = {step["switch"]: step["detail"] for step in content["steps"]}
    assert "ap.integrator: " in steps["integration"]
    rules = [detmap.evaluate(COCO, FIRST, name).metrics for name in ("coco-bbox", "voc2012")]
    assert (content["before"], content["after"]) == (rules[0]["AP"], rules[1]["mAP"])


def test_other_detections_are_told_and_counted_where_the_first_are_there(known: Path) -> None:
    content = explained(1, COCO, OTHER, "--receipt", known)
    assert content["cause"] == "other detections"
    assert {"detections", "detections file", "data", "AP"} <= differing(content)
    assert not {"truth", "truth file", "proto"} & differing(content)
    assert "detections.added" in {step["switch"] for step in content["steps"]}
    assert content["before"] == detmap.evaluate(COCO, FIRST).metrics["AP"]
    assert content["after"] == detmap.evaluate(COCO, OTHER).metrics["AP"]
    assert content["classes"]


def test_files_that_are_gone_are_one_step(known: Path, tmp_path: Path) -> None:
    file = forged(known, tmp_path, lambda content: content.update(command=[]))
    (step,) = explained(1, COCO, OTHER, "--receipt", file)["steps"]
    assert (step["switch"], step["title"]) == ("record", "other detections")


def test_options_are_a_step_of_their_own(tmp_path: Path) -> None:
    file = written(tmp_path / "run.json", VOC, TEXT, "-p", "voc2007", "--classes", "circle,star")
    content = explained(1, VOC, TEXT, "--receipt", file)
    assert content["cause"] == "other rules, inputs that are read otherwise"
    (one,) = [part for part in content["parts"] if part["part"] == "--classes"]
    assert (one["first"], one["other"]) == ("circle,star", "none")
    assert [step["switch"] for step in content["steps"]] == ["files", "integration"]
    assert content["steps"][0]["value"] == detmap.evaluate(VOC, TEXT, "voc2007").metrics["mAP"]


@pytest.mark.slow
@pytest.mark.parametrize("here", ["eval", "explain"])
def test_a_list_of_images_is_an_option(tmp_path: Path, here: str) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("000001\n000002\n000003\n")
    file = written(tmp_path / "run.json", VOC, TEXT, "--images", ids)
    if here == "eval":
        words = ("--truth", VOC, "--detections", TEXT)
        assert run("verify", file, *words, "--images", ids).code == 0
        ids.write_text("000001\n000002\n")
        done = run("verify", file, *words, "--images", ids)
        assert done.code == 1
        assert "--images: file changed" in done.out
        return
    words = ["detmap", "eval", str(VOC), str(TEXT), f"--images={ids}"]
    forged(file, tmp_path, lambda content: content.update(command=words))
    content = explained(1, VOC, TEXT, "--receipt", file)
    assert content["cause"] == "inputs that are read otherwise"
    assert {step["switch"] for step in content["steps"]} == {"files"}


def test_links_in_a_folder_are_followed_once_and_never_out_of_it(tmp_path: Path) -> None:
    shutil.copytree(TEXT, tmp_path / "away")
    (tmp_path / "D").mkdir()
    (tmp_path / "secret.txt").write_text("not part of it")
    (tmp_path / "D" / "inner").symlink_to(tmp_path / "away")
    (tmp_path / "D" / "again").symlink_to(tmp_path / "D" / "inner")
    (tmp_path / "D" / "self").symlink_to(tmp_path / "D")
    (tmp_path / "D" / "up").symlink_to(tmp_path)
    found = receipt.digest_of(tmp_path / "D")
    assert {Path(name).parent.name for name in found["members"]} == {"again"}
    assert found["files"] == 6
    (tmp_path / "D" / "gone.txt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(detmap.DataError, match=r"gone\.txt"):
        receipt.digest_of(tmp_path / "D")


@pytest.mark.slow
def test_a_number_that_is_undefined(tmp_path: Path) -> None:
    truth = json.loads(COCO.read_text())
    for each in truth["annotations"]:  # crowds alone: no object has to be found
        each["iscrowd"] = 1
    make.write(tmp_path / "none.json", truth)
    file = written(tmp_path / "run.json", tmp_path / "none.json", FIRST)
    assert run("verify", file, "--truth", tmp_path / "none.json", "--detections", FIRST).code == 0
    content = explained(1, COCO, FIRST, "--receipt", file)
    assert content["cause"] == "another truth"
    (part,) = [each for each in content["parts"] if each["part"] == "AP"]
    assert part["first"] == "undefined"
    words = ("cite", file, "--truth", tmp_path / "none.json", "--detections", FIRST)
    assert "AP is undefined on 60 images" in run(*words).out


def moved(page: str) -> str:
    """The first object three pixels further to the right."""
    return re.sub(r"<xmax>(\d+)", lambda found: f"<xmax>{int(found[1]) - 9}", page, count=1)


def test_the_files_of_a_folder_that_changed_are_named(tmp_path: Path) -> None:
    shutil.copytree(VOC / "Annotations", tmp_path / "T" / "Annotations")
    shutil.copytree(VOC / "ImageSets", tmp_path / "T" / "ImageSets")
    shutil.copytree(TEXT, tmp_path / "D")
    file = written(tmp_path / "run.json", tmp_path / "T", tmp_path / "D")
    pages = sorted((tmp_path / "T" / "Annotations").iterdir())
    pages[1].write_text(moved(pages[1].read_text()))
    (tmp_path / "T" / "Annotations" / "more.xml").write_bytes(pages[0].read_bytes())
    (tmp_path / "T" / "ImageSets" / "Main" / "star_test.txt").unlink()
    content = explained(1, tmp_path / "T", tmp_path / "D", "--receipt", file)
    (part,) = [each for each in content["parts"] if each["part"] == "truth file"]
    assert part["members"] == {
        "changed": [f"Annotations/{pages[1].name}"],
        "added": ["Annotations/more.xml"],
        "removed": ["ImageSets/Main/star_test.txt"],
    }
    assert content["cause"] == "another truth"
    done = run("verify", file, "--truth", tmp_path / "T", "--detections", tmp_path / "D")
    assert done.code == 1
    assert f"1 changed: Annotations/{pages[1].name}; 1 added: Annotations/more.xml" in done.out
    assert "different: " in done.out
    assert ": another truth" in done.out


def test_of_many_files_there_is_one_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(TEXT, tmp_path / "D")
    whole = receipt.digest_of(tmp_path / "D")
    assert len(whole["members"]) == whole["files"] == 6
    monkeypatch.setattr(receipt, "MAX_MEMBERS", 5)
    file = written(tmp_path / "run.json", VOC, tmp_path / "D")
    assert "members" not in json.loads(file.read_text())["inputs"]["detections"]
    name = "comp4_det_test_star.txt"
    lines = (tmp_path / "D" / name).read_text().splitlines()
    (tmp_path / "D" / name).write_text("\n".join(lines[1:]) + "\n")
    content = explained(1, VOC, tmp_path / "D", "--receipt", file)
    (part,) = [each for each in content["parts"] if each["part"] == "detections file"]
    assert part["remark"] == "6 files and 6 files, and one of the lists is missing"


# ---- without data


def test_two_receipts_without_data(known: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "other.json", COCO, OTHER, "--set", "iou.cap=0.9")
    for words in ((known, other), ("--receipt", known, "--receipt", other)):
        content = explained(1, *words)
        assert content["cause"] == "other detections, other rules"
        assert {"iou.cap", "detections", "AP"} <= differing(content)
        assert "steps" not in content
    assert explained(0, known, known)["cause"] == ""


def test_two_receipts_on_their_files(known: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "other.json", COCO, FIRST, "-p", "voc2012")
    words = (COCO, FIRST, "--receipt", known, "--receipt", other)
    content = explained(1, *words)
    assert content["cause"] == "other rules"
    assert content["after"] == detmap.evaluate(COCO, FIRST, "voc2012").metrics["mAP"]
    assert len(content["steps"]) > 3
    assert run("explain", *words, "-p", "voc2007").code == 2


def test_two_results_as_json_and_two_signatures(known: Path, tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, rules in zip(files, ("voc2007", "voc2012"), strict=True):
        assert run("eval", VOC, TEXT, "-p", rules, "-o", file).code == 0
    content = explained(1, *files)
    assert {"ap.integrator", "mAP", "proto"} <= differing(content)
    assert content["cause"] == "other rules"
    assert explained(0, files[0], files[0])["cause"] == ""
    lines = [json.loads(file.read_text())["signature"] for file in files]
    assert {"ap.integrator", "proto"} == differing(explained(1, *lines)) - {"protocol"}
    assert explained(1, files[0], known)["cause"] == "other data, other rules"
    assert explained(1, VOC, TEXT, "--receipt", files[0])["cause"] == "other rules"


# ---- other versions


def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A detmap whose voc2007 is of another version and another rule."""
    shutil.copytree(folder("configs"), tmp_path / "configs")
    file = tmp_path / "configs" / "voc2007.toml"
    text = file.read_text()
    now = protocol.load("voc2007").version
    for old, new in ((f"version = {now}", f"version = {now + 1}"), (">=", ">")):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    monkeypatch.setattr(reading, "folder", lambda name: tmp_path / name)
    monkeypatch.setattr(reading, "shipped", reading.shipped.__wrapped__)  # not what was found
    assert protocol.load("voc2007").version == now + 1


@pytest.mark.slow
@pytest.mark.parametrize("settings", [(), ("--set", "iou.thresholds=[0.6]")])
def test_a_receipt_of_an_older_protocol_is_honoured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...]
) -> None:
    file = written(tmp_path / "run.json", VOC, TEXT, "-p", "voc2007", *settings)
    later(tmp_path, monkeypatch)
    done = run("verify", file, "--truth", VOC, "--detections", TEXT)
    assert (done.code, done.err) == (0, "")
    assert "recomputed from the files, identical\n" in done.out
    assert "run.json: voc2007.3|" in done.out  # the version of the receipt
    content = explained(1, VOC, TEXT, "--receipt", file, "-p", "voc2007", *settings)
    assert {"protocol", "proto", "iou.comparison"} <= differing(content)
    assert content["cause"] == "other rules"
    assert run("cite", file, "--truth", VOC, "--detections", TEXT).code == 0


def test_a_receipt_of_the_first_detmap_is_honoured(known: Path, tmp_path: Path) -> None:
    """It has no contents, no lists of files, and none of the keys that came later."""
    content = json.loads(known.read_text())
    del content["contents"], content["digest"]
    content["receipt"] = 1
    for key in protocol.LATER:
        table, name = key.split(".")
        del content["protocol"][table][name]
    content["environment"]["detmap"] = "0.0.9"
    content["signature"] = re.sub(r"detmap:.*", "detmap:0.0.9", content["signature"])
    content["notes"] = content["notes"][1:]
    file = tmp_path / "run.json"
    file.write_text(json.dumps(content))
    done = run("verify", file, "--truth", COCO, "--detections", FIRST)
    assert done.code == 0, done.out
    assert "note: detmap: 0.0.9 then, " in done.err
    assert "note: note " in done.err


def test_another_environment_is_a_remark(known: Path, tmp_path: Path) -> None:
    file = forged(known, tmp_path, lambda content: content["environment"].update(numpy="1.0"))
    done = run("verify", file, "--truth", COCO, "--detections", FIRST)
    assert done.code == 0
    assert "note: numpy: 1.0 then, " in done.err
    forged(file, tmp_path, lambda content: content["metrics"].update(AP=0.5))
    done = run("verify", file, "--truth", COCO, "--detections", FIRST)
    assert done.code == 1
    assert "AP: 0.5 then" in done.out
    assert "another environment, on the same data by the same rules" in done.out


@pytest.mark.parametrize(
    "change",
    [
        lambda notes: notes.pop(),
        lambda notes: notes.append(["class-unknown", "detections were dropped", 3]),
        lambda notes: notes[0].__setitem__(2, 1),
    ],
)
def test_forged_notes_are_found(known: Path, tmp_path: Path, change: Any) -> None:
    file = forged(known, tmp_path, lambda content: change(content["notes"]))
    done = run("verify", file, "--truth", COCO, "--detections", FIRST)
    assert done.code == 1
    assert "note " in done.out
    assert "one of the two was changed after it was written" in done.out


@pytest.mark.parametrize(
    "change",
    [
        lambda digest: digest.update(bytes=1),
        lambda digest: digest.update(files=7),
        lambda digest: digest["members"].popitem(),
        lambda digest: digest["members"].update(more="0" * 16),
        lambda digest: digest.update(sha256=digest["sha256"][:-1] + "0"),
        lambda digest: digest.update(sha256="0" * 64),
    ],
)
def test_forged_digests_are_found(tmp_path: Path, change: Any) -> None:
    file = written(tmp_path / "run.json", VOC, TEXT)
    forged(file, tmp_path, lambda content: change(content["inputs"]["detections"]))
    done = run("verify", file, "--truth", VOC, "--detections", TEXT)
    assert done.code == 1
    assert re.search("(equal: one record was|the same file: one record was) changed", done.out)


def test_notes_in_other_words_are_a_remark(known: Path, tmp_path: Path) -> None:
    other = "all is well"
    file = forged(known, tmp_path, lambda content: content["notes"][0].__setitem__(1, other))
    done = run("verify", file, "--truth", COCO, "--detections", FIRST)
    assert done.code == 0
    assert "all is well then" in done.err


# ---- what is refused


def refused(*words: object) -> Outcome:
    done = run("explain", *words)
    assert done.code == 2, done.out
    assert "fault" not in done.err
    return done


def test_what_makes_no_sense_is_refused(known: Path, tmp_path: Path) -> None:
    refused()
    refused(known)
    refused(COCO)
    refused("--receipt", known)
    assert "TRUTH DETECTIONS --receipt" in refused(known, FIRST).err
    assert "TRUTH DETECTIONS --receipt" in refused(COCO, known).err
    refused(COCO, "--receipt", known, "--receipt", known)
    refused(COCO, FIRST, "--receipt", known, "--receipt", known, "--receipt", known)
    refused(COCO, FIRST, "--receipt", known, "--to", "voc2012")
    refused(COCO, FIRST, "--receipt", known, "--other-detections", OTHER)
    refused(COCO, FIRST, "--receipt", known, "-o", known)
    refused(known, known, "-o", known)
    refused(COCO, FIRST, "--receipt", tmp_path)
    refused(COCO, FIRST, "--receipt", tmp_path / "absent")
    refused(COCO, FIRST, "--signature", "voc2012")
    assert known.read_bytes().startswith(b"{")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "[" * 100_000, '{"receipt": 1}', '{"signature": 3}', "NaN"),
        '{"signature": "x", "metrics": {}}',
        '{"signature": "a.1|default|proto:1|data:1|detmap:1", "metrics": {"AP": "x"}, "counts": {},'
        ' "protocol": {}, "notes": [], "environment": {}}',
        '{"receipt": 1, "metrics": {"AP": NaN}}',
        '{"receipt": 1e999}',
    ],
)
def test_what_is_no_record(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    refused(COCO, FIRST, "--receipt", file)
    refused("--receipt", file, "--receipt", file)


def test_every_number_of_the_steps_is_in_percent() -> None:
    """The last line had sixteen digits of a fraction."""
    words = ("--from", "voc2007", "--to", "voc2012", "--percent", "--digits", "2")
    done = run("explain", COCO, FIRST, *words)
    assert done.code == 0
    assert not re.search(r"\d\.\d{3}", done.out.split("what decided")[0]), done.out
    assert "total" in done.out


def test_another_detector_is_for_compare_and_two_ends_are_asked_for() -> None:
    done = run("explain", COCO, FIRST, "--other-detections", OTHER)
    assert "`detmap compare`" in done.err
    assert "`detmap compare`" not in run("explain", COCO, FIRST, "--other-truth", COCO).err
    asked = run("explain", COCO, FIRST)
    assert asked.code == 2
    assert "--other-detections" in asked.err
    assert "end=" not in asked.err


def test_an_explanation_is_short_in_a_notebook() -> None:
    found = detmap.explain(COCO, FIRST, "voc2007", "voc2012")
    assert len(repr(found).splitlines()) <= 15
    assert "<table" in found._repr_html_()


def test_the_number_of_other_data_is_unknown() -> None:
    """The number of the files at hand was told as that of the signature."""
    line = "coco-bbox.2|default|proto:162e893f053e|data:{}|detmap:0.1.0"
    told = "its number is unknown; coco-bbox on these files"
    done = run("explain", COCO, FIRST, "--signature", line.format("0123456789ab"))
    assert told in " ".join(done.out.split())
    own = json.loads(run("eval", COCO, FIRST, "--format", "json").out)["signature"]
    assert told not in " ".join(run("explain", COCO, FIRST, "--signature", own).out.split())


def test_a_signature_whose_changes_were_changed() -> None:
    """It was told as "they differ by the same data, rules and versions"."""
    own = json.loads(run("eval", COCO, FIRST, "--format", "json").out)["signature"]
    told = run("explain", COCO, FIRST, "--signature", own.replace("|default|", "|iou.cap=0.5|"))
    assert told.code == 1
    assert "they differ by an edit" in told.out


def test_a_signature_of_rules_that_are_not_known() -> None:
    assert signature_record("nobody.1|default|proto:0|data:0|detmap:0").rules is None
    assert signature_record("voc2012.3|custom|proto:0|data:0|detmap:0").rules is None
    assert signature_record("voc2012.3|iou.cap=x|proto:0|data:0|detmap:0").rules is None
    done = run("explain", COCO, FIRST, "--signature", "nobody.1|default|proto:0|data:0|detmap:0")
    assert done.code == 1
    assert "no step-by-step explanation" in done.err


def test_a_digest_and_a_count_have_names_of_their_own(known: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    rows = json.loads(FIRST.read_text())
    fewer = make.write(tmp_path / "fewer.json", rows[: len(rows) // 2])
    assert run("eval", COCO, fewer, "--receipt", other).code == 0
    parts = json.loads(run("explain", known, other, "--format", "json").out)["parts"]
    names = [part["part"] for part in parts]
    assert len(names) == len(set(names))
    assert "number of detections" in names
