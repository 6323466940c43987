"""Pictures of the worst mistakes: crops of the images, or sketches to scale without them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from detmap.adapters.joining import image_sizes
from detmap.base import open_files
from detmap.diagnosis import Diagnosis
from detmap.diagnosis.mistakes import Mistake
from detmap.diagnosis.summary import MEANING
from detmap.errors import DataError
from detmap.html_report import charts
from detmap.html_report.gather import Run
from detmap.tables import Images, boxes_as

SIDE, MARGIN, QUALITY = 220, 0.35, 60  # pixels of a crop; share of the box around it
BUDGET = 900_000  # bytes of all crops
MOST_BYTES, MOST_PIXELS = 1 << 28, 50_000_000  # of an image
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
MISSING = "images without a file, shown as sketches"
SEVERAL = "images with ambiguous file names, shown as sketches"
TURNED = "images with ambiguous EXIF rotation, shown as sketches"
OTHER = "images with another aspect ratio than in the ground truth, shown as sketches"
SCALED = "images with another size than in the ground truth, scaled to it"
GREEN, PURPLE, WHITE = (90, 128, 0), (134, 74, 154), (255, 255, 255)


@dataclass(eq=False)
class Pictures:
    """The folder of the images, and what went wrong with them.

    Parameters
    ----------
    folder : of the images; None for sketches
    """

    folder: Path | None = None
    spent: int = 0
    _odd: dict[str, dict[str, None]] = field(default_factory=dict)
    _index: dict[str, list[Path]] | None = None
    _by_stem: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise DataError(str(self.folder), "is not a folder of images", "check --images")

    def notes(self) -> list[str]:
        """What a reader should know."""
        found = []
        for what, names in self._odd.items():
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            found.append(f"{what}: {', '.join(list(names)[:5])}{more}")
        return found

    def read(self, diagnosis: Diagnosis, image: int) -> NDArray[np.uint8] | None:
        """The image at this position of the truth, in the pixels that the truth speaks of; None,
        and a note, where there is none that is surely it.
        """
        if self.folder is None or self.spent > BUDGET:
            return None
        import cv2

        images = diagnosis.truth.images
        paths = self._paths(images, image)
        picture, odd = None, SEVERAL if len(paths) > 1 else MISSING
        if len(paths) == 1:
            size = float(images.width[image]), float(images.height[image])
            with suppress(DataError, cv2.error):
                picture, odd = _decoded(paths[0], size)
        if odd:
            self._odd.setdefault(odd, {})[_name(images, image)] = None
        return picture

    def _paths(self, images: Images, image: int) -> list[Path]:
        """The files that may be this image's: those of its stem that share most of its path, and
        more of it than of any other image's.
        """
        if self._index is None:
            assert self.folder is not None
            self._index = {}
            for path in sorted(self.folder.rglob("*")):
                if path.suffix.lower() in SUFFIXES:
                    self._index.setdefault(path.stem, []).append(path)
            for k in range(len(images)):
                self._by_stem.setdefault(_stem(images, k), []).append(k)
        stem, name = _stem(images, image), _name(images, image)
        files = self._index.get(stem, [])
        shared = [_shared(path, name) for path in files]
        best = [path for path, n in zip(files, shared, strict=True) if n == max(shared)]
        others = [_name(images, k) for k in self._by_stem[stem] if k != image]
        if any(_shared(path, other) >= max(shared) for path in best for other in others):
            return files if len(files) > 1 else []
        return best


def _name(images: Images, image: int) -> str:
    """What the truth calls an image: its path, else its stem or id."""
    given = images.files[image] if images.files else ""
    id_text = str(images.ids[image])
    return given or (id_text if "/" in id_text else images.stems[image] or id_text)


def _stem(images: Images, image: int) -> str:
    return images.stems[image] or PurePosixPath(str(images.ids[image])).name


def _shared(path: Path, name: str) -> tuple[int, bool]:
    """Folders that a file and an image's name share, from the last on; whether the suffix too."""
    wanted = PurePosixPath(name.replace("\\", "/"))
    n = 0
    for own, other in zip(path.parts[-2::-1], wanted.parts[-2::-1], strict=False):
        if own != other:
            break
        n += 1
    return n, path.suffix.lower() == wanted.suffix.lower()


