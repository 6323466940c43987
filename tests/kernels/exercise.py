"""Every kernel once, on drawn data; prints what came out, as JSON. Run with and without the JIT
by test_plain_python.py."""

import json
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np

import detmap
from detmap import ranking
from detmap.analysis.diagnosis import diagnose
from detmap.analysis.diagnosis.diagnosis_intervals import uncertainty
from detmap.analysis.diagnosis.summary import parts
from detmap.analysis.row_overlaps import best_overlaps
from detmap.compat import drop_in_engine as engine
from detmap.compat import matched_objects as taking
from detmap.compat.annotation_rows import from_records
from detmap.core.adapters.coco import number_lists
from detmap.core.adapters.coco import scan_json as coco_scan
from detmap.core.adapters.coco.scan_columns import Piece
from detmap.core.adapters.voc import scan_voc as voc_scan
from detmap.core.curves.scores import coco_arrays, sample
from detmap.core.matching import engine as matching
from detmap.core.overlaps import box_iou as boxes
from detmap.core.overlaps import likely_pairs
from detmap.core.overlaps.keypoints import boxes_around
from detmap.core.protocol import integrators
from detmap.core.statistics.random_words import random_words
from detmap.kernels import curves, grouping, overlap, state
from detmap.kernels.runs import unpack_runs
from detmap.kernels.scanning import cell_numbers, json_skip
from detmap.kernels.scanning import voc_scan as kernels
from tests.analysis.diagnosis import test_pair_by_class
from tests.analysis.diagnosis import troublesome_tables as drawing
from tests.kernels import surface, test_near_pairs, test_runs
from tests.kernels.test_match import draw_case, judged
from tests.overlaps import test_keypoint_pairs, test_likely_pairs, test_polygons
from tests.statistics.drawn_matches import draw
from tests.support.drawing import draw_coco, draw_lvis, draw_many_detections, draw_voc
from tests.support.drawing_shapes import draw_outlined
from tests.support.drawn_tables import read_coco, voc_tables
from tests.support.lanes import LANES, write_mutated

VOC_CROWDED = {"n_images": 2, "n_classes": 1, "max_objects": 60, "max_detections": 60}


def outcomes() -> list[object]:
    """Numbers that depend on every line of every kernel."""
    found: list[object] = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        data = (
            draw_many_detections(rng)
            if seed == 0
            else draw_coco(rng, **surface.CROWDED if seed < 3 else {})
        )
        truth, detections = read_coco(*data)
        result = detmap.evaluate(truth, detections, threads=1)
        arrays = coco_arrays(result.matches)
        found += [result.signature, *(float(array.sum()) for array in arrays.values())]
        found.append(result.integrators())
        found.append(detmap.evaluate(truth, detections, "voc2012", threads=1).per_class)
        result = detmap.evaluate(
            *voc_tables(*draw_voc(rng, **VOC_CROWDED if seed < 3 else {})),
            "voc2007",
            settings={"subsets.tiny.area": [0, 60]},
            threads=1,
        )
        found += [result.metrics, result.per_class, result.signature]
        for settings in ({"limits.max_dets": [3]}, {"limits.scope": "class"}):
            tables = read_coco(*draw_lvis(rng))
            result = detmap.evaluate(*tables, "lvis", settings=settings, threads=1)
            found += [result.metrics, result.signature]
        found += [*dropped_and_taken(truth, detections), *drop_in(*data)]
    found += refusals()
    recall, precision = np.array([0.25, 0.5, 0.75]), np.array([1, 0.5, 0.6])
    found += [
        integrators.eleven_point(recall, precision),
        integrators.all_points(recall, precision),
        integrators.grid_envelope(recall, precision),
        integrators.step(recall, precision),
        unknown_rule(),
        expected_of_one_size(),
    ]
    found += surface.rankings()
    many = rng.random(100) < 0.3, 1 + rng.random(100).round(1) / 4
    found.append(ranking.average_precision(*many, threads=1))
    for n_close in (20, 90):  # scores whose upper halves are equal
        close = np.concatenate([rng.random(80), 1 + rng.random(n_close) / 1e12])
        order = np.arange(len(close), dtype=np.int32)
        grouping.rank_by_score(close.view(np.uint64), order, grouping.sorter(len(close)))
        found.append(order.tolist())
    # of three true positives one has a rank beyond the last limit
    n_within = np.zeros((2, 1, 1), dtype=np.int64)
    words = np.array([[1], [1], [1]], dtype=np.uint16)
    ranked = curves.Ranked(np.array([0, 3]), words, words * 0, np.arange(3, dtype=np.int32))
    curves.count_within(0, ranked, np.array([1, 2]), n_within)
    return [
        *found,
        n_within.tolist(),
        *outlines(),
        *lanes(),
        *corners(),
        *cells(),
        *doubts(),
        *diagnoses(),
        *likely(),
        *tied_orders(),
        *run_lengths(),
        *(test_keypoint_pairs.pairs(k, 0)[0] for k in (7, 17, 133, 300)),
        boxes_around(np.array([[[3, 4, 2], [2, 9, 1]], [[0, np.nan, 0]] * 2]))[1],
        *(test_near_pairs.drawn_pairs(seed, 0.0)[0] for seed in range(3)),
    ]


