"""Tables with named columns: CSV and Parquet files, frames in memory."""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detmap
from detmap import DataError, read_detections, read_truth
from detmap.core.adapters.tabular import csv_parquet as sheets
from detmap.core.adapters.tabular import parquet_footer
from tests.support import builders as make
from tests.support import writers
from tests.support.format_samples import pictures
from tests.support.running import run
from tests.support.varied_exports import sizes_csv
from tests.support.varied_writers import columns

Tables = tuple[detmap.Truth, detmap.Detections]


def parquet(file: Path, table: Any, **options: Any) -> Path:
    """A file of columns, or of an Arrow table."""
    pyarrow, writer = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    rows = pyarrow.table(table) if isinstance(table, dict) else table
    writer.write_table(rows, file, **options)
    return file


WAYS = {
    "image class xmin ymin xmax ymax": ("voc", "voc"),
    "image_id category_name x y w h": ("xywh", None),
    "filename label x1 y1 x2 y2": ("xyxy", None),
    "ImageID LabelName Left Top Width Height": ("xywh", None),
    "img name cx cy w h": ("cxcywh", None),
    "image_path cls bbox_x bbox_y bbox_width bbox_height": ("xywh", None),
}


@pytest.mark.slow
@pytest.mark.parametrize("names", WAYS)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_numbers_of_the_source_files(
    sample: Tables, tmp_path: Path, names: str, kind: str
) -> None:
    written, told = WAYS[names]
    files = []
    for scored in (False, True):
        table = columns(writers.case(*sample), names, written, scored=scored)
        if kind == "csv":
            files.append(writers.csv(table, tmp_path / f"{scored}.csv"))
        else:
            files.append(parquet(tmp_path / f"{scored}.parquet", table))
    truth = read_truth(files[0], box_format=told)
    found = read_detections(files[1], truth, box_format=told)
    for protocol in ("coco-bbox", "voc2012"):
        wanted = detmap.evaluate(*sample, protocol).metrics
        assert detmap.evaluate(truth, found, protocol).metrics == wanted
    assert truth.images.ids.tolist() == sample[0].images.ids.tolist()
    crossed = read_detections(make.SHAPES / "detections" / "contours", truth)
    assert detmap.evaluate(truth, crossed, "coco-bbox").metrics == pytest.approx(
        detmap.evaluate(*sample, "coco-bbox").metrics, abs=1e-12
    )


def test_fractions_are_of_the_image(sample: Tables, tmp_path: Path) -> None:
    case, form = writers.case(*sample), "normalized cxcywh"
    sizes = sizes_csv(case, tmp_path)
    truth, found = (
        writers.csv(columns(case, "image class cx cy w h", form, scored=scored), tmp_path / name)
        for scored, name in ((False, "truth.csv"), (True, "found.csv"))
    )
    outcome = run(
        *("eval", truth, found, "-p", "coco-bbox", "--image-sizes", sizes, "--format", "json"),
        *("--truth-box-format", form, "--detections-box-format", form),
    )
    assert outcome.code == 0, outcome.err
    table = read_truth(truth, box_format=form, image_sizes=sizes)
    rows = read_detections(found, table, box_format=form)
    wanted = detmap.evaluate(*sample, "coco-bbox").metrics
    assert detmap.evaluate(table, rows, "coco-bbox").metrics == pytest.approx(wanted, abs=1e-12)
    with pytest.raises(DataError, match=r"line 2: a normalized box .*--image-sizes FILE"):
        read_truth(truth, box_format=form)


