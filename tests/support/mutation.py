"""Small plain files and damage to them, for the two lanes that read every format."""

import json
import random
from collections.abc import Callable

NUMBERS = (
    *(b"NaN", b"Infinity", b"1e999", b"-0", b"-0.0", b"01", b"1.", b".5", b"+1", b"1.0", b"1e2"),
    *(b"1E-3", b"123456789012345678901", b"12345678901234567890", b"0.00012345678901234567890"),
    *(b"0.0001234567890123456789", b"1234567890.1234567890", b"1234567890.123456789"),
    *(b"9999999999999999999", b"0.00000000000000000000001", b"123456789012345678"),
    *(b"0.1234567890123456789", b"0.30000000000000004", b"9007199254740993", b"5e-324"),
)
TOKENS = (
    *(*NUMBERS, b"null", b"true", b'"', b"\\", b"\\u0041", b"{", b"}", b"[", b"]", b","),
    *(b":", b" "),
    *(b"\n", b"\t", b"\r", b"\x00", b"\x7f", b"\xc3\xa9", b"\xff", b"},{", b"}, {"),
    *(b'"image_id": 1', b'"bbox": [1, 2, 3, 4]', b'"score": 2', b'"iscrowd": 1', b'"area": -1'),
    *(b'"id": 0', b'"segmentation": []', b'"counts": [1]', b'"size": [4, 5]', b"\\\\", b"\\/"),
    *(b'\\"', b"/*", b"<", b">", b"</", b"/>", b"<object>", b"</object>"),
    *(b"<difficult>1</difficult>", b"<!-- -->", b"&amp;", b"<a b='c'>", b"-", b"1"),
)

CLASS_NAMES = ("cat", "dog", " potted plant ", "a\rb", "a\nb")


def results_file(rng: random.Random) -> bytes:
    """A results list as exporters write it."""
    records = [
        {
            "image_id": rng.choice([1, 2, 7]),
            "category_id": rng.choice([1, 3]),
            "bbox": [_number(rng), _number(rng), abs(_number(rng)), abs(_number(rng))],
            "score": rng.choice([0.5, rng.random(), 1]),
        }
        for _ in range(rng.randrange(6))
    ]
    if rng.random() < 0.3:
        for record in records:
            record["segmentation"] = [[1, 2.5, 3]]
    return _spelled(rng, records)


def instances_file(rng: random.Random) -> bytes:
    """An instances file; its groups in any order."""
    annotations = [
        {
            "id": i + rng.choice([0, 1]),
            "image_id": rng.choice([1, 2, 7]),
            "category_id": rng.choice([1, 3]),
            "bbox": [_number(rng), _number(rng), abs(_number(rng)), abs(_number(rng))],
            "area": abs(_number(rng)),
            "iscrowd": rng.choice([0, 0, 1]),
            "segmentation": rng.choice([[], [[1, 2, 3.5, 4]], {"size": [1, 2], "counts": "ab"}]),
        }
        for i in range(rng.randrange(6))
    ]
    for annotation in annotations:
        for name in ("area", "iscrowd", "id", "segmentation"):
            if rng.random() < 0.1:
                del annotation[name]
    groups = [
        ("info", {"year": 2014, "nested": {"a": [1, {"b": None}]}}),
        (
            "images",
            [{"id": i, "file_name": f"{i}.jpg", "width": 640, "height": 480} for i in (7, 1, 2)],
        ),
        ("annotations", annotations),
        ("categories", [{"id": 3, "name": "cat"}, {"id": 1, "name": "dog"}]),
    ]
    if rng.random() < 0.3:
        rng.shuffle(groups)
    return _spelled(rng, dict(groups))


SIZES = {1: (4, 5), 2: (90, 60), 7: (480, 640)}
"""Height and width of the images of masks."""


def mask_results_file(rng: random.Random) -> bytes:
    """A results list with masks, with or without boxes."""
    records = [
        {"image_id": image, "category_id": rng.choice([1, 3]), "score": rng.random()}
        | {"segmentation": _segmentation(rng, image)}
        for image in (rng.choice([1, 2, 7]) for _ in range(rng.randrange(5)))
    ]
    if rng.random() < 0.4:
        for record in records:
            record["bbox"] = [_number(rng), 1, abs(_number(rng)), abs(_number(rng))]
    _repeat(rng, records, "segmentation")
    return _spelled(rng, records)


def mask_instances_file(rng: random.Random) -> bytes:
    """An instances file of objects with masks."""
    annotations = [
        {"id": i + 1, "image_id": image, "category_id": rng.choice([1, 3]), "area": 1.5}
        | {"bbox": [1, 2.5, 3, 4], "iscrowd": 0, "segmentation": _segmentation(rng, image)}
        for i, image in enumerate(rng.choice([1, 2, 7]) for _ in range(rng.randrange(5)))
    ]
    for annotation in annotations:
        for name in ("area", "iscrowd", "segmentation"):
            if rng.random() < 0.1:
                del annotation[name]
        if rng.random() < 0.05:
            annotation["attributes"] = {"area": 7.0}
    _repeat(rng, annotations, "segmentation")
    images = [{"id": i, "height": height, "width": width} for i, (height, width) in SIZES.items()]
    categories = [{"id": 3, "name": "cat"}, {"id": 1, "name": "dog"}]
    info = {"url": "http://x"}
    groups = {"images": images, "annotations": annotations, "categories": categories}
    return _spelled(rng, {"info": info} | groups).replace(b"http://", b"http:\\/\\/")