def diagnoses() -> list[object]:
    """What detections overlap, and what follows from it, with its intervals."""
    box = [[0, 0, 9, 9]]
    truth = detmap.truth_from_arrays([1], [1], box)
    twice = detmap.detections_from_arrays(truth, [1, 1], [1, 1], box * 2, [0.5, 0.4])
    found: list[object] = [diagnose(truth, twice, threads=1).counts()]
    for seed in range(8):
        settings = {"limits.max_dets": [100 if seed % 2 else 2]}
        seen = diagnose(*drawing.tables(seed), "coco-bbox", settings=settings, threads=1)
        drawn = uncertainty(seen, parts(seen), np.array([0.5, 0.2]))
        sampled = (drawn.olrp, drawn.best, drawn.curve, drawn.slice_ap)
        found += [seen.counts(), *(each.estimates.parts.tolist() for each in sampled)]
        rows = [test_pair_by_class.draw_rows(np.random.default_rng(seed + i), 9, 7) for i in (0, 9)]
        found += [test_pair_by_class.paired(*rows, 0.25, most) for most in (9, 9999)]
    met = best_overlaps(twice, twice.image, np.arange(len(twice)), truth, 0.1)
    found += [each.tolist() for each in met]
    return found


def doubts() -> list[object]:
    """Weights, whole and not, and intervals, under each integrator."""
    found: list[object] = [random_words(2**64 - 1, 2, 0, (2, 3)).tolist()]
    box = [[0, 0, 9, 9]]
    truth = detmap.truth_from_arrays([1], [1], box, categories={1: "a", 2: "without objects"})
    both = detmap.detections_from_arrays(truth, [1, 1], [1, 2], box * 2, [0.5, 0.5])
    rules = {"ap.integrator": "step"}
    result = detmap.evaluate(truth, both, "voc2012", settings=rules, threads=1)
    found.append({key: one.to_dict() for key, one in result.ties(orders=1).items()})
    for seed in range(3):
        for row in integrators.AT_TRUE_POSITIVES:
            matches = draw(seed, 12, row.name)
            result = detmap.summarize(matches)
            made = result.intervals(seed=2**63 + seed, threads=1)
            found += [made.signature, {key: one.to_dict() for key, one in made.metrics.items()}]
            found.append({key: one.to_dict() for key, one in result.ties(orders=2).items()})
            weights = [0.0, 0.75, 1.0, 2.5] * 3
            found.append(detmap.summarize(matches, weights=weights, threads=1).per_class)
    return found


def cells() -> list[object]:
    """Cells whose rows have any role, and those that one buffer does not hold."""
    found: list[object] = []
    for seed in range(30):
        case = draw_case(np.random.default_rng(seed))
        for rule in ("best_free", "best_any"):
            verdicts, takings = judged(rule, case)
            found += [verdicts.tp.tolist(), verdicts.ignored.tolist()]
            found += [column.tolist() for column in takings]
    size, boxes.BUFFER = boxes.BUFFER, 1
    tables = read_coco(*draw_coco(np.random.default_rng(1), **surface.CROWDED))
    for cap in (0.5, 0.0):
        rules = detmap.load_protocol("coco-bbox").override({"iou.cap": cap})
        found.append(matching.match(*tables, rules, threads=1).tp.tolist())
    boxes.BUFFER = size
    side = [[0, 0, 1e-200, 1e-200]]
    for crowd in (False, True):
        truth = detmap.truth_from_arrays([1], [1], side, crowd=[crowd])
        nowhere = detmap.detections_from_arrays(truth, [1], [1], side, [0.5])
        try:
            detmap.evaluate(truth, nowhere)
        except detmap.DataError as error:
            found.append(str(error))
    return found