def test_columns_of_the_image_and_of_the_flags(tmp_path: Path) -> None:
    text = "filename,width,height,class,xmin,ymin,xmax,ymax,difficult,iscrowd,area\n"
    text += "b.jpg,40,20,cat,1,2,3,5,1,0,4\na.jpg,50,30,dog,0,0,1,1,0,1,9.5\n"
    truth = read_truth(make.write(tmp_path / "t.csv", text))
    assert truth.boxes.tolist() == [[1, 2, 2, 3], [0, 0, 1, 1]]
    assert (truth.images.ids.tolist(), truth.images.width.tolist()) == (["a", "b"], [50, 40])
    assert (truth.image.tolist(), truth.label.tolist()) == ([1, 0], [0, 1])
    assert truth.difficult.tolist() == [True, False]
    assert truth.crowd.tolist() == [False, True]
    assert truth.area.tolist() == [4, 9.5]


def test_a_row_without_a_box_is_an_image_without_objects(tmp_path: Path) -> None:
    text = "image_id,file_name,category_id,class,x,y,w,h\n7,b.png,2,cat,1,2,3,4\n9,a.png,,,,,,\n"
    truth = read_truth(make.write(tmp_path / "t.csv", text))
    assert (truth.images.ids.tolist(), truth.images.stems) == ([7, 9], ("b", "a"))
    assert (truth.categories.ids.tolist(), truth.categories.names) == ([2], ("cat",))
    found = make.write(
        tmp_path / "d.csv", "image,class,score,x,y,w,h\na,cat,.5,1,2,3,4\n7,cat,1,1,2,3,4"
    )
    with pytest.raises(DataError, match=r"no image 'a'|no image '7'"):  # stems or ids, not both
        read_detections(found, truth)
    found.write_text("image;class_id;conf;x;y;w;h\nimages/a.png;2;.5;1;2;3;4\n")
    assert read_detections(found, truth).image.tolist() == [1]


