"""Files with mistakes that readers refuse or note, beside the right files of a `Place`."""

import html
import json
import shutil
from typing import Any

import numpy as np

import detmap
from tests.advice.situations import Place
from tests.support import builders as make
from tests.support import varied_exports as exports
from tests.support import varied_json_writers as tools
from tests.support import varied_writers as texts
from tests.support import writers
from tests.support.running import run


def names_of_images(p: Place) -> dict[int, str]:
    return {each["id"]: each["file_name"] for each in p.right.truth["images"]}


def table(p: Place, rows: list[dict[str, Any]]) -> str:
    """CSV of records."""
    scored = "score" in rows[0]
    case = p.case(rows) if scored else p.case(objects=rows)
    columns = texts.columns(
        case, "image class xmin ymin xmax ymax", "xyxy", scored=scored, empty=False
    )
    return writers.csv(columns, p.folder / "table.csv").read_text()


def yolo(
    p: Place, *, columns: str = "{k} {box} {score}", name: str = "dt", rows: Any = None
) -> Any:
    """Detections as YOLO labels."""
    case, n = p.case(rows), 0
    for i, image in enumerate(case.images):
        lines = ""
        for k, _, box, score in case.found(i):
            n += 1
            sides = texts.words(*exports.scaled(exports.center(box), image))
            lines += columns.format(k=k, box=sides, score=score, id=n) + "\n"
        p.write(f"{name}/{case.stem(i)}.txt", lines)
    return p.folder / name


def labels(p: Place) -> Any:
    """The ground truth as a YOLO data set: its ids count from 0."""
    return p.converted("labels", "yolo")


def quoted(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"bbox": [str(each) for each in row["bbox"]]}


def without_sizes(p: Place) -> Any:
    tree = p.right.truth
    images = [make.without(each, "width", "height") for each in tree["images"]]
    return p.write("unsized.json", tree | {"images": images})


def from_zero(p: Place, first: int = 0) -> Any:
    """Detections whose classes are numbered through."""
    ids = [each["id"] for each in p.right.truth["categories"]]
    return p.changed(lambda row: row | {"category_id": ids.index(row["category_id"]) + first})


def numbered(p: Place, first: int = 0) -> Any:
    """The ground truth with classes that are numbered through."""
    ids = [each["id"] for each in p.right.truth["categories"]]
    tree = p.right.truth
    classes = [each | {"id": k + first} for k, each in enumerate(tree["categories"])]
    objects = [
        each | {"category_id": ids.index(each["category_id"]) + first}
        for each in tree["annotations"]
    ]
    return p.write("numbered.json", tree | {"categories": classes, "annotations": objects})


def voc(p: Place) -> Any:
    return p.converted("voc", "voc")


def whole(p: Place, rows: Any = None) -> list[dict[str, Any]]:
    """Detections as first and last pixels from 1, as whole numbers."""
    given = p.right.rows if rows is None else rows
    ends = (1, 1, 0, 0)
    return [
        row | {"bbox": [round(v) + end for v, end in zip(row["bbox"], ends, strict=True)]}
        for row in given
    ]


def listed(p: Place) -> Any:
    lines = ["image,class,score,bbox"]
    files, names = names_of_images(p), p.classes()
    for row in p.right.rows:
        cells = [files[row["image_id"]], names[row["category_id"]], repr(row["score"])]
        lines.append(",".join([*cells, f'"{row["bbox"]}"']))
    return p.write("listed.csv", "\n".join(lines) + "\n")


def rotated(names: dict[int, Any]) -> dict[int, Any]:
    """Each id with the name of the next one."""
    values = list(names.values())
    return dict(zip(names, values[1:] + values[:1], strict=True))


def images_named_by_ids(p: Place, first: str = "") -> Any:
    """A ground truth whose file stems are ids of other images."""
    tree = p.right.truth
    names = rotated({each["id"]: f"{each['id']}.jpg" for each in tree["images"]})
    images = [each | {"file_name": names[each["id"]]} for each in tree["images"]]
    images[0]["file_name"] = first or images[0]["file_name"]
    return p.write("stems.json", tree | {"images": images})


