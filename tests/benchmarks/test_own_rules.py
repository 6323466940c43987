"""What every rule of a benchmark's own offers and refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.cli.dispatch import dispatch
from detmap.core.matching import selected_classes
from detmap.core.protocol.benchmark_rules import RULES
from detmap.core.protocol.protocol_digest import protocol_digest
from tests.benchmarks import test_cgf1, test_froc, test_kitti

Data = tuple[Any, Any]


def data(name: str, folder: Path) -> Data:
    """Small data of a protocol."""
    if name == "kitti":
        return test_kitti.tables(3)
    if name == "cgf1":
        return test_cgf1.pairs(folder)
    if name == "froc-luna16":
        test_froc.spheres(1, folder)
        return str(folder / "annotations.csv"), str(folder / "results.csv")
    truth, detections = test_kitti.tables(4)
    return truth, detections


PROTOCOLS = ("kitti", "froc-luna16", "froc-boxes", "cgf1", "scoreless")


def test_every_rule_has_a_protocol() -> None:
    # test_coco_like.py, test_open_images_imagenet_video.py
    elsewhere = {"matching", "wholebody", "motion"}
    rules = {detmap.load_protocol(name).evaluation.rule for name in PROTOCOLS}
    assert rules | elsewhere == set(RULES)


@pytest.fixture(params=PROTOCOLS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Data]:
    return request.param, data(request.param, tmp_path)


@pytest.mark.slow
def test_text_json_latex_and_selections(case: tuple[str, Data]) -> None:
    name, tables = case
    result: Any = detmap.evaluate(*tables, name)
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["metrics"].keys() == (
        result.metrics.keys()
    )
    from detmap.core.output import formats

    assert "\\begin" in formats.latex(result.tables(per_class=True))
    assert name in str(result)
    assert result._repr_html_().startswith("<")
    ids = result.truth.images.ids
    whole = result.select(ids)
    assert list(map(str, whole.metrics.values())) == list(map(str, result.metrics.values()))
    assert whole.signature == result.signature
    parts = result.slices({"first": ids[:1], "rest": ids[1:]})
    assert parts["first"].counts()["images"] == 1
    assert parts["first"].signature != result.signature


def test_what_needs_matches_refuses_by_name(case: tuple[str, Data]) -> None:
    name, tables = case
    rule = detmap.load_protocol(name).evaluation.rule
    result: Any = detmap.evaluate(*tables, name)
    calls: dict[str, Callable[[], Any]] = {
        "match": lambda: detmap.match(*tables, name),
        "compare": lambda: detmap.compare(tables[0], tables[1], tables[1], protocol=name),
        "diagnose": lambda: detmap.diagnose(*tables, name),
        "Evaluator": lambda: detmap.Evaluator(name, truth=result.truth),
        "ties": lambda: result.ties(),
        "curve": lambda: result.curve("x"),
        "operating_point": lambda: result.operating_point(0.5),
        "per_image": lambda: result.per_image(),
    }
    for call in calls.values():
        with pytest.raises(detmap.DetmapError, match=rule):
            call()


def test_keys_that_a_rule_does_not_read_are_refused(case: tuple[str, Data]) -> None:
    name, tables = case
    key = "operating.score" if name == "scoreless" else "ap.integrator"
    value: Any = 0.5 if name == "scoreless" else "step"
    with pytest.raises(detmap.ProtocolError, match=f"does not read {key}"):
        detmap.evaluate(*tables, name, settings={key: value})


UNREAD = {
    "kitti": {"iou.thresholds": [0.3], "boxes.extent": "inclusive", "limits.max_dets": [1]},
    "froc-luna16": {"iou.thresholds": [0.3], "iou.cap": 0.5, "boxes.extent": "inclusive",
                    "ranking.sort": "reversed"},
    "froc-boxes": {"froc.most_marks": 5, "limits.max_dets": [1], "iou.epsilon": 1e-6},
    "cgf1": {"iou.comparison": ">", "limits.max_dets": [1], "froc.rates": [1]},
    "scoreless": {"limits.max_dets": [1], "detections.above": [0.3], "ranking.ties": "input",
                  "detections.score_scale": "min_max"},
}  # fmt: skip


def test_each_rule_refuses_what_has_no_meaning_there(case: tuple[str, Data]) -> None:
    name, tables = case
    for key, value in UNREAD[name].items():
        with pytest.raises(detmap.ProtocolError, match=f"does not read {key}"):
            detmap.evaluate(*tables, name, settings={key: value})


def test_no_note_speaks_of_pixels_where_there_are_none(tmp_path: Path) -> None:
    test_froc.spheres(1, tmp_path)
    files = tmp_path / "annotations.csv", tmp_path / "results.csv"
    marks = files[1].read_text().splitlines()
    series, _, *rest = marks[1].split(",")
    files[1].write_text("\n".join([*marks, ",".join((series, "-500", *rest))]) + "\n")
    assert "box-outside" not in {note.code for note in detmap.evaluate(*files, "froc-luna16").notes}


@pytest.mark.slow
def test_metrics_are_chosen_by_name(case: tuple[str, Data]) -> None:
    name, tables = case
    first = next(iter(detmap.evaluate(*tables, name).metrics))
    chosen = detmap.evaluate(*tables, name, settings={"metrics": [first]})
    assert list(chosen.metrics) == [first]
    with pytest.raises(detmap.ProtocolError, match="no metric 'nonsense'"):
        detmap.evaluate(*tables, name, settings={"metrics": ["nonsense"]})


def test_the_rule_and_its_keys_are_signed() -> None:
    for name, settings in (
        ("kitti", {"kitti.height": "<="}),
        ("kitti", {"kitti.neighbors": {}}),
        ("froc-boxes", {"froc.lookup": "first"}),
        ("froc-boxes", {"froc.rates": [1]}),
        ("froc-boxes", {"froc.mean_up_to": 2}),
        ("froc-luna16", {"froc.most_marks": 0}),
        ("cgf1", {"cgf1.score": 0.4}),
        ("coco-bbox", {"evaluation.rule": "scoreless"}),
        ("coco-bbox", {"iou.classes": {"cat": 0.7}}),
    ):
        protocol = detmap.load_protocol(name)
        assert protocol_digest(protocol) != protocol_digest(protocol.override(settings))


def test_the_attributes_of_detections_are_signed() -> None:
    truth, detections = test_kitti.tables(3)
    from dataclasses import replace

    other = replace(detections, attributes={"alpha": detections.attributes["alpha"] + 1})
    signatures = {detmap.evaluate(truth, d, "kitti").signature for d in (detections, other)}
    assert len(signatures) == 2


COMMANDS = (
    ("eval", "--ties"),
    ("eval", "--best-f1"),
    ("eval", "--per-image", "images.csv"),
    ("diagnose",),
    ("report", "-o", "report.html"),
    ("match", "-o", "part.npz"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words))
def test_commands_refuse_by_name(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = test_cgf1.pairs(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert dispatch([words[0], *paths, "-p", "cgf1", *words[1:]]) == 2
    error = capsys.readouterr().err
    assert "cgf1" in error
    assert "internal error" not in error
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.slow
def test_every_rule_has_intervals_and_receipts(
    case: tuple[str, Data], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, tables = case
    result: Any = detmap.evaluate(*tables, name)
    made = result.intervals()
    assert made.metrics.keys() == result.metrics.keys()
    assert {one.value for one in made.metrics.values() if one.value == one.value} <= set(
        result.metrics.values()
    )
    if not isinstance(tables[0], str):
        return
    words, path = [*map(str, tables), "-p", name], str(tmp_path / "receipt.json")
    assert dispatch(["eval", *words, "--ci", "--receipt", path]) == 0
    inputs = ["--truth", words[0], "--detections", words[1]]
    assert dispatch(["verify", path, *inputs]) == 0
    assert dispatch(["cite", path, *inputs]) == 0
    assert f"under the protocol {name}" in capsys.readouterr().out
    found = Path(tables[1])
    found.write_text(found.read_text().replace("0.", "0.1", 1))
    assert dispatch(["verify", path, *inputs]) == 1


def test_explain_and_compare_refuse(tmp_path: Path, capsys: Any) -> None:
    truth, found = test_cgf1.pairs(tmp_path)
    for words in (
        ["compare", truth, found, found, "-p", "cgf1", "--names", "a,b"],
        ["explain", truth, found, "--from", "cgf1", "--to", "coco-bbox"],
    ):
        assert dispatch(words) == 2, words
        error = capsys.readouterr().err
        assert "cgf1" in error, error
        assert "internal error" not in error, error


def test_files_in_other_formats_are_read_by_the_preferred_reader(tmp_path: Path) -> None:
    test_froc.spheres(2, tmp_path)
    truth = detmap.read_truth(tmp_path / "annotations.csv", format="luna16")
    assert truth.role("excluded").any()
    assert np.isin(["x", "y", "z", "diameter"], list(truth.attributes)).all()


def test_a_selection_of_all_classes_has_no_note_and_groups_keep_their_part() -> None:
    tables = test_kitti.tables(2)
    motion = detmap.load_protocol("imagenet-vid")
    for classes, noted in ((["Car", "Van", "Pedestrian"], 0), (["Car", "Van"], 1)):
        truth, *_ = selected_classes.select((*tables, motion), None, classes)
        assert sum(note.code == "classes-compared" for note in truth.notes) == noted
    groups = {"cars": ["Car", "Van"], "people": ["Pedestrian"], "vans": ["Van"]}
    grouped = detmap.load_protocol("coco-bbox").override({"groups": groups})
    _, _, protocol = selected_classes.select((*tables, grouped), None, ["Car", "Pedestrian"])
    kept = {group.name: group.classes for group in protocol.groups}
    assert kept == {"cars": ("Car",), "people": ("Pedestrian",)}