GOOD = "image,class,score,x,y,w,h\na,cat,.5,1,2,3,4\n"
BAD: dict[str, tuple[str | bytes, str]] = {
    "no class": (GOOD.replace("class", "klass"), "no column class; there are image, klass, score"),
    "no image": (GOOD.replace("image", "i"), "no column image"),
    "no box": (GOOD.replace(",w,", ",breadth,"), "no columns of a box"),
    "two boxes": (
        "image,class,score,x,y,w,h,xmin,ymin,xmax,ymax\na,cat,1,1,2,3,4,1,2,3,4\n",
        "the columns define several boxes: xmin/ymin/xmax/ymax and x/y/w/h",
    ),
    "twice": ("image,class,class,x,y,w,h\n", "the header is"),
    "the same": (GOOD.replace("class", "Class,class").replace("cat", "cat,cat"), "are the same"),
    "nan": (GOOD + "a,cat,.5,nan,2,3,4\n", "line 3, column x: nan is not a finite number"),
    "infinite": (GOOD + "a,cat,inf,1,2,3,4\n", "line 3, column score: inf is not a finite"),
    "not a number": (GOOD + "a,cat,.5,1,2,x,4\n", "line 3, column w: 'x' is not a number"),
    "negative": (GOOD + "a,cat,.5,1,2,-3,4\n", "line 3: box 1 2 -3 4 has a negative width"),
    "few": (GOOD + "a,cat,.5,1\n", "line 3: 4 columns, the header has 7"),
    "many": (GOOD + "a,cat,.5,1,2,3,4,5\n", "line 3: 8 columns, the header has 7"),
    "blank cell": (GOOD + "a,cat,.5,1,,3,4\n", "line 3, column y: '' is not a number"),
    "blank image": (GOOD + ",cat,.5,1,2,3,4\n", "line 3, column image: is empty"),
    "stranger": (GOOD + "z,cat,.5,1,2,3,4\n", "line 3.*no image 'z'"),
    "empty": ("", "line 1: the file is empty"),
    "no header": ("a,cat,.5,1,2,3,4\n", "no column"),
    "encoding": (GOOD.encode() + b"\xe4\n", "line 3: not UTF-8"),
    "garbage": (b"\x89PMG\r\n\x1a\n\x00\xff" * 50, "line 1: not UTF-8"),
    "quote": (GOOD + '"a,cat,.5,1,2,3,4\n', "truncated: the file ends inside a quoted cell"),
    "long": (GOOD + "a" * 200_000 + ",cat,.5,1,2,3,4\n", "not CSV: field larger"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_with_file_line_and_column(tmp_path: Path, name: str) -> None:
    text, message = BAD[name]
    truth = make.write(tmp_path / "truth.csv", "image,class,x,y,w,h\na,cat,1,2,3,4\n")
    file = make.write(tmp_path / "found.csv", text)
    table = read_truth(truth)
    with pytest.raises(DataError, match=message) as error:
        read_detections(file, table)
    assert error.value.fix
    outcome = run("eval", truth, file)
    assert outcome.code == 2
    assert "found.csv" in outcome.err


BAD_TRUTH = {
    "image,class,x,y,w,h\n": "holds no row",
    "image,class,x,y,w,h\na,cat,1,2,,4\n": "line 2, column w: nan is not a finite number",
    "image,class,x,y,w,h\na,,1,2,3,4\n": "line 2, column class: is empty",
    "image,class,x,y,w,h,difficult\na,cat,1,2,3,4,2\n": "column difficult.* 2.0 is not a flag",
    "image,class,x,y,w,h,area\na,cat,1,2,3,4,-2\n": "line 2, column area: -2",
    "image,class,class_id,x,y,w,h\na,cat,1,1,2,3,4\na,dog,1,1,2,3,4\n": "class 1 is 'dog', but",
    "image,class,class_id,x,y,w,h\na,cat,one,1,2,3,4\n": "column class_id: not whole numbers",
    "image,class,x,y,w,h,img_width,img_height\na,c,1,2,3,4,9,9\na,c,1,2,3,4,8,9\n": "but 8 before",
}


@pytest.mark.parametrize("text", BAD_TRUTH)
def test_a_truth_that_is_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=BAD_TRUTH[text]):
        read_truth(make.write(tmp_path / "t.csv", text))


def test_marks_line_ends_quotes_and_other_delimiters(tmp_path: Path) -> None:
    text = '\ufeffimage\tclass\tx\ty\tw\th\r\n"a"\t"a\tcat"\t1\t2\t3\t4\r\n\r\nb\tdog\t1\t2\t3\t4'
    truth = read_truth(make.write(tmp_path / "t.tsv", text))
    assert truth.categories.names == ("a\tcat", "dog")
    assert truth.images.stems == ("a", "b")


def test_a_box_format_that_the_columns_deny(tmp_path: Path) -> None:
    file = make.write(tmp_path / "t.csv", "image,class,x,y,w,h\na,cat,1,2,3,4\n")
    with pytest.raises(DataError, match=r"but the columns define xywh .choose one of: xywh,"):
        read_truth(file, box_format="xyxy")
    with pytest.raises(DataError, match="unknown box format 'yolo'"):
        read_truth(file, box_format="yolo")


def test_a_small_parquet_of_many_rows_is_measured_first(tmp_path: Path, monkeypatch: Any) -> None:
    columns = {name: ["a"] * 200_000 for name in ("image", "class")}
    file = parquet(tmp_path / "t.parquet", columns | {name: [1.0] * 200_000 for name in "xywh"})
    assert file.stat().st_size < 100_000
    monkeypatch.setattr("detmap.core.base.memory.available", lambda: 1 << 20)
    with pytest.raises(DataError, match="1200000 cells"):
        detmap.read_truth(file, box_format="xywh")


def test_a_parquet_far_larger_in_memory_is_refused(tmp_path: Path) -> None:
    columns = {name: [1.0] * 1_000_000 for name in ("image", "class", *"xywh")}
    file = parquet(tmp_path / "t.parquet", columns)
    assert file.stat().st_size < 100_000
    with pytest.raises(DataError, match="hold 6000000 cells, "):
        detmap.read_truth(file, box_format="xywh")


HEAD = "image,class,xmin,ymin,xmax,ymax\n"


@pytest.mark.slow
def test_more_classes_than_memory_is_for_are_refused(tmp_path: Path) -> None:
    for cell in ("c{}", "{}"):
        rows = "".join(f"a,{cell.format(i)},1,1,9,9\n" for i in range(50_001))
        with pytest.raises(DataError, match="column class: 50001 classes, where 50000 are plenty"):
            read_truth(make.write(tmp_path / "t.csv", HEAD + rows))


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    for size, what in ((10_001, "10001 characters"), (400_000, "field larger than field limit")):
        for column in (0, 1):
            row = ["a", "b", "1", "1", "9", "9"]
            bad = [*row]
            bad[column] = "x" * size
            text = "\n".join(map(",".join, [row, bad, row]))
            with pytest.raises(DataError, match=what) as error:
                read_truth(make.write(tmp_path / "t.csv", HEAD + text))
            assert "t.csv: line 3" in error.value.where
    columns = {"image": ["x" * 10_001] * 1000, "class": ["c"] * 1000}
    columns |= {name: [1.0] * 1000 for name in "xywh"}  # type: ignore[misc]
    with pytest.raises(DataError, match="column image: a text of 10001 characters"):
        read_truth(parquet(tmp_path / "t.parquet", columns))


def test_texts_of_parquet_are_read_once_each(tmp_path: Path) -> None:
    columns = {"image": ["x" * 9000] * 1000, "class": ["c", None, "d", "c"] * 250}
    columns |= {"lists": [["y" * 9000] * 9] * 1000}
    sheet = sheets.read_parquet(parquet(tmp_path / "t.parquet", columns))
    assert list(sheet.columns) == ["image", "class"]  # lists of texts are left out
    assert sheet.columns["class"].tolist() == columns["class"]
    assert len({id(text) for text in sheet.columns["image"]}) == 1


def test_lists_count_by_their_values(tmp_path: Path) -> None:
    columns = {"image": ["a"] * 10, "boxes": [[1.0] * 500_000] * 10}
    with pytest.raises(DataError, match="hold 5000010 cells"):
        read_truth(parquet(tmp_path / "t.parquet", columns))


@pytest.mark.parametrize(
    "options",
    [{}, {"row_group_size": 1}, {"use_dictionary": False}, {"write_page_index": True}],
    ids=str,
)
def test_values_are_counted_as_by_pyarrow(tmp_path: Path, options: dict[str, Any]) -> None:
    columns = {"image": ["a", "b", "c"], "boxes": [[1.0, 2.0], [3.0] * 7, []]}
    columns |= {"flag": [True, False, None], "objects": [{"area": [1, 2, 3]}] * 3}
    file = parquet(tmp_path / "t.parquet", columns, **options)
    metadata = pytest.importorskip("pyarrow.parquet").read_metadata(file)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    values = [group.column(k).num_values for group in groups for k in range(4)]
    assert parquet_footer.count_values(file.read_bytes()) == sum(values)


FOOTERS = {
    "no footer": b"PAR1",
    "the footer ends early": b"\x19" + (1).to_bytes(4, "little") + b"PAR1",
    "nested too deeply": b"\x1c" * 40 + (40).to_bytes(4, "little") + b"PAR1",
    "unknown kind": b"\x1e" + (1).to_bytes(4, "little") + b"PAR1",
    "more than 64 bits": b"\x15" + b"\xff" * 10 + (11).to_bytes(4, "little") + b"PAR1",
}


@pytest.mark.parametrize("what", FOOTERS)
def test_a_footer_that_is_none(what: str) -> None:
    with pytest.raises(ValueError, match=what):
        parquet_footer.count_values(FOOTERS[what])


def test_malformed_statistics_of_a_column_are_refused(tmp_path: Path) -> None:
    """pyarrow's own metadata of such a column ends the process: x is written as optional, and the
    file says that it is required. Found by tools/fuzz.py mutated.
    """
    columns = {name: [1.0] * 9 for name in "xywh"} | {"image": ["a"] * 9, "class": ["b"] * 9}
    file = parquet(tmp_path / "t.parquet", columns)
    before, optional, after = file.read_bytes().rpartition(b"\x02\x18\x01x")
    assert optional
    make.write(file, before + b"\x00\x18\x01x" + after)
    with pytest.raises(DataError, match=r"t.parquet: cannot be read as Parquet"):
        read_truth(file)


def test_a_csv_with_many_columns_is_refused(tmp_path: Path) -> None:
    text = ",".join(f"c{i}" for i in range(1001)) + "\n"
    with pytest.raises(DataError, match="line 1: 1001 columns, the limit is 1000"):
        read_truth(make.write(tmp_path / "t.csv", text))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("memory", [{}, {"memory": "8 GB"}], ids=["whole", "pieces"])
def test_names_in_any_encoding(tmp_path: Path, encoding: str, memory: dict[str, Any]) -> None:
    """pyarrow decodes some into texts only, not into a dictionary."""
    columns = {"image": ["a", "a", "b"], "class": ["x", "y", "x"], "x1": [0, 5, 1], "y1": [0, 5, 1]}
    columns |= {"x2": [9, 9, 9], "y2": [9, 9, 9], "score": [0.9, 0.8, 0.7]}
    plain = parquet(tmp_path / "plain.parquet", columns)
    own = {"image": encoding, "class": encoding}
    options = {"use_dictionary": False, "column_encoding": own}
    delta = parquet(tmp_path / "delta.parquet", columns, **options)
    expected = detmap.evaluate(plain, plain, "voc2012").metrics
    assert detmap.evaluate(delta, delta, "voc2012", **memory).metrics == expected == {"mAP": 1.0}


@pytest.mark.parametrize("encoding", [None, "PLAIN", "DELTA_BYTE_ARRAY"])
def test_the_encodings_of_a_file_are_in_its_footer(tmp_path: Path, encoding: str | None) -> None:
    own: dict[str, Any] = {}
    if encoding is not None:
        own = {"use_dictionary": False, "column_encoding": {"image": encoding}}
    columns = {"image": ["a", "b"], "x": [1, 2]}
    file = parquet(tmp_path / "t.parquet", columns, row_group_size=1, **own)
    data = file.read_bytes()
    assert parquet_footer.has_delta(data) == (encoding == "DELTA_BYTE_ARRAY")
    assert parquet_footer.count_values(data) == 4
    with file.open("rb") as stream:
        last = parquet_footer.last_bytes(stream)
    assert data.endswith(last)
    assert len(last) < len(data)
    assert parquet_footer.has_delta(last) == parquet_footer.has_delta(data)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff" * 9])
def test_the_last_bytes_of_a_file_without_footer(content: bytes) -> None:
    assert content.endswith(parquet_footer.last_bytes(io.BytesIO(content)))


@pytest.mark.parametrize("column", ["score", "x2"])
def test_flags_are_no_scores_and_no_corners(tmp_path: Path, column: str) -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"image": ["a"], "class": ["x"], "x1": [0], "y1": [0], "x2": [1], "y2": [1]}
    truth = detmap.truth_from_arrays(pandas.DataFrame(columns))
    frame = pandas.DataFrame({**columns, "score": [0.5], column: [True]})
    with pytest.raises(DataError, match=rf"column {column}: dtype bool"):
        detmap.detections_from_arrays(truth, frame)


