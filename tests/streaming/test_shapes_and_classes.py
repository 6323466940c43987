"""Masks, keypoints and rotated boxes batch by batch; classes as they come."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, Evaluator, MergeError

RNG_SEED, SIZE = 5, (40, 50)


def encoded(mask: np.ndarray) -> dict[str, Any]:
    """Uncompressed run lengths, column by column."""
    runs, value = [], False
    for pixel in mask.ravel(order="F").tolist():
        if pixel != value or not runs:
            runs += [0] if pixel == value or runs else [0, 0]
            value = pixel
        runs[-1] += 1
    return {"size": list(mask.shape), "counts": runs}


def shape(kind: str, rng: np.random.Generator) -> Any:
    x, y = rng.integers(0, 20, 2).tolist()
    w, h = rng.integers(5, 20, 2).tolist()
    if kind == "masks":
        mask = np.zeros(SIZE, dtype=bool)
        mask[y : y + h, x : x + w] = rng.random((h, w)) < 0.8
        return mask
    if kind == "polygons":
        return np.array([x, y, x + w, y, x + w + 3, y + h, x, y + h], dtype=float)
    points = np.column_stack([rng.uniform(0, 40, (5, 2)), rng.integers(0, 3, 5)])
    points[0, 2] = 2
    return points


FIELD = {"masks": "segmentation", "keypoints": "keypoints", "polygons": "segmentation"}
PROTOCOL = {"masks": "coco-segm", "keypoints": "coco-keypoints", "polygons": "dota"}
SETTINGS = {"keypoints": {"iou.sigmas": [0.1, 0.2, 0.3, 0.2, 0.1]}}


def value(kind: str, given: Any) -> Any:
    if kind == "masks":
        return encoded(given)
    flat = given.ravel().tolist()
    return [flat] if kind == "polygons" else flat


def drawn(kind: str, folder: Path) -> tuple[list[Any], list[Any], detmap.Result]:
    """Batches of six images, and the result of the same data in files."""
    rng = np.random.default_rng(RNG_SEED)
    predictions, targets, annotations, results = [], [], [], []
    for image in range(6):
        objects = [shape(kind, rng) for _ in range(rng.integers(0, 4))]
        found = [np.roll(each, 1, axis=0) if kind == "masks" else each + 0.5 for each in objects]
        found += [shape(kind, rng)]
        scores, labels = rng.integers(1, 4, len(found)) / 4, rng.integers(1, 3, len(objects))
        guesses = np.append(labels, 1)
        targets.append({"image_id": image, kind: np.array(objects), "labels": labels})
        predictions.append(
            {"image_id": image, kind: np.array(found), "labels": guesses, "scores": scores}
        )
        for each, label in zip(objects, labels.tolist(), strict=True):
            record: dict[str, Any] = {"id": len(annotations) + 1, "image_id": image, "iscrowd": 0}
            record |= {"category_id": label, FIELD[kind]: value(kind, each)}
            annotations.append(record | ({"num_keypoints": 1} if kind == "keypoints" else {}))
        for each, label, score in zip(found, guesses.tolist(), scores.tolist(), strict=True):
            record = {"image_id": image, "category_id": label, "score": score}
            results.append(record | {FIELD[kind]: value(kind, each)})
    images = [{"id": i, "height": SIZE[0], "width": SIZE[1]} for i in range(6)]
    categories = [{"id": i, "name": str(i)} for i in (1, 2)]
    truth = {"images": images, "categories": categories, "annotations": annotations}
    for name, content in (("truth.json", truth), ("results.json", results)):
        (folder / name).write_text(json.dumps(content))
    result = detmap.evaluate(
        folder / "truth.json", folder / "results.json", PROTOCOL[kind], settings=SETTINGS.get(kind)
    )
    return predictions, targets, result


def fed(evaluator: Evaluator, predictions: list[Any], targets: list[Any], step: int) -> Evaluator:
    for i in range(0, len(predictions), step):
        evaluator.update(predictions[i : i + step], targets[i : i + step])
    return evaluator


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("classes", [["1", "2"], None], ids=["classes", "as they come"])
@pytest.mark.parametrize("kind", FIELD)
def test_shapes_in_batches_give_the_bits_of_files(
    tmp_path: Path, kind: str, classes: Any, step: int
) -> None:
    predictions, targets, whole = drawn(kind, tmp_path)
    named = None if classes is None else dict(enumerate(classes, 1))
    new = Evaluator(PROTOCOL[kind], classes=named, settings=SETTINGS.get(kind))
    result = fed(new, predictions[::-1], targets[::-1], step).compute()
    assert result.signature == whole.signature
    assert np.array_equal(
        list(result.metrics.values()), list(whole.metrics.values()), equal_nan=True
    )
    json_values = [
        {**each, "orig_size": SIZE, FIELD[kind]: [value(kind, one) for one in each[kind]]}
        for each in (*predictions, *targets)
    ]
    if kind != "keypoints":
        for each in json_values:
            del each[kind]
    by_value = Evaluator(PROTOCOL[kind], classes=named, settings=SETTINGS.get(kind))
    fed(by_value, json_values[:6], json_values[6:], step)
    assert by_value.compute().signature == whole.signature


def test_shapes_against_a_truth_known_up_front(tmp_path: Path) -> None:
    predictions, _, whole = drawn("masks", tmp_path)
    stream = Evaluator("coco-segm", truth=tmp_path / "truth.json")
    stream.update(predictions[:2]), stream.update(predictions[2:])
    assert stream.compute().signature == whole.signature


@pytest.mark.parametrize(
    "kind, key, wrong, message",
    [
        ("masks", "masks", np.zeros((1, 8)), r"predictions\[0\]\.masks: shape"),
        ("masks", "masks", np.zeros((1, 8, 8), bool), r"masks\[0\]: size"),
        ("masks", "masks", np.zeros((9, *SIZE), bool), "1 values for 9 boxes"),
        ("keypoints", "keypoints", np.zeros((1, 5, 2)), "a point is x, y and visibility"),
        ("keypoints", "keypoints", np.full((1, 5, 3), np.nan), r"keypoints\[0\]"),
        ("polygons", "polygons", np.zeros((1, 7)), r"polygons\[0\]"),
        ("masks", "scores", np.array([np.nan]), r"scores\[0\]"),
    ],
)
def test_bad_shapes_are_named_and_leave_no_trace(
    tmp_path: Path, kind: str, key: str, wrong: Any, message: str
) -> None:
    predictions, targets, _ = drawn(kind, tmp_path)
    i = next(i for i, each in enumerate(targets) if len(each["labels"]))
    one = {name: each[:1] for name, each in predictions[i].items() if name != "image_id"}
    stream = Evaluator(PROTOCOL[kind], settings=SETTINGS.get(kind))
    target = {name: each for name, each in targets[i].items() if name != "image_id"}
    with pytest.raises(DataError, match=message):
        stream.update([{**one, key: wrong}], [target])
    with pytest.raises(DataError, match=f"no '{FIELD[kind]}'"):
        stream.update([{"labels": [1], "scores": [1]}], [target])
    assert len(stream) == 0


def boxes(seed: int, names: list[Any]) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    predictions, targets = [], []
    for image in range(8):
        n = int(rng.integers(0, 5))
        labels = [names[k] for k in rng.integers(0, 1 + image // 2, n)]
        box = np.sort(rng.uniform(0, 90, (n, 2, 2)), axis=1).reshape(n, 4)
        targets.append({"image_id": image, "boxes": box, "labels": labels})
        scores = rng.integers(1, 4, n) / 4
        predictions.append({**targets[-1], "boxes": box + np.array([0, 0, 3, 2]), "scores": scores})
    return predictions, targets


@pytest.mark.parametrize("names", [["zebra", "cat", "ant", "dog"], [90, 1, 7, 3]], ids=str)
def test_classes_as_they_come_in_any_order_and_part(names: list[Any]) -> None:
    """Each new class moves the others; a class may be on one rank only."""
    predictions, targets = boxes(3, names)
    seen = sorted({label for each in targets for label in each["labels"]})
    known = {i: str(name) for i, name in enumerate(seen)}
    if isinstance(names[0], int):
        known = {name: str(name) for name in seen}
        labels = {name: name for name in seen}
    else:
        labels = {name: i for i, name in known.items()}
    numbered = [
        [{**each, "labels": [labels[label] for label in each["labels"]]} for each in side]
        for side in (predictions, targets)
    ]
    whole = fed(Evaluator(classes=known), *numbered, 8).compute()
    for step in (1, 3):
        stream = fed(Evaluator(), predictions[::-1], targets[::-1], step)
        assert stream.categories.names == tuple(map(str, seen))
        assert stream.compute().signature == whole.signature
        assert stream.compute().to_dict() == whole.to_dict()
    one = fed(Evaluator(), predictions[:2], targets[:2], 1)
    other = fed(Evaluator(), predictions[2:], targets[2:], 2)
    merged = pickle.loads(pickle.dumps(Evaluator())).merge(other, one)
    assert merged.compute().to_dict() == whole.to_dict()
    assert len(one) == 2


def test_names_and_numbers_do_not_mix_and_parts_are_checked(tmp_path: Path) -> None:
    predictions, targets = boxes(3, ["a", "b", "c", "d"])
    numbers = boxes(3, [1, 2, 3, 4])
    stream = fed(Evaluator(), predictions[:4], targets[:4], 2)
    with pytest.raises(DataError, match="names in others"):
        stream.update(numbers[0][4:], numbers[1][4:])
    with pytest.raises(DataError, match=r"labels: dtype"):
        Evaluator().update([predictions[4], numbers[0][5]], [targets[4], numbers[1][5]])
    with pytest.raises(DataError, match="ids in predictions, names in targets"):
        Evaluator().update(numbers[0][:4], targets[:4])
    for other, message in (
        (fed(Evaluator(), numbers[0][4:], numbers[1][4:], 2), "use one kind"),
        (fed(Evaluator(), predictions[:1], targets[:1], 2), "more than one part"),
        (Evaluator(classes=["a"]), "give classes= to all"),
        (Evaluator("voc2007"), "protocol"),
    ):
        with pytest.raises(MergeError, match=message):
            stream.merge(other)
    assert len(stream) == 4
    stream.save(tmp_path / "state.npz")
    wanted = pytest.approx(stream.compute().metrics, nan_ok=True)
    assert Evaluator.load(tmp_path / "state.npz").compute().metrics == wanted
    assert np.isnan(Evaluator().compute().metrics["AP"])
