"""Evaluation in parts gives the bits of one in memory, however small the parts are."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import detmap
from detmap import DataError, DetmapError, ProtocolError
from detmap.core.adapters import pieces, row_estimates
from detmap.core.adapters.coco import result_pieces
from detmap.core.adapters.tabular import parquet_pieces
from detmap.core.bounded import evaluation
from detmap.core.bounded import memory_plan as automatic_bound
from detmap.core.bounded.memory_plan import Limits
from detmap.core.protocol.default_protocol import prepare
from tests.support import builders
from tests.support.drawing import draw_coco, draw_lvis
from tests.support.tier import drawn

PARTS = Limits(block=40, group=10**9)
FORMS = ("list", "indented", "lines", "parquet", "shards")
ROWS_ALONE = ("ties-show", "score-equal", "reference-stops")  # notes that need the match rows


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_pieces, "PIECE", 700)
    monkeypatch.setattr(parquet_pieces, "ROWS", 7)
    monkeypatch.setattr(parquet_pieces, "MOST_ROWS", 7)


def write(folder: Path, form: str, rows: list[dict[str, Any]]) -> Path:
    """Results in one of the forms."""
    if form in ("list", "indented"):
        text = json.dumps(rows, indent=2 if form == "indented" else None)
        return builders.write(folder / f"{form}.json", text)
    if form == "lines":
        return builders.write(folder / "lines.jsonl", "\n".join(map(json.dumps, rows)) + "\n")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    flat = [
        {
            **{k: row[k] for k in ("image_id", "category_id", "score")},
            **dict(zip("xywh", box, strict=True)),
        }
        for row in rows
        for box in [map(float, row["bbox"])]
    ]
    names = ("image_id", "category_id", "x", "y", "w", "h", "score")
    kinds = [arrow.int64()] * 2 + [arrow.float64()] * 5
    schema = arrow.schema(list(zip(names, kinds, strict=True)))
    path = folder / form
    shards = [flat] if form == "parquet" else [flat[0::2], flat[1::2], []]
    if form == "shards":
        path.mkdir(exist_ok=True)
    for i, shard in enumerate(shards):
        place = path / f"{i}.parquet" if form == "shards" else path.with_suffix(".parquet")
        parquet.write_table(arrow.Table.from_pylist(shard, schema=schema), place)
    return path if form == "shards" else path.with_suffix(".parquet")


def box_format(form: str) -> str | None:
    return "xywh" if form in ("parquet", "shards") else None


def in_parts(
    truth: detmap.Truth, path: Path, rules: detmap.Protocol, limits: Limits = PARTS, **options: Any
) -> detmap.Result:
    rules.require("bounded memory")
    options = {"protocol_unknown": rules.scope.unknown, **options}
    return evaluation.evaluate(pieces.source(path, truth, **options), rules, limits)


def content(result: detmap.Result) -> dict[str, Any]:
    """Every number, count, digest and note."""
    made = result.to_dict()
    notes = [note for note in result.notes if note.code not in ROWS_ALONE]
    return {**made, "notes": sorted(map(str, notes)), "lowest": result.lowest_score}


def assert_equal(found: detmap.Result, expected: detmap.Result) -> None:
    assert repr(content(found)) == repr(content(expected))
    for name in ("terms", "recall", "n_objects", "n_tp", "n_fp", "n_ignored", "n_images"):
        a, b = (np.asarray(getattr(each.scores, name)) for each in (found, expected))
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes(), name


def smallest(rows: list[dict[str, Any]]) -> Limits:
    """As many parts as the largest image and the largest class allow."""
    counts = [
        np.unique([row[name] for row in rows], return_counts=True)[1]
        for name in ("image_id", "category_id")
    ]
    block, group = (int(each.max(initial=1)) for each in counts)
    return Limits(block, group)


def whole(truth: detmap.Truth, path: Path, rules: detmap.Protocol, **options: Any) -> detmap.Result:
    options = {"protocol_unknown": rules.scope.unknown, **options}
    return detmap.evaluate(truth, detmap.read_detections(path, truth, **options), rules)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parts")


@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(("coco-bbox", "voc2007", "voc2012")))
@settings(max_examples=drawn(16), deadline=None)
def test_the_bits_are_those_in_memory(folder: Path, form: str, seed: int, name: str) -> None:
    instances, rows = draw_coco(np.random.default_rng(seed), n_images=9, n_classes=3)
    truth = detmap.read_truth(builders.write(folder / "truth.json", instances))
    rules = prepare(name, None)
    limits = smallest(rows)
    options = {"unknown": "drop", "box_format": box_format(form)}
    path = write(folder, form, rows)
    found = in_parts(truth, path, rules, limits, **options)
    assert_equal(found, whole(truth, path, rules, **options))


@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=drawn(9), deadline=None)
def test_lvis_in_parts(folder: Path, form: str, seed: int) -> None:
    instances, rows = draw_lvis(np.random.default_rng(seed))
    rules = prepare("lvis", None)
    truth = detmap.read_truth(builders.write(folder / "lvis.json", instances))
    options = {"unknown": "drop", "box_format": box_format(form)}
    path = write(folder, form, rows)
    limits = smallest(rows)
    found = in_parts(truth, path, rules, limits, **options)
    assert_equal(found, whole(truth, path, rules, **options))


@pytest.mark.parametrize("name", detmap.core.protocol.names())
def test_every_protocol_is_equal_or_refused_by_name(folder: Path, name: str) -> None:
    instances, rows = draw_coco(np.random.default_rng(3), n_images=9, n_classes=3)
    known = {each["id"] for each in instances["categories"]}
    rows = [row for row in rows if row["category_id"] in known]
    path = write(folder, "list", rows)
    truth = detmap.read_truth(builders.write(folder / f"{name}.json", instances))
    rules = prepare(name, None)
    try:
        found = in_parts(truth, path, rules)
    except DetmapError as error:
        if not error.where.startswith(f"protocol {name}: "):  # a bad input for both
            with pytest.raises(type(error), match="^" + re.escape(str(error))):
                whole(truth, path, rules)
        return
    expected = whole(truth, path, rules)
    try:
        content(expected)
    except ProtocolError as error:  # its classes are not those of the data
        with pytest.raises(ProtocolError, match="^" + re.escape(str(error))):
            content(found)
    else:
        assert_equal(found, expected)


def test_most_protocols_are_supported() -> None:
    supported = []
    for name in detmap.core.protocol.names():
        try:
            prepare(name, None).require("bounded memory")
            supported.append(name)
        except ProtocolError:
            pass
    assert {"coco-bbox", "lvis", "voc2007", "voc2012"} <= set(supported)
    assert not {"kitti", "coco-segm", "coco-keypoints", "lvis-fixed"} & set(supported)


def few(folder: Path) -> tuple[detmap.Truth, list[dict[str, Any]]]:
    instances, rows = draw_coco(np.random.default_rng(5), n_images=9, n_classes=3)
    known = {each["id"] for each in instances["categories"]}
    truth = detmap.read_truth(builders.write(folder / "instances.json", instances))
    return truth, [row for row in rows if row["category_id"] in known]


def test_no_detections_and_no_images(tmp_path: Path) -> None:
    truth, _ = few(tmp_path)
    rules = prepare("coco-bbox", None)
    for form in FORMS:
        path = write(tmp_path, form, [])
        if form != "lines":  # an empty file is no JSON lines
            options = {"box_format": box_format(form)}
            assert_equal(
                in_parts(truth, path, rules, **options), whole(truth, path, rules, **options)
            )
    nothing = truth.select_images(np.zeros(0, dtype=np.int64))
    path = write(tmp_path, "list", [])
    assert_equal(in_parts(nothing, path, rules), whole(nothing, path, rules))


def test_evaluate_takes_a_bound(tmp_path: Path) -> None:
    truth, rows = few(tmp_path)
    path = write(tmp_path, "list", rows)
    expected = detmap.evaluate(truth, path, "coco-bbox")
    for memory in (3_000_000_000, "3GB"):
        found = detmap.evaluate(truth, path, "coco-bbox", memory=memory)
        assert_equal(found, expected)
        with pytest.raises(DetmapError, match="not kept in bounded memory"):
            found.intervals()
    table = detmap.read_detections(path, truth)
    for wrong in ("3 parsecs", 0, -1, True, 1.5, "0GB"):
        with pytest.raises(DataError, match="is not a size"):
            detmap.evaluate(truth, path, "coco-bbox", memory=wrong)
    with pytest.raises(DataError, match="give at least"):
        detmap.evaluate(truth, path, "coco-bbox", memory=1_000_000)
    with pytest.raises(DataError, match="are in memory already"):
        detmap.evaluate(truth, table, "coco-bbox", memory="3GB")
    with pytest.raises(DataError, match="selected in memory"):
        detmap.evaluate(truth, path, "coco-bbox", memory="3GB", classes=["class 1"])


def test_it_chooses_a_bound_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, rows = few(tmp_path)
    path = write(tmp_path, "list", rows)
    expected = detmap.evaluate(truth, path, "coco-bbox")
    assert isinstance(expected.verdicts, detmap.Matches)
    monkeypatch.setattr(automatic_bound, "IN_MEMORY", 1 << 40)
    found = detmap.evaluate(truth, path, "coco-bbox")
    assert not isinstance(found.verdicts, detmap.Matches)
    assert_equal(found, expected)
    assert isinstance(detmap.evaluate(truth, path, "lvis-fixed").verdicts, detmap.Matches)


@pytest.mark.parametrize(("form", "needed"), [("list", 180), ("parquet", 330), ("shards", 330)])
def test_what_does_not_fit_by_the_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, needed: int
) -> None:
    """A Parquet file is read as a whole, which takes more memory than JSON."""
    _, rows = few(tmp_path)
    path = write(tmp_path, form, rows)
    n_rows = row_estimates.estimated_rows(path)
    assert n_rows > 0
    assert form != "list" or automatic_bound.automatic(path) is None
    monkeypatch.setattr(automatic_bound, "SPARE", 0)
    for free, chosen in ((needed * n_rows, False), (needed * n_rows - 1, True)):
        monkeypatch.setattr(automatic_bound.memory, "available", lambda free=free: free)
        assert (automatic_bound.automatic(path) is not None) == chosen
    monkeypatch.setattr(automatic_bound.memory, "available", lambda: None)
    assert automatic_bound.automatic(path) is None
    assert automatic_bound.automatic(tmp_path / "missing.json") is None


def test_a_class_takes_less_memory_if_scores_alone_decide_the_order() -> None:
    found = {}
    for name in ("coco-bbox", "lvis", "voc2007"):
        rules = prepare(name, None)
        found[name] = evaluation.bounds.limits(3_000_000_000, 1_000_000, rules)
    assert found["coco-bbox"].group == pytest.approx(found["lvis"].group, rel=0.01)
    assert found["coco-bbox"].group > 2 * found["voc2007"].group
    at_ten = prepare("coco-bbox", {"metrics": ["AP@10"]})  # its curves are of a part of the rows
    assert evaluation.bounds.scores_suffice(prepare("coco-bbox", None))
    assert not evaluation.bounds.scores_suffice(at_ten)


def test_lower_limits_and_rules_without_a_kernel_keep_all_columns(tmp_path: Path) -> None:
    truth, rows = few(tmp_path)
    path = write(tmp_path, "list", rows)
    for settings_ in ({"metrics": ["AP", "AP@10"]}, {"ap.arithmetic": "float32"}):
        rules = prepare("coco-bbox", settings_)
        assert not evaluation.bounds.scores_suffice(rules)
        for limits in (PARTS, smallest(rows)):
            assert_equal(in_parts(truth, path, rules, limits), whole(truth, path, rules))


def test_a_class_may_be_larger_than_what_is_ranked_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, rows = few(tmp_path)
    path = write(tmp_path, "list", rows)
    rules = prepare("coco-bbox", None)
    expected = whole(truth, path, rules)
    for together in (1, len(rows) // 2):
        monkeypatch.setattr(evaluation.bounds, "TOGETHER", together)
        assert_equal(in_parts(truth, path, rules), expected)


@pytest.mark.parametrize(
    ("limits", "what"),
    [(Limits(1, 10**9), "a block of images has"), (Limits(10**9, 1), "class 'class")],
)
def test_a_small_bound_names_what_is_too_large(tmp_path: Path, limits: Limits, what: str) -> None:
    truth, rows = few(tmp_path)
    with pytest.raises(DataError, match=f"^memory: {what}.*raise the bound by"):
        in_parts(truth, write(tmp_path, "list", rows), prepare("coco-bbox", None), limits)


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    truth, rows = few(tmp_path)
    calls: dict[str, list[tuple[int, int]]] = {}
    source = pieces.source(write(tmp_path, "list", rows), truth)
    evaluation.evaluate(
        source,
        prepare("coco-bbox", None),
        PARTS,
        progress=lambda step, done, of: calls.setdefault(step, []).append((done, of)),
    )
    assert list(calls) == ["MB read", "thousand detections matched", "classes"]
    for seen in calls.values():
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1]


# --- bad input, found late ------------------------------------------------------------------------

BAD: dict[str, tuple[Callable[[list[dict[str, Any]]], Any], str]] = {
    "score": (lambda rows: {**rows[-1], "score": "high"}, r"\[{last}\].score"),
    "side": (lambda rows: {**rows[-1], "bbox": [1, 2, -3, 4]}, r"\[{last}\]"),
    "image": (lambda rows: {**rows[-1], "image_id": 10**9}, r"\[{last}\].image_id"),
    "class": (lambda rows: {**rows[-1], "category_id": 10**6}, r"\[{last}\].category_id"),
    "no score": (lambda rows: builders.without(rows[-1], "score"), r"\[{last}\].score"),
}


@pytest.mark.parametrize("form", ["list", "indented", "lines"])
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_record_is_named_by_its_number(tmp_path: Path, form: str, kind: str) -> None:
    truth, rows = few(tmp_path)
    change, where = BAD[kind]
    rows = [*rows, change(rows)]
    path = write(tmp_path, form, rows)
    with pytest.raises(DataError) as found:
        in_parts(truth, path, prepare("coco-bbox", None))
    with pytest.raises(DataError) as expected:
        detmap.read_detections(path, truth)
    assert found.value.where.startswith(f"{path}[{len(rows) - 1}]"), where
    if kind not in ("image", "class"):  # their message counts the rows of a piece
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[{good}, {good},]", "where a record or the end"),
        ("[{good} {good}]", "where a record or the end"),
        ("[{good}, {good}", "the list does not end"),
        ("[{good}, {good}] {good}", "text after the list"),
        ("[{good}, 7]", "where a record or the end"),
        ("[{good}, {{]", "not JSON"),
        ('[{good}, {{"image_id": 1, "x": "\udcff"}}]', "not UTF-8"),
        ("{good}\n7\n", "not a JSON object"),
        ("{good}\n{good}, {good}\n", r"\[1\]: text after the object: ', \{"),
        ('{{"annotations": [{good}]}}', "neither a list of records nor JSON lines"),
        ('[{{"file_name": "a.jpg", "category_id": 1, "bbox": [1,2,3,4], "score": 1}}]', "as a w"),
        ("", "the file is empty"),
    ],
)
def test_what_is_not_a_list_of_records(tmp_path: Path, text: str, what: str) -> None:
    truth, rows = few(tmp_path)
    path = tmp_path / "results.json"
    filled = text.format(good=json.dumps(rows[0]))
    path.write_bytes(filled.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=what):
        in_parts(truth, path, prepare("coco-bbox", None))


def test_pieces_that_are_understood_differently(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    truth, rows = few(tmp_path)
    table = {
        "image_id": [rows[0]["image_id"]] * 14,
        "category_id": [rows[0]["category_id"]] * 14,
        **{name: [0.25] * 7 + [9.0] * 7 for name in "xywh"},
        "score": [0.5] * 14,
    }
    path = tmp_path / "mixed.parquet"
    parquet.write_table(arrow.table(table), path)
    with pytest.raises(DataError, match=r"from row 7 on: the rows have another form.*fractions"):
        in_parts(truth, path, prepare("coco-bbox", None))


def test_a_bad_row_of_parquet_is_named(tmp_path: Path) -> None:
    truth, rows = few(tmp_path)
    rows = (rows * 20)[:20]
    path = write(tmp_path, "parquet", [*rows, {**rows[0], "bbox": [1.5, 2, float("nan"), 4]}])
    with pytest.raises(DataError, match="row 20, column w: nan is not a finite number"):
        in_parts(truth, path, prepare("coco-bbox", None), box_format="xywh")


@pytest.mark.parametrize("name", ["results.csv", "results.json.gz"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    truth, _ = few(tmp_path)
    builders.write(tmp_path / name, "image,class,xmin,ymin,xmax,ymax,score\n")
    with pytest.raises(DataError, match="is read as a whole"):
        pieces.source(tmp_path / name, truth)


def test_the_pieces_are_the_rows_of_the_file(tmp_path: Path) -> None:
    """Records with nested objects, strings with braces and long numbers, at every size of piece."""
    truth, rows = few(tmp_path)
    for i, row in enumerate(rows):
        row |= [{}, {"segmentation": {"counts": "}]{", "size": [1, 2]}}, {"x": "},{"}][i % 3]
    path = write(tmp_path, "list", rows)
    expected = detmap.read_detections(path, truth)
    for size in (1, 2, 7, 50, 333, 10**6):
        result_pieces.PIECE = size  # restored by the fixture
        parts = [piece.detections for piece in _read(path, truth)]
        assert sum(map(len, parts)) == len(expected)
        for name in ("image", "label", "boxes", "score"):
            column = np.concatenate([getattr(part, name) for part in parts])
            assert column.tobytes() == getattr(expected, name).tobytes()


def _read(path: Path, truth: detmap.Truth) -> Iterator[pieces.Piece]:
    return pieces.source(path, truth).pieces()


@pytest.mark.parametrize("form", ["list", "lines", "parquet"])
def test_few_detections_need_little_memory(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate grows with the file, and the message names its parts."""
    truth, rows = few(tmp_path)
    source = pieces.source(write(tmp_path, form, rows), truth)
    used = 120_000_000
    monkeypatch.setattr(automatic_bound.memory, "resident", lambda: used)
    rules = prepare("coco-bbox", None)
    assert evaluation.evaluate(source, rules, 300_000_000).metrics
    parts = "120 MB are in use after reading the ground truth, reading the detections takes about"
    with pytest.raises(DataError, match=f"the bound is 130 MB: {parts}.*give at least [12]..MB"):
        evaluation.evaluate(source, rules, 130_000_000)


def test_the_estimate_of_reading_grows_up_to_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_pieces, "PIECE", 1 << 23)
    sizes = [result_pieces.memory(size) for size in (0, 1 << 20, 1 << 23, 1 << 40)]
    assert sizes[0] < sizes[1] < sizes[2] == sizes[3] < 140_000_000


@pytest.mark.parametrize(("given", "what"), [("missing", "does not exist"), ("file", "not a fold")])
def test_a_folder_of_temporary_files_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, what: str
) -> None:
    truth, rows = few(tmp_path)
    path = write(tmp_path, "list", rows)
    (tmp_path / "file").touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path / given))
    with pytest.raises(DataError, match=f"^TMPDIR: .*{given}.*{what}.*set TMPDIR"):
        detmap.evaluate(truth, path, "coco-bbox", memory="3GB")