@pytest.mark.parametrize("content", [b"", b"PAR1" + bytes(99) + b"PAR1", b"image,class"])
def test_parquet_that_is_none(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"t.parquet: cannot be read as Parquet"):
        read_truth(make.write(tmp_path / "t.parquet", content))


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"pip install 'detmap-eval\[parquet\]'"):
        read_truth(make.write(tmp_path / "t.parquet", b""))


def test_names_of_columns_in_any_spelling() -> None:
    for written, plain in (
        ("Image_ID", "imageid"),
        ("bbox.x", "x"),
        ("Box-Width", "width"),
        ("X Min", "xmin"),
        ("bbox", "bbox"),
        ("boxes", "boxes"),
    ):
        assert sheets.spelled(written) == plain


def test_numbers_of_classes_are_ids(tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "t.csv", "image,class,x,y,w,h\na,3,1,2,3,4\n"))
    assert (truth.categories.ids.tolist(), truth.categories.names) == ([3], ("3",))
    assert np.isnan(truth.images.width).all()


def test_the_index_that_pandas_writes_is_no_column(tmp_path: Path) -> None:
    plain = "image,class,xmin,ymin,xmax,ymax\na,cat,0,0,9,9\nb,dog,1,1,5,5\n"
    rows = plain.splitlines()
    (tmp_path / "plain.csv").write_text(plain)
    (tmp_path / "index.csv").write_text("\n".join(["," + rows[0], "0," + rows[1], "1," + rows[2]]))
    truth, wanted = read_truth(tmp_path / "index.csv"), read_truth(tmp_path / "plain.csv")
    assert truth.images.ids.tolist() == wanted.images.ids.tolist() == ["a", "b"]
    assert truth.boxes.tolist() == wanted.boxes.tolist()


