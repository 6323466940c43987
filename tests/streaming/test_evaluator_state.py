"""What an evaluator holds after each call: results, images, copies, and the images of all ranks."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from detmap import DataError, Evaluator, MergeError, truth_from_arrays
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
