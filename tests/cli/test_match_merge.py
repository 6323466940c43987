"""Parts without an engine: `detmap match` per job, then `detmap merge`, is `detmap eval` in
every byte."""

import json
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.core.matching.engine import match, match_images
from tests.matching.test_matches import assert_same
from tests.support import builders
from tests.support.builders import SHAPES
from tests.support.drawing import draw_coco, draw_voc
from tests.support.drawn_tables import read_coco, voc_tables
from tests.support.running import Outcome, run, spawn


@pytest.fixture
def data(tmp_path: Path) -> tuple[Path, Path]:
    instances, results = draw_coco(np.random.default_rng(11), n_images=4, n_classes=3)
    return builders.write(tmp_path / "truth.json", instances), builders.write(
        tmp_path / "results.json", results
    )


def image_ids(truth: Path) -> list[int]:
    return [image["id"] for image in json.loads(truth.read_text())["images"]]


def parts_of(data: tuple[Path, Path], lists: list[list[object]], *options: str) -> list[Path]:
    """One part for each list of images."""
    parts = []
    for i, names in enumerate(lists):
        images = builders.write(
            data[0].parent / f"images{i}.txt", "".join(f"{name}\n" for name in names)
        )
        parts.append(data[0].parent / f"part{i}.npz")
        outcome = run("match", *data, "--images", images, "-o", parts[-1], *options)
        assert (outcome.code, without_doctor(outcome).err) == (0, ""), outcome.err
        assert outcome.out.startswith(f"{parts[-1]}: {len(names)} image")
    return parts


def evaluated(*words: object) -> Outcome:
    """The output of `eval` without the doctor's findings: it needs boxes, a merge has none."""
    return without_doctor(run("eval", *words))


def without_doctor(outcome: Outcome) -> Outcome:
    """The outcome without the notes of the quick doctor."""
    lines = outcome.err.splitlines(keepends=True)
    out = outcome.out
    if out.startswith("{") and "findings" in (content := json.loads(out)):
        out = json.dumps({k: v for k, v in content.items() if k != "findings"}, indent=2) + "\n"
    err = "".join(x for x in lines if not x.startswith("note: doctor: "))
    return outcome._replace(out=out, err=err)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [(), ("-p", "voc2012"), ("-p", "coco-bbox", "--set", "limits.max_dets=[1,2]")],
    ids=["stock", "voc", "set"],
)
@pytest.mark.parametrize(
    "outputs", [("--format", "json", "--integrators"), ("--per-class", "--percent", "--iou", "0.5")]
)
def test_parts_merge_to_the_bytes_of_eval(
    data: tuple[Path, Path], options: tuple, outputs: tuple
) -> None:
    ids = image_ids(data[0])
    parts = parts_of(data, [ids[2:], ids[:1], ids[1:2]], *options)
    whole = evaluated(*data, *options, *outputs)
    merged = run("merge", *parts, *outputs)
    assert run("merge", *parts[::-1], *outputs) == merged
    assert (merged.code, merged.err) == (whole.code, whole.err) == (0, merged.err)
    assert whole.out.endswith(merged.out)  # findings are above the numbers of eval


def test_voc_parts_by_stem(tmp_path: Path) -> None:
    detections = SHAPES / "detections" / "contours"
    stems = sorted(path.stem for path in (SHAPES / "Annotations").glob("*.xml"))
    parts = parts_of((SHAPES, detections), [], "-p", "voc2007")
    truth = detmap.read_truth(SHAPES)
    known = [stem for stem in stems if stem in truth.images.stems]
    for i in range(3):
        images = builders.write(tmp_path / f"{i}.txt", "\n".join(known[i::3]))
        parts.append(tmp_path / f"{i}.npz")
        words = (SHAPES, detections, "-p", "voc2007")
        assert run("match", *words, "--images", images, "-o", parts[-1]).code == 0
    assert run("merge", *parts, "--format", "json") == evaluated(*words, "--format", "json")


def test_all_images_without_a_list(data: tuple[Path, Path], tmp_path: Path) -> None:
    assert run("match", *data, "-o", tmp_path / "all.npz").code == 0
    merged = run("merge", tmp_path / "all.npz", "--format", "json")
    assert merged == evaluated(*data, "--format", "json")
    assert run("merge", tmp_path / "all.npz", "-o", tmp_path / "table.txt").out == ""
    assert "AP50" in (tmp_path / "table.txt").read_text()


def test_images_that_no_part_has_are_told(data: tuple[Path, Path]) -> None:
    ids = image_ids(data[0])
    outcome = run("merge", *parts_of(data, [ids[:1], ids[1:2]]))
    assert outcome.code == 0
    assert "note: 2 ground-truth images are in none of the parts" in outcome.err


def test_a_part_that_an_evaluator_wrote(tmp_path: Path) -> None:
    stream = detmap.Evaluator(classes=["a"])
    box = {"boxes": [[0, 0, 9, 9]], "labels": [0]}
    stream.update([{**box, "scores": [1]}], [box])
    stream.save(tmp_path / "stream.npz")
    merged = run("merge", tmp_path / "stream.npz", "--format", "json")
    assert json.loads(merged.out) == stream.compute().to_dict()


