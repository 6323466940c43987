"""`detmap.integrations.torchmetrics` beside torchmetrics itself."""

import itertools
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from tests.support import stand_ins
from tests.support.builders import ROOT

torch = pytest.importorskip("torch", reason="needs detmap-eval[test-torch]")
pytest.importorskip("torchmetrics", reason="needs detmap-eval[test-torch]")

from tests.compat.test_torchmetrics import batches, equal  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Encountered more than:UserWarning"),
    pytest.mark.filterwarnings("ignore::detmap.compat.PycocotoolsQuirk"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins.torchvision(monkeypatch)


def original(**options: Any) -> Any:
    from torchmetrics.detection.mean_ap import MeanAveragePrecision

    return MeanAveragePrecision(**options)


def ours(**options: Any) -> Any:
    from detmap.integrations.torchmetrics import MeanAveragePrecision

    return MeanAveragePrecision(**options)


def filled(metric: Any) -> Any:
    for predictions, targets in batches(metric.box_format):
        metric.update(predictions, targets)
    return metric


@pytest.mark.parametrize(
    "options",
    [
        {"class_metrics": metrics, "average": average, "box_format": form}
        for metrics, average, form in itertools.product(
            (False, True), ("macro", "micro"), ("xyxy", "xywh", "cxcywh")
        )
    ]
    + [
        {"extended_summary": True},
        {"iou_thresholds": [0.3, 0.75], "rec_thresholds": [0.0, 0.5, 1.0]},
        {"max_detection_thresholds": [1, 2, 5], "class_metrics": True},
    ],
    ids=str,
)
def test_every_key_is_equal(options: dict[str, Any]) -> None:
    assert equal(filled(ours(**options)).compute(), filled(original(**options)).compute())


def class_by_class(metric: Any) -> Any:
    """The numbers of torchmetrics' own loop, which evaluates once per class."""
    found = type(metric).__mro__[1].compute(metric)
    return {key: torch.as_tensor(value).squeeze() for key, value in found.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"average": average, "backend": backend, "max_detection_thresholds": limits}
        for average, backend, limits in (
            ("macro", "pycocotools", [1, 2, 5]),
            ("macro", "faster_coco_eval", [1, 2, 5]),
            ("micro", "faster_coco_eval", [1, 10, 100]),
            ("micro", "pycocotools", [100, 100, 1]),
        )
    ],
    ids=str,
)
def test_classes_are_read_from_one_evaluation(options: dict[str, Any], monkeypatch: Any) -> None:
    from detmap.compat import COCOeval

    metric, calls, evaluate = filled(ours(class_metrics=True, **options)), [], COCOeval.evaluate
    expected = class_by_class(metric)

    def counted(self: Any) -> None:
        calls.append(self)
        evaluate(self)

    monkeypatch.setattr(COCOeval, "evaluate", counted)
    found = metric.compute()
    assert len(calls) == (2 if options["average"] == "micro" else 1)
    assert equal(found, expected)
    assert len(found["map_per_class"]) == 4
    assert (metric.class_metrics, metric.average) == (True, options["average"])
    assert metric._coco_backend.last is None


def test_classes_of_masks_and_of_both_types_are_those_of_torchmetrics() -> None:
    rng = np.random.default_rng(3)
    masks = torch.from_numpy(rng.random((3, 20, 30)) < 0.5)
    target = {"masks": masks, "boxes": torch.ones(3, 4), "labels": torch.tensor([1, 2, 2])}
    shown = {**target, "masks": masks.roll(1, 0), "scores": torch.tensor([0.9, 0.8, 0.7])}
    shown["masks"][0] = masks[0]
    for kinds in ("segm", ("bbox", "segm")):
        values = []
        for metric in (ours, original):
            made = metric(iou_type=kinds, class_metrics=True)
            made.update([shown], [target])
            values.append(made.compute())
        assert equal(*values), kinds


def test_detmap_evaluates_for_both_backends() -> None:
    both = [filled(ours(backend=name)).compute() for name in ("pycocotools", "faster_coco_eval")]
    assert equal(*both)
    limits = {"max_detection_thresholds": [1, 2, 5]}
    values = [
        float(filled(ours(backend=name, **limits)).compute()["map"])
        for name in ("pycocotools", "faster_coco_eval")
    ]
    assert values[0] == -1
    assert values[1] == pytest.approx(filled(ours(**limits)).result.metrics["map"], abs=1e-7)
    with pytest.raises(ValueError, match="backend"):
        ours(backend="other")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*is deprecated. Please switch to:FutureWarning")  # torch 2.14
