"""Who follows the advice on unknown classes and images ends at the right number, in any format."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from tools.doctor_kinds import KINDS
from tools.doctor_sets import Set, generated


@pytest.fixture(scope="module")
def right() -> Set:
    return generated(3)


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content, default=float))
    return path


def ap50(*words: object) -> float:
    done = run("eval", *words, "-p", "coco-bbox", "--format", "json")
    assert done.code == 0, done.err
    return float(json.loads(done.out)["metrics"]["AP50"])


def follow(*words: object) -> float:
    """Do what the last line of the error says."""
    done = run("eval", *words, "-p", "coco-bbox")
    assert done.code == 2
    advice = done.err.splitlines()[-1].removeprefix("  fix: ").partition(",")[0]
    return ap50(*words, *advice.split())


def yolo(place: Path, given: Set, first: int, rows: list[dict[str, Any]]) -> Path:
    """A folder of labels, whose classes count from `first`."""
    place.mkdir()
    ids = [each["id"] for each in given.truth["categories"]]
    for image in given.truth["images"]:
        sides = [image["width"], image["height"]] * 2
        lines = []
        for row in rows:
            if row["image_id"] == image["id"]:
                x, y, w, h = row["bbox"]
                centers = (x + w / 2, y + h / 2, w, h)
                numbers = [v / side for v, side in zip(centers, sides, strict=True)]
                words = [ids.index(row["category_id"]) + first, *numbers]
                words += [row["score"]] if "score" in row else []
                lines.append(" ".join(map(str, words)) + "\n")
        (place / image["file_name"].replace("jpg", "txt")).write_text("".join(lines))
    return place


@pytest.mark.slow
def test_classes_from_1_in_yolo_text(right: Set, tmp_path: Path) -> None:
    lines = [f"{i['file_name'][:-4]},{i['width']},{i['height']}\n" for i in right.truth["images"]]
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("image,width,height\n" + "".join(lines))
    truth = yolo(tmp_path / "labels", right, 0, right.truth["annotations"])
    files = [yolo(tmp_path / f"from {n}", right, n, right.rows) for n in (0, 1)]
    how = ("--image-sizes", sizes)
    assert follow(truth, files[1], *how) == pytest.approx(ap50(truth, files[0], *how), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "yolo", "json, ids of the truth from 1"])
def test_classes_from_1_beside_names_from_0(right: Set, tmp_path: Path, form: str) -> None:
    """`--unknown drop` would drop the last class, and take the others for their neighbors. So it is
    where the ground truth has the same ids, which a reader without names takes as they are.
    """
    if form.endswith("from 1"):
        right = right.copy()
        number = {each["id"]: k for k, each in enumerate(right.truth["categories"], 1)}
        for row in (*right.truth["annotations"], *right.rows):
            row["category_id"] = number[row["category_id"]]
        for each in right.truth["categories"]:
            each["id"] = number[each["id"]]
    names = tmp_path / "names.txt"
    names.write_text("".join(f"{each['name']}\n" for each in right.truth["categories"]))
    truth = write(tmp_path / "truth.json", right.truth)
    ids = [each["id"] for each in right.truth["categories"]]
    if form != "yolo":
        rows = [dict(row, category_id=ids.index(row["category_id"]) + 1) for row in right.rows]
        found = write(tmp_path / "found.json", rows)
    else:
        found = yolo(tmp_path / "found", right, 1, right.rows)
    expected = ap50(truth, write(tmp_path / "right.json", right.rows))
    assert follow(truth, found, "--class-names", names) == pytest.approx(expected, abs=1e-6)
    checked = run("doctor", truth, found, "--class-names", names, "-p", "coco-bbox")
    assert checked.out.startswith("1. classes-one-based ")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name in KINDS if name.startswith("COCO model")])
def test_a_model_of_80_classes_on_three_of_them(right: Set, tmp_path: Path, kind: str) -> None:
    import numpy as np

    base = right.copy()
    adapt, make = KINDS[kind].right, KINDS[kind].make
    assert adapt is not None
    adapt(base)
    wrong = make(base.copy(), np.random.default_rng(0))
    assert wrong is not None
    truth = write(tmp_path / "truth.json", base.truth)
    expected = ap50(truth, write(tmp_path / "right.json", base.rows))
    assert follow(truth, write(tmp_path / "wrong.json", wrong.rows)) == expected
