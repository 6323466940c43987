"""Pictures of mistakes and suspected label errors: crops of the images, or sketches to
scale without them. Each has a caption that says what the picture shows.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from detmap.analysis.diagnosis import Diagnosis
from detmap.analysis.diagnosis.mistakes import SUSPECTS, Mistake
from detmap.analysis.diagnosis.tide import MEANING
from detmap.analysis.html_report import charts
from detmap.analysis.html_report.figures import BROWSER, letters
from detmap.analysis.html_report.gather import Run
from detmap.analysis.html_report.image_files import Pictures, name_of
from detmap.analysis.row_overlaps import edges, ious
from detmap.core.tables import boxes_as

SIDE, MARGIN, QUALITY = 220, 0.35, 60  # pixels of a crop; share of the box around it
GREEN, PURPLE, WHITE = (90, 128, 0), (134, 74, 154), (255, 255, 255)
PER_KIND, PER_SUSPECT = (8, 4), 4  # pictures of one detector, of each of two
Boxes = list[tuple[str, list[float]]]


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture with its caption and the file that it is from."""

    picture: Markup
    text: str
    file: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """Pictures under a heading."""

    title: str
    shown: list[Shown]


def mistakes(runs: Sequence[Run], pictures: Pictures) -> list[tuple[str, list[Strip]]]:
    """For each kind of error, the worst of each detector."""
    found, most = [], PER_KIND[len(runs) - 1]
    for kind, meaning in MEANING.items():
        strips = []
        for (letter, name), run in zip(letters(runs), runs, strict=True):
            some = [each for each in run.worst if each.kind == kind][:most]
            state = f"detector={letter}&kind={kind}"
            shown = [_mistake(run.diagnosis, each, pictures, state) for each in some]
            strips += [Strip(name, shown)] if shown else []
        if strips:
            found.append((f"{kind}: {meaning}", strips))
    return found


def suspected(run: Run, pictures: Pictures, letter: str = "a") -> list[Strip]:
    """Suspected label errors of each kind."""
    found = []
    for kind in SUSPECTS:
        every = [each for each in run.suspects if each.kind == kind]
        shown = [
            _suspect(run.diagnosis, each, pictures, f"detector={letter}")
            for each in every[:PER_SUSPECT]
        ]
        found += [Strip(f"{kind}: {len(every):,}", shown)] if shown else []
    return found


def _mistake(diagnosis: Diagnosis, each: Mistake, pictures: Pictures, state: str) -> Shown:
    if each.kind == "Miss":
        k = int(diagnosis.truth.image[each.row])
        lost = np.arange(len(diagnosis.truth)) == each.row
        boxes, text = _objects(diagnosis, k, lost), _missed_text(each, diagnosis.overlap_name)
    else:
        k = int(diagnosis.detections.image[each.row])
        boxes = [*_objects(diagnosis, k), ("mine", list(each.box))]
        text = _false_text(diagnosis, each)
    return _shown(diagnosis, k, each.box, boxes, text, pictures, state)


def _missed_text(each: Mistake, name: str) -> str:
    size = f"{each.box[2]:.0f} \N{MULTIPLICATION SIGN} {each.box[3]:.0f} px"
    best = f"no {each.category} detection on it"
    if each.overlap > 0:
        best = f"best {name} of a {each.category} detection {each.overlap:.2f}"
    return f"{each.category} missed, {size}; {best}"


def _false_text(diagnosis: Diagnosis, each: Mistake) -> str:
    """What a false positive shows, in the words of its kind."""
    names, label = diagnosis.truth.categories.names, diagnosis.truth.label
    predicted, own = f"predicted {each.category} {each.score:.2f}", float(diagnosis.same[each.row])
    other, there = float(diagnosis.other[each.row]), int(diagnosis.other_object[each.row])
    overlap = diagnosis.overlap_name
    if each.kind == "Cls":
        return f"{predicted}, is {names[label[there]]}, {overlap} {other:.2f}"
    if each.kind == "Loc":
        return f"{predicted}, {overlap} {own:.2f} with a {each.category}, needs {diagnosis.iou:g}"
    if each.kind == "Both":
        return (
            f"{predicted}, is {names[label[there]]}, {overlap} {other:.2f}, needs {diagnosis.iou:g}"
        )
    if each.kind == "Dupe":
        return f"{predicted}, {overlap} {own:.2f} with a {each.category} that is already matched"
    return f"{predicted}, {_background_text(diagnosis, each, max(own, other))}"


def _background_text(diagnosis: Diagnosis, each: Mistake, best: float) -> str:
    """What is at a background error: the object whose box overlaps its box most, or none."""
    truth, name = diagnosis.truth, diagnosis.overlap_name
    here = truth.image == diagnosis.detections.image[each.row]
    if name == "IoU":  # of the counted ones it is known that they hardly overlap
        here &= ~diagnosis.to_find
    rows = np.flatnonzero(here)
    if len(rows):
        overlaps = ious(edges(diagnosis.detections, np.array([each.row])), edges(truth, rows))
        k = int(np.argmax(overlaps))
        if overlaps[k] > diagnosis.background:
            ignored = "" if diagnosis.to_find[rows[k]] else "ignored "
            what = f"{ignored}{truth.categories.names[truth.label[rows[k]]]}"
            return f"on the box of an object ({what}, box IoU {overlaps[k]:.2f}; {name} {best:.2f})"
    return f"no object there (highest {name} {best:.2f})"


