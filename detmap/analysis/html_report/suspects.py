"""Suspected label errors as lists that annotation tools import: COCO JSON, CVAT and Label Studio.

Each list has the box to review with its proposed class, and in its attributes why it is suspected.
"""

import json
import math
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from detmap.analysis.diagnosis import Diagnosis
from detmap.analysis.diagnosis.mistakes import SUSPECTS, Mistake, doubt
from detmap.analysis.html_report.gather import Run
from detmap.analysis.html_report.image_files import name_of
from detmap.core.tables import Images

MOST, TABLE = 300, 50  # of each kind: in a list, in the table


def table(run: Run) -> list[list[Any]]:
    """Rows of the table on the page."""
    names = [name_of(run.diagnosis.truth.images, k) for k in range(len(run.diagnosis.truth.images))]
    keys = ("kind", "label", "detected", "score", "x", "y", "w", "h", "reason")
    rows = []
    for each in _first(run.suspects, TABLE):
        plain = doubt(each)
        rows.append([names[_image(run.diagnosis, each)], *(plain[key] for key in keys)])
    return rows


def exports(run: Run) -> dict[str, tuple[str, str]]:
    """Format -> file name and content."""
    some = _first(run.suspects, MOST)
    if not some:
        return {}
    made = {"COCO JSON": ("suspected_labels.json", _coco(run.diagnosis, some))}
    images = run.diagnosis.truth.images
    places = {_image(run.diagnosis, each) for each in some}
    if not any(math.isnan(images.width[k] + images.height[k]) for k in places):
        made["CVAT"] = ("suspected_labels_cvat.xml", _cvat(run.diagnosis, some))
        made["Label Studio"] = ("suspected_labels_ls.json", _label_studio(run.diagnosis, some))
    return made


def _first(suspects: Sequence[Mistake], most: int) -> list[Mistake]:
    """The first of each kind, which are those of the highest scores."""
    found: list[Mistake] = []
    for kind in SUSPECTS:
        found += [each for each in suspects if each.kind == kind][:most]
    return found


def _image(diagnosis: Diagnosis, each: Mistake) -> int:
    table = diagnosis.detections if each.kind in SUSPECTS[:2] else diagnosis.truth
    return int(table.image[each.row])


def _label(diagnosis: Diagnosis, each: Mistake) -> int:
    table = diagnosis.detections if each.kind in SUSPECTS[:2] else diagnosis.truth
    return int(table.label[each.row])


def _grouped(
    diagnosis: Diagnosis, some: Sequence[Mistake]
) -> list[tuple[int, list[tuple[int, Mistake]]]]:
    """The suspects of each image, with their number among all."""
    found: dict[int, list[tuple[int, Mistake]]] = {}
    for number, each in enumerate(some):
        found.setdefault(_image(diagnosis, each), []).append((number, each))
    return sorted(found.items())


def _image_id(images: Images, k: int) -> int:
    """The id of an image; its number where ids are names."""
    return k + 1 if isinstance(images.ids[k], str) else int(images.ids[k])


def _why(each: Mistake) -> dict[str, Any]:
    plain = doubt(each)
    found = {key: plain[key] for key in ("label", "detected", "score", "reason") if plain[key]}
    return {"suspect": each.kind, **found}


def _coco(diagnosis: Diagnosis, some: Sequence[Mistake]) -> str:
    truth = diagnosis.truth
    places = sorted({_image(diagnosis, each) for each in some})
    images = [
        {
            "id": _image_id(truth.images, k),
            "file_name": name_of(truth.images, k),
            **{
                key: int(size[k])
                for key, size in (("width", truth.images.width), ("height", truth.images.height))
                if size[k] == size[k]
            },
        }
        for k in places
    ]
    annotations = [
        {
            "id": number,
            "image_id": _image_id(truth.images, _image(diagnosis, each)),
            "category_id": int(truth.categories.ids[_label(diagnosis, each)]),
            "bbox": list(each.box),
            "area": each.box[2] * each.box[3],
            "iscrowd": 0,
            "attributes": _why(each),
        }
        for number, each in enumerate(some, 1)
    ]
    classes = zip(truth.categories.ids.tolist(), truth.categories.names, strict=True)
    categories = [{"id": k, "name": name} for k, name in classes]
    content = {"images": images, "categories": categories, "annotations": annotations}
    return json.dumps(content, ensure_ascii=False)


def _cvat(diagnosis: Diagnosis, some: Sequence[Mistake]) -> str:
    """CVAT for images 1.1."""
    images, parts = diagnosis.truth.images, ["<annotations><version>1.1</version>"]
    for k, mine in _grouped(diagnosis, some):
        size = f'width="{images.width[k]:.0f}" height="{images.height[k]:.0f}"'
        parts.append(f'<image id="{k}" name={quoteattr(name_of(images, k))} {size}>')
        for _, each in mine:
            x, y, w, h = each.box
            corners = f'xtl="{x:.2f}" ytl="{y:.2f}" xbr="{x + w:.2f}" ybr="{y + h:.2f}"'
            label = quoteattr(each.category)
            parts.append(f'<box label={label} source="auto" occluded="0" {corners} z_order="0">')
            parts += [
                f"<attribute name={quoteattr(key)}>{escape(str(value))}</attribute>"
                for key, value in _why(each).items()
            ]
            parts.append("</box>")
        parts.append("</image>")
    return "\n".join([*parts, "</annotations>"])


def _label_studio(diagnosis: Diagnosis, some: Sequence[Mistake]) -> str:
    """Tasks with predictions, which a reviewer accepts or corrects."""
    images, tasks = diagnosis.truth.images, []
    for k, mine in _grouped(diagnosis, some):
        width, height = float(images.width[k]), float(images.height[k])
        results = []
        for number, each in mine:
            x, y, w, h = each.box
            value = {
                **{"x": 100 * x / width, "y": 100 * y / height},
                **{"width": 100 * w / width, "height": 100 * h / height},
                **{"rotation": 0, "rectanglelabels": [each.category]},
            }
            why = ", ".join(f"{key}: {value}" for key, value in _why(each).items())
            results.append(
                {
                    **{"id": f"suspect{number}", "type": "rectanglelabels"},
                    **{"from_name": "label", "to_name": "image", "value": value},
                    **{"original_width": int(width), "original_height": int(height)},
                    "meta": {"text": [why]},
                }
            )
        prediction = {"model_version": "detmap", "result": results}
        tasks.append({"data": {"image": name_of(images, k)}, "predictions": [prediction]})
    return json.dumps(tasks, ensure_ascii=False)
