"""Drawn options and files through the command line, and now and then through a real process.

Every word comes with what is known of it: fine, wrong, or unknown. A command of fine words must
end with 0 and a result; one with a wrong word with 2 and a message; any with a message instead of
a traceback, with its inputs as they were and its output whole or untouched.
"""

import contextlib
import hashlib
import io
import os
import random
import subprocess
import sys
from pathlib import Path

from detmap.cli import main
from tests.support import builders as make
from tools.fuzzing._files import scratch

FINE, WRONG, UNKNOWN = "fine", "wrong", "unknown"
COUNTS = dict.fromkeys(("exit 0", "exit 1", "exit 2", "as a process"), 0)
PROCESS = 400  # one case of so many is a real process, too
Word = tuple[str, tuple[str, ...]]  # what is known of it, and the words that it stands for

ROOT = Path("input")
INPUTS: dict[str, str] = {}

PIECES = (
    *("0", "-1", "1", "1e999", "nan", "inf", "-inf", "9" * 5000, "0x10", "1_0", "\u0665", "", " "),
    *("[", "]", "[" * 3000, "{}", "{a=1}", '"', "'", "\\", "\0", "\n", "\udcff", "=", ",", ":"),
    *("true", "null", "2020-01-01", "..", "/", "~", "%s", "{0}", "$HOME", "--", "-", "\u202e"),
)
SETTINGS: tuple[Word, ...] = (
    (FINE, ("limits.max_dets=[1,10,300]",)),
    (FINE, ("limits.max_dets=7",)),
    (FINE, ("iou.thresholds=0.5:0.25:0.75",)),
    (FINE, ("iou.thresholds=[0.5]",)),
    (FINE, ("mean.undefined=zero",)),
    (FINE, ("ap.integrator=step",)),
    (FINE, (" ap.integrator = all_points ",)),
    *((WRONG, (text,)) for text in ("", "=", "x", "x=1", "limits=1", "limits.max_dets.x=1")),
    *((WRONG, (text,)) for text in ("name=x", "version=2", "=1", "..=1", "limits.=1", ".x=1")),
    *((WRONG, (f"limits.max_dets={x}",)) for x in ("9" * 5000, "-1", "nan", "[" * 5000, "[0]")),
    *((WRONG, (f"iou.thresholds={x}",)) for x in ("nan", "0.5:inf:1", "0.5:0:1", "2", "9" * 5000)),
    *((WRONG, (f"{x}=1",)) for x in ("\0", "\udcff", '"iou"', "a" * 9999, "\n", "metrics")),
    (WRONG, ('metrics=["AP\u0665\u0660"]',)),
    (WRONG, ("iou.thresholds=0:1e-9:1",)),
)
NUMBERS: tuple[Word, ...] = (
    *((FINE, (text,)) for text in ("1", "2", "8")),
    *((WRONG, (text,)) for text in ("0", "-1", "1.5", "", "x", "nan", "1" + "0" * 30, "9" * 5000)),
    *((WRONG, (text,)) for text in ("\u0665", "1_0", "+1", " 1", "1e3")),
)
PLACES: tuple[str, ...] = (
    *("", "no/such/file", ".", "input", "fifo", "loop", "/dev/null", "/dev/zero", "x" * 5000),
    *("a\0b", "\udcff", "~", "input/broken.json", "input/empty", "input/deep.json"),
    "input/own.toml",
)


def prepare() -> None:
    """The inputs, in a working folder of its own."""
    os.chdir(scratch("."))
    ROOT.mkdir(exist_ok=True)
    make.write(ROOT / "gt.json", make.instances())
    make.write(ROOT / "dt.json", [make.detection()])
    make.write(ROOT / "truth.csv", "id,cat,dog\na,1,0\nb,0,1\nc,1,1\n")
    make.write(ROOT / "scores.csv", "id,cat,dog\na,0.9,0.1\nb,0.8,0.3\nc,0.1,0.5\n")
    make.write(ROOT / "images.txt", "1\n")
    make.write(ROOT / "broken.json", '{"images": [')
    make.write(ROOT / "deep.json", "[" * 100_000)
    make.write(ROOT / "empty", "")
    make.write(ROOT / "many_digits.toml", f"version = {'9' * 5000}")
    make.write(ROOT / "deep.toml", f"version = {'[' * 5000}")
    make.write(ROOT / "nul.toml", "name = \0")
    text = (make.ROOT / "configs" / "coco-bbox.toml").read_text(encoding="utf-8")
    make.write(ROOT / "own.toml", text)
    make.write_voc(ROOT / "VOC2007")
    make.write_voc_text(ROOT / "text")
    part = str(ROOT / "part.npz")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["match", str(ROOT / "gt.json"), str(ROOT / "dt.json"), "-o", part]) == 0
    os.mkfifo("fifo")
    Path("loop").symlink_to("loop")
    INPUTS.update(digests())


