"""The table of formats of the core, and the places of the tables of wings.

To add a format: one module that reads it, and one row here (`docs/add-a-format.md`).
"""

from pathlib import Path

from detmap import wings
from detmap.core.adapters.format_rows import Format as Format
from detmap.core.adapters.format_rows import Looks as Looks
from detmap.core.adapters.format_rows import Place as Place
from detmap.core.adapters.format_rows import (
    any_file,
    file_with,
    folder_like,
    folder_or,
    lazy,
    row,
    sheet_file,
)


def predictions(path: Path) -> int:
    """Matches file names of Ultralytics' predictions."""
    return 2 * (path.name.lower() == "predictions.json")


SHEETS = "detmap.core.adapters.tabular.csv_parquet"
CSV = sheet_file(f"{SHEETS}:csv_looks", ".csv", ".tsv")
PARQUET = sheet_file(f"{SHEETS}:parquet_looks", ".parquet", ".pq")
TEXT = "detmap.core.adapters.text_per_image.cartucho_rafaelpadilla"
CORE: tuple[Format, ...] = (
    row(
        "coco",
        "a file",
        "detmap.core.adapters.coco.shapes",
        any_file,
        any_file,
        "COCO JSON: instances, and results or annotations",
        options=("shapes", "roles", "attributes"),
    ),
    row(
        "voc",
        "a folder",
        "detmap.core.adapters.voc.devkit",
        folder_like("detmap.core.adapters.voc.folder_layout:looks"),
        folder_like("detmap.core.adapters.voc.result_files:looks"),
        "VOC: Annotations/*.xml, and one text file per class",
        options=("split", "box_format"),
    ),
    row(
        "yolo",
        "a file or a folder",
        "detmap.core.adapters.text_per_image.yolo",
        folder_or(
            file_with(".yaml", ".yml", ".data"),
            "detmap.core.adapters.text_per_image.yolo:truth_looks",
        ),
        folder_or(predictions, "detmap.core.adapters.text_per_image.yolo:detections_look"),
        "YOLO: data.yaml, obj.data or a folder of labels, and predictions",
        options=("split", "image_sizes"),
    ),
    *(
        Format(
            name,
            "a file or a folder",
            looks,
            folder_or(looks, folder_looks),
            lazy(f"detmap.core.adapters.tabular.column_tables:read_{name}_truth"),
            lazy(f"detmap.core.adapters.tabular.column_tables:read_{name}_detections"),
            options=("box_format", "image_sizes", "shapes", "roles", "attributes"),
            detection_options=("box_format",),
            what=f"{name} with one row per box, in named columns",
        )
        for name, looks, folder_looks in (
            ("csv", CSV, "detmap.core.adapters.tabular.column_tables:looks"),
            ("parquet", PARQUET, "detmap.core.adapters.tabular.csv_parquet:looks"),
        )
    ),
    *(
        row(
            name.lower(),
            "a folder",
            f"{TEXT}:{name}",
            folder_like(f"{TEXT}:{name}.truth_looks"),
            folder_like(f"{TEXT}:{name}.detections_look"),
            f"text of {name.lower()}'s tool, one file per image",
            options=("box_format", "image_sizes"),
            detection_options=("box_format",),
        )
        for name in ("CARTUCHO", "RAFAELPADILLA")
    ),
)
TABLES = ("detmap.annotation_tools.formats:FORMATS", "detmap.benchmarks.formats:FORMATS")
"""Places of the tables of wings."""
FORMATS: tuple[Format, ...] = (
    *CORE,
    *(each for table in TABLES if wings.is_installed(table) for each in wings.load(table)),
)