def classes_named_by_ids(p: Place, last: str = "") -> Any:
    """A ground truth whose class names are ids of other classes."""
    tree = p.right.truth
    names = rotated({each["id"]: str(each["id"]) for each in tree["categories"]})
    classes = [each | {"name": names[each["id"]]} for each in tree["categories"]]
    classes[-1]["name"] = last or classes[-1]["name"]
    return p.write("classes.json", tree | {"categories": classes})


def table_by(p: Place, column: str, key: str, last: str = "") -> Any:
    """CSV that names images or classes of those ground truths by id or name."""
    own = "image_id" if column == "image" else "category_id"
    group = "images" if column == "image" else "categories"
    names = {each["id"]: str(each["id"]) for each in p.right.truth[group]}
    names = names if key == "id" else rotated(names)
    if last:
        names[p.right.truth[group][-1]["id"]] = last
    lines = ["image,class,x,y,w,h,score"]
    for row in p.right.rows:
        image = names_of_images(p)[row["image_id"]] if column == "class" else names[row[own]]
        label = p.classes()[row["category_id"]] if column == "image" else names[row[own]]
        lines.append(",".join([image, label, *map(repr, row["bbox"]), repr(row["score"])]))
    return p.write("by.csv", "\n".join(lines) + "\n")


def by_stems(p: Place) -> Any:
    """Results whose images are file stems."""
    files = names_of_images(p)
    return p.changed(lambda row: row | {"image_id": files[row["image_id"]][:-4]}, "stems.json")


def fewer(p: Place) -> Any:
    """The ground truth without the objects of three images."""
    none = [each["id"] for each in p.right.truth["images"]][:3]
    kept = [each for each in p.right.truth["annotations"] if each["image_id"] not in none]
    return p.right.truth | {"annotations": kept}


def two(p: Place) -> list[dict[str, Any]]:
    """Detections of the first two classes."""
    known = [each["id"] for each in p.right.truth["categories"]][:2]
    return [row for row in p.right.rows if row["category_id"] in known]


def with_images(p: Place, content: bytes) -> Any:
    """A YOLO data set with such images."""
    folder = p.converted("labels", "yolo")
    (folder / "sizes.csv").unlink()
    for image in p.right.truth["images"]:
        p.write(f"labels/images/test/{image['file_name']}", content)
    return folder


