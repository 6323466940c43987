"""Receipts: written, checked, cited; a forged one is refused."""

import copy
import json
import math
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.reproducibility import receipt, receipt_contradictions
from tests.reproducibility.forging import forged
from tests.support import builders as make
from tests.support.running import run

COCO = make.SHAPES / "instances_test.json"
FIRST, OTHER = (make.SHAPES / "detections" / f"{name}.json" for name in ("contours", "template"))
VOC, TEXT = make.SHAPES, make.SHAPES / "detections" / "contours"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("receipt") / "run.json"
    assert run("eval", COCO, FIRST, "--receipt", file).code == 0
    return file


def verify(file: Path, truth: Path = COCO, detections: Path = FIRST, *more: object) -> Any:
    return run("verify", file, "--truth", truth, "--detections", detections, *more)


def cite(file: Path, truth: Path = COCO, detections: Path = FIRST, *more: object) -> Any:
    return run("cite", file, "--truth", truth, "--detections", detections, *more)


def leaves(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each value of a tree is that holds no others."""
    if isinstance(tree, dict | list) and tree:
        for key, inner in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(inner, (*place, key))
    else:
        yield place


def changed(value: Any) -> list[Any]:
    """A value in other ways."""
    if isinstance(value, str):
        last = "0" if value[-1:] != "0" else "1"
        return [f"{value}0", value[:-1], value[:-1] + last, value[:12] + "0" * (len(value) - 12)]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return [None if value else True, not value, "x"]
    return [value + 1, -value - 1, math.nextafter(value, 9e9), str(value), None]


@pytest.mark.slow
def test_every_changed_value_is_found(known: Path, tmp_path: Path) -> None:
    """Each value of a receipt, in several ways; and each value and part, left out."""
    whole = json.loads(known.read_text())
    before = receipt.parse(known.read_bytes(), "x")
    assert receipt_contradictions.contradictions(before) == []
    places = list(leaves(whole))
    assert len(places) > 100
    for place in [*places, *((name,) for name in whole)]:
        for change in (*changed(_at(whole, place)), KeyError):
            content = copy.deepcopy(whole)
            inner = _at(content, place[:-1])
            if change is KeyError:
                del inner[place[-1]]
            elif inner[place[-1]] == change and type(inner[place[-1]]) is type(change):
                continue
            else:
                inner[place[-1]] = change
            try:
                odd = receipt_contradictions.contradictions(
                    receipt.parse(json.dumps(content).encode(), "x")
                )
            except detmap.DetmapError:
                continue
            assert odd, (place, change)


def _at(tree: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def keys_of(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each key of a tree is, at any depth."""
    if not isinstance(tree, dict | list):
        return
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(tree, dict):
            yield (*place, key)
        yield from keys_of(value, (*place, key))


EVALUATED_AGAIN = ("metrics", "counts")
"""Parts whose keys are compared with those of the evaluation, by `verify` itself."""


@pytest.mark.slow
def test_every_missing_field_is_found_although_the_digest_fits(known: Path) -> None:
    whole = json.loads(known.read_text())
    places = list(keys_of(whole))
    assert len(places) > 150
    named = 0
    for place in places:
        content = copy.deepcopy(whole)
        del _at(content, place[:-1])[place[-1]]
        if place != ("digest",):
            content = receipt.sealed(content)
        try:
            found = receipt_contradictions.contradictions(
                receipt.parse(json.dumps(content).encode(), "x")
            )
        except detmap.DetmapError:
            continue
        removed = place == ("inputs", place[-1])  # `verify` evaluates with other inputs then
        if place[0] in EVALUATED_AGAIN or removed:
            continue
        assert found, place
        named += any(name == ".".join(place) for name, *_ in found)
    assert named > 50


@pytest.mark.slow
@pytest.mark.parametrize("place", [("metrics", "AP50"), ("counts", "tp"), ("inputs", "truth")])
def test_lost_fields_of_the_evaluation_are_found(known: Path, tmp_path: Path, place: Any) -> None:
    file = forged(known, tmp_path, lambda content: content[place[0]].pop(place[1]))
    assert verify(file).code in (1, 2)


def test_a_list_of_files_cannot_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    assert run("eval", VOC, TEXT, "--receipt", file).code == 0
    forged(file, tmp_path, lambda content: content["inputs"]["detections"].pop("members"))
    outcome = verify(file, VOC, TEXT)
    assert outcome.code == 1
    assert "inputs.detections.members: missing" in outcome.out


EVALUATED = ("metrics", "counts", "data", "per_class", "contents", "signature", "short", "notes")
"""Parts that the inputs decide, so that an edit with a digest that fits is found too."""


@pytest.mark.slow
def test_each_changed_number_is_found_although_the_digest_fits(known: Path, tmp_path: Path) -> None:
    whole = json.loads(known.read_text())
    rules = ("protocol", "iou"), ("protocol", "ap"), ("options",)
    file = tmp_path / "run.json"
    chosen = [
        place
        for place in leaves(whole)
        if place[0] in EVALUATED or place[:2] in rules or place[:1] in rules
        if place[0] != "notes" or place[-1] != 1  # texts may be different wording
    ]
    for k, place in enumerate(chosen):
        content = copy.deepcopy(whole)
        ways = [way for way in changed(_at(whole, place)) if way != _at(whole, place)]
        if place[0] == "options":  # these were not given
            ways = ["x"]
        _at(content, place[:-1])[place[-1]] = ways[k % len(ways)]
        file.write_text(json.dumps(receipt.sealed(content)))
        assert verify(file).code in (1, 2), (place, ways[k % len(ways)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", [("metrics", "AP"), ("inputs", "detections", "sha256"), ("per_class",), ("command", 0)]
)
def test_an_edit_is_reported_and_not_cited(known: Path, tmp_path: Path, place: Any) -> None:
    content = json.loads(known.read_text())
    value = _at(content, place)
    _at(content, place[:-1])[place[-1]] = (
        0.6 if isinstance(value, float) else value[:-1] + ("0" if value[-1] != "0" else "1")
    )
    file = tmp_path / "run.json"
    file.write_text(json.dumps(content))
    outcome = verify(file)
    assert outcome.code == 1
    assert f"{file}: digest: " in outcome.out
    assert (cite(file).code, cite(file).out) == (2, "")


def test_a_key_that_occurs_twice_is_refused(known: Path, tmp_path: Path) -> None:
    file, text = tmp_path / "run.json", known.read_text()
    for doubled in (
        text.replace("{", '{"metrics":{"AP":0.99,"AP50":0.999},', 1),
        text.replace('"metrics": {', '"metrics": {"AP": 0.99,'),
        text.replace('"signature"', '"signature": "forged", "signature"'),
    ):
        assert doubled != text
        file.write_text(doubled)
        for outcome in (verify(file), cite(file), run("explain", COCO, FIRST, "--receipt", file)):
            assert outcome.code == 2
            assert "occurs twice" in outcome.err


def test_the_same_bits_are_found_again(known: Path) -> None:
    outcome = verify(known, COCO, FIRST, "--threads", 1)
    assert outcome.code == 0
    assert "recomputed from the files, identical" in outcome.out
    assert ": coco-bbox.2|default|" in outcome.out


def test_a_receipt_with_an_earlier_signature_is_verified(known: Path, tmp_path: Path) -> None:
    content = json.loads(known.read_text())
    earlier = content["signature"].replace("|default|", "|stock|")
    assert verify(forged(known, tmp_path, lambda each: each.update(signature=earlier))).code == 0
    assert "identical" in run("explain", COCO, FIRST, "--signature", earlier).out
    assert receipt.short(earlier) == content["short"]


def test_the_same_run_has_the_same_receipt(known: Path, tmp_path: Path) -> None:
    again = tmp_path / "run.json"
    assert run("eval", COCO, FIRST, "--receipt", again, "--threads", 1).code == 0
    both = [json.loads(file.read_text()) for file in (known, again)]
    for content in both:
        del content["command"]
    assert both[0] == both[1]
    assert known.read_bytes() == receipt.parse(known.read_bytes(), "x").to_bytes()


def test_other_detections_are_told(known: Path) -> None:
    outcome = verify(known, COCO, OTHER)
    assert outcome.code == 1
    assert "detections: file changed: sha256" in outcome.out
    assert "AP50: 0.6059881102688345 then, 0.30652305480917197 now" in outcome.out
    assert "the class table has different numbers" in outcome.out


def test_a_rewritten_file_of_the_same_content_is_verified(known: Path, tmp_path: Path) -> None:
    file = tmp_path / "contours.json"
    file.write_text(json.dumps(json.loads(FIRST.read_text()), indent=2))
    outcome = verify(known, COCO, file)
    assert outcome.code == 0
    assert "detections: file changed" in outcome.err


def test_options_and_changes_are_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    options = ("-p", "voc2012", "--set", "iou.thresholds=[0.6]", "--classes", "circle,star")
    assert run("eval", VOC, TEXT, *options, "--receipt", file).code == 0
    outcome = verify(file, VOC, TEXT)
    assert outcome.code == 0
    assert "voc2012.3|iou.thresholds=[0.6]|" in outcome.out


def test_files_are_found_where_they_were(known: Path, tmp_path: Path) -> None:
    for path in (COCO, FIRST):
        shutil.copy(path, tmp_path)
    truth, found, file = tmp_path / COCO.name, tmp_path / FIRST.name, tmp_path / "run.json"
    words = ["detmap", "eval", str(truth), str(found)]
    forged(known, tmp_path, lambda content: content.update(command=words))
    assert run("verify", file).code == 0
    found.unlink()
    outcome = run("verify", file)
    assert outcome.code == 2
    assert "detections: 'contours.json' does not exist at its old path" in outcome.err


@pytest.mark.parametrize("name", ["signature", "short"])
def test_a_forged_signature_is_found_and_harmless(known: Path, tmp_path: Path, name: str) -> None:
    def change(content: Any) -> None:
        content[name] = "\x1b]0;x\x07" + content[name].replace("coco-bbox", "voc2007")

    file = forged(known, tmp_path, change)
    outcome = verify(file)
    assert outcome.code == 1
    assert f"{name}: " in outcome.out
    for each in (outcome, run("cite", file)):
        assert "\x1b" not in each.out


@pytest.mark.parametrize("limits", [[1, 10, 100, 100], [100, 10, 1]])
def test_a_protocol_in_another_spelling_is_found(known: Path, limits: list[int]) -> None:
    content = json.loads(known.read_text())
    content["protocol"]["limits"]["max_dets"] = limits
    odd = receipt.parse(json.dumps(receipt.sealed(content)).encode(), "x")
    names = {each for each, *_ in receipt_contradictions.contradictions(odd)}
    assert "protocol.limits.max_dets" in names


OPTIONS = ("--classes", "circle,star", "--unknown=drop", "--set", "limits.max_dets=[100,1]")


def test_contradicting_options_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "run.json"
    words = ["eval", str(COCO), str(FIRST), *OPTIONS, "--receipt", str(file)]
    monkeypatch.setattr("sys.argv", ["detmap", *words])
    assert run(*words).code == 0
    assert verify(file).code == 0
    whole = json.loads(file.read_text())
    for name, value in (("unknown", "error"), ("classes", ["star", "circle"])):
        content = copy.deepcopy(whole)
        content["options"][name] = value
        file.write_text(json.dumps(receipt.sealed(content)))
        outcome = verify(file)
        assert outcome.code == 1
        assert f"options.{name}: " in outcome.out
        assert cite(file).code == 2
    whole["command"][2:] = ["--no-such-option", "x"]  # of another version: not comparable
    file.write_text(json.dumps(receipt.sealed(whole)))
    assert verify(file).code == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.upper(), 0),
        (lambda text: text.replace("0.", "0.9"), 1),
        (lambda _: "an official result", 1),
    ],
)
def test_numbers_in_a_note_are_found(known: Path, tmp_path: Path, change: Any, code: int) -> None:
    def changed_note(content: Any) -> None:
        note = next(each for each in content["notes"] if "0." in each[1])
        note[1] = change(note[1])

    outcome = verify(forged(known, tmp_path, changed_note))
    assert outcome.code == code
    assert ("different numbers" in outcome.out) is bool(code)