def _decoded(path: Path, size: tuple[float, float]) -> tuple[NDArray[np.uint8] | None, str]:
    """The pixels of an image of this width and height, and what is odd about it; None where it has
    too many, which its header says before anything is unpacked, or where it is not as the truth
    says.

    Raises
    ------
    DataError : no file, no image
    """
    import cv2

    data = open_files.read_bytes(path, most=MOST_BYTES)
    width, height = image_sizes.from_headers([path])
    if width[0] * height[0] > MOST_PIXELS:
        return None, MISSING
    content = np.frombuffer(data, dtype=np.uint8)
    found = cv2.imdecode(content, cv2.IMREAD_COLOR)
    stored = found
    if _is_turned(data):
        stored = cv2.imdecode(content, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    if found is None or stored is None:
        return None, MISSING
    if stored is not found:
        fits = [each.shape[1::-1] == size for each in (found, stored)]
        if fits == [True, True] or np.isnan(size).any():
            return None, TURNED
        found = stored if fits[1] else found
    picture: NDArray[np.uint8] = np.asarray(found, dtype=np.uint8)
    own = picture.shape[1::-1]
    if own == size or np.isnan(size).any():
        return picture, ""
    if abs(own[0] * size[1] - own[1] * size[0]) > max(*own, *size):  # a pixel of rounding
        return None, OTHER
    if size[0] * size[1] > MOST_PIXELS:
        return None, OTHER
    scaled = cv2.resize(picture, (round(size[0]), round(size[1])), interpolation=cv2.INTER_AREA)
    return np.asarray(scaled, dtype=np.uint8), SCALED


def _is_turned(data: bytes) -> bool:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.getexif().get(image_sizes.ORIENTATION, 1) not in (0, 1)
    except Exception:  # whatever a library does with a broken header
        return False


def gallery(runs: Sequence[Run], pictures: Pictures) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Kind, its meaning, and the pictures of each kind of mistake; of the last run."""
    run = runs[-1]
    found = []
    for kind, meaning in MEANING.items():
        shown = [
            {"picture": _picture(run.diagnosis, each, pictures), "text": _text(each)}
            for each in run.worst
            if each.kind == kind
        ]
        if shown:
            found.append((kind, meaning, shown))
    return found


def _text(each: Mistake) -> str:
    score = "" if each.score != each.score else f", score {each.score:.4g}"
    instead = f", ground truth {each.other}" if each.other else ""
    return f"{each.category}{score}{instead}; IoU {each.overlap:.2f}; image {each.image}"


def _picture(diagnosis: Diagnosis, each: Mistake, pictures: Pictures) -> Markup:
    table = diagnosis.truth if each.kind == "Miss" else diagnosis.detections
    image = int(table.image[each.row])
    truth = diagnosis.truth
    rows = np.flatnonzero((truth.image == image) & diagnosis.to_find)
    objects = boxes_as(truth.boxes[rows], truth.box_format, "xywh")
    lost, mine = each.kind == "Miss", np.array(each.box)
    picture = pictures.read(diagnosis, image)
    if picture is not None:
        shown = _crop(picture, objects, mine, lost=lost)
        pictures.spent += len(shown)
        data = base64.b64encode(shown).decode()
        tag = '<img alt="{}" src="data:image/webp;base64,{}">'
        return Markup(tag).format(_text(each), data)
    width, height = truth.images.width[image], truth.images.height[image]
    if np.isnan(width) or np.isnan(height):
        every = np.vstack([objects, np.array(each.box)[None]])
        width, height = (every[:, :2] + every[:, 2:]).max(axis=0)
    boxes = [("object", box) for box in objects.tolist()]
    boxes.append(("lost" if lost else "mine", list(each.box)))
    return charts.sketch(_text(each), (float(width), float(height)), boxes)


def _crop(
    picture: NDArray[np.uint8],
    objects: NDArray[np.float64],
    box: NDArray[np.float64],
    *,
    lost: bool,
) -> bytes:
    """WebP of the place of a box, with the objects solid and the detection dashed; or the box is
    itself the object that was lost.
    """
    import cv2

    height, width = picture.shape[:2]
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
    for each in objects:
        _outline(shown, each, (left, top), scale, GREEN, dashed=False)
    _outline(shown, box, (left, top), scale, PURPLE, dashed=not lost)
    done, data = cv2.imencode(".webp", shown, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])
    return bytes(data) if done else b""


RIM = 9  # pixels beyond the picture to which a box is drawn


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
    start: tuple[int, int], end: tuple[int, int], step: int = 9
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    length = int(np.hypot(end[0] - start[0], end[1] - start[1]))
    n = min(max(1, length // (2 * step)), 200)
    at = np.linspace(start, end, 2 * n + 1).round().astype(int).tolist()
    return [((a[0], a[1]), (b[0], b[1])) for a, b in zip(at[0::2], at[1::2], strict=False)]
