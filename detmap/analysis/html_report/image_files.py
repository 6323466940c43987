"""Finds and reads the image files of the ground truth."""

import io
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from detmap.core.adapters.joining import image_sizes
from detmap.core.base import open_files
from detmap.core.tables import Images
from detmap.errors import DataError

QUALITY = 75  # of small copies
BUDGET = 1_000_000  # bytes of all crops
MOST_BYTES, MOST_PIXELS = 1 << 28, 50_000_000  # of an image
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")
MISSING = "images without a file, shown as sketches"
SEVERAL = "images with ambiguous file names, shown as sketches"
TURNED = "images with ambiguous EXIF rotation, shown as sketches"
OTHER = "images with another aspect ratio than in the ground truth, shown as sketches"
SCALED = "images with another size than in the ground truth, scaled to it"


@dataclass(eq=False)
class Pictures:
    """The folder of the images, and problems found in it.

    Parameters
    ----------
    folder : of the images; None for sketches
    linked : whether pictures link to the page of all images
    """

    folder: Path | None = None
    linked: bool = False
    spent: int = 0
    _odd: dict[str, dict[str, None]] = field(default_factory=dict)
    _index: dict[str, list[Path]] | None = None
    _by_stem: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise DataError(str(self.folder), "is not a folder of images", "check --images")

    def notes(self) -> list[str]:
        """Returns notes on missing and unusual files."""
        found = []
        for what, names in self._odd.items():
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            found.append(f"{what}: {', '.join(list(names)[:5])}{more}")
        return found

    def read(self, images: Images, image: int, side: int | None = None) -> NDArray[np.uint8] | None:
        """Returns the pixels of an image of the ground truth, scaled to its size there; None and a
        note if no file certainly belongs to it.

        side : if given, pixels of the longest side are enough, and large JPEGs are read faster
        """
        if self.folder is None or self.spent > BUDGET:
            return None
        import cv2

        paths = self.paths(images, image)
        picture, odd = None, SEVERAL if len(paths) > 1 else MISSING
        if len(paths) == 1:
            size = float(images.width[image]), float(images.height[image])
            with suppress(DataError, cv2.error):
                picture, odd = _decoded(paths[0], size, side)
        if odd:
            self._odd.setdefault(odd, {})[name_of(images, image)] = None
        return picture

    def paths(self, images: Images, image: int) -> list[Path]:
        """Returns the files that may belong to an image: equal stem, longest common path, and no
        other image fits as well.
        """
        if self._index is None:
            assert self.folder is not None
            self._index = {}
            for path in sorted(self.folder.rglob("*")):
                if path.suffix.lower() in SUFFIXES:
                    self._index.setdefault(path.stem, []).append(path)
            for k in range(len(images)):
                self._by_stem.setdefault(_stem(images, k), []).append(k)
        stem, name = _stem(images, image), name_of(images, image)
        files = self._index.get(stem, [])
        shared = [_shared(path, name) for path in files]
        best = [path for path, n in zip(files, shared, strict=True) if n == max(shared)]
        others = [name_of(images, k) for k in self._by_stem[stem] if k != image]
        if any(_shared(path, other) >= max(shared) for path in best for other in others):
            return files if len(files) > 1 else []
        return best


def named(images: Images) -> dict[int | str, str]:
    """Returns the name of each image in the ground truth, by id."""
    return {image: name_of(images, k) for k, image in enumerate(images.ids.tolist())}


def name_of(images: Images, image: int) -> str:
    """Returns the name of an image: its path, else its stem or id."""
    given = images.files[image] if images.files else ""
    id_text = str(images.ids[image])
    return given or (id_text if "/" in id_text else images.stems[image] or id_text)


def _stem(images: Images, image: int) -> str:
    name = PurePosixPath(str(images.ids[image]))
    return images.stems[image] or (name.stem if name.suffix.lower() in SUFFIXES else name.name)


def _shared(path: Path, name: str) -> tuple[int, bool]:
    """Counts common folders of a file and an image's name, from the last on; compares suffixes."""
    wanted = PurePosixPath(name.replace("\\", "/"))
    n = 0
    for own, other in zip(path.parts[-2::-1], wanted.parts[-2::-1], strict=False):
        if own != other:
            break
        n += 1
    return n, path.suffix.lower() == wanted.suffix.lower()


def _decoded(
    path: Path, size: tuple[float, float], side: int | None = None
) -> tuple[NDArray[np.uint8] | None, str]:
    """Returns the pixels of an image of this width and height, and a warning; None if its header
    gives too many pixels (checked before decoding), or if it contradicts the ground truth. With
    `side` fewer pixels, if their longest side has at least as many.

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
    turned, parts = _is_turned(data), _parts(max(width[0], height[0]), side)
    flags = cv2.IMREAD_COLOR if turned or parts == 1 else REDUCED[parts]
    found = cv2.imdecode(content, flags)
    stored = found
    if turned:
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
    if flags != cv2.IMREAD_COLOR:
        own = int(width[0]), int(height[0])
    if own == size or np.isnan(size).any():
        return picture, ""
    if abs(own[0] * size[1] - own[1] * size[0]) > max(*own, *size):  # a pixel of rounding
        return None, OTHER
    if size[0] * size[1] > MOST_PIXELS:
        return None, OTHER
    if side is not None:
        return picture, SCALED
    scaled = cv2.resize(picture, (round(size[0]), round(size[1])), interpolation=cv2.INTER_AREA)
    return np.asarray(scaled, dtype=np.uint8), SCALED


REDUCED = {2: 17, 4: 33, 8: 65}
"""Flags of OpenCV that decode a half, a quarter and an eighth of a JPEG's sides."""


def _parts(longest: float, side: int | None) -> int:
    """Returns by how much an image may be reduced when it is decoded."""
    if side is None or not longest > 0:
        return 1
    return max((n for n in REDUCED if longest / n >= side), default=1)


def _is_turned(data: bytes) -> bool:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.getexif().get(image_sizes.ORIENTATION, 1) not in (0, 1)
    except Exception:  # any error of the library for a broken header
        return False


def small_jpeg(picture: NDArray[np.uint8] | None, side: int) -> bytes:
    """Returns a JPEG at most `side` pixels long, without metadata; empty for no picture."""
    import cv2

    if picture is None:
        return b""
    height, width = picture.shape[:2]
    scale = side / max(height, width)
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return data.tobytes() if done else b""


def draw_box(picture: NDArray[np.uint8], box: NDArray[np.float64], color: tuple[int, ...]) -> None:
    """Draws the edges of a box, left, top, right, bottom, into a picture."""
    import cv2

    left, top, right, bottom = np.clip(np.rint(box), -9999, 99999).astype(int).tolist()
    wide = 1 + max(picture.shape) // 800
    cv2.rectangle(picture, (left, top), (right - 1, bottom - 1), color, wide)
