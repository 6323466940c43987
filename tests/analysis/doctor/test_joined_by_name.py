"""Results whose image ids are counters, beside right file names."""

import json
from pathlib import Path

from detmap.analysis.doctor import loose_readers
from detmap.analysis.doctor.wide_reading import Reading
from detmap.core.adapters import read_truth

SHAPES = Path(__file__).resolve().parents[3] / "datasets" / "shapes"


def test_images_are_joined_by_file_name_as_eval_joins_them(tmp_path: Path) -> None:
    truth = read_truth(SHAPES / "instances_test.json")
    rows = json.loads((SHAPES / "detections" / "contours.json").read_text())[:50]
    names = dict(zip(truth.images.ids.tolist(), truth.images.files, strict=True))
    own = [row["image_id"] for row in rows]
    for row in rows:
        row.update(file_name=names[row["image_id"]], image_id=row["image_id"] + 10000)
    file = tmp_path / "results.json"
    file.write_text(json.dumps(rows))
    raw = loose_readers.read(Reading(file, {}), truth)
    assert [raw.images[i] for i in raw.image.tolist()] == own
