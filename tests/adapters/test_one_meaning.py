"""One file, one meaning: what a column or a list means does not depend on single rows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap import DataError
from detmap.core.adapters import pieces
from detmap.core.adapters.tabular import parquet_pieces
from detmap.core.statistics.sampling_units import groups_of
from detmap.core.tables.join_keys import KEYS, Column, Evidence, choose
from tests.support import builders as make
from tests.support.running import run
from tests.support.tier import drawn

BOX = {"x": 10, "y": 10, "w": 20, "h": 20}
HEAD = "x,y,w,h,score"


def digits(folder: Path, n: int = 10) -> Path:
    """Class k + 1 is named k, image k + 1 has the file k.jpg: as Roboflow numbers them."""
    images = [make.image(id=k + 1, file_name=f"{k}.jpg") for k in range(n)]
    categories = [make.category(id=k + 1, name=str(k)) for k in range(n)]
    objects = [
        make.annotation(id=k + 1, image_id=k + 1, category_id=k + 1, bbox=[10, 10, 20, 20])
        for k in range(n)
    ]
    tree = make.instances(images=images, annotations=objects, categories=categories)
    return make.write(folder / "gt.json", tree)


def table(rows: list[tuple[Any, Any]], image: str, label: str) -> dict[str, list[Any]]:
    n = len(rows)
    columns = {image: [row[0] for row in rows], label: [row[1] for row in rows]}
    return columns | {key: [value] * n for key, value in BOX.items()} | {"score": [0.5] * n}


def forms(folder: Path, truth: detmap.Truth, columns: dict[str, list[Any]]) -> Any:
    """Each form of a table, and how it is read."""
    import pandas
    import polars
    import pyarrow
    from pyarrow import parquet

    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    file = make.write(folder / "d.csv", "\n".join(lines))
    yield "csv", lambda **how: [detmap.read_detections(file, truth, **how)]
    for kind in (pandas.DataFrame, polars.DataFrame, pyarrow.table, dict):
        frame = kind(columns)
        yield (
            str(kind),
            lambda frame=frame, **how: [detmap.detections_from_arrays(truth, frame, **how)],
        )
    packed = folder / "d.parquet"
    parquet.write_table(pyarrow.table(columns), packed)
    yield "parquet", lambda **how: [detmap.read_detections(packed, truth, **how)]
    yield (
        "pieces",
        lambda **how: [part.detections for part in pieces.source(packed, truth, **how).pieces()],
    )


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_pieces, "ROWS", 1)
    monkeypatch.setattr(parquet_pieces, "MOST_ROWS", 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [int, str])
def test_columns_of_ids_are_ids_in_every_form(kind: type, tmp_path: Path) -> None:
    truth = detmap.read_truth(digits(tmp_path))
    for rows in ([(1, 1)], [(1, 1), (10, 10)], [(10, 10), (1, 1)]):
        columns = table([(kind(i), kind(k)) for i, k in rows], "image_id", "category_id")
        for name, read in forms(tmp_path, truth, columns):
            found = read()
            image = [i for part in found for i in part.image.tolist()]
            label = [k for part in found for k in part.label.tolist()]
            assert image == [i - 1 for i, _ in rows], name
            assert label == [k - 1 for _, k in rows], name


def test_columns_of_two_meanings_are_refused_with_both(tmp_path: Path) -> None:
    truth = detmap.read_truth(digits(tmp_path))
    for columns, option, both in (
        (table([(1, 1)], "image_id", "class"), "class_key", "class 1 (0) by id and class 2 (1)"),
        (table([("1", 1)], "image", "class_id"), "image_key", "image 1 (0.jpg) by id and image 2"),
    ):
        for name, read in forms(tmp_path, truth, columns):
            with pytest.raises(DataError) as refused:
                read()
            assert both in refused.value.what, name
            assert f"--{option.replace('_', '-')} id" in refused.value.fix
            for key, place in (("id", 0), ("name", 1)):
                (found,) = read(**{option: key})
                got = found.label if option == "class_key" else found.image
                assert got.tolist() == [place], (name, key)


def test_both_keys_may_find_the_same(tmp_path: Path) -> None:
    images = [make.image(id=k, file_name=f"{k}.jpg") for k in (1, 2)]
    categories = [make.category(id=k, name=str(k)) for k in (1, 2)]
    tree = make.instances(images=images, annotations=[], categories=categories)
    truth = detmap.read_truth(make.write(tmp_path / "same.json", tree))
    for name, read in forms(tmp_path, truth, table([("2", "2"), ("1", "1")], "image", "label")):
        assert [i for part in read() for i in part.image.tolist()] == [1, 0], name


positions = st.integers(-1, 2)


@settings(max_examples=drawn(400))
@given(
    st.lists(st.tuples(positions, positions), min_size=1, max_size=6),
    st.sampled_from([None, *KEYS]),
    st.integers(1, 6),
    st.integers(0, 10**6),
)
def test_more_values_change_no_meaning(
    found: list[tuple[int, int]], preferred: Any, size: int, seed: int
) -> None:
    """Of all values, of some of them, in another order and in pieces: one meaning, or an error."""
    column = Column("image", "x", str, preferred)

    def meaning(rows: list[int], evidence: Evidence | None = None) -> dict[int, int] | None:
        values = np.array([found[i] for i in rows], dtype=np.int32).reshape(-1, 2)
        try:
            key = choose(column, rows, values[:, 0], values[:, 1], evidence).key
        except DataError:
            return None
        return dict(zip(rows, values[:, KEYS.index(key)].tolist(), strict=True))

    every = np.random.default_rng(seed).permutation(len(found)).tolist()
    evidence, in_pieces = Evidence(), [every[i : i + size] for i in range(0, len(every), size)]
    versions = [meaning(every), meaning(sorted(every)), meaning(every[: len(every) // 2])]
    versions += [meaning(part, evidence) for part in in_pieces]
    known: dict[int, int] = {}
    whole = versions[0]
    for each in [whole, *versions[1:]]:
        for row, place in (each or {}).items():
            assert known.setdefault(row, place) == place or whole is None


@pytest.mark.slow
def test_lists_of_two_meanings_are_refused(tmp_path: Path) -> None:
    gt = digits(tmp_path)
    truth = detmap.read_truth(gt)
    dt = make.write(tmp_path / "dt.json", [make.detection(image_id=1, category_id=1)])
    one, ids = "1\n2\n", "1\n2\n10\n"
    slices = make.write(tmp_path / "s.json", {"a": ["1", "2"], "b": ["10"]})
    sheet = make.write(tmp_path / "s.csv", "image,time\n1,day\n10,night\n")
    for text in (one, ids):
        file = make.write(tmp_path / "images.txt", text)
        for words in (
            ("--images", file),
            ("--slices", slices),
            ("--slices", sheet),
            ("--classes", "9,10"),
            ("--classes", "1"),
        ):
            outcome = run("eval", gt, dt, *words)
            assert outcome.code == 2, words
            assert "by id and" in outcome.err
            key = "--class-key" if words[0] == "--classes" else "--image-key"
            assert f"{key} id or {key} name" in outcome.err
            assert run("eval", gt, dt, *words, key, "id").code == 0
    named = make.write(tmp_path / "s.csv", "file_name,time\n1.jpg,day\n9,night\n")
    read = detmap.read_slices(named, truth)
    days = {name: ids.tolist() for name, ids in read.items()}
    assert days == {"time=day": [2], "time=night": [10]}
    named = make.write(tmp_path / "s.csv", "image_id,time\n1,day\n10,night\n")
    assert detmap.read_slices(named, truth)["time=day"].tolist() == [1]


def test_groups_and_sizes_are_read_by_one_key(tmp_path: Path) -> None:
    gt = digits(tmp_path, 3)
    dt = make.write(tmp_path / "dt.json", [make.detection(image_id=1, category_id=1)])
    ci = ("eval", gt, dt, "--ci", "--groups")
    groups = make.write(tmp_path / "g.csv", "image,group\n1,a\n2,b\n")
    assert "by id and" in run(*ci, groups).err
    groups = make.write(tmp_path / "g.csv", "image_id,group\n1,a\n2,b\n3,b\n")
    assert run(*ci, groups).code == 0
    groups = make.write(tmp_path / "g.csv", "file_name,group\n0,a\n1,b\n2,b\n")
    assert run(*ci, groups).code == 0
    tree = json.loads(gt.read_text())
    for image in tree["images"]:
        del image["width"], image["height"]
    bare = make.write(tmp_path / "bare.json", tree)
    for header, names in (("image_id", (1, 2, 3)), ("file_name", (0, 1, 2))):
        rows = "".join(f"{name},{30 + i},40\n" for i, name in enumerate(names))
        sizes = make.write(tmp_path / "sizes.csv", f"{header},width,height\n{rows}")
        truth = detmap.read_truth(bare, image_sizes=sizes)
        assert truth.images.width.tolist() == [30, 31, 32], header
    make.write(sizes, "image,width,height\n1,30,40\n2,31,40\n")
    with pytest.raises(DataError, match="name the column image_id or file_name"):
        detmap.read_truth(bare, image_sizes=sizes)


# ---- two columns or keys


CONTRADICTIONS = {
    "scores": (
        "image_id,category_id,{h},confidence\n1,1,{b},.5,.5\n1,1,{b},.5,.4\n",
        "score is 0.5",
    ),
    "class": ("image_id,category_id,category_name,{h}\n1,1,0,{b},.5\n1,1,1,{b},.5\n", "category_"),
    "image": (
        "image_id,file_name,category_id,{h}\n1,0.jpg,1,{b},.5\n1,1.jpg,1,{b},.5\n",
        "image_id",
    ),
    "pandas": ("image_id,class,name,{h}\n1,7,0,{b},.5\n1,7,1,{b},.5\n", "class '7'"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_two_columns_that_contradict_each_other(name: str, tmp_path: Path) -> None:
    truth = detmap.read_truth(digits(tmp_path))
    text, what = CONTRADICTIONS[name]
    text = text.format(h=HEAD, b="10,10,20,20")
    file = make.write(tmp_path / "d.csv", text)
    with pytest.raises(DataError) as refused:
        detmap.read_detections(file, truth)
    assert refused.value.where == f"{file}: line 3"
    assert what in refused.value.what
    make.write(file, "\n".join(text.splitlines()[:2]))
    assert len(detmap.read_detections(file, truth)) == 1


RECORD = {"image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20], "score": 0.5}


def written(folder: Path, records: list[dict[str, Any]], lines: bool) -> Path:
    if lines:
        return make.write(folder / "dt.jsonl", "\n".join(map(json.dumps, records)))
    return make.write(folder / "dt.json", records)


@pytest.mark.usefixtures("coco_reader")
@pytest.mark.parametrize("lines", [False, True])
def test_keys_of_records(lines: bool, tmp_path: Path) -> None:
    truth = detmap.read_truth(digits(tmp_path))
    for more, what in (
        ({"confidence": 0.4}, "score is 0.5, but confidence is 0.4"),
        ({"category_name": "1"}, 'category_id is 1, but category_name is "1"'),
    ):
        rows = [RECORD, RECORD | more]
        file = written(tmp_path, rows, lines)
        for read in (
            lambda file=file: detmap.read_detections(file, truth),
            lambda file=file: list(pieces.source(file, truth).pieces()),
        ):
            with pytest.raises(DataError) as refused:
                read()
            assert refused.value.what == what
            assert refused.value.where == f"{file}[1]"
    agreeing = [RECORD | {"confidence": 0.5, "category_name": "0"}] * 2
    found = detmap.read_detections(written(tmp_path, agreeing, lines), truth)
    assert (found.score.tolist(), found.notes) == ([0.5, 0.5], ())
    for key in ("confidence", "conf", "prob", "probability", "scores"):
        rows = [make.without(RECORD, "score") | {key: score} for score in (0.5, 0.25)]
        found = detmap.read_detections(written(tmp_path, rows, lines), truth)
        assert found.score.tolist() == [0.5, 0.25]
        assert [note.code for note in found.notes] == ["score-key"]
        with pytest.raises(DataError, match="in place of score"):
            list(pieces.source(written(tmp_path, rows, lines), truth).pieces())
        mixed = written(tmp_path, [RECORD, rows[1]], lines)
        with pytest.raises(DataError, match=r"no score \(.*other records have one"):
            detmap.read_detections(mixed, truth)
    two = [make.without(RECORD, "score") | {"conf": 0.5, "prob": 0.4}]
    with pytest.raises(DataError, match=r"conf is 0\.5, but prob is 0\.4"):
        detmap.read_detections(written(tmp_path, two, lines), truth)


@pytest.mark.slow
def test_without_scores_the_note_comes_first(tmp_path: Path) -> None:
    gt = digits(tmp_path)
    dt = make.write(tmp_path / "dt.json", [make.without(RECORD, "score")])
    outcome = run("eval", gt, dt)
    assert outcome.err.splitlines()[0].startswith("note: 1 detection has no score")
    both = subprocess.run(
        [sys.executable, "-m", "detmap", "eval", gt, dt],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    assert both.stdout.startswith("note: 1 detection has no score")


# ---- text without a header


def yolo(folder: Path, rows: dict[str, str]) -> tuple[detmap.Truth, Path]:
    truth = detmap.read_truth(digits(folder))
    for stem, text in rows.items():
        make.write(folder / "labels" / f"{stem}.txt", text)
    return truth, folder / "labels"


TRACKS = {
    "track ids": ({"0": "0 .5 .5 .2 .2 1\n0 .4 .4 .2 .2 2\n"}, "track ids"),
    "one track": ({"0": "0 .5 .5 .2 .2 1\n", "1": "0 .5 .5 .2 .2 3\n"}, "track ids"),
    "confidence and id": ({"0": "0 .5 .5 .2 .2 .9 4\n"}, "remove the track id at the end"),
    "confidence second": ({"0": "0 .9 .5 .5 .6 .4\n0 .8 .3 .5 .4 .4\n"}, "class confidence"),
    "twelve columns": ({"0": "0 .1 .1 .2 .2 .3 .3 .4 .4 .5 .5 .9\n"}, "polygon or keypoints"),
}


@pytest.mark.parametrize("name", TRACKS)
def test_columns_of_another_layout_are_refused(name: str, tmp_path: Path) -> None:
    rows, what = TRACKS[name]
    truth, folder = yolo(tmp_path, rows)
    with pytest.raises(DataError) as refused:
        detmap.read_detections(folder, truth, format="yolo", class_names=["0"])
    assert what in str(refused.value)


def test_confidences_of_0_and_1_are_read_with_a_note(tmp_path: Path) -> None:
    truth, folder = yolo(tmp_path, {"0": "0 .5 .5 .2 .2 1\n0 .4 .4 .2 .2 1.0\n"})
    found = detmap.read_detections(folder, truth, format="yolo", class_names=["0"])
    assert found.score.tolist() == [1, 1]
    assert [note.code for note in found.notes] == ["score-two-values"]
    make.write(folder / "0.txt", "0 .5 .5 .2 .2 .9\n0 .4 .4 .2 .2 1\n")
    assert detmap.read_detections(folder, truth, format="yolo", class_names=["0"]).notes == ()


@pytest.mark.parametrize(
    "row, what",
    [
        ("0 11 12 19 29 .8", "class score a b c d, the score in column 2"),
        ("0 7 1 2 9 9", "track ids"),
    ],
)
def test_scores_of_older_tools_are_in_column_2(row: str, what: str, tmp_path: Path) -> None:
    truth = detmap.read_truth(digits(tmp_path))
    make.write(tmp_path / "detection-results" / "0.txt", f"{row}\n")
    with pytest.raises(DataError) as refused:
        detmap.read_detections(tmp_path / "detection-results", truth, format="cartucho")
    assert what in refused.value.fix


def test_voc_text_with_the_score_at_the_end(tmp_path: Path) -> None:
    truth = detmap.read_truth(digits(tmp_path))
    make.write(tmp_path / "r" / "comp4_det_test_0.txt", "0 10 11 30 31 .8\n")
    with pytest.raises(DataError, match="image x1 y1 x2 y2 score"):
        detmap.read_detections(tmp_path / "r", truth, format="voc")


def test_boxes_of_rafaelpadilla_without_the_last_pixel_are_noted(tmp_path: Path) -> None:
    make.write(tmp_path / "groundtruths" / "a.txt", "cat 1 2 9 9\n")
    truth = detmap.read_truth(tmp_path / "groundtruths", box_format="xywh")
    (note,) = truth.notes
    assert "--truth-box-format 'voc xywh'" in note.text
    assert not detmap.read_truth(tmp_path / "groundtruths", box_format="voc xywh").notes


def test_convert_refuses_names_that_readers_would_shorten(tmp_path: Path) -> None:
    tree = make.instances(categories=[make.category(id=1, name="cat "), make.category(id=2)])
    gt = make.write(tmp_path / "gt.json", tree)
    dt = make.write(tmp_path / "dt.json", [make.detection()])
    outcome = run("convert", dt, tmp_path / "out", "--to", "yolo", "--truth", gt)
    assert outcome.code == 2
    assert "'cat '" in outcome.err
    assert run("convert", gt, tmp_path / "kept", "--to", "yolo").code == 0
    assert '"cat "' in (tmp_path / "kept" / "data.yaml").read_text()


@pytest.mark.parametrize("header, groups", [("image_id", "abcd"), ("file_name", "bacd")])
def test_the_header_of_a_list_of_groups_decides(tmp_path: Path, header: str, groups: str) -> None:
    """The second column has any name; an error names the other header."""
    names = ["2.jpg", "1.jpg", "3.jpg", "im4.jpg"]
    images = [make.image(id=i, file_name=name) for i, name in enumerate(names, 1)]
    truth = detmap.read_truth(make.write(tmp_path / "gt.json", make.instances(images=images)))
    file = tmp_path / "g.csv"
    rows = ["1", "2", "3", "4" if header == "image_id" else "im4"]
    file.write_text("\n".join([f"{header},clip", *map(",".join, zip(rows, "abcd", strict=True))]))
    assert "".join(groups_of(file, truth)[i] for i in (1, 2, 3, 4)) == groups
    wrong = "im4" if header == "image_id" else "4"
    file.write_text(f"{header},clip\n1,a\n{wrong},b\n")
    other = {"image_id": "file_name", "file_name": "image_id"}[header]
    with pytest.raises(DataError, match=f"rename the column to {other}"):
        groups_of(file, truth)


@pytest.mark.parametrize("value", [[0.9], "0.9", {"a": 0.9}, True])
@pytest.mark.parametrize("lines", [False, True])
def test_a_key_in_place_of_the_score_is_a_number(tmp_path: Path, value: Any, lines: bool) -> None:
    truth = detmap.read_truth(make.write(tmp_path / "gt.json", make.instances()))
    record = make.detection(scores=value)
    del record["score"]
    file = tmp_path / ("dt.jsonl" if lines else "dt.json")
    file.write_text(json.dumps(record) + "\n" if lines else json.dumps([record]))
    with pytest.raises(DataError, match=r"no score, and scores is .*, not a number"):
        detmap.read_detections(file, truth)