def images_of(p: Place, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One dict of boxes, labels and scores per image, as torchvision has them."""
    made = []
    for image in p.right.truth["images"]:
        own = [row for row in rows if row["image_id"] == image["id"]]
        boxes = np.array([row["bbox"] for row in own], dtype=float).reshape(-1, 4)
        boxes = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
        one = {"boxes": boxes, "labels": np.array([row["category_id"] for row in own], dtype=int)}
        if rows and "score" in rows[0]:
            one["scores"] = np.array([row["score"] for row in own])
        made.append(one | {"image_id": image["id"]})
    return made


def arrays_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns of records, as the functions of arrays name them."""
    made = {key: [row[key] for row in rows] for key in ("image_id", "category_id")}
    made |= {"score": [row["score"] for row in rows]} if "score" in rows[0] else {}
    return made | {"boxes": np.array([row["bbox"] for row in rows], dtype=float)}


def unquoted(row: dict[str, Any], number: Any) -> dict[str, Any]:
    return row | {"bbox": [number(each) for each in quoted(row)["bbox"]]}


def predictions(p: Place, sep: str = ",") -> Any:
    """Rows of two classes, 1 and 2 of three: two readings. With another separator no list."""
    files = names_of_images(p)
    ids = [each["id"] for each in p.right.truth["categories"]]
    rows = [
        row | {"category_id": ids.index(row["category_id"]) + 1, "image_id": stem}
        for row in two(p)
        for stem in [files[row["image_id"]][:-4]]
    ]
    text = sep.join(map(json.dumps, rows))
    return p.write("predictions.json", f"[{text}]" if sep == "," else text)


def plain_voc(p: Place, first: int = 0, last: int = 0, rows: Any = None, start: str = "") -> Any:
    """The ground truth as whole pixels in VOC's XML, or as these boxes; first and last pixels are
    moved.
    """
    names, pages = p.classes(), {}
    rows = whole(p, p.right.truth["annotations"]) if rows is None else rows
    for image in p.right.truth["images"]:
        objects = []
        for row in rows:
            if row["image_id"] == image["id"]:
                x, y, w, h = row["bbox"]
                box = (x + first, y + first, x + w + last, y + h + last)
                objects.append(make.voc_object(names[row["category_id"]], box))
        pages[image["file_name"][:-4]] = make.page(start, *objects)
    return make.write_voc(p.folder / f"plain voc {first} {last}".removesuffix(" 0 0"), pages)


def at_border(p: Place) -> list[dict[str, Any]]:
    """The whole pixels, of which some begin at the first one."""
    rows = whole(p, p.right.truth["annotations"])
    return [
        row | {"bbox": [1, 1, *row["bbox"][2:]]} if k % 5 == 0 else row
        for k, row in enumerate(rows)
    ]


def near(p: Place, form: str = "voc") -> Any:
    """Detections a pixel beside the objects, as first and last pixels."""
    rows = [
        row | {"bbox": [v + k % 2 for v in row["bbox"]], "score": round(1 - k / 100, 2)}
        for k, row in enumerate(whole(p, p.right.truth["annotations"]))
    ]
    return voc_text(p, rows) if form == "voc" else p.write("near.csv", table(p, rows))


def voc_text(p: Place, rows: Any = None, *, by_id: bool = False) -> Any:
    """The whole pixels as VOC's text, or these boxes."""
    case = p.case(whole(p) if rows is None else rows)
    if by_id:
        ids_ = zip(ids(p), case.images, strict=True)
        case.images = [(f"{i}.jpg", *size) for i, (_, *size) in ids_]  # type: ignore[misc]
    return texts.voc_text(case, p.folder / "voc text", exports.corners)


def padilla(p: Place) -> Any:
    """The whole pixels as text of Rafael Padilla's tool."""
    return texts.rafaelpadilla(p.case(whole(p)), p.folder, "xyxy").found


def without_images(p: Place) -> Any:
    """A data.yaml whose folder of images is missing."""
    folder = labels(p)
    (folder / "sizes.csv").unlink()
    return folder / "data.yaml"


def darknet(p: Place) -> Any:
    texts.yolo_cvat(p.case(), p.folder / "darknet")
    return p.folder / "darknet" / "obj.data"


def picture(p: Place) -> bytes:
    """A PNG of 2 x 2 pixels."""
    exports.picture(p.folder / "picture.png", 2, 2)
    return (p.folder / "picture.png").read_bytes()


def with_another_class(p: Place) -> Any:
    other = [row | {"category_id": 90} for row in p.right.rows[:3]]
    return p.write("other class.json", [*p.right.rows, *other])


def read(truth: Any, found: Any, **how: Any) -> tuple[Any, Any]:
    """Both tables: an error of the reader comes without a finding of the doctor."""
    truth = detmap.read_truth(truth)
    return truth, detmap.read_detections(found, truth, **how)


def truth_without_names(p: Place) -> Any:
    classes = [each | {"name": str(each["id"])} for each in p.right.truth["categories"]]
    return p.write("nameless.json", p.right.truth | {"categories": classes})


def matched(p: Place) -> Any:
    assert run("match", p.truth, p.found, "-o", p.folder / "part.npz").code == 0
    return p.folder / "part.npz"


class Columns:
    """Something with columns that is no table."""

    columns = ("a", "b")


def frame(rows: list[dict[str, Any]]) -> Any:
    import pytest

    columns = arrays_of(rows)
    sides = dict(zip("xywh", columns.pop("boxes").T, strict=True))
    return pytest.importorskip("pandas").DataFrame(columns | sides)


def flat_xml(p: Place) -> Any:
    """The annotations of a VOC folder alone."""
    return plain_voc(p) / "Annotations"


def two_formats(p: Place) -> Any:
    """The same beside a file of LabelMe."""
    folder = flat_xml(p)
    shapes = {"imagePath": "a.jpg", "shapes": [], "imageWidth": 64, "imageHeight": 32}
    p.write("plain voc/Annotations/a.json", shapes)
    return folder


def parquet(p: Place) -> Any:
    """Detections whose column image has ids as numbers."""
    import pyarrow
    import pyarrow.parquet

    table = texts.columns(p.case(), "image class x y w h", "xywh", scored=True)
    table["image"] = [row["image_id"] for row in p.right.rows]
    pyarrow.parquet.write_table(pyarrow.table(table), p.folder / "found.parquet")
    return p.folder / "found.parquet"


def from_one(p: Place) -> dict[str, str]:
    return {str(k): name for k, name in enumerate(p.classes().values(), 1)}


def sorted_names(p: Place, example: str) -> Any:
    """Names of classes in the form of the example."""
    names = sorted(p.classes().values())
    return {str(k): name for k, name in enumerate(names, int(*eval(example)))}


def occluded(p: Place) -> Any:
    """A ground truth with the role occluded and the attribute truncation."""
    objects = [
        row | {"occluded": int(k % 3 == 0), "truncation": k % 2}
        for k, row in enumerate(p.right.truth["annotations"])
    ]
    return p.write("occluded.json", p.right.truth | {"annotations": objects})


def federated(p: Place) -> Any:
    """A ground truth as LVIS has it."""
    tree = p.right.truth
    images = [
        each | {"neg_category_ids": [], "not_exhaustive_category_ids": []}
        for each in tree["images"]
    ]
    classes = [each | {"frequency": "f"} for each in tree["categories"]]
    return p.write("federated.json", tree | {"images": images, "categories": classes})


def replaced_rules() -> Any:
    """A protocol with a value of another type."""
    from dataclasses import replace

    rules = detmap.load_protocol("coco-bbox")
    return detmap.evaluate([], [], replace(rules, limits=replace(rules.limits, max_dets="5")))


def fourteen(p: Place) -> list[Any]:
    """Poses of 14 keypoints."""
    tree = p.right.truth
    objects = [row | {"keypoints": row["keypoints"][:42]} for row in tree["annotations"]]
    found = p.changed(lambda row: row | {"keypoints": row["keypoints"][:42]})
    return [p.write("fourteen.json", tree | {"annotations": objects}), found]


def photos(p: Place) -> Any:
    """A folder of the images."""
    return exports.pictures(p.case(), p.folder / "photos")


def moved(p: Place, receipt: Any) -> Any:
    """A receipt whose files are in another place."""
    p.truth.rename(p.folder / "moved.json")
    return receipt


def other_detector(p: Place) -> Any:
    return p.changed(lambda row: row | {"bbox": [v + 3.5 for v in row["bbox"]], "score": 0.1})


def crowds(p: Place) -> Any:
    """A ground truth of crowds alone: no AP."""
    objects = [row | {"iscrowd": 1} for row in p.right.truth["annotations"]]
    return p.write("crowds.json", p.right.truth | {"annotations": objects})


def memory_error(*_: Any) -> None:
    raise MemoryError


def suite(p: Place) -> Any:
    """A suite of which a data set has no detections."""
    rows = [
        f'[[data]]\nname = "{name}"\ngroup = "a"\ntruth = "{p.truth}"\n'
        f'detections = "{p.folder / name}.json"\n'
        for name in ("found", "lost")
    ]
    return p.write("suite.toml", 'protocol = "coco-bbox"\n' + "\n".join(rows))


def ids(p: Place) -> list[int]:
    return [each["id"] for each in p.right.truth["images"]]


def used(p: Place, call: str = "") -> Any:
    """An evaluator that has all images, after a call of its own."""
    evaluator = detmap.Evaluator(classes=p.classes())
    found, objects = images_of(p, p.right.rows), images_of(p, p.right.truth["annotations"])
    evaluator.update(found, objects)
    if call:
        getattr(evaluator, call)()
    return evaluator


class OnDevice:
    """A tensor of another device."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def cpu(self) -> Any:
        return self.array


def halves(p: Place, how: Any) -> Any:
    """Two evaluators of half of the images, merged."""
    found, objects = images_of(p, p.right.rows), images_of(p, p.right.truth["annotations"])
    parts = [detmap.Evaluator(**each) for each in how]
    for k, part in enumerate(parts):
        part.update(found[k::2], objects[k::2])
    return parts[0].merge(parts[1]).compute()


def to_corners(row: dict[str, Any]) -> dict[str, Any]:
    x, y, w, h = row["bbox"]
    return row | {"bbox": [x, y, x + w, y + h]}


def slices(p: Place) -> Any:
    return p.write("slices.json", {"all": ids(p)})


class Said:
    """Something that is printed."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __str__(self) -> str:
        return str(self.thing)


def code(p: Place, words: str) -> int:
    from tests.advice.on_commands import code as of_command

    return int(of_command(p, words))


def strided(p: Place, change: Any) -> Any:
    """Detections of a table made by hand."""
    truth, found = read(p.truth, p.found)
    boxes = change(np.asfortranarray(found.boxes))
    table = detmap.Detections(
        found.images,
        found.categories,
        found.image,
        found.label,
        boxes,
        found.score,
        box_format=found.box_format,
    )
    return detmap.evaluate(truth, table)


class Node:
    """What the fixture of the plugin needs of a test."""

    def __init__(self) -> None:
        self.node, self.user_properties = self, []


def gate(p: Place, **limits: Any) -> bool:
    """Whether the gate of the plugin passes."""
    import pytest

    from detmap.integrations.pytest import detection_gate

    try:
        detection_gate.__wrapped__(Node())(p.truth, p.found, **limits)  # type: ignore[attr-defined]
    except pytest.fail.Exception as error:
        raise detmap.DataError("gate", str(error), "") from None
    return True


def with_mr() -> Any:
    return detmap.load_protocol("coco-bbox").override({"metrics": ["AP", "MR"]})


def hugging_face(p: Place, *, found: bool = False) -> Any:
    """Rows of a data set of Hugging Face whose boxes are corners."""
    made = tools.hf_names(
        p.case(
            list(map(to_corners, p.right.rows)),
            objects=map(to_corners, p.right.truth["annotations"]),
        ),
        p.folder / "hf",
        sized=False,
    )
    return made.found if found else made.truth


def of_equal_names(p: Place, kind: str) -> list[Any]:
    """Images that have the names of the classes, and text of either kind."""
    names, tree = p.classes(), p.right.truth
    images = [
        each | {"file_name": f"{name}.jpg"}
        for each, name in zip(tree["images"], names.values(), strict=False)
    ]
    stem = {each["id"]: each["file_name"][:-4] for each in images}
    objects = [row for row in tree["annotations"] if row["image_id"] in stem]
    few = [row for row in whole(p) if row["image_id"] in stem]
    ends: dict[str, list[str]] = {name: [] for name in names.values()}
    for row in few:
        x, y, w, h = row["bbox"]
        file, first = stem[row["image_id"]], names[row["category_id"]]
        file, first = (first, file) if kind == "voc" else (file, first)
        words = [first, row["score"], x, y, x + w, y + h]
        ends[file].append(" ".join(map(str, words)) + "\n")
    for name, lines in ends.items():
        p.write(f"equal/{name}.txt", "".join(lines))
    rows = [row | {"bbox": [row["bbox"][0] - 1, row["bbox"][1] - 1, *one_more(row)]} for row in few]
    p.write("few.json", rows)
    truth = p.write("few truth.json", tree | {"images": images, "annotations": objects})
    return [truth, p.folder / "equal"]


def one_more(row: dict[str, Any]) -> list[float]:
    """Sides with the last pixel."""
    return [side + 1 for side in row["bbox"][2:]]


def nodules(p: Place) -> Any:
    p.write("seriesuids.csv", "a\n")
    p.write("annotations_excluded.csv", "seriesuid,coordX,coordY,coordZ,diameter_mm\n")
    return p.write("n.csv", "seriesuid,coordX,coordY,coordZ,diameter_mm\na,1,2,3,4\n")


def video(p: Place, **how: Any) -> Any:
    """mAP by the rules of ImageNet VID."""
    columns = arrays_of(p.right.truth["annotations"])
    truth = detmap.truth_from_arrays(**columns, images=ids(p), categories=p.classes(), **how)
    found = detmap.detections_from_arrays(truth, **arrays_of(p.right.rows))
    return next(iter(detmap.evaluate(truth, found, "imagenet-vid").metrics.values()))


def no_time(*_: Any) -> Any:
    from detmap.analysis.doctor.trial import Clock

    return Clock(-1.0)


def pictures(p: Place, words: list[Any]) -> int:
    """How many pictures the page links."""
    shutil.rmtree(p.folder / "out")
    assert run(*words).code == 0
    text = "".join(each.read_text() for each in (p.folder / "out").rglob("*.js"))
    text += "".join(each.read_text() for each in (p.folder / "out").rglob("*.html"))
    return sum(f"photos/{each['file_name']}" in text for each in p.right.truth["images"])


def page(p: Place) -> Said:
    assert run("report", p.truth, p.found, "-o", p.folder / "page.html").code == 0
    return Said(html.unescape((p.folder / "page.html").read_text()))


def rows_of_classes(p: Place, words: str) -> int:
    *options, name = words.split()
    assert run("eval", p.truth, p.found, *options, p.folder / name).code == 0
    return len((p.folder / name).read_text().splitlines()) - 1


def while_patched(p: Place) -> None:
    from detmap.compat import patch_pycocotools

    with patch_pycocotools():
        done = run("parity", p.truth, p.found, "--with", "pycocotools")
    raise detmap.DataError("parity", done.err, "")


def listed_in(text: str, kind: str) -> int:
    """How many matches of a kind the JSON of `reproduce` has."""
    found = json.loads(text)
    return sum(each["kind"] == kind for each in found["found"])


def of_other_model(p: Place) -> Any:
    """Detections of a model of twelve classes, of which three are those of the ground truth."""
    own = {each["id"]: 5 + k for k, each in enumerate(p.right.truth["categories"])}
    names = {str(k): f"other {k}" for k in range(12)}
    names |= {str(own[k]): name for k, name in p.classes().items()}
    p.write("coco.json", names)
    rows = [row | {"category_id": own[row["category_id"]]} for row in p.right.rows]
    others = [0, 1, 2, 3, 4, 8, 9, 10, 11]
    for k, row in enumerate(p.right.rows):
        x, y, w, h = row["bbox"]
        rows.append(row | {"category_id": others[k % 9], "bbox": [x + w, y + h, w, h]})
    return p.write("model.json", rows)


def one_image(p: Place) -> dict[str, Any]:
    """What torchvision returns for an image, as JSON."""
    one = images_of(p, p.right.rows)[1]
    return {key: one[key].tolist() for key in ("boxes", "labels", "scores")}


def in_batches(p: Place, name: str, method: str, key: str) -> Any:
    """One image after the other."""
    evaluator = eval(name)(truth=p.truth)
    for each in images_of(p, p.right.rows):
        getattr(evaluator, method)([each | {key: each["image_id"]}])
    return evaluator.compute()


def tied(p: Place) -> Any:
    """Detections with equal scores."""
    return p.changed(lambda row: row | {"score": round(row["score"], 1)}, "tied.json")