def test_images_without_objects_have_to_be_in_the_truth(tmp_path: Path) -> None:
    """What pandas writes of a table of objects lacks them."""
    head, box = "image,class,xmin,ymin,xmax,ymax", "cat,0,0,9,9"
    (tmp_path / "truth.csv").write_text("\n".join([head, f"a,{box}", f"b,{box}", f"c,{box}"]))
    (tmp_path / "found.csv").write_text("\n".join([f"{head},score", f"empty,{box},0.9"]))
    with pytest.raises(DataError, match="the ground truth must list images without objects"):
        read_detections(tmp_path / "found.csv", read_truth(tmp_path / "truth.csv"))


def test_the_folder_above_those_of_an_old_tool(tmp_path: Path) -> None:
    (tmp_path / "ground-truth").mkdir()
    with pytest.raises(DataError, match=r"name .*ground-truth"):
        read_truth(tmp_path)


def test_corners_beside_voc_are_told(tmp_path: Path) -> None:
    """VOC's corners are pixels; columns of the same names were read as corners without a word."""
    found = make.write(
        tmp_path / "found.csv", "image,class,score,xmin,ymin,xmax,ymax\n000000,circle,.9,3,4,9,9\n"
    )
    truth = detmap.read_truth(make.SHAPES)
    name = str(truth.images.ids[0])
    found.write_text(found.read_text().replace("000000", name))
    codes = [each.code for each in detmap.read_detections(found, truth).notes]
    assert "corners-assumed" in codes
    told = detmap.read_detections(found, truth, box_format="voc")
    assert "corners-assumed" not in [each.code for each in told.notes]


