"""Advices of readers of files: formats, boxes, sizes, names of classes and images."""

from typing import Any

import numpy as np

import detmap
from tests.advice import wrong_files as wrong
from tests.advice.situations import Place, Row, answer, ways
from tests.support.running import run

READ = "core/adapters/"
PADILLA = f"{READ}text_per_image/cartucho_rafaelpadilla: "
UNKNOWN = f"{READ}joining/unknown_policy: "
SIZES = "(--image-sizes) FILE"
NAMES = "(--class-names) FILE"
COCO = ("-p", "coco-bbox")


def after_converting(p: Place, option: str) -> Any:
    assert answer([*p.made, option, p.sizes()]) == 0
    return answer(["eval", p.folder / "made", p.converted("found", "yolo", found=True)])


def with_file(name: str) -> Any:
    """Give the option that is printed, with a file of the place."""
    return lambda p, option: answer([*p.made, option, getattr(p, name)()])


def saved_right(p: Place, *_: str) -> Any:
    """Labels with the columns that are printed."""
    return answer(["eval", p.made[1], wrong.yolo(p, name="right")])


def spelled(p: Place, wrong_name: str) -> list[Any]:
    text = wrong.table(p, p.right.rows).replace("kettle", wrong_name)
    return [p.truth, p.write("found.csv", text)]


def respelled(p: Place, name: str) -> Any:
    text = p.made[2].read_text().splitlines()
    cells = [line.split(",") for line in text]
    known = {each["name"] for each in p.right.truth["categories"]} | {"class"}
    lines = [",".join([c[0], c[1] if c[1] in known else name, *c[2:]]) for c in cells]
    return answer(["eval", p.truth, p.write("right.csv", "\n".join(lines))])


def consulted(p: Place, words: str) -> Any:
    """Run the command, and give the fix that it prints first."""
    done = run(*words.split()[1:], *p.made[1:])
    fix = done.out.partition("--fix ")[2].split()[0]
    return answer([*p.made, "--fix", fix])


def split_of(p: Place) -> list[Any]:
    """CSV whose ground truth lists images with objects alone."""
    return [
        p.write("truth.csv", wrong.table(p, wrong.fewer(p)["annotations"])),
        p.write("found.csv", wrong.table(p, p.right.rows)),
    ]


def numpy_file(p: Place, name: str) -> Any:
    columns = wrong.arrays_of(p.right.rows)
    if name.endswith(".npy"):
        np.save(p.folder / name, columns["boxes"])
    else:
        np.savez(p.folder / name, **{key: np.array(each) for key, each in columns.items()})
    return p.folder / name


def from_arrays(p: Place, function: str) -> Any:
    truth = detmap.read_truth(p.truth)
    return detmap.evaluate(truth, eval(function)(truth, **wrong.arrays_of(p.right.rows)))


def in_parts(p: Place, match: str, merge: str) -> Any:
    parts = [p.folder / "one.npz", p.folder / "two.npz"]
    command, option = match.split()
    for k, part in enumerate(parts):
        ids = [str(each["id"]) for each in p.right.truth["images"]][k::2]
        listed = p.write(f"list {k}.txt", "\n".join(ids))
        assert answer([command, p.truth, p.found, option, listed, "-o", part]) == 0
    return answer([merge, *parts])


def option(kind: str, form: str) -> tuple[str, str]:
    return f"--{kind}-box-format", form


def named(p: Place, example: str) -> Any:
    return p.write("names.json", wrong.sorted_names(p, example))


def two_classes(p: Place) -> Any:
    return answer(["eval", p.truth, p.write("two.json", wrong.two(p))])


