"""One file, one meaning: rows that are added, removed or moved never change what others mean.

Draws ids, file names and class names that are digits, and tables and lists of them. The
rows that two versions of a file share mean the same, or one of them is refused; so do all rows of
one version as CSV, Parquet, a frame, and in pieces.
"""

import csv
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import detmap
from detmap.core.adapters import pieces
from detmap.core.adapters.coco import json_lines, result_pieces
from detmap.core.adapters.joining import class_keys, image_keys, image_names, join
from detmap.core.adapters.joining.unknown_policy import Policy, policy
from detmap.core.adapters.tabular import parquet_pieces
from detmap.core.adapters.tabular.csv_parquet import spelled
from detmap.core.tables import Categories, Images, Truth
from detmap.core.tables.join_keys import Earlier
from detmap.errors import DetmapError
from tools.fuzzing._files import scratch

COUNTS = {"compared": 0, "read": 0, "refused": 0}
IMAGES = ("image", "image_id", "file_name", "image_name", "img")
CLASSES = ("class", "category_id", "class_name", "label", "class_id", "category")
FILES = 0.02  # of the cases write or read whole tables; the others call what all readers call
Row = tuple[Any, Any, int]
"""An image, a class, and the number of the row, which its score tells."""
Meaning = Mapping[Any, Any]


def case(seed: int) -> str | None:
    """What is wrong with two versions of one drawn file."""
    rng = np.random.default_rng(seed)
    parquet_pieces.ROWS = parquet_pieces.MOST_ROWS = 2
    result_pieces.PIECE = json_lines.PIECE = int(rng.integers(90, 300))
    truth = drawn_truth(rng)
    if rng.random() < FILES:
        kinds: tuple[Callable[..., str | None], ...] = (tables, tables, coco)
    else:
        kinds = (texts_of_a_column, numbers_of_a_column)
    return kinds[rng.integers(len(kinds))](rng, truth)


def drawn_truth(rng: np.random.Generator) -> Truth:
    """Images and classes whose names are ids of others, often."""
    n, k, first = int(rng.integers(2, 5)), int(rng.integers(2, 5)), int(rng.integers(0, 3))
    ids = np.sort(rng.choice(np.arange(1, 9), n, replace=False))
    digits = rng.permutation(np.arange(first, first + 8))[:n].tolist()
    width = int(rng.choice([1, 1, 4]))
    stems = [f"{d:0{width}d}" if rng.random() < 0.8 else f"im{d}" for d in digits]
    class_ids = np.sort(rng.choice(np.arange(6), k, replace=False))
    named = rng.permutation(np.arange(8))[:k].tolist()
    names = [str(d) if rng.random() < 0.7 else f"c{d}" for d in named]
    suffix = ".jpg" if rng.random() < 0.8 else ""
    return Truth(
        Images(
            ids.astype(np.int64),
            tuple(stems),
            np.full(n, 50.0),
            np.full(n, 50.0),
            tuple(f"{stem}{suffix}" for stem in stems),
        ),
        Categories(class_ids.astype(np.int64), tuple(names)),
        image=np.zeros(1, dtype=np.int32),
        label=np.zeros(1, dtype=np.int32),
        boxes=np.array([[1.0, 1.0, 9.0, 9.0]]),
        roles={"crowd": np.zeros(1, dtype=bool)},
        attributes={"area": np.array([81.0])},
        box_format="xywh",
        family="coco",
        source="truth",
    )


def texts_of(rng: np.random.Generator, truth: Truth) -> tuple[list[str], list[str]]:
    """What columns may hold: mostly one key, sometimes both or unknown names."""
    images, categories = truth.images, truth.categories
    pools = []
    for ids, names, files in (
        (images.ids, images.stems, images.files),
        (categories.ids, categories.names, categories.names),
    ):
        own: list[list[str]] = [list(map(str, ids.tolist())), list(names), list(files), ["77"]]
        shares = rng.permutation([0.0, 0.1, 0.9]).tolist()
        pools.append(
            [
                x
                for pool, p in zip(own, [*shares, 0.1], strict=True)
                if rng.random() < p + 0.1
                for x in pool
            ]
            or own[0]
        )
    return pools[0], pools[1]