# ---- YOLOv5's CSV, Open Images, fractions

YOLO5 = ",xmin,ymin,xmax,ymax,confidence,class,name\n0,1,2,9,9,0.9,1,cat\n1,2,2,8,8,0.5,0,dog\n"
COCO = "image,class,class_id,x,y,w,h\na,cat,1,1,2,8,7\nb,dog,2,2,2,6,6\n"


def test_names_go_before_a_numeric_class(tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "t.csv", COCO))
    lines = YOLO5.splitlines()
    words = zip(["image", "a", "b"], lines, strict=True)
    header, *rows = [f"{word}{line[line.index(',') :]}" for word, line in words]
    one = make.write(tmp_path / "all.csv", "\n".join([header, *rows]))
    for stem, line in zip("ab", lines[1:], strict=True):
        make.write(tmp_path / "dt" / f"{stem}.csv", f"{lines[0]}\n{line}\n")
    names = make.write(tmp_path / "names.txt", "dog\ncat\n")
    for path in (one, tmp_path / "dt"):
        for options in ({}, {"unknown": "drop"}, {"class_names": names}):
            found = read_detections(path, truth, **options)  # type: ignore[arg-type]
            assert [truth.categories.names[k] for k in found.label] == ["cat", "dog"]
            assert found.image.tolist() == [0, 1]
    make.write(tmp_path / "dt" / "b.csv", f"{lines[0]}\n1,2,2,x,8,0.5,0,dog\n")
    with pytest.raises(DataError, match=r"dt: line 2 of b.csv, column xmax.*is not a number"):
        read_detections(tmp_path / "dt", truth)
    make.write(tmp_path / "dt" / "b.csv", "xmin,ymin\n1,2\n")
    with pytest.raises(DataError, match=r"b.csv: the columns are xmin, ymin, and"):
        read_detections(tmp_path / "dt", truth)


