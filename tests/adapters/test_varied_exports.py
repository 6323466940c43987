"""Drawn names, classes, sizes and boxes in each tool's layout: the number of pycocotools."""

import random
from pathlib import Path

import pytest

import detmap
from tests.support import varied_exports as exports
from tests.support import varied_json_writers, varied_writers
from tests.support.tier import drawn

WRITERS = varied_writers.WRITERS | varied_json_writers.WRITERS
WHOLE = varied_writers.WHOLE + varied_json_writers.WHOLE


@pytest.mark.parametrize("kind", WRITERS)
def test_a_drawn_export_has_the_number_of_pycocotools(tmp_path: Path, kind: str) -> None:
    if "parquet" in kind:
        pytest.importorskip("pyarrow")
    pytest.importorskip("PIL")
    for seed in range(drawn(12)):
        rng = random.Random(f"{kind} {seed}")
        case = exports.draw(rng, whole=kind in WHOLE, folders=seed % 2 == 1)
        made = WRITERS[kind](case, tmp_path / f"{seed}" / "export")
        exports.dress(rng, made, tmp_path / f"{seed}" / "export")
        plain = exports.coco(exports.known(case, made), tmp_path / f"{seed}" / "plain", rng)
        truth = detmap.read_truth(made.truth or plain[0], **made.truth_options)
        found = made.found or exports.plain_csv(exports.known(case, made), tmp_path / f"{seed}")
        rows = detmap.read_detections(found, truth, **made.found_options)
        got = detmap.evaluate(truth, rows, "coco-bbox").metrics["AP"]
        assert got == pytest.approx(exports.ap(*plain), abs=1e-9), f"seed {seed}: {case}"