def run_lengths() -> list[object]:
    """Texts that fill 12 pixels, and that do not; awkward masks and their overlaps."""
    texts = (b"<", b"44", b"444L", b"X", b"oo", b"\x01", b"o" * 9, b"O", b"3333")
    found: list[object] = [test_runs.first_bad(text) for text in texts]
    for seed in range(40):
        _, _, packed = test_runs.draw_masks(seed)
        some, others = test_runs.read(packed[:6]), test_runs.read(packed[6:])
        crowd = np.arange(6) % 3 == 0
        found += [
            test_runs.overlaps(some.runs, others.runs, crowd, lowest).tolist()
            for lowest in (-1.0, 0.5)
        ]
        found += [some.digest().tolist(), some.runs.boxes.tolist(), some.area.tolist()]
        found.append(some.take(np.array([2, 0])).digest().tolist())
    for seed in range(6):  # boundaries
        instances, results = draw_outlined(np.random.default_rng(seed))
        truth = detmap.read_truth(instances, shapes="masks")
        detections = detmap.read_detections(results, truth)
        found.append(detmap.evaluate(truth, detections, "coco-boundary", threads=1).metrics)
    cut = np.array([7, 65535, 1], dtype=np.uint16)
    off, again, counts = np.array([0, 1, 3]), np.zeros(3, np.int64), np.zeros(3, np.uint32)
    found.append(unpack_runs(off, cut, again, counts))
    tall = test_runs.read(test_runs.sides())
    found.append(test_runs.overlaps(tall.runs, tall.runs, np.array([False, True]), -1.0).tolist())
    return found


def outlines() -> list[object]:
    """Runs of drawn polygons, and lists of numbers that are wrong at each place."""
    found: list[object] = []
    for seed in range(40):
        rings = test_polygons.draw_rings(np.random.default_rng(seed))
        found.append(test_polygons.runs([rings], 40, 30).counts.tolist())
    for depth, text in ((1, b"[1, 2.5]"), (2, b"[[1,2],[3]]"), (2, b"[[1] ]")):
        for end in range(len(text) + 1):
            spans = np.array([[0, end]])
            piece = np.frombuffer(text[:end] + b"x" * (end < len(text)), dtype=np.uint8)
            lists = number_lists.read(piece, spans, depth, number_lists.buffer(end, 1))
            found.append(lists and [each.tolist() for each in lists])
    return found


def lanes() -> list[tuple[str, int]]:
    """How many damaged files each fast lane takes."""
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in LANES:
            count = 0
            for seed in range(1000 if kind == "page" else 500):  # as many as run every line
                write_mutated(kind, seed, Path(folder, "file"))
                count += LANES[kind][0](Path(folder, "file")) is not None
            counts.append((kind, count))
    return counts


