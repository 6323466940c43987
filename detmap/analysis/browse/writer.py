"""Writes a report folder beside its place, then renames it, so it appears whole or not at all."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from detmap.analysis.browse import folder
from detmap.analysis.browse.cases import shown
from detmap.analysis.browse.pictures import Count, Say, Wanted, write_pictures
from detmap.analysis.diagnosis import Diagnosis
from detmap.core.base import atomic_files
from detmap.core.base.sums import add_integers
from detmap.errors import CrowdedError, DetmapError

INDEX = "index.html"
OWN = re.compile(
    r"(index|images)\.html|view(/app\.(js|css))?|data(/(meta|truth|det\d|box\d+)\.js)?"
    r"|img(/\d+\.jpg)?"
)
"""Paths in a report folder."""
MARK = b'name="generator" content="detmap report"'


def require_place(place: Path) -> None:
    """Raises `DetmapError` if a report folder would replace or mix with something else."""
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        raise DetmapError(str(place), "is a file", "name a folder, or a file with -o report.html")
    with suppress(OSError):
        if not os.listdir(place):
            return
        names = (path.relative_to(place).as_posix() for path in place.rglob("*"))
        if all(map(OWN.fullmatch, names)) and MARK in (place / folder.PAGE).read_bytes():
            return
    what = "is a folder that holds something else than a report"
    raise DetmapError(str(place), what, "name a new folder, or one with an earlier report")


def write(
    place: Path,
    index: bytes,
    detectors: Mapping[str, tuple[Diagnosis, float]],
    *,
    title: str,
    wanted: Wanted,
    say: Say = lambda step: None,
    count: Count = lambda done, of: None,
) -> tuple[int, list[str]]:
    """Writes a report folder, or replaces an earlier one.

    Parameters
    ----------
    place : the folder
    index : the page of the report
    detectors : diagnosis and best-F1 threshold of one or two detectors, by name
    title : of the page
    wanted : how pictures get into the folder
    say, count : take each step, and how many of how many images are copied

    Returns
    -------
    the bytes of all files, and notes on pictures

    Raises
    ------
    DetmapError : the folder holds something else, or cannot be written
    """
    require_place(place)
    every = {name: shown(*each) for name, each in detectors.items()}
    try:
        with atomic_files.replacing_folder(place) as draft:
            found, notes = write_pictures(wanted, list(every.values()), place, draft, say, count)
            for part in ("data", "view"):
                (draft / part).mkdir()
            (draft / INDEX).write_bytes(index)
            for files in (folder.code_files(), folder.data_files(every, title, found)):
                for path, content in files:
                    (draft / path).write_bytes(content)
            size = add_integers(p.stat().st_size for p in draft.rglob("*") if p.is_file())
    except CrowdedError as error:
        fix = "write one file, such as -o report.html, or remove detections of low score"
        raise CrowdedError("report folder", error.what, fix) from error
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise DetmapError(str(place), what, "write to another place, or make room") from error
    return size, notes
