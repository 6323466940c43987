"""Protocols: what is legal, what is refused and how, and what the signature says of a change."""

import copy
import json
import math
import pickle
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.cocoeval import Params

import detmap
from detmap.core import protocol
from detmap.core.base.resources import folder
from detmap.core.protocol import Grid, Subset
from detmap.core.protocol.protocol_digest import protocol_digest
from detmap.core.results.signature import signature
from detmap.errors import ProtocolError
from tests.support.tier import drawn

COCO = protocol.load("coco-bbox")


def test_grids_have_the_bits_of_their_references() -> None:
    official = Params(iouType="bbox")
    assert (COCO.thresholds() == official.iouThrs).all()
    assert (COCO.ap.grid.values() == official.recThrs).all()
    assert COCO.ap.epsilon == np.spacing(1)
    assert COCO.iou.cap == 1 - 1e-10
    assert (Grid("arange 0:0.1:1").values() == np.arange(0.0, 1.1, 0.1)).all()
    assert Grid("matlab 0:0.1:1").values()[[3, 6, 7]].tolist() == [0.30000000000000004, 0.6, 0.7]


def test_a_change_shows_in_the_signature_and_in_its_digest() -> None:
    changed = COCO.override({"limits.max_dets": "[1, 10, 300]"})
    line = signature(changed, "data")
    assert line.startswith("coco-bbox.2|limits.max_dets=[1,10,300]|proto:")
    assert protocol_digest(changed) != protocol_digest(COCO)
    assert changed.override({"limits.max_dets": [1, 10, 100]}) == COCO


def test_removed_keys_are_listed_in_the_order_of_the_protocol() -> None:
    """Their order was that of a set, so the signature differed from run to run."""
    changed = COCO.override({"subsets": {"all": {"area": [0, 1e10]}}, "metrics": ["AP"]})
    assert [key for key, value in changed.changes if value == "null"] == [
        "subsets.small.area",
        "subsets.medium.area",
        "subsets.large.area",
    ]