def test_a_citation_needs_its_counts(known: Path, tmp_path: Path) -> None:
    file = forged(known, tmp_path, lambda content: content["counts"].pop("images"))
    outcome = run("cite", file)
    assert outcome.code == 2
    assert "counts: no images" in outcome.err


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("metrics"),
        lambda content: content.update(receipt=9),
        lambda content: content.update(per_class=content["per_class"][:12]),
        lambda content: content.update(data=content["data"] + "0"),
        lambda content: content["contents"].update(truth=""),
        lambda content: content["inputs"]["truth"].update(sha256=""),
        lambda content: content["inputs"]["truth"].update(bytes=-1),
        lambda content: content.update(receipt=[]),
        lambda content: content.update(protocol={}),
        lambda content: content["protocol"].update(iou=[1]),
        lambda content: content["protocol"]["iou"].update(thresholds="9:9:9"),
        lambda content: content.update(changes=[["iou.cap", "7"]]),
        lambda content: content.update(changes=[1]),
        lambda content: content.update(changes=[["a", "b", "c"]]),
        lambda content: content.update(changes=["abc"]),
        lambda content: content["options"].update(threads=3),
        lambda content: content["options"].update(truth_format="no such"),
        lambda content: content["inputs"].pop("truth"),
        lambda content: content.update(inputs={"truth": 1}),
        lambda content: content.update(command=[[]]),
        lambda content: content["options"].update(classes=7),
        lambda content: content["options"].update(fix={"a": 1}),
    ],
)
def test_a_forged_receipt_is_refused_in_words(known: Path, tmp_path: Path, change: Any) -> None:
    file = forged(known, tmp_path, change)
    for outcome in (verify(file), run("verify", file)):
        assert outcome.code == 2
        assert "detmap's fault" not in outcome.err
        assert "Traceback" not in outcome.err
        assert "unpack" not in outcome.err


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"receipt": 1}', "[" * 100_000])
def test_what_is_no_receipt(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    for words in (("verify", file), ("cite", file)):
        outcome = run(*words)
        assert outcome.code == 2
        assert "detmap's fault" not in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "part, change",
    {
        "data": lambda content: content.update(data="deadbeef0000"),
        "protocol.summary": lambda content: content["protocol"].update(summary="LVIS's winner"),
        "protocol.source": lambda content: content["protocol"].update(source="nowhere"),
        "environment.detmap": lambda content: content["environment"].update(detmap="9.9.9"),
        "proto": lambda content: content["protocol"]["iou"].update(cap=0.5),
        "state": lambda content: content.update(stock=False),
        "extra": lambda content: content.update(extra="LVIS's winner"),
        "inputs.extra": lambda content: content["inputs"].update(extra=content["inputs"]["truth"]),
        "inputs.truth.extra": lambda content: content["inputs"]["truth"].update(extra=1),
        "short": lambda content: content.update(short="lvis.2 000000/000000"),
        "signature": lambda content: content.update(signature="x"),
    }.items(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_contradictory_receipt(known: Path, tmp_path: Path, part: str, change: Any) -> None:
    file = forged(known, tmp_path, change)
    outcome = verify(file)
    assert outcome.code in (1, 2)
    assert f"{part}: {part}:" not in outcome.out
    assert "identical" not in outcome.out
    if outcome.code == 1:
        assert f"{file}: {part}: " in outcome.out
        assert "a receipt that contradicts itself in " in outcome.out
    cited = cite(file)
    assert (cited.code, cited.out) == (2, "")
    assert "is inconsistent in " in cited.err
    assert part in cited.err


def test_a_signature_with_another_digest_of_data(known: Path, tmp_path: Path) -> None:
    """It was told as "the same rows; another order of them"."""

    def change(content: Any) -> None:
        data = f"data:{content['data']}"
        content["signature"] = content["signature"].replace(data, "data:0123456789ab")

    outcome = verify(forged(known, tmp_path, change))
    assert outcome.code == 1
    assert "the same rows; a digest was changed" in outcome.out
    assert "another order" not in outcome.out


def test_what_the_inputs_do_not_give_is_not_cited(known: Path, tmp_path: Path) -> None:
    file = forged(known, tmp_path, lambda content: content["metrics"].update(AP=0.6))
    outcome = cite(file)
    assert (outcome.code, outcome.out) == (2, "")
    assert "its inputs give another result: an edit" in outcome.err
    assert "another truth" not in cite(known, COCO, OTHER).err
    assert "its inputs give another result: other detections" in cite(known, COCO, OTHER).err
    gone = cite(known, COCO, tmp_path / "absent.json")
    assert (gone.code, gone.out) == (2, "")
    assert "--unverified" in gone.err
    told = cite(file, COCO, FIRST, "--unverified")
    assert told.code == 0
    assert told.out.startswith("AP is 60.00 on 60 images")
    assert "(not verified)" in told.out.split("\n")[0]


def test_words_for_a_paper(known: Path, tmp_path: Path) -> None:
    outcome = cite(known)
    assert outcome.code == 0
    assert outcome.out.startswith("AP is 44.78 on 60 images with 299 objects of 6 classes")
    assert "coco-bbox.2 " in outcome.out
    assert [text.count(kind) for text in [outcome.out] for kind in ("@inpro", "@soft")] == [1, 1]
    assert run("cite", known, "-o", known).code == 2
    assert cite(known, COCO, FIRST, "-o", known).code == 2


@pytest.mark.slow
def test_a_changed_rule_takes_the_place_of_the_summary(tmp_path: Path) -> None:
    """The summary of voc2007 says "11-point AP at IoU 0.5", which neither is then."""
    file, page = tmp_path / "run.json", tmp_path / "page.html"
    for change in ("iou.thresholds=[0.6]", "ap.integrator=all_points"):
        changed = ("-p", "voc2007", "--set", change)
        told = run("eval", VOC, TEXT, *changed, "--receipt", file)
        cited = cite(file, VOC, TEXT).out
        assert run("report", VOC, TEXT, *changed, "-o", page).code == 0
        lead = page.read_text().split('class="lead">')[1].split("</p>")[0]
        shown = change if "[" in change else 'ap.integrator="all_points"'
        for text in (told.out.split("images")[0], cited.split("@")[0], unescape(lead)):
            assert f"voc2007 with {shown}" in text
            assert "IoU 0.5" not in text
            assert "11-point" not in text
    assert "PASCAL VOC 2007: 11-point" in run("eval", VOC, TEXT, "-p", "voc2007").out


def test_a_tool_is_cited_by_its_source(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    assert run("eval", VOC, TEXT, "-p", "ultralytics-8.4", "--receipt", file).code == 0
    outcome = cite(file, VOC, TEXT)
    assert "@misc{ultralytics-8.4," in outcome.out
    assert "ultralytics/ultralytics engine/validator.py" in outcome.out


def test_a_short_signature() -> None:
    whole = "coco-bbox.2|limits.max_dets=[1, 10, 300]|proto:162e893f053e|data:0d74dbda81f7|detmap:1"
    assert receipt.short(whole) == "coco-bbox.2 (limits.max_dets=[1, 10, 300]) 162e89/0d74db"


def test_pictures_of_a_folder_do_not_count(tmp_path: Path) -> None:
    shutil.copytree(TEXT, tmp_path / "found")
    before = receipt.digest_of(tmp_path / "found")
    (tmp_path / "found" / "preview.jpg").write_bytes(b"picture")
    assert receipt.digest_of(tmp_path / "found") == before
    (tmp_path / "found" / "more.txt").write_bytes(b"text")
    assert receipt.digest_of(tmp_path / "found") != before
