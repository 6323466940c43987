"""Crops of the page are of the right picture and the right place, or there is a sketch."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import detmap
from detmap.analysis.diagnosis import Diagnosis, diagnose
from detmap.analysis.html_report import gallery, image_files
from detmap.analysis.html_report.gather import gather
from detmap.analysis.html_report.image_files import OTHER, SCALED, SEVERAL, TURNED, Pictures
from tests.support import builders as make

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def diagnosis(tmp_path: Path, *files: str) -> Diagnosis:
    """Of images of 640 by 480 pixels with these names."""
    rows = [
        make.image(id=k, file_name=name, width=640, height=480) for k, name in enumerate(files, 1)
    ]
    truth = detmap.read_truth(make.write(tmp_path / "truth.json", make.instances(images=rows)))
    detections = detmap.detections_from_arrays(truth, [1], [1], np.array([[10.0, 10, 9, 9]]), [0.5])
    return diagnose(truth, detections, detmap.load_protocol("coco-bbox"))


def paint(path: Path, colour: tuple[int, int, int] = RED, **options: Any) -> None:
    size = options.pop("size", (640, 480))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", size, colour)
    width, height = size
    picture.paste(GREEN, (width * 3 // 4, height * 3 // 4, width, height))  # right, below
    picture.save(path, **options)


def colour(picture: NDArray[np.uint8] | None, x: int = 0, y: int = 0) -> tuple[int, ...]:
    assert picture is not None
    shade: tuple[int, ...] = tuple((picture[y, x, ::-1] > 128).astype(int) * 255)
    return shade


def test_images_of_one_stem_have_each_their_own_picture(tmp_path: Path) -> None:
    found = diagnosis(tmp_path, "a/1.png", "b/1.png")
    paint(tmp_path / "p" / "a" / "1.png", RED)
    paint(tmp_path / "p" / "b" / "1.png", BLUE)
    pictures = Pictures(tmp_path / "p")
    assert [colour(pictures.read(found.truth.images, k)) for k in (0, 1)] == [RED, BLUE]
    assert pictures.notes() == []


def test_the_picture_of_another_image_is_not_taken(tmp_path: Path) -> None:
    found = diagnosis(tmp_path, "a/1.png", "b/1.png")
    paint(tmp_path / "p" / "a" / "1.png")
    pictures = Pictures(tmp_path / "p")
    assert colour(pictures.read(found.truth.images, 0)) == RED
    assert pictures.read(found.truth.images, 1) is None
    assert "images without a file, shown as sketches" in pictures.notes()[0]
    assert pictures.notes()[0].endswith(": b/1.png")


def test_two_pictures_of_one_name_are_none(tmp_path: Path) -> None:
    found = diagnosis(tmp_path, "1.png")
    for folder in "xy":
        paint(tmp_path / "p" / folder / "1.png")
    pictures = Pictures(tmp_path / "p")
    assert pictures.read(found.truth.images, 0) is None
    assert pictures.notes() == [f"{SEVERAL}: 1.png"]


def test_a_picture_by_its_suffix_or_its_stem(tmp_path: Path) -> None:
    paint(tmp_path / "p" / "1.png", RED)
    paint(tmp_path / "p" / "1.bmp", BLUE)
    paint(tmp_path / "p" / "2.bmp", BLUE)
    found = diagnosis(tmp_path, "train/1.png", "train/2.jpg")
    pictures = Pictures(tmp_path / "p")
    assert [colour(pictures.read(found.truth.images, k)) for k in (0, 1)] == [RED, BLUE]


def test_a_smaller_picture_is_scaled_to_the_truth(tmp_path: Path) -> None:
    paint(tmp_path / "p" / "1.png", size=(320, 240))
    pictures = Pictures(tmp_path / "p")
    picture = pictures.read(diagnosis(tmp_path, "1.png").truth.images, 0)
    assert picture is not None
    assert picture.shape == (480, 640, 3)
    assert (colour(picture, 470, 350), colour(picture, 490, 370)) == (RED, GREEN)
    assert pictures.notes() == [f"{SCALED}: 1.png"]


def test_a_picture_of_another_shape_is_none(tmp_path: Path) -> None:
    paint(tmp_path / "p" / "1.png", size=(480, 480))
    pictures = Pictures(tmp_path / "p")
    assert pictures.read(diagnosis(tmp_path, "1.png").truth.images, 0) is None
    assert pictures.notes() == [f"{OTHER}: 1.png"]


@pytest.mark.parametrize(("pixels", "shown"), [(640 * 480, True), (640 * 480 - 1, False)])
def test_a_picture_of_too_many_pixels_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pixels: int, shown: bool
) -> None:
    monkeypatch.setattr(image_files, "MOST_PIXELS", pixels)
    paint(tmp_path / "p" / "1.png")
    pictures = Pictures(tmp_path / "p")
    picture = pictures.read(diagnosis(tmp_path, "1.png").truth.images, 0)
    assert (picture is not None, pictures.notes() == []) == (shown, shown)


def test_after_many_bytes_of_pictures_there_are_sketches(tmp_path: Path) -> None:
    paint(tmp_path / "p" / "1.png")
    found = diagnosis(tmp_path, "1.png")
    pictures = Pictures(tmp_path / "p")
    first = gallery._shown(found, 0, None, [], "", pictures)
    assert "data:image/webp" in first.picture
    assert 0 < pictures.spent < image_files.BUDGET
    pictures.spent = image_files.BUDGET + 1
    assert "<svg" in gallery._shown(found, 0, None, [], "", pictures).picture
    assert pictures.notes() == []


def test_objects_are_green_and_detections_are_dashed_and_purple() -> None:
    picture = np.zeros((100, 100, 3), dtype=np.uint8)
    boxes = [("object", [10.0, 10, 30, 30]), ("mine", [60.0, 60, 30, 30])]
    data = np.frombuffer(gallery._crop(picture, None, boxes), dtype=np.uint8)
    shown = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert shown is not None
    assert shown.shape == (gallery.SIDE, gallery.SIDE, 3)
    scale = gallery.SIDE / 100
    edges = []
    for place in (10, 60):
        first, last = round((place + 3) * scale), round((place + 27) * scale)
        side = shown[round(place * scale), first:last].astype(int)
        edges.append(side[side.max(axis=1) > 60])  # blue, green, red of what is drawn
    assert (edges[0][:, 1] > edges[0][:, 2]).all()
    assert (edges[1][:, 2] > edges[1][:, 1]).any()
    assert len(edges[1]) < len(edges[0])


@pytest.mark.parametrize(
    ("orientation", "size", "right_below"),
    [(6, (640, 480), True), (6, (480, 640), False), (3, (640, 480), None)],
    ids=["stored", "shown", "either"],
)
def test_a_turned_picture_is_as_the_truth_sees_it(
    tmp_path: Path, orientation: int, size: tuple[int, int], right_below: bool | None
) -> None:
    """The green corner is right below as stored; left below where it is turned to the right."""
    turn = Image.Exif()
    turn[274] = orientation
    paint(tmp_path / "p" / "1.jpg", size=size, exif=turn)
    pictures = Pictures(tmp_path / "p")
    picture = pictures.read(diagnosis(tmp_path, "1.jpg").truth.images, 0)
    if right_below is None:
        assert picture is None
        assert pictures.notes() == [f"{TURNED}: 1.jpg"]
        return
    assert pictures.notes() == []
    corners = {True: colour(picture, 630, 470), False: colour(picture, 9, 470)}
    assert corners == {right_below: GREEN, not right_below: RED}


def test_opencv_turns_as_exif_says(tmp_path: Path) -> None:
    """What the crops rely on."""
    turn = Image.Exif()
    turn[274] = 6
    paint(tmp_path / "1.jpg", exif=turn)
    read = cv2.imread(str(tmp_path / "1.jpg"))
    assert read is not None
    assert read.shape == (640, 480, 3)


@pytest.mark.parametrize("far", [3e9, -3e9, 1e300])
def test_a_box_far_outside_is_drawn_to_the_edge(far: float) -> None:
    picture = np.zeros((40, 50, 3), dtype=np.uint8)
    for dashed in (True, False):
        box = np.array([far, 5.0, 10.0, 10.0]), np.array([5.0, 5.0, abs(far), 10.0])
        for each in box:
            gallery._outline(picture, each, (0, 0), 2.0, (0, 255, 0), dashed=dashed)
    assert picture.any()


def shown_mistakes() -> list[tuple[str, list[gallery.Strip]]]:
    """Of a detection of each kind of error, on an image each."""
    box = [10.0, 10, 20, 20]
    truth = detmap.truth_from_arrays(
        [1, 2, 3, 4, 5, 6], [2, 1, 2, 1, 1, 1], [box] * 6, categories={1: "circle", 2: "square"}
    )
    near, off = [10.0, 10, 20, 14], [10.0, 18, 20, 20]
    rows = [
        *((1, 1, 0.86, near), (2, 1, 0.8, off), (3, 1, 0.7, off), (4, 1, 0.6, box)),
        *((4, 1, 0.5, near), (5, 1, 0.4, [80.0, 80, 9, 9])),
    ]
    image, label, score, boxes = (list(column) for column in zip(*rows, strict=True))
    found = detmap.detections_from_arrays(truth, image, label, boxes, score)
    run = gather("d", truth, found, detmap.load_protocol("coco-bbox"))
    return gallery.mistakes([run], Pictures())


def test_captions_agree_with_their_heading() -> None:
    texts = {title[:4]: strips[0].shown[0].text for title, strips in shown_mistakes()}
    assert texts == {
        "Cls:": "predicted circle 0.86, is square, IoU 0.70",
        "Loc:": "predicted circle 0.80, IoU 0.43 with a circle, needs 0.5",
        "Both": "predicted circle 0.70, is square, IoU 0.43, needs 0.5",
        "Dupe": "predicted circle 0.50, IoU 0.70 with a circle that is already matched",
        "Bkg:": "predicted circle 0.40, no object there (highest IoU 0.00)",
        "Miss": "square missed, 20 \N{MULTIPLICATION SIGN} 20 px; no square detection on it",
    }
