"""Finds the folder of the images beside the ground truth."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from detmap.analysis.html_report.image_files import SUFFIXES
from detmap.core.adapters.text_per_image import data_yaml
from detmap.core.tables import Images
from detmap.errors import DetmapError

TRIED = 20
"""Images of which one must be in a folder."""
NAMED = ("JPEGImages", "images", "Images", "img", "imgs")


def find_folder(
    images: Images, truth: Any, split: str | None = None
) -> tuple[Path | None, list[Path]]:
    """Returns the folder of the images, None if there is none, and the folders that were tried.

    Looks in the folder of a VOC or YOLO data set (JPEGImages, images, that of data.yaml), beside
    COCO JSON, and in ``val2017`` beside ``annotations``.

    Parameters
    ----------
    images : of the ground truth
    truth : the path of the ground truth; others have no folder
    split : of the data set
    """
    if not isinstance(truth, str | os.PathLike):
        return None, []
    tried: list[Path] = []
    for folder in _candidates(Path(truth), split):
        place = Path(os.path.normpath(folder))
        if place in tried:
            continue
        tried.append(place)
        if place.is_dir() and _has_one(place, images):
            return place, tried
    return None, tried


def _candidates(path: Path, split: str | None) -> Iterator[Path]:
    """Folders that may have the images, likely ones first."""
    if path.is_dir() or path.suffix.lower() in data_yaml.SUFFIXES:
        try:
            files = data_yaml.find(path, split, None).images
            yield Path(os.path.commonpath([file.parent for file in files]))
        except (DetmapError, OSError, ValueError):
            pass  # not a YOLO data set
    near = path if path.is_dir() else path.parent
    around = (near, near.parent)
    for folder in around:
        yield from (folder / name for name in NAMED)
    words = path.stem.split("_")
    for folder in around:
        for name in (words[-1], "_".join(words[1:]), split or ""):
            if name:
                yield from (folder / name, folder / "images" / name, folder / name / "images")
    yield from around


def _has_one(folder: Path, images: Images) -> bool:
    """Checks if one of the first images is in a folder."""
    for k in range(min(TRIED, len(images))):
        name = images.files[k] if images.files else ""
        stem = images.stems[k] or PurePosixPath(str(images.ids[k])).name
        names = [name, PurePosixPath(name).name] if name else []
        names += [f"{stem}{suffix}" for suffix in SUFFIXES]
        if any((folder / each).is_file() for each in names):
            return True
    return False