def test_the_metric_can_be_scripted() -> None:
    torch.jit.script(ours())
    torch.jit.script(ours(iou_type=("bbox", "segm")))  # which has no `result`


def test_a_metric_without_images_and_with_images_without_boxes() -> None:
    with pytest.warns(UserWarning, match="before the ``update`` method"):
        assert equal(ours().compute(), original().compute())
    empty = {"boxes": torch.zeros((0, 4)), "labels": torch.zeros(0, dtype=torch.int64)}
    pair = ([{**empty, "scores": torch.zeros(0)}], [empty])
    for options in ({}, {"class_metrics": True}, {"class_metrics": True, "average": "micro"}):
        values = []
        for metric in (ours(**options), original(**options)):
            metric.update(*pair)
            values.append(metric.compute())
        assert equal(*values), options


def test_forward_gives_the_batch_and_keeps_the_whole() -> None:
    one, other = ours(), original()
    for predictions, targets in batches("xyxy"):
        assert equal(one(predictions, targets), other(predictions, targets))
    assert equal(one.compute(), other.compute())


def test_bad_input_is_the_hosts_own_error() -> None:
    with pytest.raises(ValueError, match="same length"):
        ours().update([{}], [])
    with pytest.raises(ValueError, match="box_format"):
        ours(box_format="yxyx")
    with pytest.raises(ValueError, match="MeanAveragePrecision: protocol: no protocol 'foo'"):
        ours(protocol="foo")


def test_the_result_has_the_same_numbers_and_more() -> None:
    metric = filled(ours())
    computed, result = metric.compute(), metric.result
    for name in ("map", "map_50", "map_75", "mar_1", "mar_100", "map_large"):
        assert result.metrics[name] == pytest.approx(float(computed[name]), abs=1e-7), name
    named = filled(ours(protocol="coco-bbox")).result
    assert named.signature.startswith("coco-bbox.")
    assert named.intervals().metrics["AP"].se > 0
    with pytest.raises(detmap.DetmapError, match="iou_type"):
        _ = ours(iou_type=("bbox", "segm")).result


def test_limits_have_their_rows_in_the_result() -> None:
    metric = filled(ours(max_detection_thresholds=[1, 2, 5]))
    computed, result = metric.compute(), metric.result
    for limit in (1, 2, 5):
        name = f"mar_{limit}"
        assert result.metrics[name] == pytest.approx(float(computed[name]), abs=1e-7)


def test_merged_states_are_one_run_with_tied_scores() -> None:
    parts = list(batches("xyxy"))
    whole, one, other = ours(), ours(), ours()
    for k, (predictions, targets) in enumerate(parts):
        for row in predictions:
            row["scores"] = row["scores"].round(decimals=1)
        whole.update(predictions, targets)
        (one if k < 2 else other).update(predictions, targets)
    state = pickle.loads(pickle.dumps(other.metric_state))
    copied = ours()
    copied.merge_state(one)
    one.merge_state(other)
    copied.merge_state(state)
    assert equal(one.compute(), whole.compute())
    assert equal(copied.compute(), whole.compute())
    with pytest.raises(ValueError, match="Expected"):
        one.merge_state(3)


RANK = """
import sys, pytest, torch
from tests.support import stand_ins
patch = pytest.MonkeyPatch(); stand_ins.torchvision(patch)
from detmap.integrations.torchmetrics import MeanAveragePrecision
from tests.compat.test_torchmetrics import batches
from detmap.errors import DetmapError
rank, place, share = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
start = torch.distributed.init_process_group
start("gloo", init_method=f"file://{place}/store", rank=rank, world_size=2)
metric = MeanAveragePrecision(class_metrics=True)
mine = list(batches("xyxy"))[:share] if rank == 0 else list(batches("xyxy"))[share:]
for predictions, targets in mine:
    metric.update(predictions, targets)
with pytest.raises(DetmapError, match="call compute"):
    metric.result
torch.jit.script(metric)
computed = metric.compute()
values = metric.result.metrics, metric.result.overview.n_images
torch.save((computed, len(metric.groundtruth_labels), values), f"{place}/{rank}.pt")
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.parametrize("share", [3, 4], ids=["uneven", "empty rank"])
def test_ranks_with_different_numbers_of_images(tmp_path: Path, share: int) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", RANK, str(rank), str(tmp_path), str(share)],
            cwd=ROOT,
        )
        for rank in range(2)
    ]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
    whole = filled(ours(class_metrics=True))
    expected = whole.compute()
    for rank, images in enumerate((5 * share, 20 - 5 * share)):
        computed, own, values = torch.load(tmp_path / f"{rank}.pt")
        assert values == (whole.result.metrics, 20)
        assert equal(computed, expected)
        assert own == images


SURVIVOR = """
import datetime, os, signal, sys, pytest, torch
from tests.support import stand_ins
patch = pytest.MonkeyPatch(); stand_ins.torchvision(patch)
from detmap.integrations.torchmetrics import MeanAveragePrecision
from tests.compat.test_torchmetrics import batches
from detmap.errors import DetmapError
rank, place = int(sys.argv[1]), sys.argv[2]
start, wait = torch.distributed.init_process_group, datetime.timedelta(seconds=30)
start("gloo", init_method=f"file://{place}/store", rank=rank, world_size=2, timeout=wait)
metric = MeanAveragePrecision()
metric.update(*next(batches("xyxy")))
torch.distributed.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
with pytest.raises(DetmapError, match="the ranks did not synchronize.*keeps its images"):
    metric.compute()
