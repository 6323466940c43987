"""What a test puts in the place of a package that is not here."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
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