def test_a_match_of_some_images_is_a_selection_of_the_match() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tables = voc_tables(*draw_voc(rng, n_images=4))
        if seed % 2:
            tables = read_coco(*draw_coco(rng, n_images=4))
        for protocol in map(detmap.load_protocol, ("coco-bbox", "voc2007")):
            some = rng.permutation(len(tables[0].images))[: rng.integers(1, 4)].astype(np.int32)
            assert_same(
                match_images(*tables, protocol, some),
                match(*tables, protocol).select(tables[0].images.ids[some]),
            )


# --- guards ---------------------------------------------------------------------------------------


def test_the_same_image_in_two_parts(data: tuple[Path, Path]) -> None:
    ids = image_ids(data[0])
    parts = parts_of(data, [ids[:1], ids[1:3], ids[2:]])
    outcome = run("merge", *parts)
    assert outcome.code == 2
    assert f"{parts[1]} and {parts[2]}: 1 image in more than one part: [{ids[2]}]" in outcome.err
    assert run("merge", parts[0], parts[0]).code == 2


def test_parts_of_another_protocol_are_refused(data: tuple[Path, Path]) -> None:
    ids = image_ids(data[0])
    first = parts_of(data, [ids[:2]])[0].rename(data[0].parent / "first.npz")
    second = parts_of(data, [ids[2:]], "--set", "limits.max_dets=[1,10,300]")[0]
    outcome = run("merge", first, second)
    assert outcome.code == 2
    assert f"{first} and {second}: protocol coco-bbox" in outcome.err
    assert "limits.max_dets" in outcome.err
    assert "fix: match all parts under the same protocol" in outcome.err


def test_parts_of_other_classes_are_refused(data: tuple[Path, Path], tmp_path: Path) -> None:
    first = parts_of(data, [image_ids(data[0])])[0]
    truth = builders.write(tmp_path / "other.json", builders.instances())
    results = builders.write(tmp_path / "other-results.json", [builders.detection()])
    assert run("match", truth, results, "-o", tmp_path / "other.npz").code == 0
    outcome = run("merge", first, tmp_path / "other.npz")
    assert outcome.code == 2
    assert f"{first} and {tmp_path / 'other.npz'}: the classes differ" in outcome.err


def test_damaged_absent_and_future_files(
    data: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = parts_of(data, [image_ids(data[0])])[0]
    damaged = builders.write(tmp_path / "damaged.npz", part.read_bytes()[:-100])
    for path, fix in ((damaged, "write it again"), (data[0], "a file that `detmap match` wrote")):
        outcome = run("merge", part, path)
        assert outcome.code == 2
        assert f"{path}: not a readable file of matches" in outcome.err
        assert fix in outcome.err
    outcome = run("merge", part, tmp_path / "absent.npz")
    assert outcome.code == 2
    assert f"{tmp_path / 'absent.npz'}: no such file" in outcome.err
    monkeypatch.setattr("detmap.core.matching.matches_header.FORMAT", 999)
    outcome = run("merge", part)
    assert outcome.code == 2
    assert "this detmap reads format 999" in outcome.err


@pytest.mark.parametrize(
    "lines, message",
    [
        ("12345\n", "line 1: no image '12345' in"),
        ("\n\n", "lists no images"),
        (b"\xff\xfe", "text in UTF-16"),
        (None, "no such file|cannot be read"),
    ],
)
def test_bad_lists(data: tuple[Path, Path], tmp_path: Path, lines: object, message: str) -> None:
    path = tmp_path / "images.txt"
    if lines is not None:
        builders.write(path, lines)
    outcome = run("match", *data, "--images", path, "-o", tmp_path / "part.npz")
    assert outcome.code == 2
    assert any(part in outcome.err for part in message.split("|"))
    assert not (tmp_path / "part.npz").exists()


def test_an_image_twice_in_a_list(data: tuple[Path, Path], tmp_path: Path) -> None:
    name = image_ids(data[0])[0]
    images = builders.write(tmp_path / "images.txt", f"{name}\n\n{name}\n")
    outcome = run("match", *data, "--images", images, "-o", tmp_path / "part.npz")
    assert outcome.code == 2
    assert f"line 3: image '{name}' occurs twice" in outcome.err


def test_percent_and_json_do_not_go_together(data: tuple[Path, Path]) -> None:
    part = parts_of(data, [image_ids(data[0])])[0]
    assert run("merge", part, "--percent", "--format", "json").code == 2


@pytest.mark.slow
def test_as_processes_of_their_own(data: tuple[Path, Path], tmp_path: Path) -> None:
    assert spawn("match", *data, "-o", "part.npz", cwd=tmp_path).code == 0
    merged = spawn("merge", "part.npz", "--format", "json", cwd=tmp_path).out
    assert merged == evaluated(*data, "--format", "json").out
    outcome = spawn("match", *data, "-o", "no/such/part.npz", cwd=tmp_path)
    assert (outcome.code, "no/such/part.npz" in outcome.err) == (2, True)


def test_parts_that_do_not_merge_are_refused_by_match(data: tuple[Path, Path]) -> None:
    first = builders.write(data[0].parent / "first.txt", f"{image_ids(data[0])[0]}\n")
    whole = data[0].parent / "whole.npz"
    rules = ("-p", "coco-bbox", "--set", "limits.scope=dataset", "-o", whole)
    outcome = run("match", *data, *rules, "--images", first)
    assert (outcome.code, whole.exists()) == (2, False)
    assert "coco-bbox" in outcome.err
    assert run("match", *data, *rules).code == 0
    assert run("merge", whole).code == 0
