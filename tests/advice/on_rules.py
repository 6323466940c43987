"""Advices of rules and of what is compared: protocols, keys, limits, scores, shapes, gates."""

from typing import Any

import detmap
from detmap.core.matching.engine import match as match_tables
from detmap.evaluate import summarize
from tests.advice import wrong_files as wrong
from tests.advice.situations import Place, Row, answer, ways
from tests.support.running import run

LOAD = "core/protocol/load_toml: "
SET = r"or set ([\w.]+=[\w\[\]]+)"


def by_file(*options: str) -> Any:
    """The right number under these options."""
    return lambda p: answer(["eval", p.truth, p.found, *options])


def in_order(p: Place, *_: Any) -> Any:
    """Detections of each image from the highest score."""
    return p.write("sorted.json", sorted(p.right.rows, key=lambda row: -row["score"]))


def from_lowest(p: Place) -> Any:
    return p.write("lowest.json", sorted(p.right.rows, key=lambda row: row["score"]))


def sorted_by_hand(p: Place, *_: Any) -> Any:
    return answer(["eval", p.truth, in_order(p), *p.made[3:]])


def odd_protocol(p: Place, text: str) -> Any:
    return p.write("odd.toml", text)


def shown(p: Place, words: str) -> Any:
    """The command shows a protocol, or lists them."""
    return run(*words.split()[1:]).code


def like_shown(p: Place, words: str) -> Any:
    """Evaluate by the text that the command shows."""
    text = run(*words.split()[1:]).out
    return answer(["eval", p.truth, p.found, "-p", p.write("shown.toml", text)])


def reversed_corners(p: Place) -> Any:
    """VOC's text of which some rows have their corners exchanged."""
    folder = wrong.voc_text(p)
    for file in folder.iterdir():
        lines = [line.split() for line in file.read_text().splitlines()]
        lines[0] = [*lines[0][:2], *lines[0][4:], *lines[0][2:4]]
        file.write_text("".join(" ".join(words) + "\n" for words in lines))
    return folder


def level(p: Place, score: float) -> Any:
    return p.changed(lambda row: row | {"score": score})


def weak_ones(p: Place, score: float) -> Any:
    """Another score for the lowest detections, under Ultralytics' rules."""
    low = p.changed(lambda row: row | {"score": row["score"] if row["score"] > 0.3 else score})
    return [p.truth, low, "-p", "ultralytics-8.3"]


def assigned(p: Place, settings: dict[str, Any]) -> Any:
    """The result of a match with assignments."""
    rules = detmap.load_protocol("coco-bbox").override({"boxes.aspect": 0.4} | settings)
    return summarize(match_tables(*wrong.read(p.truth, p.found), rules, taken=True))