@pytest.mark.parametrize(
    "key, value, says",
    [
        ("limits.max_det", "[1]", "did you mean 'limits.max_dets'"),
        ("limits", "3", "not a table"),
        ("limits.max_dets.x", "1", "unknown key"),
        ("limits.max_dets", "[0]", "positive whole numbers"),
        ("limits.max_dets", "ten", "positive whole numbers"),
        ("limits.max_dets", "[true]", "positive whole numbers"),
        ("iou.thresholds", "[0.5, 0.4]", "ascending numbers"),
        ("iou.thresholds", "[0]", "(0, 1]"),
        ("iou.thresholds", "0.5:0:0.9", "start:step:stop"),
        ("iou.thresholds", "0.5:0.05:1.5", "(0, 1]"),
        ("iou.thresholds", "0.01:0.01:1", "at most 64"),
        ("iou.thresholds", "[nan]", "ascending numbers"),
        ("iou.comparison", "==", "one of >=, >"),
        ("ap.integrator", "no rule", "eleven_point, all_points, grid_envelope, step"),
        ("ap.epsilon", "-1", "a number in [0,"),
        ("subsets.tiny.area", "[9, 1]", "low <= high"),
        ("subsets.tiny.area", "[1]", "low <= high"),
        ("subsets.tiny.area", "[nan, 1]", "low <= high"),
        ("subsets.tiny.area", "[inf, inf]", "low <= high"),
        ("subsets.tiny", "[0, 1]", "low <= high"),
        ("subsets", "{}", "tables of ranges"),
        ("subsets.a b.area", "[0, 1]", "tables of ranges"),
        ("areas.tiny", "[0, 256]", "write subsets.tiny.area"),
        ("areas", "{}", "areas is now subsets"),
        ("matching.crowd", "ignore", "write matching.neutral.crowd"),
        ("matching.difficult", "ignore", "write matching.neutral.difficult"),
        ("matching.neutral.crowd", "zone", "one of count, ignore, absorb"),
        ("groups.pets", "cat", '"labelled" or a list'),
        ("iou.thresholds", "0.5:inf:1", "start:step:stop"),
        ("iou.thresholds", "0.\u0665:0.1:1", "start:step:stop"),
        ("iou.thresholds", "[0.5, nan]", "ascending numbers"),
        ("metrics", "['AP\u0665\u0660']", "no metric 'AP\u0665\u0660'"),
        ("metrics", "['AP@area']", "write @subset"),
        ("metrics", "['AP@max_dets']", "write AP@limit"),
        ("boxes.area", "1.5", "a number in [0, 1]"),
        ("iou.absorb_from", "masks", "one of boxes, iou"),
        ("metrics", "['APs', 'APx']", "no subset or group 'x'"),
        ("limits.order", "input", "one limit"),
        ("limits.max_dets", "9" * 5000, "positive whole numbers"),
        ("limits.max_dets", "0x" + "f" * 5000, "positive whole numbers"),
        ("mean.undefined", "drop", "one of skip, zero, one"),
        ("metrics", "[]", "metric names"),
        ("version", "2", "identifies the protocol"),
    ],
)
def test_what_is_refused_says_what_is_legal(key: str, value: str, says: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        COCO.override({key: value})
    assert says in str(caught.value)
    assert key.split(".")[0] in str(caught.value)


@pytest.mark.parametrize(("given", "meant"), [("voc07", "voc2007"), ("coco-bb", "coco-bbox")])
def test_an_unknown_protocol_gets_a_suggestion(given: str, meant: str) -> None:
    with pytest.raises(ProtocolError, match=f"did you mean '{meant}'"):
        protocol.load(given)


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    text = (Path(folder("configs")) / "voc2012.toml").read_text()
    own = tmp_path / "mine.toml"
    own.write_text(text.replace("[0.5]", "[0.4]"))
    loaded = protocol.load(own)
    assert loaded.thresholds().tolist() == [0.4]
    assert "|custom|" in signature(loaded, "data")
    assert '|mean.undefined="zero"|' in signature(
        loaded.override({"mean.undefined": "zero"}), "data"
    )
    based = 'based_on = "voc2012"\n'
    for wrong, says in (
        (text + "\n[extra]\nkey = 1\n", "mine.toml: extra"),
        (text.replace('undefined = "skip"', ""), "mean.undefined: missing"),
        ("not = = toml", "not TOML"),
        ('based_on = "yolov6"\n', "based_on: no protocol"),
        (based + "version = 2.0\n", r"2\.0 is not legal"),
        (based + 'name = "a|b"\n', r"text without \|"),  # it would part the signature
    ):
        own.write_text(wrong)
        with pytest.raises(ProtocolError, match=says):
            protocol.load(own)


def test_shipped_protocols_are_loaded_once_and_own_files_each_time(tmp_path: Path) -> None:
    assert protocol.load("voc2012") is protocol.load("voc2012")
    own = tmp_path / "own.toml"
    for epsilon in (0.0, 0.25):
        own.write_text(f'based_on = "coco-bbox"\nname = "own"\niou.epsilon = {epsilon}\n')
        assert protocol.load(own).iou.epsilon == epsilon
    assert protocol.load("coco-bbox").iou.epsilon == 0.0


def test_metric_rows_follow_the_protocol() -> None:
    names = [row.name for row in COCO.rows()[0]]
    assert " ".join(names) == "AP AP50 AP75 APs APm APl AR1 AR10 AR100 ARs ARm ARl"
    changed = COCO.override(
        {
            "limits.max_dets": [5, 300],
            "subsets": {"all": {"area": [0, 9]}, "tiny": {"area": [0, 3]}},
            "iou.thresholds": [0.5],
        }
    )
    rows, left_out = changed.rows()
    assert [row.name for row in rows] == ["AP", "AP50", "AP-tiny", "AR5", "AR300", "AR-tiny"]
    assert left_out == ["AP75"]
    voc = protocol.load("voc2007")
    assert [row.name for row in voc.rows()[0]] == ["mAP"]
    assert [row.name for row in voc.override({"iou.thresholds": "0.5:0.05:0.95"}).rows()[0]] == [
        "AP",
        "AP50",
        "AP75",
    ]
    with pytest.raises(ProtocolError, match="no metric '!'"):
        COCO.override({"metrics": ["!"]})


# ---- the API with what is no protocol and no setting


@pytest.mark.parametrize(
    "wanted", [5, None, ["voc2007"], b"voc2007", "a\0b", "no/such.toml", "x" * 5000]
)
def test_what_is_no_protocol_is_refused(wanted: Any) -> None:
    with pytest.raises(ProtocolError, match=r"protocol|cannot be read"):
        protocol.load(wanted)


@pytest.mark.parametrize("settings", ["x", 5, ["iou.cap=1"]])
def test_settings_that_are_no_table_are_refused(settings: Any) -> None:
    with pytest.raises(ProtocolError, match="is no table of settings"):
        COCO.override(settings)


@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 5000])
def test_absurd_integers_are_refused_in_few_characters(digits: str, tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    text = (Path(folder("configs")) / "coco-bbox.toml").read_text()
    own.write_text(text.replace("[1, 10, 100]", digits))
    with pytest.raises(ProtocolError) as caught:
        protocol.load(own)
    assert len(str(caught.value)) < 400


@pytest.mark.slow
def test_absurd_values_of_settings_are_refused_in_few_characters() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (10**6000, [[0.5] * 200] * 200, endless, "x" * 10**6, {"a": {"b": 10**6000}}):
        for key in ("limits.max_dets", "iou.thresholds", "metrics", "subsets", "groups.a"):
            with pytest.raises(ProtocolError) as caught:
                COCO.override({key: value})
            assert len(str(caught.value)) < 500


@pytest.mark.parametrize("iou", ["x", float("nan"), None, True, 0.52, float("inf")])
def test_a_curve_at_an_iou_that_is_none_is_refused(iou: Any) -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    result = detmap.evaluate(truth, found)
    assert result.curve("1", 0.5)[0].tolist() == [1.0]
    with pytest.raises(ProtocolError, match=r"is not among iou\.thresholds"):
        result.curve("1", iou)
    with pytest.raises(ProtocolError, match="no subset 'tiny'"):
        result.curve("1", subset="tiny")
    with pytest.raises(ProtocolError, match="max_dets -1 is not a valid limit"):
        result.curve("1", max_dets=-1)


def test_a_row_may_name_its_place() -> None:
    names = ["APs", "AP75-tiny", "APr", "AR@10", "ARs@100", "AP50-pets"]
    groups = {"r": "labelled", "pets": ["cat"]}
    settings = {"subsets.tiny.area": [0, 9], "groups": groups, "metrics": names}
    rows, left_out = COCO.override(settings).rows()
    assert [row.name for row in rows] == names
    assert not left_out


def test_rows_at_limits_that_are_not_evaluated_are_left_out() -> None:
    rows, left_out = COCO.override({"metrics": ["AR@300", "AR@10", "AP33"]}).rows()
    assert [row.name for row in rows] == ["AR@10"]
    assert left_out == ["AR@300", "AP33"]


def test_a_group_and_a_subset_of_one_name_are_refused() -> None:
    settings = {"subsets.pets.area": [0, 9], "groups.pets": ["cat"]}
    with pytest.raises(ProtocolError, match="-pets names both a subset and a group"):
        COCO.override(settings)


def test_no_limit_is_one_number() -> None:
    voc = protocol.load("voc2007")
    assert voc.max_dets() == (protocol.NO_LIMIT,)
    assert voc.rows()[0][0].max_dets == protocol.NO_LIMIT
    assert voc.to_dict()["limits"]["max_dets"] == []


def _with(table: str, **values: Any) -> dict[str, Any]:
    return {table: replace(getattr(protocol.load("coco-bbox"), table), **values)}


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("iou.thresholds", _with("iou", thresholds=Grid(tuple(np.linspace(0.1, 0.9, 70))))),
        ("iou.thresholds", _with("iou", thresholds=Grid((0.9, 0.5)))),
        ("iou.cap", _with("iou", cap=float("nan"))),
        ("iou.sigmas", _with("iou", sigmas=[1.0])),
        ("limits.max_dets", _with("limits", max_dets=(-5,))),
        ("limits.max_dets", _with("limits", max_dets=(100, 1))),
        ("limits.order", _with("limits", order="input")),
        ("matching.rule", _with("matching", rule="any")),
        ("subsets", {"subsets": ()}),
        ("subsets", {"subsets": ("all",)}),
        ("subsets", {"subsets": tuple(Subset(f"s{i}", ()) for i in range(70))}),
        ("subsets", {"subsets": (Subset("all", ()), Subset("all", ()))}),
        ("metrics", {"metrics": ("AP", "x")}),
        ("limits", {"limits": None}),
    ],
)
def test_a_protocol_checks_itself_whoever_makes_it(key: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as refused:
        replace(protocol.load("coco-bbox"), **changes)
    assert refused.value.where == key


def test_a_protocol_that_was_pickled_or_copied_is_checked_like_any() -> None:
    """Once it was put together again without a look."""
    make, (kind, *values) = COCO.__reduce__()
    columns = dict(zip([each.name for each in fields(COCO)], values, strict=True))
    forged = {**columns, "limits": replace(COCO.limits, max_dets=(-5,))}
    with pytest.raises(ProtocolError, match=r"limits\.max_dets"):
        make(kind, *forged.values())
    again = pickle.loads(pickle.dumps(COCO.override({"limits.max_dets": [7]})))
    assert again == COCO.override({"limits.max_dets": [7]})
    assert copy.copy(COCO) is copy.deepcopy(COCO) is COCO


@pytest.mark.parametrize("name", protocol.names())
def test_a_protocol_of_the_same_values_is_made(name: str) -> None:
    stock = protocol.load(name)
    assert replace(stock) == stock


def test_keys_that_came_later_leave_the_digests_as_they_were() -> None:
    found = {name: protocol_digest(protocol.load(name)) for name in ("coco-bbox", "lvis")}
    assert found == {"coco-bbox": "162e893f053e", "lvis": "7a1c851e1fd6"}


def test_a_file_may_be_based_on_a_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    head = 'name = "mine"\nversion = 1\nsummary = "s"\nsource = "x.py"\n'
    own.write_text(
        head + 'based_on = "yolov5"\n[limits]\nmax_dets = [7]\n[subsets.big]\narea = [9, 10]'
    )
    mine, base = protocol.load(own), protocol.load("yolov5")
    assert mine.limits == replace(base.limits, max_dets=(7,))
    assert [subset.name for subset in mine.subsets] == ["big"]
    assert mine.ap == base.ap


def test_a_row_may_have_a_name_of_its_own() -> None:
    rows, _ = COCO.override({"metrics": ["mAP50: AP50", "AP"]}).rows()
    assert [(row.name, row.iou) for row in rows] == [("mAP50", 0.5), ("AP", None)]


NO_ROWS = "a b: AP;x: AP@subset;x: y: AP;: AP;AP@subset@group;APss;AP@5x;ap;AP50@;mAP50;APs@subset"
NO_LIMITS = "a*b*: AR@max_dets;mar_*: AR;mar: AR@max_dets;x: y: AR"


@pytest.mark.parametrize("text", f"{NO_ROWS};{NO_LIMITS}".split(";"))
def test_what_is_no_row_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match=r"no metric|no subset or group"):
        COCO.override({"metrics": [text]})


