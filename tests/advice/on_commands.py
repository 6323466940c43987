"""Advices of commands about their options and arguments."""

import re
from typing import Any

import detmap
from detmap.core.streaming.merging import merge_files
from detmap.evaluate import summarize
from tests.advice import wrong_files as wrong
from tests.advice.situations import Place, Row, answer, ways
from tests.support import builders as make
from tests.support.running import run

EXPLAIN = ("--from", "coco-bbox", "--to", "voc2012")


def without(p: Place, *options: str) -> Any:
    """The command without the options that are printed."""
    return answer([word for word in p.made if word not in options])


SAMPLE = (make.SHAPES / "instances_test.json", make.SHAPES / "detections" / "contours.json")


def report(p: Place) -> list[Any]:
    return ["report", p.truth, p.found]


def linked(p: Place) -> list[Any]:
    return [*report(p), "--link", "--images", wrong.photos(p)]


def files_of(p: Place) -> list[Any]:
    return ["--truth", p.truth, "--detections", p.found]


def receipt(p: Place, *options: Any) -> Any:
    file = p.folder / "run.json"
    assert run("eval", p.truth, p.found, "--receipt", file, *options).code == 0
    return file


def two_receipts(p: Place) -> list[Any]:
    return ["--receipt", receipt(p)] * 2


def result(p: Place, name: str = "result.json") -> Any:
    assert run("eval", p.truth, p.found, "-o", p.folder / name).code == 0
    return p.folder / name


def changed_receipt(p: Place) -> Any:
    file = receipt(p)
    text = re.sub(r'"AP": 0\.\d+', '"AP": 0.9', file.read_text())
    return p.write("run.json", text)


def stale_receipt(p: Place) -> Any:
    """A receipt whose detections were replaced."""
    file = receipt(p)
    p.write("found.json", p.right.rows[::2])
    return file


def code(p: Place, words: str) -> Any:
    """The exit code of a printed command, whose words in capitals are files of the place."""
    places = {"TRUTH": p.truth, "DETECTIONS": p.found, "A": p.found, "B": p.found}
    places |= {"FILE.npz": p.folder / "a.npz", "D": p.found, "T": p.truth, "P": "voc2012"}
    words = words.removeprefix("detmap ")
    return run(*(places.get(word, word) for word in words.split())).code


