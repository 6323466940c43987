"""Hostile answers of language models: repeated characters, cut text, doubled keys."""

from contextlib import suppress
from typing import Any

import pytest

from detmap.integrations.inputs import json_boxes
from detmap.integrations.lmms import parse

UNITS_OF_TEXT = (
    *("{", "[", '"', "\\", "```", '{"', '["', '{"a":', "[1,", '["",', "{}", "[]", '{"a"}', "[1]"),
    *("{ ", "[ ", " ", "\n", "{\n", "(1,2)", "bbox:", '"{', '{"\\', "[-", '{"a":1,', "[null,"),
)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS_OF_TEXT)
def test_a_repeated_text_is_read_a_bounded_number_of_times(unit: str, monkeypatch: Any) -> None:
    read = 0
    decoded = json_boxes._decoded

    def counting(text: str, start: int, cut: int) -> Any:
        nonlocal read
        read += start + 1  # what a decoder's error looks at: the text before it
        return decoded(text, start, cut)

    monkeypatch.setattr(json_boxes, "_decoded", counting)
    text = unit * (40_000 // len(unit))
    with suppress(ValueError):
        parse(text, (640, 480), unit="pixels")
    assert read <= (json_boxes.STEP + 1) * len(text)


def test_a_cut_text_gives_the_same_boxes_and_places() -> None:
    entry = '[{"bbox_2d": [1, 2, 3, 4], "label": "cat"}]'
    for before in ("", "[x] " * 5000, "{a} " * 5000):
        assert len(parse(before + entry, (640, 480), unit="pixels")) == 1
        with pytest.raises(ValueError, match=rf"character {len(before) + len(entry) - 1} of"):
            parse(before + entry[:-1], (640, 480), unit="pixels")


@pytest.mark.parametrize("key", ["bbox_2d", "label", "other"])
def test_a_key_twice_in_an_entry_is_an_error(key: str) -> None:
    fields = ['"bbox_2d": [1, 2, 3, 4]', '"label": "cat"', '"other": 1', f'"{key}": 2']
    with pytest.raises(ValueError, match=r"entry 0: .* has a key twice"):
        parse(f"[{{{', '.join(fields)}}}]", (640, 480), unit="pixels")