def versions(rng: np.random.Generator, pools: tuple[list[Any], list[Any]]) -> list[list[Row]]:
    """Rows, and the same with some removed, or added, or in another order."""
    n = int(rng.integers(1, 6))
    rows: list[Row] = [
        (pools[0][rng.integers(len(pools[0]))], pools[1][rng.integers(len(pools[1]))], i)
        for i in range(n)
    ]
    m = int(rng.integers(0, n + 1))
    other = [rows[i] for i in rng.permutation(n)]
    return [rows, other[:m] if rng.random() < 0.5 else rows[:m], other]


def compare(found: list[Meaning | None]) -> str | None:
    """What is wrong with the meanings of versions, None for one that was refused."""
    COUNTS["refused"] += found.count(None)
    known: dict[Any, Any] = {}
    for meaning in found:
        if meaning is None:
            continue
        COUNTS["read"] += 1
        for row, value in meaning.items():
            COUNTS["compared"] += row in known
            if known.setdefault(row, value) != value:
                return f"row {row} is {known[row]} and {value}"
    return None


def attempt(read: Callable[[], Meaning]) -> Meaning | None:
    try:
        return read()
    except DetmapError as error:
        if not (error.where and error.what and error.fix):
            raise AssertionError("an error without a place, a cause or a fix") from None
        return None


def meaning(found: list[detmap.Detections], rows: list[Row]) -> Meaning:
    """Image and class of each row, None if it was dropped."""
    known: dict[int, Any] = {row[2]: None for row in rows}
    for table in found:
        cells = zip(table.score.tolist(), table.image.tolist(), table.label.tolist(), strict=True)
        known |= {round(score * 100): (image, label) for score, image, label in cells}
    return known


def columns(rows: list[Row], header: tuple[str, str]) -> dict[str, list[Any]]:
    box = {name: [value] * len(rows) for name, value in zip("xywh", (1, 1, 9, 9), strict=True)}
    image, label = ([row[i] for row in rows] for i in (0, 1))
    return {header[0]: image, header[1]: label, **box, "score": [row[2] / 100 for row in rows]}


def tables(rng: np.random.Generator, truth: Truth) -> str | None:
    """Text columns as CSV, as a frame, as Parquet, and Parquet in pieces."""
    header = str(rng.choice(IMAGES)), str(rng.choice(CLASSES))
    how = options(rng)
    forms: list[Callable[..., list[detmap.Detections]]] = [by_csv, by_frame]
    forms += [by_parquet] if rng.random() < 0.2 else []
    found = []
    for rows in filter(None, versions(rng, texts_of(rng, truth))):
        table = columns(rows, header)
        found += [attempt(partial(read_form, form, table, truth, how, rows)) for form in forms]
    return compare(found)


def read_form(form: Callable[..., Any], table: Any, truth: Truth, how: Any, rows: Any) -> Meaning:
    return meaning(form(table, truth, how), rows)


def texts_of_a_column(rng: np.random.Generator, truth: Truth) -> str | None:
    """Texts under a header, at once and in pieces."""
    return column(rng, truth, texts_of(rng, truth))


def numbers_of_a_column(rng: np.random.Generator, truth: Truth) -> str | None:
    """Whole numbers under a header, at once and in pieces."""
    return column(rng, truth, (list(range(9)), list(range(7))))


def column(
    rng: np.random.Generator, truth: Truth, pools: tuple[list[Any], list[Any]]
) -> str | None:
    """Columns of images and of classes, each of them alone."""
    header = spelled(str(rng.choice(IMAGES))), spelled(str(rng.choice(CLASSES)))
    told = policy(**options(rng))
    found: tuple[list[Meaning | None], list[Meaning | None]] = ([], [])
    for rows in filter(None, versions(rng, pools)):
        for size in (len(rows), 2):
            earlier = told._replace(earlier=Earlier())
            parts = [rows[i : i + size] for i in range(0, len(rows), size)]
            for some, of in zip(found, (images_of, classes_of_part), strict=True):
                read = partial(whole_column, of, truth, parts, earlier, header)
                some.append(attempt(read))
    wrong = compare(found[0])
    return f"images: {wrong}" if wrong else compare(found[1])


