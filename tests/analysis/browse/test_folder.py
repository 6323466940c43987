"""The report folder: what is written, where, and with which pictures."""

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import detmap
from detmap.analysis.browse import folder, pictures, writer
from detmap.core.base import atomic_files, pair_limits
from detmap.errors import DetmapError
from tests.analysis.browse.test_counts import sample
from tests.analysis.html_report.test_page import BOTH, COCO, hostile
from tests.support import builders as make
from tests.support.running import run


def content(file: Path) -> Any:
    """The content of a data file."""
    found = re.fullmatch(r'detmapData\("\w+",(.*)\);\n', file.read_text("ascii"))
    assert found is not None
    return json.loads(found[1])


def digests(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def opened(path: Path) -> tuple[tuple[int, int], dict[Any, Any]]:
    """Size and EXIF data of a picture."""
    with Image.open(path) as image:
        return image.size, dict(image.getexif())


def small(place: Path, sizes: bool = True) -> tuple[Path, Path, Path]:
    """Ground truth of three images, detections, and the folder of images of two of them."""
    side = {"width": 40, "height": 30} if sizes else {}
    images = [{"id": k, "file_name": f"photo {k}#.jpg", **side} for k in (1, 2, 3)]
    box = {"bbox": [4, 5, 20, 10], "category_id": 1}
    objects = [{"id": k, "image_id": k, "area": 200, "iscrowd": 0, **box} for k in (1, 2, 3)]
    truth = {"images": images, "annotations": objects, "categories": [{"id": 1, "name": "cat"}]}
    found = [{"image_id": 1, "score": 0.5, **box}]
    photos = place / "photos"
    photos.mkdir(parents=True)
    for k in (1, 2):
        noise = np.random.default_rng(k).integers(0, 255, (30, 40, 3), dtype=np.uint8)
        exif = Image.Exif()
        exif[0x010F] = "the maker of the camera"
        Image.fromarray(noise).save(photos / f"photo {k}#.jpg", exif=exif)
    files = make.write(place / "gt.json", truth), make.write(place / "dt.json", found)
    return *files, photos


@pytest.mark.slow
def test_the_command_writes_a_folder_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        done = run("report", COCO, *BOTH, "-o", f"{tmp_path / name}{os.sep}")
        assert done.code == 0, done.err
        assert done.out.endswith(f" bytes; open {tmp_path / name / 'index.html'}\n")
    written = digests(tmp_path / "a")
    assert written == digests(tmp_path / "b")
    wanted = {"index.html", "images.html", "view/app.js", "data/det1.js", "img/000060.jpg"}
    assert wanted <= {*written}
    mode = stat.S_IMODE((tmp_path / "a").stat().st_mode)
    assert mode == 0o777 & ~atomic_files._umask()
    assert sum(path.stat().st_size for path in (tmp_path / "a").rglob("*.jpg")) < 1_500_000
    assert [path.name for path in tmp_path.iterdir() if path.name not in "ab"] == []


@pytest.mark.slow
def test_the_page_of_the_folder_is_the_page_of_the_file_with_links(tmp_path: Path) -> None:
    for name in ("one.html", "folder"):
        assert run("report", COCO, BOTH[0], "-o", tmp_path / name).code == 0
    one = (tmp_path / "one.html").read_text("utf-8")
    linked = (tmp_path / "folder" / "index.html").read_text("utf-8")
    assert "images.html" not in one
    assert 'href="images.html' in linked


@pytest.mark.slow
def test_python_writes_it_too(tmp_path: Path) -> None:
    truth, found, photos = small(tmp_path)
    with pytest.warns(UserWarning, match=r"images without a file, .*: photo 3#\.jpg"):
        place = detmap.report(truth, found, output=tmp_path / "out", images=photos, image_size=64)
    assert place == tmp_path / "out"
    assert content(place / "data" / "meta.js")["files"] == [f"photo {k}#.jpg" for k in (1, 2, 3)]
    assert sorted(path.name for path in (place / "img").iterdir()) == ["000001.jpg", "000002.jpg"]
    assert opened(place / "img" / "000001.jpg") == ((40, 30), {})


@pytest.mark.slow
def test_links_lead_to_the_files(tmp_path: Path) -> None:
    truth, found, photos = small(tmp_path)
    place = tmp_path / "deep" / "out"
    done = run("report", truth, found, "--images", photos, "--link", "-o", place)
    assert done.code == 0, done.err
    links = content(place / "data" / "meta.js")["pictures"]["links"]
    assert links == ["../../photos/photo%201%23.jpg", "../../photos/photo%202%23.jpg", ""]
    assert not (place / "img").exists()


@pytest.mark.slow
def test_images_that_are_missing_broken_turned_or_large(tmp_path: Path) -> None:
    truth, found, photos = small(tmp_path)
    (photos / "photo 1#.jpg").write_bytes(b"no picture")
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.new("RGB", (30, 40), "red").save(photos / "photo 2#.jpg", exif=turned)
    Image.new("RGB", (4000, 3000), "blue").save(photos / "photo 3#.jpg")
    done = run("report", truth, found, "--images", photos, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert "images without a file, shown as sketches: photo 1#.jpg" in done.err
    assert "images with another size than in the ground truth" in done.err
    sizes = {path.name: opened(path) for path in (tmp_path / "out" / "img").iterdir()}
    assert sizes == {"000002.jpg": ((40, 30), {}), "000003.jpg": ((480, 360), {})}


@pytest.mark.slow
def test_most_errors_are_copied_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_COPIES", 1)
    truth, found, photos = small(tmp_path)
    done = run("report", truth, found, "--images", photos, "-o", tmp_path / "out")
    assert "1 of 3 images are copied, those with most errors" in done.err
    assert [path.name for path in (tmp_path / "out" / "img").iterdir()] == ["000002.jpg"]


@pytest.mark.slow
def test_the_size_is_said_before_copies_are_counted(tmp_path: Path) -> None:
    said: list[Any] = []
    detectors = {name: (each.diagnosis, each.best) for name, each in sample().items()}
    writer.write(
        tmp_path / "out",
        b"",
        detectors,
        title="a title",
        wanted=pictures.Wanted(make.SHAPES / "JPEGImages"),
        say=said.append,
        count=lambda done, of: said.append((done, of)),
    )
    assert re.fullmatch(r"copying 60 images, about [\d.]+ MB", said[0])
    assert said[1:] == [(n, 60) for n in range(pictures.SAMPLED, 61)]


@pytest.mark.slow
def test_an_earlier_report_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    truth, found, _ = small(tmp_path)
    place = tmp_path / "out"
    place.mkdir()
    assert run("report", truth, found, "-o", place).code == 0
    assert run("report", truth, found, "-o", place).code == 0
    for mine in (place / "mine.txt", place / "data" / "mine.txt"):
        mine.write_text("of the user")
        before = digests(place)
        done = run("report", truth, found, "-o", place)
        assert (done.code, digests(place)) == (2, before)
        assert "is a folder that holds something else than a report" in done.err
        assert "name a new folder" in done.err
        mine.unlink()


@pytest.mark.slow
def test_crowds_leave_the_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_limits, "MOST_LISTED", 0)
    monkeypatch.setattr(pair_limits, "LISTED_PER_ROW", 0)
    truth, found, _ = small(tmp_path)
    there = sorted(tmp_path.iterdir())
    done = run("report", truth, found, "-o", tmp_path / "out")
    assert (done.code, sorted(tmp_path.iterdir())) == (2, there)
    assert "write one file, such as -o report.html" in done.err
    assert run("report", truth, found, "-o", tmp_path / "one.html").code == 0


@pytest.mark.slow
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found, photos = small(tmp_path)
    assert run("report", truth, found, "-o", tmp_path / "out").code == 0
    before, there = digests(tmp_path / "out"), sorted(tmp_path.iterdir())

    def interrupted() -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "code_files", interrupted)
    with pytest.raises(KeyboardInterrupt):
        detmap.report(truth, found, output=tmp_path / "out", images=photos)
    assert (digests(tmp_path / "out"), sorted(tmp_path.iterdir())) == (before, there)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--link"], "--link needs a report folder"),
        (["--image-size", "300"], "--image-size needs a report folder"),
        (["--image-size", "300", "--link", "-o", "out"], "has no effect with --link"),
        (["--image-size", "10", "-o", "out"], "a whole number from 64 to 8192"),
    ],
)
def test_options_without_effect(arguments: list[str], message: str) -> None:
    done = run("report", COCO, BOTH[0], *arguments)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"link": True, "output": "a.html"}, "--link needs a report folder"),
        ({"image_size": 10, "output": "a"}, "10 pixels as the longest side"),
    ],
)
def test_options_of_python(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DetmapError, match=message):
        detmap.report(COCO, BOTH[0], **options)