def corners() -> list[object]:
    """What chance does not draw: deep nesting, a negative id, rooms that are too small, a hash
    that collides."""
    values = (b"false", b"[" * 70, b'{"a": [], "b": {}}')
    bad = np.array([[0, 0, 1, 1], [0, 0, -1, 1]], dtype=float)
    found = [
        overlap.copy_boxes(bad, 1e9, np.empty((2, 4))),
        overlap.copy_boxes(bad[:1], 1e9, np.empty((1, 4))),
        overlap.copy_boxes(bad[:1], 0.5, np.empty((1, 4))),
    ]
    found += [bad_verdict(), bad_verdict(tp=[1, 1]), bad_verdict(score=[0.5, 0.75])]
    found += [json_skip.skip_value(np.frombuffer(text, dtype=np.uint8), 0) for text in values]
    for text in (
        b'{"image_id": -1}]',
        b'{"score": 0.00000000000000000000000}]',
        b"{}]",
        b'{"image_id": 1, "image_id": 1}]',
        b'{"iscrowd": 2}]',
        b'{"a": 1} x',
        b'{"a": 1',
        b'{"segmentation": {"size": [1, 1], "counts": [-1]}}]',
    ):
        piece = Piece(1, 9)
        piece.state[:] = 0
        found.append(piece.scan(np.frombuffer(text, dtype=np.uint8), 0, 99, 1023))
    alike = b'{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}, '
    odd_values = ((b"0.5", b"-"), (b"0.5", b"0.5x"), (b"3", b"-3"), (b"3", b"123456789"))
    for usual, odd in odd_values:  # after alike records
        text = b"[" + 30 * alike + alike.replace(usual, odd) + 2 * alike
        piece = Piece(40)
        piece.state[:] = 0
        found.append(piece.scan(np.frombuffer(text, dtype=np.uint8), 1, len(text), 255))
    # halfway between two doubles, and what is no number
    for text in (b"9007199254740993,-1.5e3,", b"1,x,"):
        end = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord(","))
        values = np.zeros(end.size)
        begin = np.append(0, end[:-1] + 1)
        read = cell_numbers.read_cells(np.frombuffer(text, dtype=np.uint8), begin, end, values)
        found += [read, values.tolist()]
    stems = voc_scan.stems_table([str(i) for i in range(300)])
    for rows in (1, 2):
        columns = np.empty(rows, dtype=np.int32), np.empty(rows), np.empty((rows, 4))
        found.append(
            kernels.scan_lines(
                np.frombuffer(b"7 1 1 1 2 2\n299 1 1 1 2 2\n", dtype=np.uint8), stems, *columns
            )
        )
    open_tags = kernels.OpenTags(np.empty((8, 2), dtype=np.int64), np.empty(8, dtype=np.int64))
    pages = kernels.Pages(
        np.empty((1, 2)),
        np.empty(0, dtype=np.int32),
        np.empty((0, 2), dtype=np.int64),
        np.empty((0, 4)),
        np.empty(0, dtype=np.int8),
    )
    box = b"<object><bndbox></bndbox><bndbox></bndbox></object>"
    for text in (
        b"<annotation><object>",
        b"<annotation><size></size><size>",
        b"</annotation>",
        b"<annotation>" + box,
        b"<annotation><object></object></annotation>",
    ):
        some = (
            pages
            if text.endswith(b"<object>")
            else pages._replace(
                page=np.empty(9, dtype=np.int32),
                name=np.empty((9, 2), dtype=np.int64),
                box=np.empty((9, 4)),
                difficult=np.empty(9, dtype=np.int8),
            )
        )
        found.append(
            kernels.scan_pages(
                np.frombuffer(text, dtype=np.uint8), np.array([0, len(text)]), some, open_tags
            )
        )
    return found


def dropped_and_taken(truth: detmap.Truth, detections: detmap.Detections) -> list[object]:
    """Both rules where detections outside a subset take nothing, and who took what."""
    found: list[object] = []
    whole = boxes.BUFFER
    for name, outside, buffer in (
        ("coco-bbox", {"detections.outside": "drop"}, 1),
        ("voc2012", {"detections.outside": "drop"}, whole),
        ("voc2012", {"matching.outside": "absorb", "detections.outside": "count"}, 1),
    ):
        boxes.BUFFER = buffer
        rules = detmap.load_protocol(name).override({**outside, "subsets.tiny.area": [0, 400]})
        matches = detmap.match(truth, detections, rules, threads=1, taken=True)
        assert matches.taken is not None
        found += [matches.data_digest(), *(column.tolist() for column in astuple(matches.taken))]
    boxes.BUFFER = whole
    return found


def likely() -> list[object]:
    """The pairs that are listed for many protocols; none if there are too many."""
    found: list[object] = []
    for seed in (1, 2, 3):
        tables = test_likely_pairs.small_boxes(test_likely_pairs.drawn_tables(seed), seed)
        listed = likely_pairs.list_pairs(*tables)
        assert listed is not None
        found += [listed.off.tolist(), listed.object.tolist()]
    likely_pairs.MOST_PAIRS, usual = 1, likely_pairs.MOST_PAIRS
    assert likely_pairs.list_pairs(*tables) is None
    likely_pairs.MOST_PAIRS = usual
    return found


def tied_orders() -> list[object]:
    """Orders of tied scores, which rank only the rows that they can change."""
    found: list[object] = []
    for seed in range(3):
        tables = read_coco(*draw_coco(np.random.default_rng(seed), **surface.CROWDED))
        found.append(repr(detmap.evaluate(*tables, threads=1).ties(orders=10, threads=1)))
    return found


