"""What a test puts in the place of a package that is not here."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one function of torchvision that torchmetrics takes, ``box_convert``, where there is no
    torchvision: there is none for CPU torch on the package index. Nothing else of torchmetrics is
    touched.
    """
    if find_spec("torchvision") is None:
        import_module("torchmetrics.detection.mean_ap")  # which looks for the real one
        ops = ModuleType("torchvision.ops")
        ops.box_convert = box_convert  # type: ignore[attr-defined]
        package = ModuleType("torchvision")
        package.ops = ops  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "torchvision", package)
        monkeypatch.setitem(sys.modules, "torchvision.ops", ops)
        monkeypatch.setattr("torchmetrics.detection.mean_ap._TORCHVISION_AVAILABLE", True)


def box_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Any:
    """As torchvision's, for what torchmetrics asks of it."""
    import torch

    assert out_fmt == "xywh"
    if in_fmt == "xywh":
        return boxes.clone()
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xyxy":
        return torch.stack((a, b, c - a, d - b), dim=-1)
    assert in_fmt == "cxcywh"
    return torch.stack((a - 0.5 * c, b - 0.5 * d, c, d), dim=-1)


def training_run(host: str) -> Any:
    """The function ``train`` of a package: it calls what it is given."""
    names: dict[str, Any] = {"__name__": f"{host}.loop"}
    exec("def train(run):\n    return run()", names)
    return names["train"]


def packages(monkeypatch: pytest.MonkeyPatch, detmap_module: str, modules: dict[str, Any]) -> Any:
    """Puts modules, with their parents, in the place of a host; returns detmap's own, made anew.

    The fixture that calls it removes detmap's module afterwards.
    """
    for name, content in modules.items():
        for end in range(1, name.count(".") + 1):
            parent = ".".join(name.split(".")[:end])
            if parent not in modules:
                monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    # The one of the real host, if a test before has imported it, comes back.
    monkeypatch.setitem(sys.modules, detmap_module, ModuleType(detmap_module))
    monkeypatch.delitem(sys.modules, detmap_module)
    return import_module(detmap_module)


class MMMetric:
    """``BaseMetric`` of mmengine on one rank."""

    def __init__(self, prefix: str | None = None) -> None:
        self.results: list[Any] = []
        self.dataset_meta: dict[str, Any] | None = None

    def evaluate(self, size: int) -> dict[str, float]:
        metrics = self.compute_metrics(self.results[:size])  # type: ignore[attr-defined]
        self.results.clear()
        return {f"{self.default_prefix}/{name}": value for name, value in metrics.items()}  # type: ignore[attr-defined]


def mmengine(logged: list[str]) -> dict[str, Any]:
    """The modules of mmengine that a metric imports."""
    registry = SimpleNamespace(register_module=lambda: lambda each: each)
    return {
        "mmengine.evaluator": {"BaseMetric": MMMetric},
        "mmengine.registry": {"METRICS": registry},
        "mmengine.logging": {"print_log": lambda text, **_: logged.append(text)},
    }


def detectron2() -> dict[str, Any]:
    """The modules of detectron2 that an evaluator imports, on one rank."""
    comm = SimpleNamespace(gather=lambda rows, dst: [rows], is_main_process=lambda: True)
    return {
        "detectron2.evaluation": {"DatasetEvaluator": object},
        "detectron2.utils": {"comm": comm},
    }


def ultralytics(logged: list[str]) -> dict[str, Any]:
    """The modules of Ultralytics that a callback imports."""
    logger = SimpleNamespace(info=logged.append, warning=logged.append)
    return {
        "ultralytics.models.yolo.detect.val": {"DetectionValidator": type("Validator", (), {})},
        "ultralytics.utils": {"LOGGER": logger},
    }
