"""The recipe of docs/integrations.md in a `LightningModule`, run by Lightning's `Trainer`."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import stand_ins
from tests.support.builders import ROOT

torch = pytest.importorskip("torch", reason="needs detmap-eval[test-torch]")
pytest.importorskip("torchmetrics", reason="needs detmap-eval[test-torch]")
lightning = pytest.importorskip("lightning", reason="pip install lightning")

from tests.compat.test_torchmetrics import batches  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Lightning's advice on loaders and folders
]
PAGE = (ROOT / "docs" / "integrations.md").read_text()
RECIPE = re.search(r"In Lightning,.*?```text\n(.*?)```", PAGE, re.DOTALL)


def test_the_recipe_logs_the_numbers_of_the_epoch(tmp_path: Path, monkeypatch: Any) -> None:
    stand_ins.torchvision(monkeypatch)
    from torchmetrics.detection.mean_ap import MeanAveragePrecision as Original

    from detmap.integrations.torchmetrics import MeanAveragePrecision

    assert RECIPE is not None
    recipe, data = compile(RECIPE[1], "docs/integrations.md", "exec"), list(batches("xyxy"))

    class Detector(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))
            self.metric = MeanAveragePrecision(class_metrics=True)

        def training_step(self, batch: Any) -> Any:
            return self.weight.square().sum()

        def validation_step(self, batch: Any) -> None:
            self.metric.update(*batch)

        def on_validation_epoch_end(self) -> None:
            exec(recipe, {"self": self})

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    options = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False}
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "max_epochs": 2}
    trainer = lightning.Trainer(default_root_dir=tmp_path, **options, **quiet)
    loader = torch.utils.data.DataLoader(data, batch_size=None)
    trainer.fit(Detector(), loader, loader)
    original = Original(class_metrics=True)
    for batch in data:
        original.update(*batch)
    expected = {
        f"val/{key}": float(value)
        for key, value in original.compute().items()
        if value.numel() == 1
    }
    assert {key: float(value) for key, value in trainer.callback_metrics.items()} == expected
    assert expected["val/map"] > 0
