"""The notes of parts add up to those of one run, wherever images were split."""

import ast
import json
import random
from functools import reduce
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap import DataError, Matches, Note
from detmap.core.streaming.merging import merge_files
from detmap.core.tables.notes import listed_names, merged, summed
from tests.support.package_source import MODULES
from tests.support.tier import drawn

Facts = list[tuple[str, int]]
"""Of each image: the names that it mentions, and how many records do."""
RULES: dict[str, dict[str, Any]] = {
    "coco-bbox": {},
    "lvis": {},
    "voc2012": {"matching.neutral.difficult": "ignore"},
    "coco-bbox/floor": {"detections.above": [0.35]},
    "coco-bbox/input": {"limits.order": "input", "limits.max_dets": [100]},
}


def without(notes: list[tuple[str, str, int]], code: str) -> list[tuple[str, str, int]]:
    return [note for note in notes if note[0] != code]


def shown(notes: Any) -> list[tuple[str, str, int]]:
    return [(note.code, note.text, note.count) for note in notes]


# --- the arithmetic -------------------------------------------------------------------------------


def state(facts: Facts) -> list[Note]:
    """The notes of some images, counted one by one: one of each way to add up."""
    names = listed_names(name for name, _ in facts)
    rows = sum(count for _, count in facts)
    lacking = listed_names({"0", "1", "2", "10"} - set(names))
    total = (rows, len(facts))
    return [
        Note("rows", "records ({names})", rows, names=names),
        Note("names", "classes: {names}", len(names), names=names, adding="names"),
        Note(
            "missing", "classes have none: {names}", len(lacking), names=lacking, adding="missing"
        ),
        Note("repeats", "twice", rows - len(names), names=names, numbers=total, adding="repeats"),
        Note("once", "choice", 1, adding="once"),
        Note("most", "of {1} records", rows // 2, numbers=total, condition="most"),
    ]


@settings(max_examples=drawn(100))
@given(st.data())
def test_notes_of_parts_are_those_of_the_whole(data: st.DataObject) -> None:
    fact = st.tuples(
        st.sampled_from(["0", "1", "2", "10", "b"]), st.integers(0, 3).map(lambda n: 2 * n)
    )
    facts = data.draw(st.lists(fact, max_size=12))
    part = data.draw(st.lists(st.integers(0, 3), min_size=len(facts), max_size=len(facts)))
    parts = [state([f for f, p in zip(facts, part, strict=True) if p == k]) for k in range(4)]
    whole = merged(state(facts))
    for order in list(permutations(parts))[:6]:
        assert merged(*order) == whole
        assert reduce(merged, order[1:], merged(order[0])) == whole
        assert merged(order[0], merged(*order[1:])) == whole
    assert merged(whole, ()) == whole
    assert summed(note for each in parts for note in each) == summed(whole)


def test_numbers_are_sorted_by_size_and_before_texts() -> None:
    assert listed_names(["b", "10", 9, "b"]) == ("9", "10", "b")


def test_a_note_that_nothing_supports_is_not_shown() -> None:
    assert (
        summed(
            [
                Note("a", "files are missing", 0),
                Note("b", "boxes", 1, numbers=(2,), condition="most"),
            ]
        )
        == []
    )


def test_notes_of_one_table_count_once_and_those_of_others_add_up() -> None:
    note = Note("id-zero", "annotations have the id 0", 3, "t.json")
    one, two = (Note(*("id-zero", note.text, 3, "t.json"), table=name) for name in "ab")
    assert shown(merged([one], [one])) == [("id-zero", note.text, 3)]
    assert shown(summed(merged([one], [one], [two], [note]))) == [("id-zero", note.text, 9)]


def _is(node: ast.expr, *names: str) -> bool:
    return ast.unparse(node) in (names or ("text", "lacking", "beyond"))


@pytest.mark.slow
def test_notes_of_readers_and_matching_hold_names_instead_of_a_sentence() -> None:
    mergeable = ("adapters", "matching", "streaming", "tables")
    found = []
    for path in MODULES:
        if not set(mergeable) & set(path.parts):
            continue
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            inside = list(ast.walk(function))
            notes = [n for n in inside if isinstance(n, ast.Call) and _is(n.func, "Note")]
            texts = [n.value for n in inside if isinstance(n, ast.Assign) and _is(n.targets[0])]
            if notes and any("few(" in ast.unparse(each) for each in (*notes, *texts)):
                found.append(f"{path.name}: {function.name}")
    assert found == ["extension.py: extended_by_all"]  # of several detectors, which do not merge


# --- files ----------------------------------------------------------------------------------------


def write(folder: Path, name: str, tree: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps(tree))
    return path


def draw(rng: random.Random, lists: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Ground truth and detections with every kind of trouble that notes count."""
    images: list[dict[str, Any]] = []
    for i in range(1, 7):
        images.append(
            {"id": i, "width": rng.choice([64, 64, 0]), "height": 64, "file_name": f"{i}.jpg"}
        )
        if lists:
            images[-1]["neg_category_ids"] = rng.sample([1, 2, 9], 1)
            images[-1]["not_exhaustive_category_ids"] = []
    annotations: list[dict[str, Any]] = []
    for n in range(20):
        record = {
            "id": n,
            "image_id": rng.randint(1, 6),
            "category_id": rng.choice([1, 2]),
            "bbox": [1, 1, 20, 20],
        }
        record |= rng.choice([{}, {"area": 400.0}]) | rng.choice([{}, {"iscrowd": 0}])
        annotations.append(record)
    results = [
        {
            "image_id": rng.choice([1, 2, 3, 4, 5, 6, 40, 7]),
            "category_id": rng.choice([1, 2, 0, 11]),
            "bbox": rng.choice([[1, 1, 20, 20], [900, 900, 5, 5], [1, 1, 0, 5]]),
            "score": rng.choice([0.1, 0.3, 0.9, 2.0**60]),
        }
        for _ in range(40)
    ]
    classes = [{"id": 1, "name": "a", "frequency": "f"}, {"id": 2, "name": "b", "frequency": "r"}]
    return {"images": images, "annotations": annotations, "categories": classes}, results


def split(tree: dict[str, Any], results: list[dict[str, Any]], rng: random.Random) -> list[Any]:
    """The same in three files; results of unknown images lie in any."""
    part = {i: rng.randrange(3) for i in range(50)}
    for k in range(3):
        part[k + 1] = k  # none is empty
    return [
        (
            tree
            | {
                "images": [x for x in tree["images"] if part[x["id"]] == k],
                "annotations": [x for x in tree["annotations"] if part[x["image_id"]] == k],
            },
            [x for x in results if part[x["image_id"]] == k],
        )
        for k in range(3)
    ]


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(drawn(16)))
def test_files_of_parts_give_the_notes_of_the_whole(tmp_path: Path, rules: str, seed: int) -> None:
    rng = random.Random(seed)
    tree, results = draw(rng, lists=bool(seed % 2))

    def match(name: str, truth: Any, found: Any, **options: Any) -> Matches:
        protocol = detmap.load_protocol(rules.partition("/")[0]).override(RULES[rules])
        table = detmap.read_truth(write(tmp_path, f"{name}.json", truth))
        detections = detmap.read_detections(
            write(tmp_path, f"{name}_found.json", found), table, unknown="drop"
        )
        return detmap.match(table, detections, protocol, **options)

    whole = match("whole", tree, results)
    expected = shown(detmap.summarize(whole).notes)
    parts = [match(f"part{k}", *each) for k, each in enumerate(split(tree, results, rng))]
    files = [tmp_path / f"{k}.npz" for k in range(3)]
    for part, file in zip(parts, files, strict=True):
        part.save(file)
    joined = merge_files(files), parts[2].merge(parts[0].merge(parts[1]))
    for matches in joined:  # tied scores are in the order of images, which parts do not know
        found = shown(detmap.summarize(matches).notes)
        assert without(found, "ties-show") == without(expected, "ties-show")
    # Workers send heads, which are joined without rows.
    first, *others = (part.without_rows() for part in parts)
    assert shown(summed(first.merge(*others).notes)) == shown(summed(whole.notes))
    # Images of one pair of tables: what readers counted is of the whole file in each part.
    some, others = whole.image_ids[:2], whole.image_ids[2:]
    cut = [match("whole", tree, results, images=ids) for ids in (some, others)]
    assert shown(detmap.summarize(cut[1].merge(cut[0])).notes) == expected
    assert shown(summed(whole.select(some).merge(whole.select(others)).notes)) == shown(
        summed(whole.notes)
    )


@pytest.mark.parametrize("seed", range(drawn(16)))
def test_batches_give_the_notes_of_one_update(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    tree, _ = draw(rng, lists=False)
    truth = write(tmp_path, "truth.json", tree)
    images = {
        i: {
            "boxes": [rng.choice([[1, 1, 20, 20], [900, 900, 905, 905]])] * 2,
            "scores": [0.5, rng.choice([0.25, 0.5])],
            "labels": [rng.choice([1, 2, 0, 11]) for _ in range(2)],
        }
        for i in (1, 2, 3, 4, 5, 40, 41)
    }

    def evaluator(ids: Any) -> detmap.Evaluator:
        made = detmap.Evaluator("lvis", truth=truth, unknown="drop")
        for batch in ids:
            made.update({i: images[i] for i in batch})
        return made

    ids = list(images)
    rng.shuffle(ids)
    whole = evaluator([ids]).compute()
    assert shown(evaluator([i] for i in ids).compute().notes) == shown(whole.notes)
    one, two, three = (evaluator([ids[k::3]]) for k in range(3))
    results = [each.compute().matches for each in (one, two, three)]
    one.save(tmp_path / "one.npz")
    loaded = detmap.Evaluator.load(tmp_path / "one.npz", truth=truth, unknown="drop")
    assert shown(loaded.merge(three, two).compute().notes) == shown(whole.notes)
    assert shown(detmap.summarize(results[1].merge(results[2], results[0])).notes) == shown(
        whole.notes
    )
    codes = {note.code for note in whole.notes}
    assert {"image-unknown", "image-unseen"} <= codes
    assert next(n for n in whole.notes if n.code == "image-unknown").text.endswith(
        "dropped: 40, 41"
    )


def test_a_file_with_sentences_as_notes_is_refused(tmp_path: Path) -> None:
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    detmap.match(truth, found, detmap.load_protocol("lvis")).save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        arrays = dict(file)
    header = json.loads(
        arrays["header"].tobytes() if arrays["header"].dtype != "U" else str(arrays["header"])
    )
    assert header["notes"][0]["code"] == "scope-missing"
    for change, place in (
        ({"format": 3}, "header.format"),
        ({"notes": [["code", "text", 1, "source"]]}, "header.notes"),
        ({"notes": [{**header["notes"][0], "condition": "odd"}]}, "header.notes"),
        ({"notes": [{**header["notes"][0], "adding": "other"}]}, "header.notes"),
        ({"notes": [{**header["notes"][0], "names": [1]}]}, "header.notes"),
    ):
        text = json.dumps(header | change)
        forged = np.frombuffer(text.encode(), dtype=np.uint8)
        np.savez(tmp_path / "old.npz", **(arrays | {"header": forged}))
        with pytest.raises(DataError, match=place):
            Matches.load(tmp_path / "old.npz")