ROWS = (
    Row(
        "core/base/npz_archive: give a file that `detmap match`",
        lambda p: ["merge", p.found],
        "`detmap match`",
        lambda p, _: answer(["merge", wrong.matched(p)]),
    ),
    Row(
        "cli/dispatch: `detmap compare TRUTH A B` compares",
        lambda p: ["eval", p.truth, p.found, p.found],
        "`(detmap compare TRUTH A B)`",
        code,
        0,
    ),
    Row(
        "cli/dispatch: write {} --level {}",
        lambda p: ["eval", p.truth, p.found, "--ci", "95"],
        r"write (--ci --level 0?\.95)",
        lambda p, words: answer([*p.made[:3], *words.split()]),
    ),
    Row(
        "cli/dispatch: {}`{} --help` lists the options",
        lambda p: ["eval", p.truth, p.found, "--zzz"],
        "`(detmap eval --help)` lists",
        code,
        0,
    ),
    Row(
        "cli/dispatch: write one of {}; `{} --help`",
        lambda p: ["diagnose", p.truth, p.found, "--calibration", "5"],
        "write one of (--calibration-bins)",
        lambda p, option: answer([*p.made[:3], option, p.made[4]]),
        0,
    ),
    Row(
        "cli/dispatch: write `{}{}`; `{} --help` describes it",
        lambda p: ["reproduce", p.truth],
        r"write `(detmap reproduce) NUMBER TRUTH DETECTIONS`",
        lambda p, words: code(p, f"{words} 54.7 TRUTH DETECTIONS --depth 0"),
        0,
    ),
    Row(
        "cli/dispatch: write `{} {}`; `{} --help` describes",
        lambda p: ["eval", p.truth, p.found, "--confidence"],
        "write `(--confidence) [A-Z]+`",
        lambda p, option: code(p, f"detmap eval TRUTH DETECTIONS {option} 0.5"),
        0,
    ),
    Row(
        "cli/dispatch: `{} --help` describes it",
        lambda p: ["eval", p.truth, p.found, "--digits", "x"],
        "`(detmap eval --help)` describes it",
        code,
        0,
    ),
    Row(
        "cli/dispatch: metrics have no option: `detmap eval`",
        lambda p: ["eval", p.truth, p.found, "--ap50"],
        "`(detmap eval)` prints all, (--fail-under AP50=)V tests one",
        lambda p, command, option: code(p, f"{command} TRUTH DETECTIONS {option}.5"),
        0,
    ),
    Row(
        "cli/dispatch: {} has one method: write it",
        lambda p: ["eval", p.truth, p.found, "--ci", "1000"],
        r"(--level 0\.9) sets its level",
        lambda p, words: answer([*p.made[:-1], *words.split()]),
    ),
    Row(
        "cli/dispatch: detmap: error: memory: this input does",
        lambda p: [p.truth, p.found],
        "evaluate in parts with (--memory) ",
        "{0} 3GB",
        patch={"detmap.cli.commands.eval.run": wrong.memory_error},
    ),
    Row(
        "cli/bounded_memory: remove it, or --memory",
        lambda p: [p.truth, p.found, "--memory", "3GB", "--strict"],
        "remove it, or (--memory)",
        lambda p, option: answer(p.made[:3]),
    ),
    *ways(
        "cli/options: choose another --format, or remove {}",
        lambda p: [p.truth, p.found, "--format", "json", "--digits", "3"],
        ("or remove (--digits)", lambda p, option: answer(p.made[: p.made.index(option)])),
        (
            "choose another (--format)",
            lambda p, option: run(*p.made[:3], option, "csv", "--digits", "3").code,
            0,
        ),
    ),
    Row(
        "cli/options: write key=value, as in limits.max_dets=[1,10,300]",
        lambda p: [p.truth, p.found, "--set", "limits.max_dets"],
        r"as in (\S+\])",
        lambda p, pair: answer([*p.made[:-1], pair]),
    ),
    Row(
        "cli/uncertainty_tables: add --ci",
        lambda p: [p.truth, p.found, "--level", ".9"],
        "add (--ci)",
    ),
    Row(
        "reproducibility/receipt: give a file that `detmap eval",
        lambda p: ["verify", p.truth],
        "that `(detmap eval --receipt)` wrote",
        lambda p, _: answer(["verify", receipt(p), p.truth, p.found]),
        0,
    ),
    *ways(
        "compare: give the detections, or save matches",
        lambda p: ["compare", p.truth, result(p), p.found],
        ("give the detections", lambda p, _: answer(["compare", p.truth, p.found, p.found]), 0),
        (
            r"`(detmap match \.\.\. -o FILE\.npz)`",
            lambda p, words: (
                code(p, words.replace("...", "TRUTH DETECTIONS"))
                or answer(["compare", p.truth, p.folder / "a.npz", p.found])
            ),
            0,
        ),
    ),
    Row(
        "core/streaming/merging: give the files that `detmap match`",
        lambda p: lambda: merge_files([]),
        "that `(detmap match)` wrote",
        lambda p, words: (
            code(p, f"{words} TRUTH DETECTIONS -o FILE.npz")
            or summarize(merge_files([p.folder / "a.npz"]))
        ),
    ),
    Row(
        "cli/command_output: CSV holds the table {}; --table",
        lambda p: [p.truth, p.found, "--per-class", "--format", "csv"],
        r"; (--table) has (metrics)",
        lambda p, option, name: run("eval", p.truth, p.found, option, name).code,
        0,
    ),
    Row(
        "compare: compare by rules that order each",
        lambda p: ["compare", p.truth, wrong.tied(p), p.found, "-p", "keras-retinanet"],
        "such as (-p coco-bbox)",
        lambda p, words: answer([*p.made[:4], *words.split()]),
        0,
    ),
    # --- doctor
    *ways(
        "analysis/commands/doctor: give TRUTH and DETECTIONS, TRUTH alone,",
        lambda p: ["doctor"],
        ("give (TRUTH) and (DETECTIONS)", lambda p, *_: code(p, "doctor TRUTH DETECTIONS"), 0),
        ("or (--environment)", lambda p, option: code(p, f"doctor {option}"), 0),
    ),
    Row(
        "analysis/commands/doctor: give TRUTH and DETECTIONS, or --each",
        lambda p: ["doctor", p.truth, p.truth, p.truth],
        "or (--each)",
        lambda p, option: answer([*p.made, option]),
        0,
    ),
    Row(
        "analysis/doctor/fixes: {}`detmap doctor` names the fixes that",
        lambda p: [p.truth, wrong.from_zero(p), "--fix", "class-contiguous"],
        "did you mean '(.*?)'",
        lambda p, name: answer(["eval", p.truth, wrong.from_zero(p), "--fix", name]),
    ),
    Row(
        "analysis/doctor/fixes: remove --fix {}; without a finding",
        lambda p: [p.truth, p.found, "--fix", "classes-as-text"],
        "(remove) --fix classes-as-text",
        lambda p, *_: answer(["eval", p.truth, p.found]),
    ),
    Row(
        "analysis/doctor/fixes: remove --fix {}: these boxes do",
        lambda p: [p.truth, p.found, "--fix", "boxes-xyxy"],
        "(remove) --fix boxes-xyxy",
        lambda p, *_: answer(["eval", p.truth, p.found]),
    ),
    Row(
        "analysis/commands/diagnose: use --iou",
        lambda p: ["diagnose", p.truth, p.found, "--set", "iou.thresholds=[0.6]"],
        "use (--iou)",
        lambda p, option: answer([*p.made[:3], option, ".6"]),
        0,
    ),
    Row(
        "analysis/report: no images were found{}; --images DIR",
        lambda p: [*report(p), "-o", p.folder / "r.html"],
        "(--images) DIR",
        lambda p, option: answer([*p.made, option, wrong.photos(p)]),
        0,
    ),
    Row(
        "analysis/html_report/image_files: check --images",
        lambda p: [*report(p), "-o", p.folder / "r.html", "--images", p.folder / "none"],
        "check (--images)",
        lambda p, option: answer([*p.made[: p.made.index(option) + 1], wrong.photos(p)]),
        0,
    ),
    Row(
        "analysis/report: --image-size has no effect with --link",
        lambda p: [*linked(p), "--image-size", "300", "-o", p.folder / "out"],
        "(--image-size) has no effect with (--link)",
        lambda p, one, other: without(p, other),
        0,
    ),
    Row(
        "core/output/__init__: ; `detmap report` writes HTML and",
        lambda p: [p.truth, p.found, "-o", p.folder / "a.html"],
        "; `(detmap report)` writes HTML",
        lambda p, words: answer([words.split()[1], *p.made[1:]]),
        0,
    ),
    # --- receipts, explanations
    *ways(
        "reproducibility/commands/cite: `detmap verify` lists the values; write",
        lambda p: ["cite", changed_receipt(p)],
        (
            "`(detmap verify)` lists",
            lambda p, words: run(words.split()[1], p.made[1], p.truth, p.found).code,
            1,
        ),
        ("write the receipt again", lambda p, _: answer(["cite", receipt(p), *files_of(p)]), 0),
    ),
    *ways(
        "reproducibility/commands/cite: `detmap verify` lists the differences; --unverified",
        lambda p: ["cite", stale_receipt(p), *files_of(p)],
        (
            "`(detmap verify)` lists",
            lambda p, words: run(words.split()[1], p.made[1], p.truth, p.found).code,
            1,
        ),
        ("(--unverified) cites", lambda p, option: answer([*p.made, option]), 0),
    ),
    Row(
        "reproducibility/commands/cite: {}; or cite --unverified",
        lambda p: ["cite", wrong.moved(p, receipt(p))],
        "or cite (--unverified)",
        lambda p, option: answer([*p.made, option]),
        0,
    ),
    Row(
        "reproducibility/commands/explain: give --to P, --other-truth T, --other-detections",
        lambda p: ["explain", p.truth, p.found],
        "give (--to P), (--other-truth T), (--other-detections D)",
        lambda p, to, truth, found: sum(
            code(p, f"explain TRUTH DETECTIONS {words}") for words in (to, truth, found)
        ),
        0,
    ),
    Row(
        "reproducibility/commands/explain: note: the files share few detections;",
        lambda p: ["explain", p.truth, p.found, "--other-detections", wrong.other_detector(p)],
        "use `(detmap compare)`",
        lambda p, words: answer(["compare", *p.made[1:3], p.made[4]]),
        0,
    ),
    Row(
        "reproducibility/commands/explain: conflicts with --from",
        lambda p: ["explain", p.truth, p.found, *EXPLAIN, "-p", "coco-bbox"],
        "(-p): conflicts with (--from).*give one of the two",
        lambda p, *_: answer(p.made[:-2]),
        0,
    ),
    Row(
        "reproducibility/commands/explained_records: give two of them, or TRUTH",
        lambda p: ["explain", receipt(p), p.found],
        "or (TRUTH DETECTIONS --receipt) FILE",
        lambda p, words: run(*code_words(p, f"explain {words}"), p.made[1]).code,
        0,
    ),
    Row(
        "reproducibility/commands/explained_records: remove -p and --set",
        lambda p: ["explain", p.truth, p.found, *two_receipts(p), "-p", "voc2012"],
        "remove (-p) and (--set)",
        lambda p, *_: answer(p.made[:-2]),
        0,
    ),
    Row(
        "reproducibility/commands/published: give --truth and --detections",
        lambda p: ["published", "yolov2-voc", "--truth", p.truth],
        "give (--truth) and (--detections)",
        lambda p, *options: {*options} <= {*run("published", "--help").out.split()},
        True,
    ),
    Row(
        "reproducibility/commands/reproduce: note: `detmap doctor` checks the files",
        lambda p: ["reproduce", "12.34", p.truth, p.found, "--depth", "0"],
        "`(detmap doctor)` checks",
        lambda p, words: code(p, f"{words} TRUTH DETECTIONS"),
        0,
    ),
    Row(
        "reproducibility/explaining/__init__: give end=, other_truth= or other_detections=",
        lambda p: lambda **how: detmap.explain(p.truth, p.found, **how).after,
        "give (end)=",
        '{0}="voc2012"',
        lambda p: detmap.evaluate(p.truth, p.found, "voc2012")["mAP"],
    ),
    Row(
        "reproducibility/explaining/records: give what `detmap eval --format json`",
        lambda p: ["explain", result(p), p.write("no.json", {"metrics": {}, "signature": ""})],
        "what `(detmap eval --format json)` or `--receipt` wrote",
        lambda p, _: answer(["explain", p.made[1], result(p, "other.json")]),
        0,
    ),
    Row(
        "reproducibility/reproducing/printed_numbers: the number is first: `detmap reproduce",
        lambda p: ["reproduce", p.truth, p.found, "54.7"],
        "`(detmap reproduce) 72.1 (TRUTH DETECTIONS)`",
        lambda p, command, files: code(p, f"{command} 54.7 {files} --depth 0"),
        0,
    ),
    Row(
        "benchmarks/suites/suite_result: add the files; --allow-missing leaves such",
        lambda p: ["suite", wrong.suite(p)],
        "(--allow-missing) leaves",
        lambda p, option: answer([*p.made, option]),
        0,
    ),
    Row(
        "analysis/browse/pictures: {} of {} images are copied,",
        lambda p: [*report(p), "--images", wrong.photos(p), "-o", p.folder / "out"],
        r"\((--link) shows all\)",
        lambda p, option: wrong.pictures(p, [*p.made, option]),
        24,
        patch={"detmap.analysis.browse.pictures.MOST_COPIES": 1},
    ),
    Row(
        "analysis/html_report/report_tables: The page lists the {} classes",
        lambda p: lambda: wrong.page(p),
        r"`detmap eval (--table classes -o classes\.csv)` writes all",
        lambda p, words: wrong.rows_of_classes(p, words),
        3,
        patch={"detmap.analysis.html_report.gather.MOST_CLASSES": 1},
    ),
    Row(
        "core/statistics/verdict: {} of {} has no interval",
        lambda p: ["compare", *SAMPLE, SAMPLE[1].with_stem("template"), "-p", "voc2007"],
        "AP of 6 classes has no interval .*: see (--table classes)",
        lambda p, words: run(*p.made, *words.split()).out.split().count("AP*"),
        5,
    ),
    Row(
        "reproducibility/reproducing/search: {} more by {}: see --format",
        lambda p: ["reproduce", "60", *SAMPLE, "--depth", "0"],
        "(8) more by named: see (--format json)",
        lambda p, more, words: (
            wrong.listed_in(run(*p.made, *words.split()).out, "named") > int(more)
        ),
        True,
    ),
    Row(
        "core/statistics/evaluations: --set ap.integrator",
        lambda p: ["eval", *SAMPLE, "-p", "voc2007", "--ci", "--per-class"],
        r"(--set ap\.integrator=all_points)",
        lambda p, words: "all-point rule" in run(*p.made, *words.split()).err,
        False,
    ),
    Row(
        "reproducibility/parity/run_tool: undo patch_pycocotools() first",
        lambda p: lambda: wrong.while_patched(p),
        r"undo (patch_pycocotools)\(\) first",
        lambda p, _: run("parity", p.truth, p.found, "--with", "pycocotools").code,
        0,
    ),
    Row(
        "analysis/commands/doctor_consultation: note: doctor: no time for: {};",
        lambda p: ["eval", p.truth, p.changed(wrong.to_corners)],
        "`(detmap doctor)` checks everything",
        lambda p, words: run(words.split()[1], *p.made[1:]).out.count("boxes-xyxy"),
        2,
        patch={"detmap.analysis.doctor.Clock": wrong.no_time},
    ),
)


def code_words(p: Place, words: str) -> list[Any]:
    places = {"TRUTH": p.truth, "DETECTIONS": p.found}
    return [places.get(word, word) for word in words.split()]
