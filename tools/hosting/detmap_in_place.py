"""A pytest plugin that puts detmap in the place of what a host's own tests evaluate with.

    DETMAP_IN_PLACE_OF=pycocotools pytest -p detmap_in_place ...

It prints how many kernels ran: none means that the tests evaluated without detmap.
"""

import os
from collections.abc import Callable
from typing import Any


def pycocotools() -> None:
    from detmap.compat import patch_pycocotools

    patch_pycocotools().__enter__()  # until the process ends


def torchmetrics() -> None:
    import torchmetrics.detection as package
    import torchmetrics.detection.mean_ap as module

    from detmap.integrations.torchmetrics import MeanAveragePrecision

    package.MeanAveragePrecision = module.MeanAveragePrecision = MeanAveragePrecision


def supervision() -> None:
    import supervision.metrics as package
    import supervision.metrics.mean_average_precision as module

    from detmap.integrations.supervision import DetmapMetric

    class MeanAveragePrecision(DetmapMetric):  # type: ignore[misc]
        def __init__(self, metric_target: Any = module.MetricTarget.BOXES) -> None:
            assert metric_target == module.MetricTarget.BOXES
            super().__init__("supervision")

    package.MeanAveragePrecision = module.MeanAveragePrecision = MeanAveragePrecision


PLACES: dict[str, Callable[[], None]] = {
    "pycocotools": pycocotools,
    "torchmetrics": torchmetrics,
    "supervision": supervision,
}


def pytest_configure() -> None:
    PLACES[os.environ["DETMAP_IN_PLACE_OF"]]()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    from detmap import kernels

    ran = {name for name, each in _kernels(kernels) if each.entries}
    terminalreporter.write_line(f"detmap ran {len(ran)} kernels")


def _kernels(package: Any) -> list[tuple[str, Any]]:
    """The kernels of all modules that are loaded."""
    import sys

    modules = [m for name, m in [*sys.modules.items()] if name.startswith(package.__name__)]
    named = [(name, each) for m in modules for name, each in vars(m).items()]
    return [(name, each) for name, each in named if isinstance(each, package.Kernel)]
