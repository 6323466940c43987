"""Reads FiftyOne's ``labels.json`` (FiftyOneImageDetectionDataset), of objects or of detections.

``labels`` has a list per image, by file stem; null is an unlabelled sample, read as an image
without objects. A box is left, top, width and height in fractions of the image, whose size comes
from the picture in ``data`` or from a size file. A label is an index into ``classes``, or a name
where that is null. ``iscrowd`` of the attributes makes a crowd region; others are read by name.

Source: voxel51/fiftyone 1.22, fiftyone/utils/data (FiftyOneImageDetectionDatasetExporter).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from detmap.annotation_tools import collected_boxes, looks, typed_json
from detmap.annotation_tools.collected_boxes import Boxes
from detmap.core.adapters.joining.unknown_policy import STRICT, Policy
from detmap.core.base.open_files import shown
from detmap.core.tables import Detections, Truth
from detmap.errors import DataError

FORM = "labels is an object: a list per image, of records with label and bounding_box"


class _Box(msgspec.Struct, gc=False):
    label: int | str
    bounding_box: tuple[float, float, float, float]
    confidence: float | None = None
    attributes: dict[str, Any] | None = None


_Boxes: Any = list[_Box] | None


class _File(msgspec.Struct, gc=False):
    labels: dict[str, msgspec.Raw]
    classes: list[str] | None = None


def read_truth(
    path: Path,
    image_sizes: Path | None = None,
    roles: Sequence[str] = (),
    attributes: Sequence[str] = (),
) -> Truth:
    """Reads the objects of a labels.json, or of the folder with it; see `Boxes.truth`."""
    content, boxes = _read(path)
    names = content.classes or ()
    truth = boxes.truth(
        names,
        roles=roles,
        attributes=attributes,
        sizes_file=image_sizes,
        folders=[looks.file_in(path, looks.FIFTYONE).parent / "data"],
    )
    return collected_boxes.with_class_ids(truth, names) if names else truth


def read_detections(path: Path, truth: Truth, policy: Policy = STRICT) -> Detections:
    """Reads the detections of a labels.json, or of the folder with it."""
    return _read(path)[1].detections(truth, policy)


def _read(path: Path) -> tuple[_File, Boxes]:
    file = looks.file_in(path, looks.FIFTYONE)
    content = typed_json.decoded(file, _File, FORM)
    boxes = Boxes(file, "normalized xywh")
    labels = f"{shown(file)}: labels"
    for name, where, records in collected_boxes.entries(content.labels, _Boxes, labels, FORM):
        boxes.add_image(name, where)
        if records is None:
            text = "samples are not labelled (null): read as images without objects"
            boxes.count("images-unlabelled", text)
        for i, record in enumerate(records or ()):
            place = f"{where}[{i}]"
            label = _name(record.label, content.classes, place)
            boxes.add(label, record.bounding_box, place, record.confidence, record.attributes)
    return content, boxes


def _name(label: int | str, classes: Sequence[str] | None, where: str) -> str:
    if isinstance(label, str):
        if classes is not None and label not in classes:
            raise DataError(f"{where}.label", f"no class {label!r:.60}", "list it in classes")
        return label
    if classes is None or not 0 <= label < len(classes):
        known = f"classes lists {len(classes)}" if classes is not None else "classes is null"
        raise DataError(f"{where}.label", f"no class {label}, {known}", "list it in classes")
    return classes[label]