@pytest.mark.parametrize("limits", [[1, 10, 100], [2, 5, 50], [7]], ids=str)
def test_torchmetrics_has_a_row_for_every_limit(limits: list[int]) -> None:
    rules = protocol.load("torchmetrics").override({"limits.max_dets": limits})
    rows = [row.name for row in rules.rows()[0]]
    numbered = [each for each in rows if each[-1].isdigit() and each.startswith("mar")]
    assert numbered == [f"mar_{limit}" for limit in limits]
    assert {"map", "map_small", "mar_large"} <= set(rows)


def test_grids_as_tools_write_them() -> None:
    assert Grid("decimal 0.5:0.05:0.95").values().tolist() == [x / 100 for x in range(50, 100, 5)]
    single = Grid("float32 0:0.01:1").values()
    assert (single.astype(np.float32) == single).all()
    plain = np.linspace(0, 1, 101).astype(np.float32)
    assert int((single != plain).sum()) == 20  # torch.linspace(0, 1, 101)
    assert (Grid("float32 0.5:0.05:0.95").values() == np.linspace(0.5, 0.95, 10, dtype="f4")).all()


ROWS = ("AP", "AP50", "AP75", "mAP", "AR@subset@max_dets", "AR@max_dets", "AR10", "AP@subset")
ROWS += ("AP50: AP75", "AP: AP50", "AR10: AR", "AR@10", "AR-s110: AP", "APs: AP")