def digests() -> dict[str, str]:
    """What the inputs hold."""
    files = (path for path in sorted(ROOT.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def case(seed: int) -> str | None:
    """Run one drawn command."""
    rng = random.Random(seed)
    known, words, output = draw(rng)
    if output is not None:
        output.unlink(missing_ok=True)
        if old := rng.random() < 0.5:
            output.write_text("old")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    COUNTS[f"exit {code}"] = COUNTS.get(f"exit {code}", 0) + 1
    said = f"{shown(words)} -> {code}: {err.getvalue()[-300:]!r}"
    if code not in (0, 1, 2) or "Traceback" in err.getvalue() or "internal error" in err.getvalue():
        return said
    if code == 2 and (out.getvalue() or not err.getvalue()):
        return f"{said}, and on stdout {out.getvalue()[:100]!r}"
    if known == WRONG and code != 2:
        return f"wrong, but accepted: {said}"
    if known == FINE and code == 2:
        return f"fine, but refused: {said}"
    if output is not None and "--help" not in words:
        content = output.read_bytes() if output.is_file() else None
        before = b"old" if old else None
        if (content == before) != (code == 2) or content == b"":
            return f"{said}, and the output holds {content[:50] if content else content!r}"
    if list(Path().glob(".detmap-*")) or digests() != INPUTS:
        return f"drafts stay or inputs changed: {said}"
    if seed % PROCESS == 0 and not any("\0" in word or len(word) > 100_000 for word in words):
        return as_process(words, code, out.getvalue())
    return None


def as_process(words: list[str], code: int, out: str) -> str | None:
    """Whether a process of its own gives the same."""
    COUNTS["as a process"] += 1
    done = subprocess.run(
        [sys.executable, "-m", "detmap", *words],
        env={**os.environ, "PYTHONPATH": str(make.ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    err = done.stderr.decode(errors="replace")
    if done.returncode != code or "Traceback" in err or "internal error" in err:
        return f"as a process {shown(words)} -> {done.returncode}, not {code}: {err[-300:]!r}"
    expected = out.encode("utf-8", "backslashreplace")
    if words[0] not in ("parity", "--help") and done.stdout != expected and "--help" not in words:
        return f"as a process {shown(words)} printed {done.stdout[:200]!r}"
    return None


def shown(words: list[str]) -> str:
    """A command line for a report."""
    return " ".join(ascii(word) if len(word) < 80 else f"{word[:20]!a}*" for word in words)


# --- drawing --------------------------------------------------------------------------------------


def draw(rng: random.Random) -> tuple[str, list[str], Path | None]:
    """A command: what is known of it, its words, and the file that it writes."""
    command = rng.choice(("eval", "eval", "eval", "match", "merge", "rank", "parity", "show"))
    drawn = [option(rng, command) for _ in range(rng.choice((0, 0, 1, 1, 2, 4)))]
    drawn = list({name_of(word): word for word in drawn}.values())  # of two the last would count
    output = None
    if command == "match" or (rng.random() < 0.3 and "--output" not in map(name_of, drawn)):
        output = Path(f"out-{rng.randrange(3)}")
        drawn.append((FINE, ("-o", str(output))))
    given = [place(rng, fine) for fine in INPUTS_OF[command]]
    if command == "show" and rng.random() < 0.5:
        given = [place(rng, ("coco-bbox", "voc2007"))]
    words = [word for _, part in (*given, *drawn) for word in part]
    words = [word.replace("FIRST INPUT", words[0]) for word in words]
    known = {what for what, _ in (*given, *drawn)}
    if rng.random() < 0.02:
        words.insert(rng.randrange(len(words) + 1), rng.choice(PIECES))
        known.add(UNKNOWN)
    verdict = WRONG if WRONG in known else UNKNOWN if UNKNOWN in known else FINE
    if WRONG in known and UNKNOWN in known:
        verdict = UNKNOWN  # --help, for one, comes before all that is wrong
    if verdict == FINE and clashing(words):
        verdict = UNKNOWN
    return verdict, [command, *words], output


INPUTS_OF: dict[str, tuple[tuple[str, ...], ...]] = {
    "eval": ((f"{ROOT}/gt.json", f"{ROOT}/VOC2007"), (f"{ROOT}/dt.json", f"{ROOT}/text")),
    "match": ((f"{ROOT}/gt.json",), (f"{ROOT}/dt.json",)),
    "parity": ((f"{ROOT}/gt.json",), (f"{ROOT}/dt.json",)),
    "merge": ((f"{ROOT}/part.npz",),),
    "rank": ((f"{ROOT}/truth.csv",), (f"{ROOT}/scores.csv",)),
    "show": (),
}
OWN: dict[str, tuple[str, ...]] = {
    "eval": ("--set", "-p", "--threads", "--format", "--iou", "flag", "-o", "--help"),
    "match": ("--set", "-p", "--images", "--help"),
    "parity": ("--set", "-o"),
    "merge": ("--format", "--iou", "flag", "-o"),
    "rank": ("--threads", "--k", "--threshold", "--format", "-o", "--plot"),
    "show": ("--format", "-o"),
}


def name_of(word: Word) -> str:
    """The option of a word."""
    return word[1][0].partition("=")[0]


def place(rng: random.Random, fine: tuple[str, ...]) -> Word:
    """An input: nearly always a good one."""
    if rng.random() < 0.9:
        return FINE if len(fine) == 1 else UNKNOWN, (rng.choice(fine),)
    return UNKNOWN, (rng.choice(PLACES),)


NO_PROTOCOL = ("", "/dev/zero", "./fifo", ".")
NO_PROTOCOL += tuple(f"{ROOT}/{name}.toml" for name in ("many_digits", "deep", "nul", "missing"))
NO_OUTPUT = ("", ".", "/dev/full", "/dev/null", "fifo", "loop", "no/such/x", "a\0b", "x" * 5000)
VALUES: dict[str, dict[str, tuple[str, ...]]] = {
    "--protocol": {FINE: ("coco-bbox", "voc2007", f"{ROOT}/own.toml"), WRONG: NO_PROTOCOL},
    "--format": {FINE: ("table", "csv", "markdown"), WRONG: ("json5", "", "TABLE", "\0")},
    "--iou": {FINE: ("0.5",), WRONG: ("nan", "inf", "-1", "0.51", "x", "", "9" * 5000)},
    "--threshold": {UNKNOWN: ("0.5", "nan", "inf", "-inf", "1e999", "x")},
    "--images": {FINE: (f"{ROOT}/images.txt",), UNKNOWN: (*PLACES[:8], f"{ROOT}/gt.json")},
    "--plot": {WRONG: ("", "x", ".", "x.docx", f"{ROOT}/truth.csv")},
    "--output": {WRONG: (*NO_OUTPUT, "FIRST INPUT")},
}
"""Values of an option by what is known of them."""
LONG = {"-p": "--protocol", "-o": "--output"}


def option(rng: random.Random, command: str) -> Word:
    """An option of a command with its value."""
    name = rng.choice(OWN[command])
    if name == "flag":
        return FINE, (rng.choice(("--per-class", "--integrators", "--percent")),)
    if name == "--help":
        return UNKNOWN, ("--help",)
    if rng.random() < 0.1:
        text = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 3)))
        return UNKNOWN, (f"{name}={text}" if name.startswith("--") else f"{name}{text}",)
    if name in ("--set", "--threads", "--k"):
        known, (text,) = rng.choice(SETTINGS if name == "--set" else NUMBERS)
        if command == "parity" and known == FINE:
            known = UNKNOWN  # pycocotools has few settings
        return known, (f"{name}={text}",)
    name = LONG.get(name, name)
    known = rng.choice(list(VALUES[name]))
    values = NO_OUTPUT if command == "show" and name == "--output" else VALUES[name][known]
    return known, (f"{name}={rng.choice(values)}",)


def clashing(words: list[str]) -> bool:
    """Whether fine options need not be fine together: --iou with thresholds or a protocol of
    one.
    """
    text = " ".join(words)
    return "--iou" in text and ("--set" in text or "--protocol" in text)
