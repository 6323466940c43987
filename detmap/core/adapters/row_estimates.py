"""Estimates how many detections a file has, without reading it."""

from pathlib import Path

from detmap.core.adapters import folder_files
from detmap.core.base import open_files
from detmap.core.base.sums import add_integers
from detmap.errors import DataError

JSON, PARQUET = (".json", ".jsonl", ".ndjson"), (".parquet", ".pq")
SAMPLES, SAMPLE = 16, 1 << 16  # parts of a JSON file whose records are counted, and their bytes


def estimated_rows(path: str | Path) -> int:
    """Returns about how many detections a path has; 0 if its name is not of JSON or Parquet."""
    place = Path(path)
    try:
        if place.suffix.lower() in JSON:
            return n_records(place)
        if place.suffix.lower() in PARQUET or folder_files.has(place, *PARQUET):
            from detmap.core.adapters.tabular import csv_parquet, parquet_pieces

            return add_integers(map(parquet_pieces.n_rows, csv_parquet.shards(place)))
    except (OSError, DataError):  # the reader reports the error
        pass
    return 0


def n_records(path: Path) -> int:
    """Returns about how many records a JSON file has, from samples of it: they have one image each.

    The length of a record differs by 30 times, with masks and other keys.
    """
    with open_files.opened(path) as file:
        step = max(file.size // SAMPLES, SAMPLE)
        texts = [file.read(at, SAMPLE) for at in range(0, file.size, step)]
    found = add_integers(open_files.plain_letters(text).count(b'"image_id"') for text in texts)
    return found * file.size // max(sum(map(len, texts)), 1)