def test_a_folder_of_something_else_is_kept(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    done = run("report", COCO, BOTH[0], "-o", tmp_path)
    assert done.code == 2
    assert "holds something else than a report" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    with pytest.raises(DetmapError, match="is a file"):
        writer.require_place(tmp_path / "index.html")


@pytest.mark.slow
def test_hostile_names_are_no_paths_and_no_code(tmp_path: Path) -> None:
    truth, found = hostile()
    detmap.report(truth, found, output=tmp_path / "out")
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert names == {
        *("index.html", "images.html", "view/app.js", "view/app.css", "data/meta.js"),
        *("data/truth.js", "data/det0.js", "data/box000.js"),
    }
    assert content(tmp_path / "out" / "data" / "meta.js")["classes"][0].startswith("<script>")


def test_names_are_shown_below_their_common_folder() -> None:
    names = ["/home/me/a/1.jpg", "/home/me/b/c/2.jpg", "/home/me/3.jpg"]
    assert folder.shortened(names) == ["a/1.jpg", "b/c/2.jpg", "3.jpg"]
    windows = [f"C:\\data\\img {k}.jpg" for k in (1, 2)]
    assert folder.shortened(windows) == ["img 1.jpg", "img 2.jpg"]
    assert folder.shortened(["only.jpg"]) == ["only.jpg"]
    assert folder.shortened([]) == []


def test_the_page_has_a_strict_policy_and_no_code_of_its_own() -> None:
    page = (folder.VIEW / folder.PAGE).read_text("utf-8")
    assert "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'" in page
    assert re.findall(r"<script(?! src=)|<style|\son\w+=|style=", page) == []
    code = dict(folder.code_files())["view/app.js"].decode()
    for word in ("innerHTML", "insertAdjacentHTML", "eval(", "document.write", "fetch(", "http"):
        assert word not in code, word
    scripts = [path.read_text("utf-8").splitlines() for path in folder.VIEW.glob("*.js")]
    assert sum(map(len, scripts)) <= 1200
