"""Reads VoTT's JSON export: ``assets`` with regions.

A bounding box is left, top, width and height in continuous pixels from 0. A region with several
tags is one object per tag, as in VoTT's CSV. Assets that were never visited are not in the file.

Source: microsoft/VoTT, src/models/applicationState.ts and src/providers/export/vottJson.ts.
"""

from pathlib import Path
from urllib.parse import unquote

import msgspec

from detmap.annotation_tools import collected_boxes, typed_json
from detmap.annotation_tools.collected_boxes import Boxes
from detmap.core.base.open_files import shown
from detmap.core.tables import Truth
from detmap.errors import DataError

FORM = "assets is an object of assets, each with asset (name, size) and regions (tags, boundingBox)"
IMAGE, VIDEOS = 1, (2, 3)  # AssetType


class _Size(msgspec.Struct, gc=False):
    width: float | None = None
    height: float | None = None


class _Asset(msgspec.Struct, gc=False):
    name: str
    path: str = ""
    size: _Size | None = None
    type: int = IMAGE


class _Sides(msgspec.Struct, gc=False):
    left: float
    top: float
    width: float
    height: float


class _Region(msgspec.Struct, gc=False, rename="camel"):
    tags: list[str]
    bounding_box: _Sides | None = None
    type: str = "RECTANGLE"


class _Entry(msgspec.Struct, gc=False):
    asset: _Asset
    regions: list[_Region] | msgspec.UnsetType = msgspec.UNSET


class _Tag(msgspec.Struct, gc=False):
    name: str


class _File(msgspec.Struct, gc=False):
    assets: dict[str, msgspec.Raw]
    tags: list[_Tag] = []


def read_truth(path: Path, image_sizes: Path | None = None) -> Truth:
    """Reads the objects of an export; see `Boxes.truth`."""
    content = typed_json.decoded(path, _File, FORM)
    boxes = Boxes(path, "xywh")
    assets = f"{shown(path)}: assets"
    for _, where, entry in collected_boxes.entries(content.assets, _Entry, assets, FORM):
        if entry.asset.type in VIDEOS:
            what = f"asset type {entry.asset.type}: a video or one of its frames"
            raise DataError(f"{where}.asset.type", what, "export the frames as images")
        size = entry.asset.size or _Size()
        boxes.add_image(_name(entry.asset), f"{where}.asset.name", size.width, size.height)
        regions = f"{where}.regions"
        for i, region in enumerate(boxes.require(entry.regions, regions)):
            _add(boxes, region, f"{regions}[{i}]")
    return boxes.truth((tag.name for tag in content.tags), sizes_file=image_sizes)


def _name(asset: _Asset) -> str:
    """Returns the file name; VoTT quotes it as in a URL, as it does the path."""
    quoted = unquote(asset.name)
    last = asset.path.rpartition("/")[2].partition("#")[0].partition("?")[0]
    return asset.name if asset.name == unquote(last) != last else quoted


def _add(boxes: Boxes, region: _Region, where: str) -> None:
    box = region.bounding_box
    if box is None:
        raise DataError(f"{where}.boundingBox", "missing", FORM)
    if not region.tags:
        boxes.count("box-without-class", "regions have no tag and are ignored")
    if region.type == "POLYGON":
        boxes.count("shape-around", "regions are polygons: the boxes around them are used")
    for tag in region.tags:
        boxes.add(tag, (box.left, box.top, box.width, box.height), where)
