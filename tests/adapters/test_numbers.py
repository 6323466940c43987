"""Numbers are read as the format defines them; what is odd is counted, or refused.

It is refused where it would change a number, and counted in a note where it does not."""

import dataclasses
import os
import tracemalloc
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detmap import DataError, read_detections, read_truth
from detmap.core.adapters import read_images
from detmap.core.adapters import text_fields as text
from detmap.core.adapters.coco import instances as coco
from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.adapters.joining import image_lookup
from detmap.core.adapters.tabular import csv_parquet
from detmap.core.adapters.voc import devkit as voc
from detmap.core.adapters.voc import scan_voc as voc_scan
from detmap.core.base import open_files as opening
from detmap.ranking import csv_scores, voc_scores
from tests.support import builders as make
from tests.support.running import run

# What float() reads, and no file format means.
NO_NUMBERS = {
    "an underscore": "3_0",
    "Arabic digits": "\u0663\u0660",
    "full-width digits": "\uff13\uff10",
    "a no-break space behind": "30\u00a0",
    "a form feed before": "\f30",
    "a vertical tab behind": "30\v",
    "a file separator behind": "30\x1c",
    "hexadecimal": "0x1e",
    "two points": "3.0.",
    "no digit": ".",
    "an empty exponent": "3e",
    "a decimal comma": "3,0",
}
NUMBERS = {
    "30": 30.0,
    "+30": 30.0,
    "-30": -30.0,
    "30.": 30.0,
    ".5": 0.5,
    "3e1": 30.0,
    "3.0E+1": 30.0,
    "300e-1": 30.0,
    "0030": 30.0,
    "-0": -0.0,
}
each_wrong = pytest.mark.parametrize("word", NO_NUMBERS.values(), ids=NO_NUMBERS)


@each_wrong
def test_the_decimal_grammar_refuses(word: str) -> None:
    assert text.number(word) is None
    with pytest.raises(ValueError):
        text.numbers(["1", word])


@pytest.mark.parametrize("word", NUMBERS)
def test_the_decimal_grammar_reads(word: str) -> None:
    assert text.number(word) == NUMBERS[word]
    assert text.numbers([word, " 1 "]) == [NUMBERS[word], 1.0]


@pytest.mark.parametrize("word", ["inf", "-Infinity", "NaN", "1e999"])
def test_what_is_not_finite_is_read_for_the_caller_to_refuse(word: str) -> None:
    assert not np.isfinite(text.number(word))
    assert not np.isfinite(text.numbers([word])).any()


@each_wrong
def test_words_of_xml_that_are_no_numbers_are_refused(word: str, tmp_path: Path) -> None:
    if word[0] in "\f" or word[-1] in "\v\x1c":
        pytest.skip("XML has no such characters")
    page = make.page(make.voc_object(box=(11, 11, word, 30)))
    root = make.write_voc(tmp_path / "VOC2007", {"000001": page})
    with pytest.raises(DataError, match=r"is not a (finite )?number") as refused:
        read_truth(root)
    assert refused.value.where.endswith("object[0].bndbox.xmax")


@each_wrong
@pytest.mark.parametrize("column", range(1, 6))
def test_numbers_of_voc_text(column: int, word: str, tmp_path: Path) -> None:
    truth = read_truth(make.write_voc(tmp_path / "VOC2007"))
    line = ["000001", "0.5", "11", "11", "30", "30"]
    line[column] = word
    folder = make.write_voc_text(tmp_path / "text", {"test_cat": " ".join(line)})
    with pytest.raises(DataError, match=r"is not a (finite )?number"):
        read_detections(folder, truth)


@each_wrong
def test_words_of_csv_that_are_no_numbers_are_refused(word: str, tmp_path: Path) -> None:
    path = make.write(tmp_path / "scores.csv", f'id,cat\na,0.5\nb,"{word}"\n')
    with pytest.raises(DataError, match="is not a number") as refused:
        csv_scores._sheet(path)
    assert refused.value.where == f"{path}: line 3, column cat"


@each_wrong
def test_numbers_of_classification_results(word: str, tmp_path: Path) -> None:
    path = make.write(tmp_path / "comp1_cls_test_cat.txt", f"000001 {word}\n")
    with pytest.raises(DataError, match="is not a score"):
        voc_scores._scores(path, ["000001"], tmp_path)