UNSORTED = "core/matching/score_rules: images have detections that are not"
TAKEN_IN_ORDER = f"{UNSORTED} sorted by score; {{}} takes them"
ROWS = (
    Row(
        "core/curves/aggregation: use these names, or metrics without",
        lambda p: [p.truth, p.found, "-p", "ov-coco"],
        "(--set) '(metrics=[^']+)'",
        "{0} {1}",
    ),
    *ways(
        UNSORTED,
        lambda p: [p.truth, from_lowest(p), "-p", "visdrone"],
        ("sort each", sorted_by_hand, by_file("-p", "visdrone", "--set", "limits.order=score")),
        (SET, "--set {0}", lambda p: sorted_by_hand(p)),
    ),
    Row(
        TAKEN_IN_ORDER,
        lambda p: [
            p.truth,
            from_lowest(p),
            "-p",
            "coco-bbox",
            "--set",
            "detections.score_order=input",
        ],
        r"set (detections\.score_order=score)",
        "--set {0}",
    ),
    Row(
        "core/matching/prepare: detections have a score of exactly",
        lambda p: weak_ones(p, 0.001),
        r"use (--set detections\.above=\[[\d.]+\])",
        right=lambda p: answer(["eval", *weak_ones(p, 0.001004)]),
    ),
    Row(
        "core/matching/score_rules: give scores that differ, or set",
        lambda p: [p.truth, level(p, 0.5), "--set", "detections.score_scale=min_max"],
        SET,
        "--set {0}",
        lambda p: answer(["eval", p.truth, p.made[2]]),
    ),
    *ways(
        "core/matching/scope: give width and height, or set",
        lambda p: [wrong.without_sizes(p), p.found, "--set", "boxes.clip=crowdhuman"],
        (SET, "--set {0}"),
        (
            "give width and height",
            lambda p, _: answer(["eval", p.truth, *p.made[2:]]),
            by_file("--set", "boxes.clip=crowdhuman"),
        ),
    ),
    Row(
        "core/overlaps/box_edges: give width and height, or set",
        lambda p: [wrong.without_sizes(p), p.found, "--set", "boxes.form=fractions"],
        SET,
        "--set {0}",
        by_file("--set", "boxes.form=thousandths"),
    ),
    Row(
        "core/matching/roles: swap the corners (--fix boxes-reversed), or",
        lambda p: [wrong.plain_voc(p), reversed_corners(p), "--set", "boxes.reversed=refuse"],
        r"\((--fix boxes-reversed)\)",
        right=lambda p: answer(["eval", p.made[1], wrong.voc_text(p)]),
    ),
    Row(
        "core/matching/roles: swap the corners (--fix boxes-reversed), or",
        lambda p: [wrong.plain_voc(p), reversed_corners(p), "--set", "boxes.reversed=refuse"],
        SET,
        "--set {0}",
        lambda p: answer(["eval", *p.made[1:3]]),
    ),
    Row(
        "core/matching/roles: ; if the file has it",
        lambda p: (
            lambda **how: detmap.evaluate(
                detmap.read_truth(wrong.occluded(p), **how),
                str(p.found),
                settings={"matching.neutral.occluded": "ignore"},
            )
        ),
        r"use (roles=\['occluded'\])",
        right=lambda p: answer(
            ["eval", wrong.occluded(p), p.found, "--set", "matching.neutral.occluded=ignore"]
        ),
    ),
    Row(
        "core/matching/subsets: the attributes are {}; read it",
        lambda p: (
            lambda **how: detmap.evaluate(
                detmap.read_truth(wrong.occluded(p), **how),
                str(p.found),
                settings={
                    "subsets": {"all": {}, "seen": {"truncation": [0, 0.5]}},
                    "metrics": ["AP"],
                },
            )
        ),
        r"read it with (attributes=\['truncation'\])",
    ),
    Row(
        "core/matching/scope: images are annotated for some classes",
        lambda p: [wrong.federated(p), p.found, "-p", "coco-bbox"],
        r"use (-p lvis)\b",
        right=lambda p: answer(["eval", p.made[1], p.found, "-p", "lvis"]),
    ),
    Row(
        "core/matching/engine: use `detmap.evaluate` or `detmap eval`",
        lambda p: lambda: detmap.match(p.truth, p.found, "scoreless"),
        r"`(detmap\.evaluate)` or `(detmap eval)`",
        lambda p, call, command: (
            eval(call)(p.truth, p.found, "scoreless").metrics["AP"]
            if "AP" in eval(call)(p.truth, p.found, "scoreless").metrics
            else next(iter(eval(call)(p.truth, p.found, "scoreless").metrics.values()))
        ),
        lambda p: answer(["eval", p.truth, p.found, "-p", "scoreless"]),
    ),
    Row(
        "core/protocol/tree: use `detmap.evaluate` or `detmap eval`, or",
        lambda p: lambda: detmap.load_protocol("scoreless").rows(),
        r"or `detmap (eval)`",
        lambda p, command: answer([command, p.truth, p.found, "-p", "scoreless"]),
        lambda p: next(iter(detmap.evaluate(p.truth, p.found, "scoreless").metrics.values())),
    ),
    Row(
        "core/overlaps/__init__: read the ground truth with read_truth(path,",
        lambda p: lambda: detmap.evaluate(*wrong.read(p.truth, p.found), "coco-segm"),
        r'(read_truth)\(path, (shapes="masks")\), and',
        lambda p, name, how: detmap.evaluate(
            *wrong.read(getattr(detmap, name)(p.truth, **eval(f"dict({how})")), p.found),
            "coco-segm",
        ),
        shape="masks",
    ),
    Row(
        "core/protocol/features: set boxes.aspect=0 and detections.margins={}",
        lambda p: lambda: assigned(p, {}),
        r"set (boxes\.aspect)=(0) and (detections\.margins)=(\{\})",
        lambda p, a, b, c, d: assigned(p, {a: eval(b), c: eval(d)}),
    ),
    *ways(
        "core/protocol/features: use {}, or set these keys",
        lambda p: ["diagnose", p.truth, p.found, "-p", "visdrone"],
        (r"use ([\w-]+)[ ,]", lambda p, name: run(*p.made[:3], "-p", name).code, 0),
        (r"`(detmap show [\w-]+)`", shown, 0),
    ),
    Row(
        LOAD + "add this key; see `detmap show",
        lambda p: [p.truth, p.found, "-p", odd_protocol(p, 'name = "mine"\n')],
        "see `(detmap show coco-bbox)`",
        like_shown,
    ),
    Row(
        LOAD + "see `detmap show coco-bbox` for an",
        lambda p: [p.truth, p.found, "-p", odd_protocol(p, "name = \n")],
        "see `(detmap show coco-bbox)`",
        like_shown,
    ),
    Row(
        LOAD + "metrics, groups; `detmap show --keys` lists",
        lambda p: [p.truth, p.found, "--set", "nothing=1"],
        "`(detmap show --keys)` lists",
        shown,
        0,
    ),
    Row(
        LOAD + "{}`detmap show` lists all",
        lambda p: [p.truth, p.found, "-p", "coco-box"],
        "did you mean '([^']*)'.*`detmap show` lists",
        lambda p, name: answer([*p.made[:4], name]),
    ),
    Row(
        LOAD + "there are {}, and {} tools:",
        lambda p: [p.truth, p.found, "-p", "zzz"],
        "see `(detmap show)`",
        shown,
        0,
    ),
    Row(
        LOAD + "{}; use override()",
        lambda p: lambda: wrong.replaced_rules(),
        r"use (override)\(\)",
        lambda p, name: detmap.evaluate(
            p.truth,
            p.found,
            getattr(detmap.load_protocol("coco-bbox"), name)({"limits.max_dets": [1, 10, 100]}),
        ),
    ),
    Row(
        "core/results/result_notes: detections have equal scores, AP depends",
        lambda p: [p.truth, level(p, 0.5)],
        "(-p scoreless)",
        right=lambda p: next(iter(detmap.evaluate(p.truth, p.found, "scoreless").metrics.values())),
    ),
    Row(
        "core/statistics/ties: {} with tied scores in the",
        lambda p: [p.truth, level(p, 0.5)],
        r"\(see (--ties)\)",
        right=lambda p: answer(["eval", p.truth, p.made[2]]),
    ),
    *ways(
        "core/statistics/gate: give a fraction from 0 to",
        lambda p: ["compare", p.truth, p.found, p.found, "--fail-if-drop", "x"],
        (r"(\.\d+), AP50=", lambda p, limit: run(*p.made[:-1], limit).code, 0),
        (r", (AP50=\.\d+)", lambda p, limit: run(*p.made[:-1], limit).code, 0),
    ),
    Row(
        "core/statistics/gate: give the largest drop to accept;",
        lambda p: ["compare", p.truth, p.found, p.found, "--require-within", "0"],
        "(--fail-if-drop 0) fails on",
        lambda p, words: run(*p.made[:4], *words.split()).code,
        0,
    ),
    Row(
        "benchmarks/crowdpose/crowd_index: take CrowdPose's own file, or set",
        lambda p: [*wrong.fourteen(p), "-p", "crowdpose"],
        r"or set (evaluation\.extra=\[\])",
        "--set {0}",
        lambda p: detmap.evaluate(*p.made[1:3], "crowdpose", settings={"evaluation.extra": []})[
            "AP"
        ],
        "keypoints",
    ),
)