@pytest.mark.parametrize("given", ["2 0 1", "0 2 1", "10 2 7", "007 7 0"])
def test_a_column_of_names_decides_also_if_they_are_digits(tmp_path: Path, given: str) -> None:
    names = given.split()
    lines = [f"a,{name},{7 - i},1,2,8,7" for i, name in enumerate(names)]
    table = "\n".join(["image,class,class_id,x,y,w,h", *lines])
    truth = read_truth(make.write(tmp_path / "t.csv", table))
    head = "image,confidence,xmin,ymin,xmax,ymax,class,name"
    for some in (names, names[:1], names[1:]):
        rows = [f"a,.9,1,2,9,9,{i},{name}" for i, name in enumerate(some)]
        found = read_detections(make.write(tmp_path / "d.csv", "\n".join([head, *rows])), truth)
        assert [truth.categories.names[k] for k in found.label] == some


def test_classes_with_leading_zeros_are_texts(tmp_path: Path) -> None:
    for column in ("class", "label", "name"):
        rows = f"image,{column},x,y,w,h\na,007,1,2,3,4\na,7,1,2,3,4\na,00,1,2,3,4\n"
        truth = read_truth(make.write(tmp_path / "t.csv", rows))
        assert truth.categories.names == ("00", "007", "7")
        found = "image,class,score,x,y,w,h\na,7,1,1,2,3,4\n"
        assert read_detections(make.write(tmp_path / "d.csv", found), truth).label.tolist() == [2]
        found = found.replace("7,1,", "1,1,", 1)  # an id of none of these classes
        with pytest.raises(DataError, match=r"no class '?1'?"):
            read_detections(make.write(tmp_path / "d.csv", found + "a,7,1,1,2,3,4\n"), truth)


def test_classes_from_0_get_no_advice_to_drop_them(tmp_path: Path) -> None:
    truth = read_truth(make.write(tmp_path / "t.csv", COCO))
    text = "image,class,score,x,y,w,h\na,0,0.5,1,2,8,7\na,1,0.5,1,2,8,7\n"
    found = make.write(tmp_path / "dt.csv", text)
    with pytest.raises(DataError, match="count from 0 here: give --class-names") as refused:
        read_detections(found, truth)
    assert "drop" not in refused.value.fix
    dropped, note = read_detections(found, truth, unknown="drop").notes
    assert (dropped.code, note.code) == ("class-unknown", "class-zero")
    assert "--class-names" in note.text


OPEN = """ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf,IsInside
a,/m/1,1,0.1,0.5,0.25,0.5,1,0,0
b,/m/2,1,0.0,1.0,0.0,0.5,0,1,-1
"""


