"""The table of what works together: its page, its keys, and what the features do."""

import re
from pathlib import Path

import pytest

import detmap
from detmap.core import protocol
from detmap.core.protocol.features import BOXES_ONLY, FEATURES, REFUSED, TOOLS, unsupported
from tests.support.feature_table import describe

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"


def test_the_page_has_the_table_of_the_code() -> None:
    assert (
        f"tests.support.feature_table -->\n{describe()}\n<!-- end of features" in PAGE.read_text()
    )


def test_each_row_is_a_key_with_legal_values() -> None:
    legal = {row.name: row.legal for row in protocol.table()}
    names = {key for each in FEATURES.values() for key in each.keys} | {*REFUSED}
    assert {name.partition("=")[0] for name in names} - {"operating"} <= legal.keys()
    pairs = [(key, value) for key, values in REFUSED.items() for value in values]
    pairs += [tuple(name.split("=")) for name in names if "=" in name]
    assert all(value in legal[key].removeprefix("one of ").split(", ") for key, value in pairs)


@pytest.mark.parametrize("name", ["coco-bbox", "voc2007", "voc2012", "lvis"])
def test_the_main_benchmarks_work_with_all(name: str) -> None:
    rules = protocol.load(name)
    assert not any(unsupported(rules, feature) for feature in FEATURES)
    assert rules.image_by_image()


VALUES = {
    "boxes.extent": "padded",
    "iou.absorb_from": "iou",
    "limits.scope": "dataset",
    "mean.undefined": "no_mean",
    "metrics": ["AP", "P"],
    "ranking.sort": "unstable",
    "ranking.ties": "first_seen",
    "scope.unknown": "add",
}


@pytest.mark.parametrize("key", VALUES)
@pytest.mark.parametrize("feature", FEATURES)
def test_a_refusal_names_the_key_and_its_value(feature: str, key: str) -> None:
    rules = protocol.load("coco-bbox").override({key: VALUES[key]})
    names = {key, f"{key}={VALUES[key]}", "operating" if key == "metrics" else key}
    refused = not names.isdisjoint(FEATURES[feature].keys)
    assert rules.supports(feature) is not refused
    if refused:
        text = "the metric P" if key == "metrics" else f"{key}={VALUES[key]}"
        with pytest.raises(detmap.ProtocolError, match=f"not available with .*{re.escape(text)}"):
            rules.require(feature)


def test_several_keys_are_named_at_once() -> None:
    rules = protocol.load("coco-bbox").override({"ap.sum": "pairwise", "metrics": ["P"]})
    with pytest.raises(detmap.ProtocolError) as error:
        rules.require("order of ties")
    assert error.value.where == "protocol coco-bbox: ap.sum, metrics"
    refused = "not available with ap.sum=pairwise, the metric P"
    assert error.value.what == f"another order of tied scores is {refused}"
    assert "coco-bbox or voc2012" in error.value.fix


def test_no_key_is_listed_twice() -> None:
    assert len(TOOLS) == len({*TOOLS})
    assert len(BOXES_ONLY) == len({*BOXES_ONLY})