def _suspect(diagnosis: Diagnosis, each: Mistake, pictures: Pictures, state: str) -> Shown:
    of_detection = each.kind in SUSPECTS[:2]
    table = diagnosis.detections if of_detection else diagnosis.truth
    k = int(table.image[each.row])
    boxes = [*_objects(diagnosis, k), ("mine" if of_detection else "lost", list(each.box))]
    texts = {
        SUSPECTS[0]: f"{each.category} detected, score {each.score:.2f}; no label there",
        SUSPECTS[1]: f"labeled {each.other}; detected {each.category}, score {each.score:.2f}",
        SUSPECTS[2]: f"two {each.category} labels, IoU {each.overlap:.2f}",
        SUSPECTS[3]: f"{each.category} label: {each.reason}",
    }
    return _shown(diagnosis, k, each.box, boxes, texts[each.kind], pictures, state)


def _objects(diagnosis: Diagnosis, image: int, lost: NDArray[np.bool_] | None = None) -> Boxes:
    """The objects of an image; those that are `lost` in another color."""
    truth = diagnosis.truth
    rows = np.flatnonzero((truth.image == image) & diagnosis.to_find)
    boxes = boxes_as(truth.boxes[rows], truth.box_format, "xywh").tolist()
    styles = ["lost" if lost is not None and lost[row] else "object" for row in rows.tolist()]
    return sorted(zip(styles, boxes, strict=True), key=lambda each: each[0] == "lost")


def _shown(
    diagnosis: Diagnosis,
    image: int,
    view: Iterable[float] | None,
    boxes: Boxes,
    text: str,
    pictures: Pictures,
    state: str = "",
) -> Shown:
    """A picture of an image, around the box `view`, or whole; it may link to the image in a state
    of the page of all images.
    """
    href = f"{BROWSER}#{state}&open={image}" if pictures.linked else ""
    images = diagnosis.truth.images
    file, picture = name_of(images, image), pictures.read(images, image)
    label = f"{text}; {file}"
    if picture is not None:
        data = _crop(picture, view, boxes)
        pictures.spent += len(data)
        tag = '<img alt="{}" src="data:image/webp;base64,{}">'
        return Shown(Markup(tag).format(label, base64.b64encode(data).decode()), text, file, href)
    width, height = float(images.width[image]), float(images.height[image])
    if np.isnan(width) or np.isnan(height):
        every = np.array([box for _, box in boxes] or [[0.0, 0, 1, 1]])
        width, height = (every[:, :2] + every[:, 2:]).max(axis=0).tolist()
    return Shown(charts.sketch(label, (width, height), boxes), text, file, href)


def _crop(picture: NDArray[np.uint8], view: Iterable[float] | None, boxes: Boxes) -> bytes:
    """WebP of the place of a box, or of the whole: objects solid, a detection dashed."""
    import cv2

    height, width = picture.shape[:2]
    left, top, right, bottom = 0, 0, width, height
    if view is not None:
        box = np.array(list(view))
        margin = max(float(box[2:].max()) * MARGIN, 16.0)
        left, top = np.maximum(box[:2] - margin, 0).astype(int)
        right, bottom = np.minimum(box[:2] + box[2:] + margin, (width, height)).astype(int)
        right, bottom = max(right, left + 8), max(bottom, top + 8)
    cut = picture[top:bottom, left:right]
    if not cut.size:
        cut, left, top = picture, 0, 0
    scale = SIDE / max(cut.shape[:2])
    size = (max(1, round(cut.shape[1] * scale)), max(1, round(cut.shape[0] * scale)))
    shown = cv2.resize(cut, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    for style, each in boxes:
        color = GREEN if style == "object" else PURPLE
        _outline(shown, np.array(each), (left, top), scale, color, dashed=style == "mine")
    done, data = cv2.imencode(".webp", shown, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])
    return bytes(data) if done else b""


RIM, DASH = 9, 9  # pixels beyond the picture to which a box is drawn, and of a dash


def _outline(
    picture: Any,
    box: NDArray[np.float64],
    origin: tuple[int, int],
    scale: float,
    color: tuple[int, int, int],
    *,
    dashed: bool,
) -> None:
    """A rectangle with a white rim, so that it shows on any ground."""
    import cv2

    corners = (np.concatenate([box[:2], box[:2] + box[2:]]) - (*origin, *origin)) * scale
    edge = (picture.shape[1] + RIM, picture.shape[0] + RIM) * 2  # what is beyond shows nothing
    x1, y1, x2, y2 = np.clip(corners.round(), -RIM, edge).astype(int).tolist()
    sides = (((x1, y1), (x2, y1)), ((x2, y1), (x2, y2)), ((x2, y2), (x1, y2)), ((x1, y2), (x1, y1)))
    for width, shade in ((4, WHITE), (2, color)):
        for start, end in sides:
            for a, b in _dashes(start, end) if dashed else [(start, end)]:
                cv2.line(picture, a, b, shade, width, cv2.LINE_AA)


def _dashes(
    start: tuple[int, int], end: tuple[int, int]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    length = int(np.hypot(end[0] - start[0], end[1] - start[1]))
    n = min(max(1, length // (2 * DASH)), 200)
    at = np.linspace(start, end, 2 * n + 1).round().astype(int).tolist()
    return [((a[0], a[1]), (b[0], b[1])) for a, b in zip(at[0::2], at[1::2], strict=False)]