@pytest.mark.parametrize("strange", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_line_ends_end_a_line(strange: str, tmp_path: Path) -> None:
    path = make.write(tmp_path / "list.txt", f"000001{strange}000002\n")
    assert [words for _, words in text.lines(path)] == [[f"000001{strange}000002"]]
    with pytest.raises(DataError, match="no image"):
        read_images(path, read_truth(make.write_voc(tmp_path / "VOC2007")))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system_are_read(end: str, tmp_path: Path) -> None:
    path = make.write(tmp_path / "list.txt", f"\ufeffa b{end}{end}\tc {end}")
    assert list(text.lines(path)) == [(1, ["a", "b"]), (3, ["c"])]


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\f", "\v"])
def test_only_spaces_and_tabs_part_words(space: str, tmp_path: Path) -> None:
    truth = read_truth(make.write_voc(tmp_path / "VOC2007"))
    line = f"000001 0.5 11{space}11 30 30"
    folder = make.write_voc_text(tmp_path / "text", {"test_cat": line})
    with pytest.raises(DataError, match="5 columns"):
        read_detections(folder, truth)


# ---- flags and sizes of a COCO truth


def truth_of(tmp_path: Path, **groups: Any) -> Any:
    return read_truth(make.write(tmp_path / "gt.json", make.instances(**groups)))


def codes(table: Any) -> dict[str, int]:
    return {note.code: note.count for note in table.notes}


@pytest.mark.parametrize("flag", [1.5, 2, 255, 1.0, True])
def test_flags_that_mean_a_crowd_are_read_as_1(flag: Any, tmp_path: Path) -> None:
    truth = truth_of(tmp_path, annotations=[make.annotation(iscrowd=flag)])
    assert truth.crowd.tolist() == [True]
    assert codes(truth) == ({} if flag == 1 else {"iscrowd-odd": 1})


@pytest.mark.parametrize("flag", [0.5, -1, 256, 1e308, -0.25])
def test_flags_of_no_clear_meaning_are_refused(flag: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is neither 0 nor 1") as refused:
        truth_of(tmp_path, annotations=[make.annotation(), make.annotation(id=2, iscrowd=flag)])
    assert refused.value.where.endswith("annotations[1].iscrowd")


@pytest.mark.parametrize("side", ["width", "height"])
@pytest.mark.parametrize("value", [-1, 0, -0.5])
def test_images_without_extent_have_no_size(side: str, value: float, tmp_path: Path) -> None:
    truth = truth_of(tmp_path, images=[make.image(**{side: value})])
    assert codes(truth) == {"image-size-odd": 1}
    assert np.isnan(getattr(truth.images, side)).all()


# ---- text of COCO files


BROKEN = {
    "bytes that are no UTF-8": (b'"\xff"', "not UTF-8"),
    "half of a surrogate pair": (rb'"\ud800"', "half of a surrogate pair"),
    "the other half": (rb'"a\udc00b"', "half of a surrogate pair"),
}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("spelled, what", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("field", ["file_name", "caption"])
def test_text_that_is_none_is_refused_by_record_read_or_not(
    field: str, spelled: bytes, what: str, large: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    if large:
        monkeypatch.setattr(coco_scan, "LEAST_SIZE", 0)
    whole = b'{"images": [{"id": 1}, {"id": 2, "%s": %s}], "annotations": [], "categories": []}'
    path = make.write(tmp_path / "gt.json", whole % (field.encode(), spelled))
    with pytest.raises(DataError) as refused:
        read_truth(path)
    assert refused.value.where == f"{path}: images[1].{field}"
    assert what in refused.value.what


@pytest.mark.parametrize("spelled, what", BROKEN.values(), ids=BROKEN)
def test_text_that_is_none_in_results(spelled: bytes, what: str, tmp_path: Path) -> None:
    truth = truth_of(tmp_path)
    record = (
        b'[{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 1, "x": {"y": %s}}]'
    )
    path = make.write(tmp_path / "dt.json", record % spelled)
    with pytest.raises(DataError, match=what) as refused:
        read_detections(path, truth)
    assert refused.value.where == f"{path}[0].x.y"


# ---- memory


@pytest.mark.slow
def test_one_long_id_among_many_takes_no_wide_array(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, images=[make.image(id="1")], annotations=[])
    rows = [make.detection(image_id="1")] * 20_000
    path = make.write(tmp_path / "dt.json", [*rows, make.detection(image_id="x" * 20_000)])
    tracemalloc.start()
    with pytest.raises(DataError, match=r"no image 'x+\.\.\. in") as refused:
        read_detections(path, truth)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # 1.6 GB as an array of strings
    assert len(str(refused.value)) < 1000


def test_a_class_of_a_long_name_takes_no_wide_array(tmp_path: Path) -> None:
    truth = truth_of(tmp_path)
    rows = [make.detection(category_id="cat")] * 20_000
    path = make.write(tmp_path / "dt.json", [*rows, make.detection(category_id="x" * 20_000)])
    tracemalloc.start()
    detections = read_detections(path, truth, unknown="drop")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(detections) == 20_000
    assert codes(detections) == {"class-unknown": 1}
    assert len(detections.notes[0].text) < 500
    assert peak < 60e6


@pytest.mark.parametrize(
    "image_id, what", [("x" * 20_000, "a string of 20000 characters"), ("a\0", "holds a NUL")]
)
def test_an_id_that_no_table_can_hold_is_refused(image_id: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what) as refused:
        truth_of(tmp_path, images=[make.image(id="b"), make.image(id=image_id)], annotations=[])
    assert refused.value.where.endswith("images[1].id")


def test_an_endless_device_is_refused(tmp_path: Path) -> None:
    with pytest.raises(opening.UnreadableError, match="a device, not a file"):
        coco.decode_instances(Path("/dev/zero"))
    with pytest.raises(DataError, match="a device, not a file"):
        read_images("/dev/zero", truth_of(tmp_path))
    with pytest.raises(DataError, match="a device, not a file"):
        voc.decode_pages(tmp_path, [Path("/dev/zero")])
    assert voc_scan.scan_pages([Path("/dev/zero")] * 64) is None


# ---- XML


def voc_truth(tmp_path: Path, *parts: str, n: int = 1) -> Any:
    pages = {f"{i:06}": make.page(*parts) for i in range(n)}
    return read_truth(make.write_voc(tmp_path / "VOC2007", pages))


TWICE = {
    "a name": ("<name>{}</name>", "cat", "dog", "name"),
    "a flag": ("<difficult>{}</difficult>", "1", "0", "difficult"),
    "a box": (
        "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>{}</xmax><ymax>9</ymax></bndbox>",
        "9",
        "8",
        "bndbox",
    ),
}
GOOD = {
    "name": "<name>cat</name>",
    "bndbox": "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>",
}


@pytest.mark.parametrize("n", [1, 80])
@pytest.mark.parametrize("spelled, value, other, tag", TWICE.values(), ids=TWICE)
def test_an_element_that_is_there_twice(
    spelled: str, value: str, other: str, tag: str, n: int, tmp_path: Path
) -> None:
    rest = "".join(part for name, part in GOOD.items() if name != tag)
    first = spelled.format(value)
    same = f"<object>{rest}{first}{spelled.format(f' {value} ')}</object>"
    truth = voc_truth(tmp_path, same, n=n)
    assert codes(truth).get("element-repeated") == n
    assert len(truth) == n
    with pytest.raises(DataError, match="occurs twice") as refused:
        voc_truth(tmp_path, f"<object>{rest}{first}{spelled.format(other)}</object>", n=n)
    assert refused.value.where.endswith(f"object[0].{tag}")


def test_sides_that_are_there_twice(tmp_path: Path) -> None:
    box = GOOD["bndbox"].replace("<xmax>", "<xmin>1.0</xmin><xmax>")
    truth = voc_truth(tmp_path, f"<object>{GOOD['name']}{box}</object>")
    assert codes(truth)["element-repeated"] == 1
    with pytest.raises(DataError, match="occurs twice: 1 and 2"):
        voc_truth(tmp_path, f"<object>{GOOD['name']}{box.replace('1.0', '2')}</object>")


@pytest.mark.parametrize("n", [1, 80])
def test_a_page_without_extent_is_counted_and_its_size_unknown(n: int, tmp_path: Path) -> None:
    truth = voc_truth(tmp_path, "<size><width>-1</width><height>0</height></size>", n=n)
    assert codes(truth) == {"image-size-odd": n}
    assert np.isnan(truth.images.width).all()
    assert np.isnan(truth.images.height).all()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_entities_are_refused_in_every_encoding(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    name = "utf-16" if mark else encoding
    page = (
        f'{mark}<?xml version="1.0" encoding="{name}"?><!DOCTYPE a [<!ENTITY c "cat">]>'
        f"<annotation>{make.voc_object('&c;')}</annotation>"
    )
    root = make.write_voc(tmp_path / "VOC2007", {"000001": page.encode(encoding)})
    with pytest.raises(DataError, match="defines XML entities"):
        read_truth(root)


def test_a_no_break_space_is_part_of_a_name(tmp_path: Path) -> None:
    assert voc_truth(tmp_path, make.voc_object(" cat\xa0\n")).categories.names == ("cat\xa0",)


# ---- names of files that are not UTF-8


def test_a_class_whose_file_name_is_not_utf8(tmp_path: Path) -> None:
    root = make.write_voc(tmp_path / "VOC2007")
    strange = Path(os.fsdecode(b"caf\xe9"))
    make.write(root / "ImageSets/Main" / f"{strange}_test.txt", "000001 1\n")
    with pytest.raises(DataError, match="a name that is not UTF-8") as refused:
        read_truth(root)
    assert refused.value.where.endswith(r"caf\xe9_test.txt")


def test_detections_whose_file_name_is_not_utf8(tmp_path: Path) -> None:
    truth = read_truth(make.write_voc(tmp_path / "VOC2007"))
    make.write(tmp_path / "text" / os.fsdecode(b"comp4_det_test_caf\xe9.txt"), "")
    with pytest.raises(DataError, match="a name that is not UTF-8"):
        read_detections(tmp_path / "text", truth)


def test_a_path_that_is_not_utf8_can_be_printed_and_written(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    gt = make.write(folder / "gt.json", make.instances(annotations=[make.annotation(area=None)]))
    dt = make.write(folder / "dt.json", [make.detection()])
    truth = read_truth(gt)
    assert truth.source.endswith(r"caf\xe9/gt.json")
    for kind in ("markdown", "json", "csv", "table"):
        assert run("eval", gt, dt, "--format", kind, "-o", tmp_path / "out").code == 0
        assert (tmp_path / "out").read_text(encoding="utf-8")
    root = make.write_voc(folder / "VOC2007")
    texts = make.write_voc_text(folder / "text")
    assert run("eval", root, texts, "--format", "markdown", "-o", tmp_path / "out").code == 0


@pytest.mark.parametrize("stem", ["\u0663", "1__2", "_1", " 1", "+1", "9" * 900])
def test_only_digits_make_a_stem_a_number(stem: str, tmp_path: Path) -> None:
    truth = read_truth(make.write_voc(tmp_path / "VOC2007"))
    images = dataclasses.replace(truth.images.take(np.arange(1)), ids=np.array([stem]))
    assert image_lookup.stems_as_numbers(types.SimpleNamespace(images=images)) is None


def test_an_id_that_a_float_cannot_hold_is_refused(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, images=[make.image(id=2**53)], annotations=[])
    record = (
        b'[{"image_id": 9007199254740993.0, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 1}]'
    )
    path = make.write(tmp_path / "dt.json", record.replace(b"93.0", b"92.0"))
    assert len(read_detections(path, truth)) == 1
    make.write(path, record.replace(b"93.0", b"94.0"))
    with pytest.raises(DataError, match="too large to be exact") as refused:
        read_detections(path, truth)
    assert refused.value.where == f"{path}[0].image_id"


def test_a_word_of_a_megabyte_is_shown_in_part(tmp_path: Path) -> None:
    truth = read_truth(make.write_voc(tmp_path / "VOC2007"))
    line = f"000001 {'x' * 1_000_000} 1 1 2 2"
    with pytest.raises(DataError, match=r"is not a (finite )?number") as refused:
        read_detections(make.write_voc_text(tmp_path / "text", {"test_cat": line}), truth)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    "words", [["-1.50", "2", "-0", ".5"], ["-1e-3", "1"], ["7", "-"], ["1-2", "3"]]
)
def test_decimals_of_csv_with_a_minus(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["name,value", *(f"a,{word}" for word in words)]) + "\n")
    sheet = csv_parquet.read_csv(path)
    try:
        wanted = np.array(list(map(float, words)))
    except ValueError:
        with pytest.raises(DataError, match=r"line [23], column value"):
            sheet.numbers("value")
    else:
        assert sheet.numbers("value").tobytes() == wanted.tobytes()


def test_rows_of_one_name_are_coded_in_any_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f" n{k} " for k in rng.integers(0, 5, 300)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["name,value", *(f"{name},1" for name in names)]) + "\n")
    rows = csv_parquet.read_csv(path).names("name")
    assert list(rows) == [name.strip() for name in names]
    assert len(rows.names) == 5
    assert rows.positions({"n1": 7}).tolist() == [7 if n == " n1 " else -1 for n in names]