def keypoint_results_file(rng: random.Random) -> bytes:
    """A results list with keypoints, with or without boxes."""
    n = rng.choice([1, 2, 3, 17])
    records = [
        {"image_id": rng.choice([1, 2, 7]), "category_id": 1, "keypoints": _keypoints(rng, n)}
        | {"score": rng.random()}
        for _ in range(rng.randrange(5))
    ]
    if rng.random() < 0.4:
        for record in records:
            record["bbox"] = [_number(rng), 1, abs(_number(rng)), abs(_number(rng))]
    _repeat(rng, records, "keypoints")
    return _spelled(rng, records)


def keypoint_instances_file(rng: random.Random) -> bytes:
    """An instances file of objects with keypoints."""
    n = rng.choice([1, 2, 3, 17])
    annotations = [
        {"id": i + 1, "image_id": rng.choice([1, 2, 7]), "category_id": 1, "area": 1.5}
        | {"bbox": [1, 2.5, 3, 4], "iscrowd": 0, "num_keypoints": rng.choice([0, 1, n] * 10 + [-1])}
        | {"keypoints": _keypoints(rng, n), "segmentation": [[1, 2, 3, 4, 5, 6]]}
        for i in range(rng.randrange(5))
    ]
    for annotation in annotations:
        for name in ("area", "iscrowd", "num_keypoints", "keypoints"):
            if rng.random() < 0.03:
                del annotation[name]
    _repeat(rng, annotations, "keypoints")
    images = [{"id": i, "height": height, "width": width} for i, (height, width) in SIZES.items()]
    categories = [{"id": 1, "name": "person"}, {"id": 3, "name": "cat"}]
    return _spelled(rng, {"images": images, "annotations": annotations, "categories": categories})


def _repeat(rng: random.Random, records: list[dict[str, object]], key: str) -> None:
    """Sometimes gives all records the image, the class and the shape of the first, and repeats
    them: the fast reader looks for records that differ only in some numbers.
    """
    if records and key in records[0] and rng.random() < 0.3:
        for record in records:
            record |= {name: records[0][name] for name in (key, "image_id", "category_id")}
        records *= 3


def _keypoints(rng: random.Random, n: int) -> object:
    """x, y and visibility of n points; seldom something else."""
    if rng.random() < 0.02:
        return rng.choice([None, [], [1, 2], [[1, 2, 3]], "x", [1, 2, True], [1e200, 0, 0]])
    return [_number(rng) if k % 3 < 2 else rng.choice([0, 1, 2, 2.0]) for k in range(3 * n)]


def _segmentation(rng: random.Random, image: int) -> object:
    """Run lengths, compressed or not, or a polygon; seldom something else."""
    if rng.random() < 0.03:
        return rng.choice([None, [], [[1, 2, 3]], {"size": [4, 5]}, "x", {"counts": [20], "b": 1}])
    if rng.random() < 0.2:
        return [
            [round(rng.uniform(-2, 90), 2) for _ in range(rng.choice([6, 8, 10]))]
            for _ in range(rng.choice([1, 1, 1, 2, 3]))
        ]
    height, width = SIZES[image]
    cuts = sorted(rng.randrange(height * width + 1) for _ in range(rng.randrange(12)))
    counts = [b - a for a, b in zip([0, *cuts], [*cuts, height * width], strict=True)]
    size = [height, width]
    if rng.random() < 0.3:
        return {"counts": counts, "size": size}
    return {"size": size, "counts": _compressed(counts)}


def _compressed(counts: list[int]) -> str:
    """COCO's text of run lengths. Source: rleToString of pycocotools' maskApi.c."""
    text = []
    for i, count in enumerate(counts):
        left = count - (counts[i - 2] if i > 2 else 0)
        more = True
        while more:
            bits = left & 31
            left >>= 5
            more = left != (-1 if bits & 16 else 0)
            text.append(chr(48 + bits + 32 * more))
    return "".join(text)


