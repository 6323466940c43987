"""Pictures of an evaluation: what the curves are, and that the same bytes come again."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import detmap
from detmap.analysis import curve_plots as pictures
from detmap.analysis.plot_panels import Curve, Panel, figure_of
from detmap.core.output import plots
from tests.support import builders as make
from tests.support.running import run, spawn

COCO, RESULTS = make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json"


@pytest.mark.slow
def test_the_curves_are_those_of_the_result() -> None:
    result = detmap.evaluate(COCO, RESULTS)
    classes, subsets, ious, scores = pictures.panels_of(result)
    assert [curve.name for curve in classes.curves] == [*result.matches.categories.names, "mean"]
    for curve in classes.curves[:-1]:
        recall, precision, score = result.curve(curve.name)
        ends = np.append(score[1:] != score[:-1], True)  # equal scores enter together
        assert np.array_equal(curve.x[1:], recall[ends])
        np.testing.assert_allclose(curve.y[1:], precision[ends], rtol=1e-12)
    # The mean over 101 recalls is COCO's AP, but for the order of equal scores.
    for name, curve in (("AP50", classes.curves[-1]), ("AP75", ious.curves[5])):
        assert curve.y.mean() == pytest.approx(result.metrics[name], abs=0.02)
    wanted = pytest.approx(result.metrics["AP"], abs=0.02)
    assert np.mean([c.y.mean() for c in ious.curves]) == wanted
    assert [curve.name for curve in subsets.curves] == ["all", "small", "medium", "large"]
    assert len(ious.curves) == 10
    best = result.best_f_beta()
    positions_by_name = {curve.name: curve for curve in scores.curves}
    for name, row in (("micro", best.micro), ("macro", best.macro), ("star", best.per_class[4])):
        assert positions_by_name[name].y.max() == row["f1"]
        assert positions_by_name[name].x[np.argmax(positions_by_name[name].y)] == row["threshold"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_a_picture_is_drawn_without_a_display_and_is_the_same_again(
    tmp_path: Path, suffix: str, magic: bytes
) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / f"{name}.{suffix}" for name in ("a", "b")]
    words = ("eval", COCO, RESULTS, "--plot")
    alone = spawn(*words, files[0], DISPLAY="", MPLBACKEND="")
    again = run(*words, files[1])
    assert (alone.code, again.code) == (0, 0), alone.err + again.err
    assert alone.out == again.out == run("eval", COCO, RESULTS).out
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().startswith(magic)


@pytest.mark.slow
def test_a_result_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    detmap.evaluate(COCO, RESULTS).plot(tmp_path / "x.svg", iou=0.75)
    text = (tmp_path / "x.svg").read_text()
    assert "at IoU 0.75" in text
    assert "star" in text
    nothing = make.write(tmp_path / "none.json", [])
    assert run("eval", COCO, nothing, "--plot", tmp_path / "y.png").code == 0
    empty = make.write(tmp_path / "gt.json", make.instances(annotations=[]))
    refused = run("eval", empty, nothing, "--plot", tmp_path / "z.png")
    assert (refused.code, "has no objects" in refused.err) == (2, True)
    detmap.evaluate(empty, nothing).plot(tmp_path / "z.png")
    assert (tmp_path / "z.png").stat().st_size
    many = json.loads(COCO.read_text())
    many["categories"] += [make.category(id=i, name=f"class {i}") for i in range(100, 130)]
    many["annotations"] += [make.annotation(id=9000 + i, category_id=i) for i in range(100, 130)]
    file = make.write(tmp_path / "many.json", many)
    assert run("eval", file, RESULTS, "--plot", tmp_path / "many.png").code == 0


@pytest.mark.slow
def test_a_bad_picture_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, words in (("x", "no suffix"), ("x.docx", "name a .png, .svg or .pdf file")):
        outcome = run("eval", "no such file", RESULTS, "--plot", tmp_path / name)
        assert outcome.code == 2
        assert words in outcome.err
    for names in ("a", "a,a", "a,b,c"):
        words = ("--names", names, "--plot", tmp_path / "x.png")
        assert "a unique name" in run("compare", "no such file", RESULTS, RESULTS, *words).err
    (tmp_path / "x.png").touch()  # a new file of this suffix is refused before
    text = run("eval", COCO, RESULTS, "--plot", tmp_path / "x.png", "-o", tmp_path / "x.png").err
    assert "is used for two outputs" in text
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = run("eval", COCO, RESULTS, "--plot", tmp_path / "x.png")
    assert outcome.code == 2
    assert "pip install 'detmap-eval[plot]'" in outcome.err
    assert [file.stat().st_size for file in tmp_path.iterdir()] == [0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["$$", "a$b$", r"\$x_1^{", "_hidden", r"$\frac$"])
def test_a_name_is_no_formula(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]], categories={1: name})
    found = detmap.detections_from_arrays(truth, [1], [1], [[0, 0, 9, 9]], [0.5])
    detmap.evaluate(truth, found).plot(tmp_path / "a.svg")
    drawn = "".join(re.findall(r"<!-- (.*?) -->", (tmp_path / "a.svg").read_text()))
    assert name.replace("&", "&amp;") in drawn


@pytest.mark.slow
def test_of_many_curves_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first, the last and some between them, and what stands for all; the title says so."""
    pytest.importorskip("matplotlib")
    x = np.array([0.0, 1.0])
    curves = [Curve(f"class {i}", x, np.full(2, i / 100)) for i in range(100)]
    panels = [Panel("classes", "title", "x", "y", (*curves, Curve("mean", x, x, strong=True)))]
    grey = b"stroke: #999999"
    assert plots.saved(figure_of(panels, ""), Path("p.svg")).count(grey) == 100
    monkeypatch.setattr(plots, "MOST_DRAWN", 30)
    assert plots.saved(figure_of(panels, ""), Path("p.svg")).count(grey) == 30
    assert plots.spread(100, 30).tolist()[::29] == [0, 99]
    assert (plots.left_out(100), plots.left_out(30)) == (" (30 of 100)", "")