def refusals() -> list[object]:
    """Overlaps of 0/0, rows of matches that cannot be, and a flag that the scanner hands back."""
    found: list[object] = []
    for crowd, rule in ((False, "best_free"), (True, "best_free"), (False, "best_any")):
        truth = detmap.truth_from_arrays([1], [1], [[0, 0, 1e-200, 1e-200]], crowd=[crowd])
        one = detmap.detections_from_arrays(truth, [1], [1], truth.boxes, [0.5])
        try:
            detmap.evaluate(truth, one, settings={"matching.rule": rule}, threads=1)
        except detmap.DataError as error:
            found.append(error.what)
    truth = detmap.truth_from_arrays([1], [1], [[0, 0, 9, 9]])
    two = detmap.detections_from_arrays(truth, [1, 1], [1, 1], [[0, 0, 9, 9]] * 2, [0.5, 0.4])
    matches = detmap.match(truth, two, detmap.load_protocol("coco-bbox"), threads=1)
    for forged in (
        {"rank": matches.rank + 1},
        {"rank": matches.rank - 1},
        {"score": matches.score[::-1].copy()},
        {"tp": np.full_like(matches.tp, matches.tp.max()), "ignored": 0 * matches.ignored},
        {"ignored": matches.tp | matches.ignored},
    ):
        try:
            replace(matches, **forged)
        except detmap.DataError as error:
            found.append(error.where)
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 9}
    with tempfile.TemporaryDirectory() as folder:
        for flag in (0, 1):
            records = [{**annotation, "iscrowd": 0, "ignore": flag}]
            tree = {"images": [{"id": 1}], "annotations": records, "categories": [{"id": 1}]}
            path = Path(folder, f"{flag}.json")
            path.write_text(json.dumps(tree))
            coco_scan.LEAST_SIZE, usual = 0, coco_scan.LEAST_SIZE
            found.append(detmap.read_truth(path).role("ignore").tolist())
            coco_scan.LEAST_SIZE = usual
    return found


def bad_verdict(tp: Sequence[int] = (1, 2), score: Sequence[float] = (0.5, 0.25)) -> int:
    """The first row that matching cannot have made, of two on two images; there is one object."""
    words = np.array(tp, dtype=np.uint16)[:, None]
    start = np.arange(2, dtype=np.int32)
    return state.find_bad_verdict(
        np.array([0, 2]),
        start,
        start * 0,
        np.array(score),
        words,
        words * 0,
        np.array([~3 & 0xFFFF], dtype=np.uint16),
        state.NO_GAPS,
        100,
        np.array([[1]]),
        np.zeros(2, dtype=np.int32),
        np.zeros((1, 2), dtype=np.int64),
    )


def drop_in(instances: dict[str, Any], results: list[dict[str, Any]]) -> list[object]:
    """What pycocotools' classes show and the result does not: who took what, and curves read in
    any order."""
    numbered = [
        {**record, "id": i, "area": 400, "iscrowd": record.get("iscrowd", 0)}
        for i, record in enumerate((*instances["annotations"], *results), start=1)
    ]
    n = len(instances["annotations"])
    objects, detections = (
        from_records(numbered[:n], scored=False),
        from_records(numbered[n:], scored=True),
    )
    image_ids, category_ids = (
        sorted(each["id"] for each in instances[name]) for name in ("images", "categories")
    )
    rules = engine.Rules(
        image_ids, category_ids, False, np.array([0.75, 0, 0.5]), ((0, 1e10), (0, 300)), [2, 8]
    )
    judged = engine.evaluate_rows(objects, detections, rules)
    taken = [column.tolist() for column in astuple(taking.find_assignments(judged))]
    samples = sample(
        judged.parts[0].matches, np.array([0.4, 0, 0.2, 1]), np.array([1, 8]), threads=1
    )
    return [taken, *(array.tolist() for array in samples.values())]


def expected_of_one_size() -> list[float]:
    """AP over orders where two of three size ranges have no object."""
    truth = detmap.truth_from_arrays([1, 2], [1, 1], [[0, 0, 9, 9]] * 2)
    found = detmap.detections_from_arrays(truth, [1, 2], [1, 1], [[0, 0, 9, 9]] * 2, [0.5, 0.5])
    result = detmap.evaluate(truth, found, "coco-bbox", settings={"ap.integrator": "step"})
    return [one.mean for one in result.ties(orders=2, threads=1).values()]


def unknown_rule() -> float:
    """A number of no rule gives NaN."""
    from detmap.kernels.integrate import integrate_lists

    terms = np.zeros((1, 1))
    ones = np.ones(2)
    integrate_lists(-1, ones, ones.copy(), np.array([0, 2]), np.zeros(1), terms)
    return float(terms[0, 0])


if __name__ == "__main__":
    # NumPy warns of the wrap-around that a digest is made of
    warnings.simplefilter("ignore", RuntimeWarning)
    json.dump(outcomes(), sys.stdout, default=str)