def test_flags_and_fractions_of_open_images(tmp_path: Path) -> None:
    file = make.write(tmp_path / "t.csv", OPEN)
    sizes = make.write(tmp_path / "s.csv", "image,width,height\na,100,80\nb,100,80\n")
    truth = read_truth(file, image_sizes=sizes)
    assert np.allclose(truth.boxes, [[10, 20, 40, 20], [0, 0, 100, 40]])
    flags = {name: flag.tolist() for name, flag in truth.roles.items()}
    assert flags["crowd"] == flags["group_of"] == [False, True]
    assert (flags["occluded"], flags["inside"]) == ([True, False], [False, False])
    counts = {note.code: note.count for note in truth.notes}
    assert counts == {"boxes-fractions": 2, "group-of-crowd": 1, "flag-unknown": 1}
    assert read_truth(file, image_sizes=sizes, roles=["group_of"]).crowd.tolist() == [False] * 2
    told = read_truth(file, image_sizes=sizes, box_format="normalized xyxy")
    assert told.boxes.tolist() == truth.boxes.tolist()
    with pytest.raises(DataError, match=r"normalized box on an image of unknown size.*image-sizes"):
        read_truth(file)
    pixels = read_truth(file, box_format="xyxy")
    assert np.allclose(pixels.boxes[0], [0.1, 0.25, 0.4, 0.25])


def test_image_sizes_of_every_form_are_equal(tmp_path: Path) -> None:
    file = make.write(tmp_path / "t.csv", OPEN)
    pictures(tmp_path / "images")
    content = {"images": [{"file_name": f"x/{n}.png", "width": 64, "height": 32} for n in "ab"]}
    places = [
        make.write(tmp_path / "s.csv", "image,width,height\na,64,32\nb.png,64,32\n"),
        make.write(tmp_path / "s.json", content),
        tmp_path / "images",
    ]
    for place in places:
        truth = read_truth(file, image_sizes=place)
        assert truth.images.width.tolist() == [64] * len(truth.images)
    bad = make.write(tmp_path / "bad.json", [1])
    with pytest.raises(DataError, match=r"not a COCO JSON file with the sizes.*or a folder"):
        read_truth(file, image_sizes=bad)
    content["images"][0]["width"] = 0
    with pytest.raises(DataError, match=r"images\[0\], column width: 0 pixels"):
        read_truth(file, image_sizes=make.write(tmp_path / "zero.json", content))
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no images, whose sizes are needed"):
        read_truth(file, image_sizes=tmp_path / "none")


@pytest.mark.parametrize("names", [("a.jpg", "a.png"), ("one/a.jpg", "two/a.jpg")])
def test_images_of_the_same_stem_join_by_path(tmp_path: Path, names: tuple[str, str]) -> None:
    images = [make.image(id=i, file_name=name) for i, name in enumerate(names)]
    content = make.instances(images=images, annotations=[])
    truths = [read_truth(make.write(tmp_path / "t.json", content))]
    head = "image,class,score,x,y,w,h\n"
    kind = truths[0].categories.names[0]
    rows = "".join(f"{name},{kind},1,1,2,3,4\n" for name in names)
    table = make.write(tmp_path / "d.csv", head + rows)
    if "/" in names[0]:
        truths.append(read_truth(table))
        for name in names:
            page = make.page(make.voc_object(kind))
            make.write((tmp_path / "voc" / "Annotations" / name).with_suffix(".xml"), page)
        truths.append(read_truth(tmp_path / "voc"))
        sizes = "image,width,height\none/a.jpg,64,32\ntwo/a.jpg,32,64\n"
        sized = read_truth(table, image_sizes=make.write(tmp_path / "s.csv", sizes))
        assert sized.images.width.tolist() == [64, 32]
    for truth in truths:
        assert read_detections(table, truth).image.tolist() == [0, 1]
    with pytest.raises(DataError, match="file stem 'a'"):
        read_detections(make.write(tmp_path / "d.csv", head + f"a,{kind},1,1,2,3,4\n"), truths[0])