def whole_column(
    of: Callable[..., Any], truth: Truth, parts: list[list[Row]], told: Policy, header: Any
) -> Meaning:
    """What each row means, read part by part."""
    known: dict[Any, Any] = {}
    for rows in parts:
        known |= zip((row[2] for row in rows), of(truth, rows, told, header).tolist(), strict=True)
    return known


def images_of(truth: Truth, rows: list[Row], told: Policy, header: Any) -> Any:
    cells = [row[0] for row in rows]
    named = image_keys.column_of(truth, "column", told.image_key, header[0])
    evidence = told.evidence("image")
    if isinstance(cells[0], str):
        return image_keys.find(truth, cells, named, evidence, image_names.stem).image
    return join.images_named(
        truth, np.array(cells), str, "column", column=named, evidence=evidence
    )[0]


def classes_of_part(truth: Truth, rows: list[Row], told: Policy, header: Any) -> Any:
    cells: Any = [row[1] for row in rows]
    if not isinstance(cells[0], str):
        cells = np.array(cells)
    return class_keys.find(truth, cells, "column", told, header[1]).label


def options(rng: np.random.Generator) -> dict[str, Any]:
    how: dict[str, Any] = {"unknown": str(rng.choice(["error", "drop"]))}
    for name in ("image_key", "class_key"):
        if rng.random() < 0.15:
            how[name] = str(rng.choice(["id", "name"]))
    return how


def by_csv(table: dict[str, list[Any]], truth: Truth, how: Any) -> list[detmap.Detections]:
    with open(scratch("d.csv"), "w", newline="") as file:
        csv.writer(file).writerows([list(table), *zip(*table.values(), strict=True)])
    return [detmap.read_detections(scratch("d.csv"), truth, format="csv", **how)]


def by_frame(table: Mapping[str, Any], truth: Truth, how: Any) -> list[detmap.Detections]:
    return [detmap.detections_from_arrays(truth, table, **how)]


def by_parquet(table: dict[str, list[Any]], truth: Truth, how: Any) -> list[detmap.Detections]:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(table), scratch("d.parquet"))
    whole = detmap.read_detections(scratch("d.parquet"), truth, format="parquet", **how)
    try:
        some = in_pieces(scratch("d.parquet"), truth, how)
    except DetmapError:
        return [whole]
    return some if sum(map(len, some)) == len(whole) else [whole, *some]


def in_pieces(path: str, truth: Truth, how: Any) -> list[detmap.Detections]:
    return [piece.detections for piece in pieces.source(path, truth, **how).pieces()]


def coco(rng: np.random.Generator, truth: Truth) -> str | None:
    """Records of COCO results, whole and in pieces; ids as numbers, or texts."""
    how = {"unknown": str(rng.choice(["error", "drop"]))}
    pools: tuple[list[Any], list[Any]] = list(range(9)), list(range(7))
    if rng.random() < 0.3:
        pools = texts_of(rng, truth)
    found: list[Meaning | None] = []
    for rows in versions(rng, pools):
        keys = "image_id", "category_id", "score", "bbox"
        records = [
            dict(zip(keys, (image, label, i / 100, [1, 1, 9, 9]), strict=True))
            for image, label, i in rows
        ]
        lines = rng.random() < 0.3 and len(records) > 0
        text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
        scratch("d.json").write_text(text)
        found += [
            attempt(partial(read_form, form, scratch("d.json"), truth, how, rows))
            for form in (by_path, in_pieces)
        ]
    return compare(found)


def by_path(path: str, truth: Truth, how: Any) -> list[detmap.Detections]:
    return [detmap.read_detections(path, truth, **how)]
