"""Results whose image digests are computed when they are read: equal in all else."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import pytest

import detmap
from detmap.core.base.resources import folder
from detmap.core.matching import engine
from detmap.core.matching.matches import Matches
from detmap.core.protocol import load
from tests.support.drawing import draw_coco
from tests.support.drawing_shapes import draw_keypoints, draw_segm
from tests.support.drawn_tables import read_coco

SHAPES = folder("datasets") / "shapes"
DRAWN = {
    "coco-bbox": (draw_coco, "boxes"),
    "coco-segm": (draw_segm, "masks"),
    "coco-keypoints": (draw_keypoints, "keypoints"),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DRAWN)
def test_digests_read_later_are_those_computed_at_once(name: str, seed: int) -> None:
    draw, shapes = DRAWN[name]
    tables = *read_coco(*draw(np.random.default_rng(seed)), shapes), load(name)
    now, *later = (engine.match(*tables, digested=at_once) for at_once in (True, *[False] * 4))
    with ThreadPoolExecutor(2) as pool:
        read = [*pool.map(lambda _: later[0].digest, range(8))]
    copies = (pickle.loads(pickle.dumps(later[1])), replace(later[2], notes=()), later[3].overview)
    assert {digest.tobytes() for digest in read} == {now.digest.tobytes()}
    assert [each.digest.tobytes() for each in copies[:2]] == [now.digest.tobytes()] * 2
    assert type(copies[0]) is Matches
    assert copies[2]().digest == now.data_digest()
    for each in fields(Matches):
        np.testing.assert_array_equal(getattr(later[0], each.name), getattr(now, each.name))
    assert repr(later[0]) == repr(now)


def test_the_metrics_of_an_evaluation_need_no_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = SHAPES, SHAPES / "detections" / "contours"
    expected = detmap.evaluate(*sample)
    signature = expected.signature

    def refuse(*tables: object) -> None:
        raise AssertionError("digests were computed")

    monkeypatch.setattr("detmap.core.matching.undigested.image_digests", refuse)
    monkeypatch.setattr(engine, "image_digests", refuse)
    found = detmap.evaluate(*sample)
    assert found.metrics == expected.metrics
    assert list(found.per_class) == list(expected.per_class)
    monkeypatch.undo()
    assert found.signature == signature
