"""No reader of JSON takes one of two values of a key silently (RFC 8259)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.benchmarks.open_images import label_hierarchy
from detmap.core.adapters.joining import image_sizes
from detmap.core.base import unique_keys
from detmap.errors import DataError
from tests.support import builders as make
from tests.support.format_samples import SAMPLES

COCOS = ("coco", "roboflow", "rotated-predictions")


class Twice(dict[str, Any]):
    """An object that json.dumps writes with its last key twice."""

    def items(self) -> Any:
        pairs = list(super().items())
        return [*pairs, pairs[-1]]


def repeated(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Copies of a tree with a repeated key in the first object of each kind."""
    inner = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))[:1]
    if isinstance(tree, dict) and tree:
        yield Twice(tree)
    for key, value in inner:
        if isinstance(value, dict | list):
            for copy in repeated(value, (*above, key)):
                whole: Any = dict(tree) if isinstance(tree, dict) else list(tree)
                whole[key] = copy
                yield whole


def error_of(truth: Any, found: Any) -> str:
    """What is wrong with two files; nothing if they are read."""
    try:
        detmap.read_detections(found, detmap.read_truth(truth))
    except DataError as error:
        return error.what
    return ""


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if "parquet" not in kind])
def test_a_repeated_key_is_an_error(tmp_path: Path, kind: str) -> None:
    truth, found = SAMPLES[kind](tmp_path)
    files = [
        file
        for place in (truth, found)
        for file in (sorted(place.rglob("*.json*")) if place.is_dir() else [place])
    ]
    for file in [file for file in files if file.suffix in (".json", ".jsonl")][:2]:
        text = file.read_text()
        lines = text.splitlines() if file.suffix == ".jsonl" else [text]
        for copy in repeated(json.loads(lines[0])):
            file.write_text("\n".join([json.dumps(copy), *lines[1:]]))
            # COCO's reader leaves keys alone that it does not use
            assert error_of(truth, found) == "occurs twice" or (
                kind in COCOS or file.name in ("meta.json", "notes.json")
            )
        file.write_text(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1,\n "b": {"c": 2,\n "d": 3, "c": 4}}', r": line 3, b\.c"),
        ('[{"a": 1}, {"a": [{"x": 1}, {"y": 1, "\\u0079": 2}]}]', r": line 1, \[1\]\.a\[1\]\.y"),
        ('{"}": "{\\"", "k": ["]", {}],\n"}": 1}', r": line 2, }"),
    ],
)
def test_the_error_has_line_and_place(text: str, where: str) -> None:
    with pytest.raises(DataError, match=rf"file{where}: occurs twice"):
        unique_keys.require(text.encode(), "file")


@pytest.mark.parametrize("text", ["", "{", "[1, 2", '{"a": 1, "a": }', "[" * 100_000, b"\xff\xfe"])
def test_other_errors_are_left_to_the_decoder(text: str | bytes) -> None:
    unique_keys.require(text, "file")


def test_files_beside_the_truth_are_checked_too(tmp_path: Path) -> None:
    sizes = '{"images": [{"file_name": "a.jpg", "width": 1, "width": 2, "height": 3}]}'
    with pytest.raises(DataError, match="width: occurs twice"):
        image_sizes.from_path(make.write(tmp_path / "sizes.json", sizes), [("a",)])
    tree = '{"LabelName": "root", "Subcategory": [], "Subcategory": []}'
    with pytest.raises(DataError, match="Subcategory: occurs twice"):
        label_hierarchy.read_hierarchy(make.write(tmp_path / "hierarchy.json", tree))
    names = make.write(tmp_path / "names.json", '{"0": "cat", "0": "dog"}')
    plain = SAMPLES["coco"](tmp_path)
    table = detmap.read_truth(plain[0])
    with pytest.raises(DataError, match="line 1, 0: occurs twice"):
        detmap.read_detections(plain[1], table, class_names=names)
