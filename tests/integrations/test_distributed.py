"""An evaluation on a real cluster of processes: the bits of one process, also when a worker
dies."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, DetmapError, MergeError
from detmap.core.matching.matches import Matches
from detmap.core.tables import Detections, Truth
from detmap.integrations.distributed import evaluate
from tests.streaming.test_evaluator import by_image
from tests.support import builders
from tests.support.drawing import draw_coco, draw_voc
from tests.support.drawn_tables import read_coco, voc_tables

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed"),
]

N_SHARDS = 4


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    import distributed  # takes a second, in the quick tier too

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def files(folder: Path, seed: int) -> tuple[tuple[Path, Path], list[tuple[Path, Path]]]:
    """Files of a whole and of its shards, one image each, in any order."""
    rng = np.random.default_rng(seed)
    instances, results = draw_coco(rng, n_images=N_SHARDS, n_classes=3)
    results = [
        result
        for result in results
        if result["category_id"] in {c["id"] for c in instances["categories"]}
    ]

    def write(name: str, images: list[dict[str, Any]]) -> tuple[Path, Path]:
        ids = {image["id"] for image in images}
        some = {
            **instances,
            "images": images,
            "annotations": [a for a in instances["annotations"] if a["image_id"] in ids],
        }
        found = [result for result in results if result["image_id"] in ids]
        return builders.write(folder / f"{name}.json", some), builders.write(
            folder / f"{name}-results.json", found
        )

    shards = [write(f"shard{i}", [image]) for i, image in enumerate(instances["images"])]
    return write("whole", instances["images"]), [shards[i] for i in rng.permutation(N_SHARDS)]


def assert_equal(found: detmap.Result, expected: detmap.Result) -> None:
    """Every number, count, digest and note but for its file and for the note that needs rows, which
    lie on the workers.
    """
    one, other = (
        {
            **each.to_dict(),
            "notes": sorted((n.code, str(n)) for n in each.notes if n.code != "ties-show"),
        }
        for each in (found, expected)
    )
    assert one == other
    assert (one["signature"], one["counts"]) == (other["signature"], other["counts"])
    for name in ("terms", "recall", "n_objects", "n_tp", "n_fp", "n_ignored"):
        a, b = getattr(found.scores, name), getattr(expected.scores, name)
        assert a.dtype == b.dtype
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), name


@pytest.mark.parametrize("seed", range(3))
def test_shards_of_files_merge_to_the_whole(client: Any, tmp_path: Path, seed: int) -> None:
    whole, shards = files(tmp_path, seed)
    calls: list[tuple[int, int]] = []
    result = evaluate(shards, "coco-bbox", client, progress=lambda *call: calls.append(call))
    assert_equal(result, detmap.evaluate(*whole))
    assert calls == [(i + 1, N_SHARDS) for i in range(N_SHARDS)]


def load(seed: int, shard: int, pause: float = 0) -> tuple[Truth, Detections]:
    """A shard of drawn VOC data: every fourth image, its detections in the order of the whole."""
    time.sleep(pause)
    truth, detections = voc_tables(*draw_voc(np.random.default_rng(seed), n_images=4, n_classes=3))
    detections = by_image(detections)
    images = np.array([shard])
    return truth.select_images(images), detections.select_images(images)


@pytest.mark.parametrize("seed", range(3))
def test_loaders_and_ties_in_the_order_of_shards(client: Any, seed: int) -> None:
    """Images are in shards by their id, so that the order of the shards is the input order of
    `by_image`."""
    truth, detections = voc_tables(*draw_voc(np.random.default_rng(seed), n_images=4, n_classes=3))
    shards = [partial(load, seed, shard) for shard in range(4)]
    for protocol in ("voc2007", "coco-bbox"):
        found = evaluate(shards, protocol, client, settings={"iou.thresholds": [0.5, 0.75]})
        assert_equal(
            found,
            detmap.evaluate(
                truth, by_image(detections), protocol, settings={"iou.thresholds": [0.5, 0.75]}
            ),
        )


@pytest.mark.slow
def test_a_worker_that_dies_changes_nothing(tmp_path: Path) -> None:
    import distributed

    truth, detections = voc_tables(*draw_voc(np.random.default_rng(9), n_images=4, n_classes=3))
    shards = [partial(load, 9, shard, pause=0.3) for shard in range(4)]
    killed: list[int] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)

        def kill(done: int, _: int) -> None:
            """With the first shard matched, a worker that reads its second."""
            if not killed:
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], signal.SIGKILL)

        result = evaluate(shards, "voc2007", client, progress=kill)
        assert killed
        assert killed[0] not in client.run(os.getpid).values()
    assert_equal(result, detmap.evaluate(truth, by_image(detections), "voc2007"))


def test_errors_of_a_worker_come_back(client: Any, tmp_path: Path) -> None:
    _, shards = files(tmp_path, 5)
    with pytest.raises(DataError, match="no shards"):
        evaluate([], "coco-bbox", client)
    with pytest.raises(DataError, match="absent"):
        evaluate([*shards, (tmp_path / "absent.json", shards[0][1])], "coco-bbox", client)
    with pytest.raises(MergeError, match="more than one part"):
        evaluate([*shards, shards[0]], "coco-bbox", client)
    other = builders.write(tmp_path / "other.json", builders.instances())
    results = builders.write(tmp_path / "other-results.json", [builders.detection()])
    with pytest.raises(MergeError, match="the classes differ"):
        evaluate([shards[0], (other, results)], "coco-bbox", client)
    with pytest.raises(detmap.ProtocolError):
        evaluate(shards, "absent", client)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(DetmapError, match=r"detmap-eval\[dask\]"):
        evaluate([("truth.json", "results.json")])


def test_the_rows_stay_where_they_are(client: Any, tmp_path: Path) -> None:
    result = evaluate(files(tmp_path, 6)[1], "coco-bbox", client, rows=False)
    assert "AP50" in str(result)
    for wanted in (
        result.integrators,
        lambda: result.curve(result.verdicts.categories.names[0]),
        lambda: result.matches,
    ):
        with pytest.raises(DetmapError, match="are on other machines"):
            wanted()


def test_a_result_with_its_rows_has_intervals(client: Any, tmp_path: Path) -> None:
    whole, shards = files(tmp_path, 6)
    result, expected = evaluate(shards, "coco-bbox", client), detmap.evaluate(*whole, "coco-bbox")
    assert_equal(result, expected)
    assert result.intervals().metrics == expected.intervals().metrics


def test_without_a_client_the_current_one_is_taken(client: Any, tmp_path: Path) -> None:
    whole, shards = files(tmp_path, 7)
    assert_equal(evaluate(shards), detmap.evaluate(*whole))


@pytest.mark.slow
def test_classes_scored_apart_are_the_scores_of_all() -> None:
    """What a group of classes yields where its rows have come together, here without a cluster."""
    for seed in range(20):
        rules = detmap.load_protocol("coco-bbox")
        if seed % 2:
            rules = rules.override({"metrics": ["AP", "AR@max_dets", "MR"]})
        whole = detmap.match(*read_coco(*draw_coco(np.random.default_rng(seed))), rules)
        n, n_groups = len(whole.categories), 2 + seed % 3
        classes = [np.arange(g, n, n_groups) for g in range(n_groups)]
        parts = [whole.select_classes(ks) for ks in classes]
        scores = detmap.core.curves.scores.join(
            [detmap.summarize(part).scores for part in parts], classes
        )
        direct = detmap.summarize(whole)
        assert np.array_equal(scores.terms, direct.scores.terms, equal_nan=True)
        assert detmap.Result(whole, scores).to_dict() == direct.to_dict()
        assert sum(part.n_tied() for part in parts) == whole.n_tied()
        assert (
            Matches.empty(whole.protocol, whole.categories)
            .select_classes(classes[0])
            .overview()
            .n_images
            == 0
        )