def page(rng: random.Random) -> bytes:
    """A VOC annotation file."""
    objects = "".join(
        f"\n\t<object>\n\t\t<name>{rng.choice(CLASS_NAMES)}</name><pose>Left</pose>"
        + rng.choice(
            [
                "",
                "<difficult>0</difficult>",
                "<difficult> 1 </difficult>",
                "<truncated>1</truncated>",
            ]
        )
        + f"<bndbox><xmin>{rng.choice(['48', '48.5', '-3', '1e1'])}</xmin><ymin>240</ymin>"
        f"<xmax>{rng.choice(['195', '195.25'])}</xmax><ymax> 371\n</ymax></bndbox>"
        + rng.choice(["", "<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part>"])
        + "</object>"
        for _ in range(rng.randrange(4))
    )
    size = rng.choice(["", "<size><width>353</width><height>500</height><depth>3</depth></size>"])
    source = "<source><name>x</name></source>"
    head = f"<annotation>\n<folder>VOC2007</folder>{size}{source}"
    return f"{head}{objects}\n</annotation>\n".encode()


def lines(rng: random.Random) -> bytes:
    """VOC detections of one class."""
    return "".join(
        f"{rng.choice(['000001', '000002', '2008_000007'])} {rng.random():.6f} {_number(rng)} 2"
        f" {abs(_number(rng)) + 40} 50" + rng.choice(["\n", "\n", "\r\n", "\n\n", " \n"])
        for _ in range(rng.randrange(6))
    ).encode()


def lines_of_ids(rng: random.Random) -> bytes:
    """VOC detections of one class on images that are named by numbers, some by stems."""
    names = rng.choice([("1", "2", "7"), ("2", "7", "7"), ("x", "1", "2")])
    text = lines(rng)
    for old, new in zip((b"000001", b"000002", b"2008_000007"), names, strict=True):
        text = text.replace(old, new.encode())
    return text


def labels(rng: random.Random) -> bytes:
    """Rows of label files: words, numbers of many spellings, gaps and line ends of all kinds."""
    words = ["0", "cat", "Z\u00fcrich", "a\u00a0b", "\x0c", "nan", "1_0", "+.5", "1e999", "9" * 70]
    rows = [
        [rng.choice(words), *(f"{_number(rng)}" for _ in range(rng.randrange(6)))]
        for _ in range(rng.randrange(6))
    ]
    ends = ["\n", "\n", "\r\n", "\r", "\n\n", " \n"]
    text = "".join(rng.choice([" ", " ", "\t", "  "]).join(r) + rng.choice(ends) for r in rows)
    return rng.choice([text, text.rstrip("\r\n"), f"\ufeff{text}"]).encode()


def csv_file(rng: random.Random) -> bytes:
    """Named columns; numbers, words, quotes and line ends of many spellings."""
    delimiter, end = rng.choice([",", ";", "\t"]), rng.choice(["\n", "\n", "\r\n"])
    names = ["image", "class", "score", "x1", "y1", "note"][: rng.randrange(2, 7)]
    rows = [
        [
            f"im{rng.randrange(9)}.jpg",
            rng.choice(["cat", "Zürich", " a b ", "猫", f"a{delimiter}b"]),
        ]
        + [rng.choice([f"{_number(rng)}", " 1e3 ", "", "nan", "1_0", "+.5"]) for _ in range(4)]
        for _ in range(rng.randrange(6))
    ]
    if rng.random() < 0.2:
        rows += [["w" * 99, '"a, b"', *"1234"]]
    if rng.random() < 0.5:  # quotes around all cells, or the first
        quoted = rng.choice([1, 6])
        rows = [[f'"{cell}"' if i < quoted else cell for i, cell in enumerate(r)] for r in rows]
    text = end.join(delimiter.join(row[: len(names)]) for row in [names, *rows])
    return (text + rng.choice(["", end])).encode()


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The same bytes with a few of them cut, repeated, replaced, or joined by tokens that mean
    something."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        at = rng.randrange(len(data) + 1)
        to = min(len(data), at + rng.choice([0, 1, 1, 2, 5, 20]))
        data = (
            data[:at]
            + rng.choice(
                [b"", b"", bytes([rng.randrange(256)]), *[rng.choice(TOKENS) for _ in range(5)]]
            )
            + data[to:]
        )
        if rng.random() < 0.05:
            data = data[: rng.randrange(len(data) + 1)]
    return data


def _number(rng: random.Random) -> float:
    return rng.choice(
        [
            rng.randrange(-5, 40),
            round(rng.uniform(0, 40), 2),
            rng.uniform(0, 40),
            0.1 + 0.2,
            1e-7,
            40.0,
            rng.uniform(0, 40) * 1e-12,
        ]
    )


def _spelled(rng: random.Random, value: object) -> bytes:
    style: dict[str, object] = rng.choice(
        [{}, {}, {"separators": (",", ":")}, {"indent": 1}, {"indent": "\t"}]
    )
    return json.dumps(value, **style).encode()  # type: ignore[arg-type]


FILES: dict[str, Callable[[random.Random], bytes]] = {
    "results": results_file,
    "instances": instances_file,
    "mask results": mask_results_file,
    "mask instances": mask_instances_file,
    "keypoint results": keypoint_results_file,
    "keypoint instances": keypoint_instances_file,
    "page": page,
    "lines": lines,
    "lines of ids": lines_of_ids,
    "labels": labels,
    "csv": csv_file,
}
