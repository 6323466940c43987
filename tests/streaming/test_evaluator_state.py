"""What an evaluator holds after each call: results, images, copies, and the images of all ranks."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from detmap import DataError, Evaluator, MergeError, evaluate, truth_from_arrays
from detmap.core.streaming import torch_ranks
from tests.streaming.test_evaluator import Fields, plain


def fed(*image_ids: int | None) -> Evaluator:
    """An evaluator with these images; None for an image without an id."""
    predicted, annotated = plain()
    stream = Evaluator(classes=["a", "b"])
    for each in image_ids:
        stream.update([{**predicted, "image_id": each}], [annotated])
    return stream


def moved(fields: Fields) -> Fields:
    """Predictions that match nothing."""
    return {**fields, "boxes": fields["boxes"] + 500}


CHANGES: dict[str, Callable[[Evaluator], Any]] = {
    "update": lambda stream: stream.update([{**moved(plain()[0]), "image_id": 2}], [plain()[1]]),
    "merge": lambda stream: stream.merge(fed(2), fed(3)),
    "reset": lambda stream: stream.reset(),
}


@pytest.mark.parametrize(("change", "images"), [("update", 2), ("merge", 3), ("reset", 0)])
def test_a_result_is_of_the_images_after_the_change(change: str, images: int) -> None:
    stream = fed(1)
    before = stream.compute()
    CHANGES[change](stream)
    result = stream.compute()
    assert result is not before
    assert result.counts()["images"] == len(stream) == images
    assert result.counts()["objects"] == 2 * images


def test_parts_without_ids_are_numbered_one_after_the_other() -> None:
    """Also those after the first, and those that are added after the merge."""
    whole = fed(None, None).merge(fed(None), fed(None, None, None), fed(None))
    assert whole.matches.image_ids.tolist() == list(range(7))
    predicted, annotated = plain()
    whole.update([predicted], [annotated])
    assert whole.matches.image_ids.tolist() == list(range(8))
    assert len(whole) == whole.compute().counts()["images"] == 8


def test_an_image_of_a_merged_evaluator_is_known() -> None:
    whole = fed(1).merge(fed(2))
    with pytest.raises(DataError, match="2 was already added"):
        whole.update([{**plain()[0], "image_id": 2}], [plain()[1]])


def test_a_copy_and_its_original_are_fed_apart() -> None:
    stream = fed(1)
    other = copy.copy(stream)
    CHANGES["update"](other)
    assert (len(stream), len(other)) == (1, 2)
    assert stream.compute().metrics["AP"] == pytest.approx(1)
    assert other.compute().metrics["AP"] < 0.6
    CHANGES["update"](stream)  # the image is not known to the original
    assert stream.compute().signature == other.compute().signature


def of_two_images(unknown: str = "error") -> Evaluator:
    """An evaluator that knows the ground truth of the images 1 and 2."""
    boxes = plain()[1]["boxes"].copy()
    boxes[:, 2:] -= boxes[:, :2]
    truth = truth_from_arrays(
        [1, 1, 2, 2], [0, 1] * 2, [*boxes, *boxes], images=[1, 2], categories={0: "a", 1: "b"}
    )
    return Evaluator(truth=truth, unknown=unknown)


def test_dropped_detections_are_counted_even_if_they_are_all() -> None:
    stream = of_two_images("drop")
    stream.update([{**plain()[0], "image_id": 99}])
    assert {note.code: note.count for note in stream.compute().notes}["image-unknown"] == 2
    assert stream.compute().counts()["images"] == 0


def test_images_that_were_not_updated_are_counted_until_they_are() -> None:
    predicted, stream, counts = plain()[0], of_two_images(), []
    for image in (1, 2):
        stream.update([{**predicted, "image_id": image}])
        notes = {note.code: note.count for note in stream.compute().notes}
        counts.append(notes.get("image-unseen", 0))
    assert counts == [1, 0]


def test_a_second_gathering_of_the_ranks_is_refused_until_the_reset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch_ranks, "are_there", lambda: True)
    monkeypatch.setattr(torch_ranks, "gather", lambda state, group: [state, fed(2)._state()])
    stream = fed(1)
    stream.compute()
    assert stream.sync().compute().counts()["images"] == 2
    with pytest.raises(MergeError, match="already holds the images of every rank"):
        stream.sync()
    stream.reset()
    CHANGES["merge"](stream)
    with pytest.raises(MergeError, match=r"more than one .*use a sampler without padding"):
        stream.sync()
    stream.reset()
    assert len(fed().sync()) == 1


def refused(stream: Evaluator, times: int = 1) -> Evaluator:
    """After batches whose error the caller catches."""
    for _ in range(times):
        with pytest.raises(DataError):
            stream.update([plain()[0]], [{"boxes": [[0, 0, 1, 1]], "labels": ["nobody"]}])
    return stream


def note_on_refused(stream: Evaluator) -> list[str]:
    return [str(note) for note in stream.compute().notes if note.code == "batch-refused"]


@pytest.mark.parametrize("classes", [["a", "b"], None], ids=["given", "as they come"])
def test_a_refused_batch_is_counted_wherever_the_images_go(
    classes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def new() -> Evaluator:
        stream = Evaluator(classes=classes)
        stream.update([plain()[0]], [plain()[1]])
        return stream

    stream = new()
    assert note_on_refused(stream) == []
    before = stream.compute().signature
    wanted = ["1 update was refused with an error and is not counted"]
    assert note_on_refused(refused(stream)) == wanted
    assert stream.compute().signature == before
    other = refused(Evaluator(classes=classes), 2)  # has no image
    expected = ["3 updates were refused with an error and are not counted"]
    assert note_on_refused(stream + other) == expected
    assert note_on_refused(stream.merge(other)) == note_on_refused(new() + stream)
    assert note_on_refused(refused(stream))[0].startswith("4 ")
    assert note_on_refused(pickle.loads(pickle.dumps(stream)))[0].startswith("4 ")
    file = io.BytesIO()
    stream.save(file)
    file.seek(0)
    loaded = Evaluator.load(file)
    assert note_on_refused(loaded)[0].startswith("4 ")
    monkeypatch.setattr(torch_ranks, "are_there", lambda: True)
    monkeypatch.setattr(torch_ranks, "gather", lambda state, group: [state, other._state()])
    assert note_on_refused(stream.sync())[0].startswith("6 ")
    stream.reset()
    assert note_on_refused(stream) == []


@pytest.mark.parametrize(
    ("side", "wrong", "key"),
    [
        ("targets", "is_crowd", "iscrowd"),
        ("targets", "crowd", "iscrowd"),
        ("targets", "label", "labels"),
        ("targets", "areas", "area"),
        ("predictions", "score", "scores"),
        ("predictions", "Boxes", "boxes"),
        ("predictions", "bboxes", "boxes"),
        ("targets", "bbox", "boxes"),
        ("targets", "gt_boxes", "boxes"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_right_one(side: str, wrong: str, key: str) -> None:
    pair = {"predictions": {**plain()[0]}, "targets": {**plain()[1]}}
    value = pair[side].pop(key, [0, 0])
    pair[side][wrong] = value
    stream = Evaluator(classes=["a", "b"])
    message = rf"{side}\[0\]: unknown key '{wrong}' \(write '{key}', or rename the key"
    with pytest.raises(DataError, match=message):
        stream.update([pair["predictions"]], [pair["targets"]])
    if wrong != "Boxes":
        with pytest.raises(DataError, match=message):
            evaluate([pair["targets"]], [pair["predictions"]])
    pair[side] |= {key: value}  # now the other one is the caller's own
    pair["targets" if side == "predictions" else "predictions"].pop(wrong, None)
    stream.update([pair["predictions"]], [pair["targets"]])
    assert stream.compute().counts()["objects"] == 2


def test_other_unknown_keys_are_ignored() -> None:
    predicted, annotated = plain()
    own = {"file_name": "a.jpg", "size": (9, 9), "class_labels": [1], "caption": "", 5: 0, "": 0}
    stream = Evaluator(classes=["a", "b"])
    stream.update([{**predicted, **own, "logits": 0}], [{**annotated, **own, "track_id": 0}])
    assert stream.compute().metrics["AP"] == pytest.approx(1)
    with pytest.raises(DataError, match="unknown key 'mask'"):
        Evaluator("coco-segm").update([{**predicted, "mask": 0}], [annotated])