metric.distributed_available_fn = lambda: False
torch.save((metric.compute(), metric.result.overview.n_images), f"{place}/0.pt")
os._exit(0)  # a group that has lost a rank cannot be left in order
"""


@pytest.mark.slow
def test_a_killed_rank_is_an_error_on_the_other_which_keeps_its_images(tmp_path: Path) -> None:
    words = [sys.executable, "-W", "ignore", "-c", SURVIVOR]
    ranks = [subprocess.Popen([*words, str(i), str(tmp_path)], cwd=ROOT) for i in range(2)]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, -signal.SIGKILL]
    alone = ours()
    alone.update(*next(batches("xyxy")))
    computed, n_images = torch.load(tmp_path / "0.pt")
    assert equal(computed, alone.compute())
    assert n_images == 5


def test_boxes_of_half_precision_are_read() -> None:
    metric = ours()
    box = torch.tensor([[1.0, 2.0, 30.0, 40.0]], dtype=torch.bfloat16)
    label = torch.tensor([3])
    metric.update(
        [{"boxes": box, "labels": label, "scores": torch.tensor([0.5], dtype=torch.bfloat16)}],
        [{"boxes": box, "labels": label}],
    )
    assert metric.result.metrics["map"] == 1.0
    assert np.isclose(float(metric.compute()["map"]), 1.0)


LONG = {"labels": torch.int64, "iscrowd": torch.int64}


def drawn_side(rng: Any, kinds: dict[str, Any], n_images: int = 4) -> list[dict[str, Any]]:
    """Images of up to three boxes, with a tensor of each kind."""
    side = []
    for n in rng.integers(0, 4, n_images).tolist():
        image = {"boxes": torch.from_numpy(rng.uniform(1, 90, (n, 4)).astype(np.float32))}
        image |= {key: torch.from_numpy(rng.integers(0, 2, n)).to(kinds[key]) for key in kinds}
        side.append(image)
    return side


@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize("seed", range(8))
def test_states_are_those_of_torchmetrics(box_format: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    optional = {"area": [torch.float32, torch.int64][seed % 2]} if seed % 3 else {}
    some = [*LONG][: 1 + seed // 4]
    preds = drawn_side(rng, {"labels": LONG["labels"], "scores": torch.float32})
    target = drawn_side(rng, {key: LONG[key] for key in some} | optional)
    if seed == 5:
        preds[0]["boxes"] = preds[0]["boxes"].double()
    if seed == 6:
        target[1] = {"boxes": torch.tensor([]), "labels": torch.tensor([], dtype=torch.int64)}
        preds[2]["labels"] = preds[2]["labels"].int()
    metrics = [make(box_format=box_format) for make in (ours, original)]
    for metric in metrics:
        metric.update(preds, target)
        metric.update(preds[:1], target[:1])
    for name in metrics[0]._defaults:
        for own, its in zip(*(getattr(metric, name) for metric in metrics), strict=True):
            assert torch.equal(own, its), name
            assert (own.dtype, own.shape) == (its.dtype, its.shape), name


def test_a_usual_batch_is_checked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from detmap.integrations.inputs import torch_images

    metric = ours()
    monkeypatch.delattr(torch_images, "_require_valid")
    filled(metric)
    bad = {"boxes": torch.full((1, 4), torch.nan), "labels": torch.tensor([1])}
    with pytest.raises(NameError):
        metric.update([{**bad, "scores": torch.ones(1)}], [bad])


MASK = torch.ones(1, 5, 6, dtype=torch.bool)


@pytest.mark.parametrize(
    "shown, known, message",
    [
        ({}, {"iscrowd": [0, 1]}, r"target\[0\].iscrowd: 2 values for 1 labels"),
        ({}, {"area": [4.0, 4.0]}, r"target\[0\].area: 2 values for 1 labels"),
        ({"labels": [2**40]}, {}, r"preds\[0\].labels\[0\]: 1099511627776 does not fit 32 bits"),
        ({}, {"labels": [-(2**31) - 1]}, r"target\[0\].labels\[0\]: -2147483649 does not fit"),
        ({"boxes": [[0.0, 0, 1, 1, 1]]}, {}, r"preds\[0\].boxes: shape \(1, 5\)"),
        ({"masks": MASK.bfloat16()}, {}, r"preds\[0\].masks: dtype torch.bfloat16"),
        ({"masks": MASK[:, 1:]}, {}, r"preds\[0\].masks: masks of \(4, 6\) pixels"),
    ],
)
@pytest.mark.parametrize("masks", [True, False])
def test_input_that_torchmetrics_does_not_check(
    shown: Any, known: Any, message: str, masks: bool
) -> None:
    metric = ours(iou_type=("bbox", "segm") if masks else "bbox")
    image = {"boxes": torch.ones(1, 4), "labels": torch.tensor([1])}
    image |= {"masks": MASK} if masks or "masks" in shown else {}
    sides = [
        {**image, **{key: torch.as_tensor(value) for key, value in side.items()}}
        for side in ({"scores": torch.ones(1), **shown}, known)
    ]
    with pytest.raises(ValueError, match=message):
        metric.update(*([side] for side in sides))
    assert not metric.detection_box


def test_the_result_of_masks() -> None:
    rng = np.random.default_rng(2)
    metric = ours(iou_type="segm", max_detection_thresholds=[1, 10, 100])
    for _ in range(4):
        masks = torch.from_numpy(rng.random((3, 20, 30)) < 0.5)
        target = {"masks": masks, "labels": torch.tensor([1, 2, 2])}
        shown = {**target, "masks": masks.roll(1, 0), "scores": torch.tensor([0.9, 0.8, 0.7])}
        shown["masks"][0] = masks[0]
        metric.update([shown], [target])
    computed, result = metric.compute(), metric.result
    for name in ("map", "map_50", "map_small", "mar_10"):
        assert result.metrics[name] == pytest.approx(float(computed[name]), abs=1e-7), name


def test_the_result_is_that_of_all_images_after_forward_update_and_reset() -> None:
    one, other = ours(), ours()
    for predictions, targets in batches("xyxy"):
        one(predictions, targets), other.update(predictions, targets)
        one.compute()
        assert one.result.metrics == other.result.metrics
    one(*next(iter(batches("xyxy"))))
    assert one.result.overview.n_images == other.result.overview.n_images + 5
    one.reset()
    assert one.result.overview.n_images == 0


def test_the_result_of_micro_pools_the_classes() -> None:
    metric = filled(ours(average="micro"))
    computed, result = metric.compute(), metric.result
    for name in ("map", "map_50", "mar_100"):
        assert result.metrics[name] == pytest.approx(float(computed[name]), abs=1e-7), name
    assert [row["id"] for row in result.per_class] == [0]
    rng = np.random.default_rng(3)
    options = {"iou_type": "keypoints", "keypoint_sigmas": [0.05] * 5, "class_metrics": True}
    pooled, single, by_class = ours(average="micro", **options), ours(**options), ours(**options)
    for _ in range(4):
        shown, target = keypoint_batch(rng)
        zeros = [{**side, "labels": side["labels"] * 0} for side in (shown, target)]
        pooled.update([shown], [target]), by_class.update([shown], [target])
        single.update([zeros[0]], [zeros[1]])
    assert equal({"map": pooled.compute()["map"]}, {"map": single.compute()["map"]})
    for name in ("classes", "map_per_class"):
        assert equal({name: pooled.compute()[name]}, {name: by_class.compute()[name]})


def test_images_without_ground_truth_masks_are_left_out_of_the_result() -> None:
    metric, image = ours(iou_type="segm"), {"masks": MASK, "labels": torch.tensor([1])}
    nothing = {"masks": MASK[:0], "labels": torch.zeros(0, dtype=torch.int64)}
    shown = {**image, "scores": torch.tensor([0.9])}
    metric.update([shown, {**shown, "scores": torch.tensor([0.95])}], [image, nothing])
    assert float(metric.compute()["map_50"]) == metric.result.metrics["map_50"] == 1
    assert any("1 image has no ground-truth masks" in str(note) for note in metric.result.notes)
    metric.protocol = "coco-segm"
    assert metric.result.metrics["AP50"] == 0.5


def test_empty_masks_of_another_type_are_read() -> None:
    """Any empty tensor is no masks, as in torchmetrics."""
    metrics = [ours(iou_type="segm"), original(iou_type="segm")]
    shown = {"masks": MASK, "labels": torch.tensor([1]), "scores": torch.tensor([0.9])}
    nothing = {"masks": torch.tensor([]), "labels": torch.tensor([])}
    for metric in metrics:
        metric.update([shown], [nothing])
        metric.update([shown], [{"masks": MASK, "labels": torch.tensor([1])}])
    assert equal(*(metric.compute() for metric in metrics))


def test_recall_thresholds_that_are_not_ascending_have_no_result() -> None:
    metric = filled(ours(rec_thresholds=[0.5, 0.0, 1.0]))
    with pytest.raises(detmap.DetmapError, match="rec_thresholds are not ascending"):
        _ = metric.result


def keypoint_batch(rng: np.random.Generator, points: int = 5) -> tuple[Any, Any]:
    given = np.concatenate([rng.uniform(0, 60, (3, points, 2)), np.full((3, points, 1), 2)], 2)
    target = {
        "keypoints": torch.from_numpy(given),
        "labels": torch.tensor([4, 4, 9]),
        "area": torch.tensor([2000.0, 3000.0, 20000.0]),
    }
    found = torch.from_numpy(given + rng.normal(0, 3, given.shape))
    scores = torch.from_numpy(rng.integers(1, 4, 3) / 4)
    return {"keypoints": found, "labels": target["labels"], "scores": scores}, target


def test_keypoints_have_the_numbers_of_the_evaluator_and_merge() -> None:
    sigmas, rng = [0.05] * 5, np.random.default_rng(3)
    options = {"iou_type": "keypoints", "keypoint_sigmas": sigmas, "class_metrics": True}
    metric, one, other = (ours(**options) for _ in range(3))
    stream = detmap.Evaluator("coco-keypoints", settings={"iou.sigmas": sigmas})
    for i in range(6):
        shown, target = keypoint_batch(rng)
        metric.update([shown], [target]), stream.update([shown], [target])
        (one if i < 2 else other).update([shown], [target])
    computed, whole = metric.compute(), stream.compute()
    assert len([key for key in computed if "class" not in key]) == 10
    assert float(computed["map"]) == pytest.approx(whole.metrics["AP"], abs=1e-7)
    assert float(computed["mar_large"]) == pytest.approx(whole.metrics["ARl"], abs=1e-7)
    assert computed["classes"].tolist() == [4, 9]
    assert computed["classes"].dtype == torch.int32
    assert computed["map_per_class"].shape == (2,)
    assert computed["map"].dtype == torch.float32
    one.merge_state(other)
    assert equal(one.compute(), computed)
    metric.reset()
    with pytest.warns(UserWarning, match="before the ``update`` method"):
        assert float(metric.compute()["map"]) == -1


def test_bad_keypoints_are_the_hosts_error() -> None:
    shown, target = keypoint_batch(np.random.default_rng(3))
    metric = ours(iou_type="keypoints")
    with pytest.raises(ValueError, match="17 numbers"):
        metric.update([shown], [target])
    metric = ours(iou_type="keypoints", keypoint_sigmas=[0.05] * 5)
    with pytest.raises(ValueError, match="preds: not a list of dicts"):
        metric.update(None, [target])
    with pytest.raises(ValueError, match="area: missing"):
        metric.update([shown], [{key: each for key, each in target.items() if key != "area"}])
    shown["keypoints"][0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match=r"predictions\[0\]\.keypoints\[0\]"):
        metric.update([shown], [target])
    assert not metric.detection_labels


@pytest.mark.parametrize("name", ["pycocotools", "faster_coco_eval"])
def test_the_backend_has_a_class_of_evaluations(name: str) -> None:
    """RF-DETR looks for these methods before it uses a backend."""
    from detmap.integrations.torchmetrics_backend import Backend

    evaluation = Backend(name).cocoeval
    assert isinstance(evaluation, type)
    assert all(callable(getattr(evaluation, each)) for each in ("evaluate", "accumulate"))