ROWS = (
    Row(
        f"{READ}coco/record_errors: write numbers without quotation marks, such",
        lambda p: [p.truth, p.changed(wrong.quoted)],
        r"such as (\w+)\(value\)",
        lambda p, f: answer(["eval", p.truth, p.changed(lambda r: wrong.unquoted(r, eval(f)))]),
    ),
    Row(
        f"{READ}coco/result_pieces: leave out --memory, or {{}}",
        lambda p: [
            p.truth,
            p.changed(lambda r: r | {"file_name": wrong.names_of_images(p)[r["image_id"]]}),
            *("--memory", "3GB"),
        ],
        "leave out (--memory)",
        lambda p, option: answer(p.made[: p.made.index(option)]),
    ),
    Row(
        f"{READ}pieces: give a COCO results list, JSON",
        lambda p: [p.truth, wrong.yolo(p), "--class-names", p.names(), "--memory", "3GB"],
        r"`detmap (convert)` writes",
        lambda p, command: (
            answer([command, p.found, p.folder / "made.json", "--truth", p.truth])
            or answer(["eval", p.truth, p.folder / "made.json", "--memory", "3GB"])
        ),
    ),
    Row(
        "annotation_tools/conversion/writers: give them: --image-sizes PATH (in Python",
        lambda p: ["convert", wrong.without_sizes(p), p.folder / "made", "--to", "yolo"],
        "(--image-sizes) PATH",
        after_converting,
    ),
    Row(
        f"{READ}box_conventions: give the sizes of the images",
        lambda p: [wrong.without_sizes(p), wrong.yolo(p), "--class-names", p.names()],
        SIZES,
        with_file("sizes"),
    ),
    Row(
        f"{READ}text_per_image/yolo: give --class-names FILE, read the ground",
        lambda p: lambda **how: detmap.evaluate(*wrong.read(p.truth, wrong.yolo(p), **how)),
        "give --class-names FILE",
        "class_names=p.names()",
    ),
    *ways(
        f"{READ}text_per_image/yolo: give --class-names FILE, read the ground",
        lambda p: lambda: detmap.evaluate(*wrong.read(p.truth, wrong.yolo(p))),
        (
            r"read the ground truth from the (data\.yaml)",
            lambda p, name: answer(["eval", wrong.labels(p) / name, p.folder / "dt"]),
        ),
        (
            r"names to (\S+) in this folder",
            lambda p, name: p.write(f"dt/{name}", p.names().read_text()) and p.made(),
        ),
    ),
    Row(
        f"{READ}text_per_image/yolo: a row is: class x_center y_center",
        lambda p: [
            wrong.labels(p),
            wrong.yolo(p, columns="{k} 0.5"),
            "--detections-format",
            "yolo",
        ],
        "class x_center y_center width height confidence",
        saved_right,
    ),
    Row(
        f"{READ}text_per_image/yolo: the last column looks like track",
        lambda p: [wrong.labels(p), wrong.yolo(p, columns="{k} {box} {id}")],
        "save_conf=True, and remove the column of ids after the confidence",
        saved_right,
    ),
    Row(
        f"{READ}text_per_image/yolo: save the labels with save_conf=True",
        lambda p: [wrong.labels(p), wrong.yolo(p, columns="{k} {box}")],
        "save_conf=True",
        saved_right,
    ),
    Row(
        f"{READ}text_per_image/yolo: save them with save_txt=True save_conf=True; {{}}",
        lambda p: [
            *(p.truth, p.write("empty/notes.md", "x").parent),
            *("--detections-format", "yolo"),
        ],
        r"give a JSON file that holds (\[\])",
        lambda p, content: answer(["eval", p.truth, p.write("none.json", content)]),
        0.0,
    ),
    *ways(
        f"{READ}text_per_image/predictions_json: write [{{...}}, ...], or give --class-names",
        lambda p: [wrong.labels(p), wrong.predictions(p, "\n"), "--detections-format", "yolo"],
        (
            NAMES,
            lambda p, option: answer([*p.made, option, p.write("names.json", wrong.from_one(p))]),
            two_classes,
        ),
        (
            r"write \[\{\.\.\.\}, \.\.\.\]",
            lambda p, _: answer(["eval", wrong.numbered(p, 1), wrong.predictions(p)]),
            two_classes,
        ),
    ),
    *ways(
        f"{READ}text_per_image/predictions_json: give the labels that save_txt=True save_conf=True",
        lambda p: lambda: detmap.evaluate(*wrong.read(wrong.labels(p), wrong.predictions(p))),
        (
            "save_txt=True save_conf=True",
            lambda p, _: answer(
                ["eval", p.folder / "labels", wrong.yolo(p, name="right", rows=wrong.two(p))]
            ),
            two_classes,
        ),
        (
            "or the ground truth as COCO JSON",
            lambda p, _: answer(["eval", wrong.numbered(p, 1), p.folder / "predictions.json"]),
            two_classes,
        ),
    ),
    Row(
        f"{READ}tabular/box_columns: give the box format (--truth-box-format, --detections-box-fo",
        lambda p: [p.truth, wrong.listed(p)],
        r", (--detections-box-format), .*?one of:.*? (xywh)\b",
        "{0} {1}",
    ),
    Row(
        f"{READ}tabular/column_tables: columns are read as box corners;",
        lambda p: [
            *(wrong.plain_voc(p), p.write("found.csv", wrong.table(p, wrong.whole(p)))),
            *COCO,
        ],
        "(--detections-box-format voc)",
        right=lambda p: answer(["eval", p.made[1], wrong.voc_text(p), *COCO]),
    ),
    Row(
        PADILLA + "choose it with --truth-box-format, --detections-box-format o",
        lambda p: [
            *(wrong.voc(p), wrong.padilla(p)),
            *("--detections-format", "rafaelpadilla", *COCO),
        ],
        r", (--detections-box-format).*xyrb is (voc),",
        "{0} {1}",
        lambda p: answer(["eval", p.made[1], wrong.voc_text(p), *COCO]),
    ),
    # --- sizes of images
    Row(
        f"{READ}text_per_image/data_yaml: give the data.yaml, or the sizes:",
        lambda p: [wrong.labels(p) / "labels", wrong.yolo(p), "--truth-format", "yolo"],
        SIZES,
        with_file("sizes"),
    ),
    Row(
        f"{READ}text_per_image/data_yaml: , or give the image sizes:",
        lambda p: [wrong.without_images(p), wrong.yolo(p)],
        SIZES,
        with_file("sizes"),
    ),
    Row(
        f"{READ}text_per_image/darknet_data: give them: --image-sizes FILE (columns image,",
        lambda p: [wrong.darknet(p), wrong.yolo(p)],
        SIZES,
        with_file("sizes"),
    ),
    Row(
        f"{READ}joining/image_sizes: fix or remove the file, or",
        lambda p: [wrong.with_images(p, b"none"), wrong.yolo(p)],
        SIZES,
        with_file("sizes"),
    ),
    Row(
        f"{READ}joining/image_sizes: give the sizes of the images:",
        lambda p: [wrong.with_images(p, wrong.picture(p)), wrong.yolo(p)],
        SIZES,
        with_file("sizes"),
        patch={"PIL.Image.MAX_IMAGE_PIXELS": 1},
    ),
    Row(
        f"{READ}joining/image_sizes: {{}}, or give the sizes: --image-sizes",
        lambda p: [wrong.with_images(p, wrong.picture(p)), wrong.yolo(p)],
        SIZES,
        with_file("sizes"),
        patch={"detmap.core.adapters.joining.image_sizes.find_spec": lambda name: None},
    ),
    # --- names of classes
    Row(
        UNKNOWN + '--unknown drop (in Python unknown="drop") drops',
        lambda p: [p.truth, wrong.with_another_class(p)],
        "(--unknown drop)",
    ),
    Row(
        UNKNOWN + "if a model of other classes",
        lambda p: lambda: wrong.read(p.truth, wrong.of_other_model(p)),
        r"join by name, (--class-names) FILE .* the model; .* lacks some, (--unknown drop)",
        lambda p, names, drop: answer(
            ["eval", p.truth, p.folder / "model.json", names, p.folder / "coco.json", *drop.split()]
        ),
    ),
    Row(
        UNKNOWN + "class (id 0) is not in",
        lambda p: [wrong.numbered(p, 1), wrong.from_zero(p), "--unknown", "drop"],
        "then use (--class-names) FILE",
        with_file("names"),
    ),
    Row(
        UNKNOWN + "classes seem to count from 0",
        lambda p: (
            lambda **how: detmap.evaluate(
                *wrong.read(wrong.numbered(p, 1), wrong.from_zero(p), **how)
            )
        ),
        r"\(in Python (class_names)=\) with one name per line",
        "{0}=p.names()",
    ),
    Row(
        UNKNOWN + "the ground truth has only class",
        lambda p: [
            wrong.truth_without_names(p),
            p.write("found.csv", wrong.table(p, p.right.rows)),
        ],
        NAMES,
        with_file("names_by_id"),
    ),
    Row(
        UNKNOWN + "define them: --class-names FILE (in Python",
        lambda p: (
            lambda **how: detmap.evaluate(
                *wrong.read(wrong.voc(p), wrong.by_stems(p), **how), "coco-bbox"
            )
        ),
        r"\(in Python (class_names)=\)",
        "{0}=p.names_by_id()",
    ),
    Row(
        UNKNOWN + "did you mean {}? only the",
        lambda p: spelled(p, "Kettle"),
        r"did you mean '([\w ]+)'\? only the case",
        respelled,
    ),
    Row(
        UNKNOWN + "did you mean {}?",
        lambda p: spelled(p, "ketle"),
        r"did you mean '([\w ]+)'\?",
        respelled,
    ),
    Row(
        UNKNOWN + "remove --class-names",
        lambda p: [*spelled(p, "kettle"), "--class-names", p.names()],
        "remove (--class-names)",
        lambda p, option: answer(p.made[: p.made.index(option)]),
    ),
    Row(
        UNKNOWN + ", in CSV as a row",
        split_of,
        "(--set scope.unknown=add)",
        right=lambda p: answer(["eval", p.write("few.json", wrong.fewer(p)), p.found]),
    ),
    Row(
        UNKNOWN + 'settings={"scope.unknown": "add"}) adds them',
        lambda p: lambda **how: detmap.evaluate(*split_of(p), **how),
        r'(settings=\{"scope.unknown": "add"\})',
        right=lambda p: answer(["eval", p.write("few.json", wrong.fewer(p)), p.found]),
    ),
    # --- two names of one thing
    *(
        Row(
            "core/tables/join_keys: choose: --image-key id or --image-key name",
            lambda p, key=key: [wrong.images_named_by_ids(p), wrong.table_by(p, "image", key)],
            f"(--image-key {key})",
        )
        for key in ("id", "name")
    ),
    *(
        Row(
            "core/tables/join_keys: choose: --class-key id or --class-key name",
            lambda p, key=key: [wrong.classes_named_by_ids(p), wrong.table_by(p, "class", key)],
            f"(--class-key {key})",
        )
        for key in ("id", "name")
    ),
    Row(
        f"{READ}joining/class_keys: --class-key chooses",
        lambda p: [wrong.classes_named_by_ids(p, "x"), wrong.table_by(p, "class", "name", "x")],
        "(--class-key) chooses",
        "{0} name",
    ),
    Row(
        f"{READ}joining/image_keys: joined by id, since the column",
        lambda p: [wrong.images_named_by_ids(p, "x.png"), wrong.parquet(p)],
        "(--image-key) chooses",
        "{0} id",
    ),
    Row(
        f"{READ}joining/image_lookup: another: joined by {{}}; `detmap doctor`",
        lambda p: [
            wrong.images_named_by_ids(p),
            wrong.voc_text(p, p.right.rows, by_id=True),
            *COCO,
        ],
        "`(detmap doctor)` tries the other",
        consulted,
        lambda p: answer(["eval", p.truth, wrong.voc_text(p, p.right.rows), *COCO]),
    ),
    # --- other files
    *ways(
        f"{READ}recognition: use `detmap merge FILE`, or `detmap",
        lambda p: [p.truth, wrong.matched(p)],
        ("use `detmap (merge) FILE`", lambda p, command: answer([command, p.made[2]])),
        (
            "or `detmap (compare)` with a second",
            lambda p, command: answer([command, p.truth, p.found, p.made[2]]),
            0,
        ),
    ),
    Row(
        f"{READ}recognition: load it and give detmap.detections_from_arrays arrays",
        lambda p: [p.truth, numpy_file(p, "found.npz")],
        r"give (detmap\.\w+) arrays",
        from_arrays,
    ),
    Row(
        f"{READ}recognition: load it and give detmap.detections_from_arrays arrays",
        lambda p: [p.truth, numpy_file(p, "found.npy")],
        r"give (detmap\.\w+) arrays",
        from_arrays,
    ),
    Row(
        f"{READ}recognition: give detmap.detections_from_arrays boxes, scores, labels and",
        lambda p: lambda: detmap.evaluate(p.truth, np.zeros((4, 6))),
        r"give (detmap\.\w+) boxes",
        from_arrays,
    ),
    Row(
        f"{READ}recognition: give the path of the file,",
        lambda p: lambda: detmap.evaluate(p.truth, p),
        r"or arrays to detmap\.truth_from_arrays, (detections_from_arrays)",
        lambda p, name: from_arrays(p, f"detmap.{name}"),
    ),
    Row(
        f"{READ}recognition: pass it to detmap.Evaluator.update with image_id,",
        lambda p: [p.truth, p.write("a.json", wrong.one_image(p))],
        r"pass it to (detmap\.Evaluator)\.(update) with (image_id)",
        wrong.in_batches,
    ),
    Row(
        f"{READ}recognition: detmap.truth_from_arrays(frame) or detmap.detections_from_ar",
        lambda p: lambda: detmap.evaluate(p.truth, detmap.read_truth(wrong.Columns())),
        r"or detmap\.(detections_from_arrays)\(truth, frame\)",
        lambda p, name: detmap.evaluate(
            p.truth, getattr(detmap, name)(detmap.read_truth(p.truth), wrong.frame(p.right.rows))
        ),
    ),
    Row(
        f"{READ}registry: formats have files in the folder",
        lambda p: [wrong.two_formats(p), wrong.voc_text(p), *COCO],
        r"which is read as labelme: (voc) \((--truth-format), --detections-format\)",
        "{1} {0}",
        lambda p: answer(["eval", p.folder / "plain voc", p.made[2], *COCO]),
    ),
    Row(
        f"{READ}registry: for other files, name the format:",
        lambda p: [p.truth, p.write("found.txt", p.right.rows), "-p", "visdrone"],
        "or (--detections-format)",
        lambda p, option: answer([*p.made, option, "coco"]),
        lambda p: answer(["eval", p.truth, p.found, "-p", "visdrone"]),
    ),
    Row(
        "analysis/inspection: the ground truth that they belong",
        lambda p: ["inspect", p.found],
        "give it with (--truth)",
        lambda p, option: answer([*p.made, option, p.truth]),
        0,
    ),
    Row(
        "annotation_tools/conversion/__init__: classes are written as ids, and",
        lambda p: [
            *("convert", wrong.voc_text(p), p.folder / "made.json"),
            *("--truth", wrong.voc(p), "--to", "coco"),
        ],
        r"give both to eval, (--class-names) FILE with JSON such as (\{.*?\}), numbered as",
        lambda p, option, example: answer(
            ["eval", p.folder / "voc", p.folder / "made.json", option, named(p, example), *COCO]
        ),
        lambda p: answer(["eval", p.folder / "voc", p.folder / "voc text", *COCO]),
    ),
    Row(
        "annotation_tools/conversion/__init__: choose another path, or --force (in",
        lambda p: ["convert", p.truth, p.write("old.csv", "x"), "--to", "csv"],
        "or (--force)",
        lambda p, option: (
            answer([*p.made, option])
            or answer(["eval", p.made[2], p.converted("found.csv", "csv", found=True)])
        ),
    ),
    # --- VOC's boxes
    *(
        Row(
            f"{READ}voc/xml_boxes: if it counts continuous pixels from",
            lambda p, moved=moved: [
                *(wrong.plain_voc(p, *moved, rows=wrong.at_border(p)), wrong.voc_text(p)),
                *COCO,
            ],
            told,
            "--truth-box-format {0}",
            lambda p: answer(
                ["eval", wrong.plain_voc(p, rows=wrong.at_border(p)), wrong.voc_text(p), *COCO]
            ),
        )
        for moved, told in (
            ((-1, 0), "continuous pixels from 0, use --truth-box-format (xyxy);"),
            ((-1, -1), "whole pixel from 0, '(voc from 0)'; else"),
        )
    ),
    Row(
        "analysis/doctor/box_hypotheses: boxes of the ground truth fit",
        lambda p: ["doctor", wrong.plain_voc(p, -1, -1), wrong.near(p)],
        "(--truth-box-format) '([^']*)'",
        lambda p, option, value: answer(["eval", *p.made[1:], option, value, *COCO]),
        lambda p: answer(["eval", wrong.plain_voc(p), p.made[2], *COCO]),
    ),
    Row(
        "analysis/doctor/box_hypotheses: ; if the detections are first",
        lambda p: ["doctor", wrong.plain_voc(p, -1, 0), wrong.near(p, "csv")],
        "use (--truth-box-format) '([^']*)'; .* pixels, (--detections-box-format voc)",
        lambda p, option, value, other: answer(
            ["eval", *p.made[1:], option, value, *other.split(), *COCO]
        ),
        lambda p: answer(["eval", wrong.plain_voc(p), wrong.near(p), *COCO]),
    ),
    Row(
        f"{READ}voc/xml_boxes: boxes have fractions of pixels, as",
        lambda p: [
            *(wrong.plain_voc(p, rows=p.right.truth["annotations"]), wrong.by_stems(p)),
            *("--class-names", p.names_by_id(), *COCO),
        ],
        "(--truth-box-format xyxy)",
    ),
    # --- memory
    *(
        Row(
            "core/base/memory: evaluate in bounded memory with --memory,",
            lambda p: [p.truth, p.found],
            told,
            then,
            patch={
                "detmap.core.base.memory.SPARE": 0,
                "detmap.core.base.memory.available": lambda: 1000,
            },
        )
        for told, then in (
            ("such as (--memory 3GB)", "{0}"),
            (r"`detmap (match --images)` and join them with `detmap (merge)`", in_parts),
        )
    ),
    # --- other formats
    Row(
        "annotation_tools/huggingface: boxes are read as left, top,",
        lambda p: [wrong.hugging_face(p), wrong.hugging_face(p, found=True)],
        r"or the box format (xyxy)\)",
        lambda p, form: answer([*p.made, *option("truth", form), *option("detections", form)]),
    ),
    Row(
        f"{READ}voc/xml_boxes: boxes are of Label Studio, which",
        lambda p: [
            wrong.plain_voc(p, -1, 0, start="<owner><name>Label Studio</name></owner>"),
            *(wrong.voc_text(p), *COCO),
        ],
        "(--truth-box-format xyxy)",
        right=lambda p: answer(["eval", wrong.plain_voc(p), wrong.voc_text(p), *COCO]),
    ),
    *(
        Row(
            f"{READ}voc/result_files: choose the format: --detections-format voc or",
            lambda p, kind=kind: [*wrong.of_equal_names(p, kind), *COCO],
            f"choose the format: (--detections-format) .*({kind})",
            "{0} {1}",
            lambda p: answer(["eval", p.made[1], p.folder / "few.json", *COCO]),
        )
        for kind in ("voc", "cartucho")
    ),
    Row(
        "analysis/inspection: {}; for files of a benchmark",
        lambda p: ["inspect", wrong.nodules(p)],
        r"add (-p froc-luna16)",
        right=0,
    ),
    Row(
        "analysis/commands/doctor: use `detmap inspect` to see what",
        lambda p: ["doctor", wrong.nodules(p), wrong.nodules(p), "-p", "froc-luna16"],
        "use `detmap (inspect)`",
        lambda p, command: answer([command, p.made[1], *p.made[3:]]),
        0,
    ),
    Row(
        "benchmarks/imagenet/motion: read ImageNet VID with motion_iou.mat, or",
        lambda p: lambda **how: wrong.video(p, **how),
        r"or give (attributes=\{'motion_iou': )\.\.\.\}",
        "{0}[0.8] * 54}}",
        lambda p: wrong.video(p, attributes={"motion_iou": [0.95] * 54}),
    ),
)
