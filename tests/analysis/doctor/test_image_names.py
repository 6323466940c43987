"""File names that are ids of other images: which of the two detections mean."""

import json
from pathlib import Path
from typing import Any

import pytest

import detmap
from detmap.analysis.doctor import loose_readers
from detmap.analysis.doctor.wide_reading import Reading
from detmap.core.adapters.joining.image_lookup import ID_IS_STEM, STEM_IS_ID
from detmap.core.adapters.voc import scan_voc
from detmap.core.base.resources import folder
from tests.support.builders import write
from tests.support.running import run

SHAPES = folder("datasets") / "shapes"
INSTANCES = json.loads((SHAPES / "instances_test.json").read_text())
ROWS: list[dict[str, Any]] = json.loads((SHAPES / "detections" / "contours.json").read_text())
IDS = [image["id"] for image in INSTANCES["images"]]
OTHER = dict(zip(IDS, [*IDS[7:], *IDS[:7]], strict=True))
CLASSES = {each["id"]: each["name"] for each in INSTANCES["categories"]}
AP50 = 0.6059881102688345


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each file is named by the id of another image."""
    images = [{**each, "file_name": f"{OTHER[each['id']]}.png"} for each in INSTANCES["images"]]
    path = tmp_path_factory.mktemp("numbered") / "instances.json"
    return write(path, {**INSTANCES, "images": images})


def voc_text(target: Path, names: dict[int, Any]) -> Path:
    target.mkdir()
    for class_id, name in CLASSES.items():
        rows = [row for row in ROWS if row["category_id"] == class_id]
        lines = []
        for row in rows:
            x, y, width, height = row["bbox"]
            corners = (x + 1, y + 1, x + width, y + height)
            words = (names[row["image_id"]], row["score"], *corners)
            lines.append(" ".join(map(str, words)) + "\n")
        (target / f"comp4_det_test_{name}.txt").write_text("".join(lines))
    return target


@pytest.mark.parametrize("fast", [False, True])
def test_text_by_stems_and_by_ids_is_noted(
    fast: bool, truth: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_voc, "LEAST_SIZE", 0 if fast else 1 << 60)
    table = detmap.read_truth(truth)
    by_stem, by_id = (
        voc_text(tmp_path / f"{i}", names) for i, names in enumerate([OTHER, {i: i for i in IDS}])
    )
    for path in (by_stem, by_id):
        found = detmap.read_detections(path, table)
        (note,) = [each for each in found.notes if each.code in (STEM_IS_ID, ID_IS_STEM)]
        assert (note.code, note.count) == (STEM_IS_ID, len(ROWS))
        assert "joined by file stem" in note.text
    right = detmap.evaluate(table, by_stem, "coco-bbox").metrics["AP50"]
    assert right == pytest.approx(AP50, abs=0.005)


def test_text_with_a_name_that_is_no_stem_asks_for_the_key(truth: Path, tmp_path: Path) -> None:
    """Without the rows of the first image the names are file stems: else refused."""
    content = json.loads(truth.read_text())
    content["images"][0]["file_name"] = "first.png"
    path = voc_text(tmp_path / "found", {i: i for i in IDS})
    table = detmap.read_truth(write(tmp_path / "t.json", content))
    with pytest.raises(detmap.DataError, match=r"by id and .* by name.*--image-key id"):
        detmap.read_detections(path, table)
    found = detmap.read_detections(path, table, image_key="id")
    (note,) = [each for each in found.notes if each.code in (STEM_IS_ID, ID_IS_STEM)]
    assert note.code == ID_IS_STEM
    unclear = [row for row in ROWS if row["image_id"] in {OTHER[i] for i in IDS[1:]}]
    assert note.count == len(unclear)


def test_no_note_where_names_have_one_meaning(tmp_path: Path) -> None:
    table = detmap.read_truth(SHAPES / "instances_test.json")
    found = detmap.read_detections(voc_text(tmp_path / "found", {i: i for i in IDS}), table)
    assert not {each.code for each in found.notes} & {STEM_IS_ID, ID_IS_STEM}


@pytest.mark.slow
def test_the_doctor_tries_ids_in_text(truth: Path, tmp_path: Path) -> None:
    by_id = voc_text(tmp_path / "ids", {i: i for i in IDS})
    (finding,) = detmap.doctor(truth, by_id)
    assert (finding.name, finding.fix) == ("images-by-id", "--fix images-by-id")
    assert finding.ap50_before is not None
    assert finding.ap50_after is not None
    assert finding.ap50_before < 0.1 < finding.ap50_after
    done = run("eval", truth, by_id, "--fix", "images-by-id", "--format", "json")
    assert json.loads(done.out)["metrics"]["AP50"] == pytest.approx(AP50, abs=0.005)
    assert not detmap.doctor(truth, voc_text(tmp_path / "stems", OTHER))


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 7])
def test_the_doctor_joins_by_a_file_name_beside_the_id_of_another_image(
    step: int, tmp_path: Path
) -> None:
    truth = SHAPES / "instances_test.json"
    files = {each["id"]: each["file_name"] for each in INSTANCES["images"]}
    wrong = dict(zip(IDS, [*IDS[step:], *IDS[:step]], strict=True))
    rows = [
        {**row, "image_id": wrong[row["image_id"]], "file_name": files[row["image_id"]]}
        for row in ROWS
    ]
    path = write(tmp_path / "results.json", rows)
    (finding,) = detmap.doctor(truth, path)
    assert (finding.name, finding.ap50_after) == ("images-by-file-name", AP50)
    assert "remove image_id" in finding.sentence
    assert run("eval", truth, path).code == 2
    done = run("eval", truth, path, "--fix", finding.name, "--format", "json")
    assert json.loads(done.out)["metrics"]["AP50"] == AP50
    constant = write(tmp_path / "constant.json", [{**row, "image_id": IDS[0]} for row in rows])
    (finding,) = detmap.doctor(truth, constant)
    assert (finding.name, finding.ap50_after) == ("images-by-file-name", AP50)


def test_counters_beside_file_names_are_joined_as_eval_joins_them(tmp_path: Path) -> None:
    truth = detmap.read_truth(SHAPES / "instances_test.json")
    files = {each["id"]: each["file_name"] for each in INSTANCES["images"]}
    own = [row["image_id"] for row in ROWS[:50]]
    rows = [
        {**row, "image_id": row["image_id"] + 10_000, "file_name": files[row["image_id"]]}
        for row in ROWS[:50]
    ]
    raw = loose_readers.read(Reading(write(tmp_path / "results.json", rows), {}), truth)
    assert [raw.images[i] for i in raw.image.tolist()] == own


@pytest.mark.slow
@pytest.mark.parametrize("kind", [int, str])
def test_ids_that_are_stems_of_other_images(kind: type, truth: Path, tmp_path: Path) -> None:
    rows = [{**row, "image_id": kind(OTHER[row["image_id"]])} for row in ROWS]
    (finding,) = detmap.doctor(truth, write(tmp_path / "results.json", rows))
    assert (finding.name, finding.ap50_after) == ("images-by-stem", AP50)