CLASHES: dict[str, dict[str, Any]] = {
    "AP50": {"metrics": ["AP50", "AP50: AP75"]},
    "AP": {"metrics": ["AP: AP50", "AP"]},
    "AR-s110": {
        "subsets": {"all": {}, "s": {"area": [0, 9]}, "s1": {"area": [0, 1]}},
        "limits.max_dets": [10, 110],
        "metrics": ["AR@subset@max_dets"],
    },
}


@pytest.mark.parametrize("name", CLASHES)
def test_two_rows_of_one_name_are_refused(name: str) -> None:
    with pytest.raises(ProtocolError, match=f"two numbers would be called {name} "):
        COCO.override(CLASHES[name])


@settings(max_examples=drawn(100))
@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=6), st.sampled_from(["s", "s1", "t"]))
def test_drawn_rows_have_names_of_their_own_or_are_refused(rows: list[str], subset: str) -> None:
    changes = {"subsets": {"all": {}, "s": {"area": [0, 9]}, subset: {"area": [0, 1]}}}
    try:
        rules = COCO.override(changes | {"limits.max_dets": [10, 110], "metrics": rows})
    except ProtocolError:
        return
    found, _ = rules.rows()
    assert len({row.name for row in found}) == len(found)


def test_a_row_that_is_asked_for_twice_is_one_row() -> None:
    assert len(COCO.override({"metrics": ["AP50", "AP50", "mAP"]}).rows()[0]) == 3


def test_a_setting_with_a_line_end_is_one_setting() -> None:
    with pytest.raises(ProtocolError, match="is not legal"):
        COCO.override({"limits.max_dets": "[5]\niou.cap=0.1"})
    assert COCO.override({"limits.max_dets": "[\n5]"}).max_dets() == (5,)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('based_on = "voc2012"\nname = "own"\n', encoding="utf-8-sig")
    assert detmap.load_protocol(path).name == "own"


@pytest.mark.parametrize("asked", [["AP77"], ["AR@7", "AP33"]])
def test_a_protocol_without_a_metric_that_it_evaluates_is_refused(asked: list[str]) -> None:
    with pytest.raises(ProtocolError, match=f"no metric is left: .* {', '.join(asked)} is not"):
        COCO.override({"metrics": asked}).rows()
    rows, left_out = COCO.override({"metrics": [*asked, "AP50"]}).rows()
    assert ([row.name for row in rows], left_out) == (["AP50"], asked)


def test_a_subset_that_is_not_legal_is_named() -> None:
    with pytest.raises(ProtocolError, match=r"^settings: subsets\.tiny: .*256.* is not legal"):
        COCO.override({"subsets.tiny.area": [256, 0]})
    with pytest.raises(ProtocolError, match=r"^settings: limits\.max_dets: \[1\.0\] is not legal"):
        COCO.override({"limits.max_dets": [1.0]})


def test_an_open_range_is_legal_in_json() -> None:
    rules = COCO.override({"subsets.tall.height": [50, math.inf]})
    text = json.dumps(rules.to_dict(), allow_nan=False)
    assert '"tall": {"height": [50.0, "inf"]}' in text
    assert protocol.from_dict(json.loads(text), "test").subsets == rules.subsets
    assert COCO.override({"subsets.tall.height": "[50, inf]"}).subsets == rules.subsets
