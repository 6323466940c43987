"""Fuzz detmap: drawn cases of a target, each run where a crash or a hang can be counted.

    python tools/fuzz.py coco --cases 5000            # one target
    python tools/fuzz.py all --cases 20000 --seed 7   # every module of tools/fuzzing
    python tools/fuzz.py coco --seed 4711 --cases 1   # one case again

A target is a module with ``case(seed: int) -> str | None``: None where all is well, else what is
wrong. It may have ``prepare()``, called before the first case without a time limit, and
``COUNTS``, a dict of numbers that is printed beside the verdict (what the cases reached).

Cases run in child processes. Counted, each with its seed: a child that dies (crash), a case that
takes longer than the limit twice (hang: once may be the compiler, or a busy machine), an
exception (traceback), a text (wrong). Case k has the seed S + k. Exit code 1 if anything was found.
"""

import argparse
import contextlib
import importlib.util
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ROOT / "tools" / "fuzzing"
KINDS = {"crash": "crashes", "hang": "hangs", "traceback": "tracebacks", "wrong": "wrong"}
CASES = 5000
LIMIT = 10.0  # seconds that a case may take
PREPARING = 300.0  # seconds that a child may take before its first case
BATCH = 2000  # cases of one child at most: what leaks, leaks not for long
MEMORY = 6 << 30  # bytes that a child may allocate: one that eats the machine gets a MemoryError
ENOUGH = 100  # findings after which a target is given up
SHOWN = 20  # findings that are printed
BOARD = struct.Struct("qdq")  # of a child: seed in progress, when it began, cases done


# --- the child ------------------------------------------------------------------------------------


def child(target: str, first: int, cases: int, board: str, findings: str) -> None:
    """Run the cases of a batch; what is found goes into a file, the seed in progress on the
    board.
    """
    import faulthandler

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    sys.path.insert(0, str(ROOT))
    with open(board, "r+b") as file:
        shared = mmap.mmap(file.fileno(), BOARD.size)
    out = os.open(findings, os.O_WRONLY | os.O_APPEND)

    def report(**row: object) -> None:
        os.write(out, json.dumps(row).encode() + b"\n")

    module = load(target)
    if hasattr(module, "prepare"):
        module.prepare()
    done = 0
    for seed in range(first, first + cases):
        BOARD.pack_into(shared, 0, seed, time.monotonic(), done)
        try:
            wrong = module.case(seed)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
            report(kind="traceback", seed=seed, text=f"{text} ({place.filename}:{place.lineno})")
        else:
            if wrong is not None:
                report(kind="wrong", seed=seed, text=wrong)
        done += 1
    BOARD.pack_into(shared, 0, first + cases, 0.0, done)
    report(counts=getattr(module, "COUNTS", {}))


def load(target: str) -> ModuleType:
    """The module of a target: one of tools/fuzzing, or a file by its path."""
    path = path_of(target)
    spec = importlib.util.spec_from_file_location(f"fuzzing_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def path_of(target: str) -> Path:
    return Path(target) if target.endswith(".py") else TARGETS / f"{target}.py"


# --- the parent -----------------------------------------------------------------------------------


@dataclass
class Tally:
    """What is known of a target so far; filled by the threads that look after the children."""

    target: str
    first: int
    cases: int
    until: float
    limit: float
    begun: int = 0
    done: int = 0
    findings: list[tuple[str, int, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, size: int) -> tuple[int, int]:
        """The first seed and the number of cases of the next batch."""
        with self.lock:
            n = min(size, self.cases - self.begun)
            if time.monotonic() > self.until or len(self.findings) >= ENOUGH:
                n = 0
            self.begun += n
            return self.first + self.begun - n, n

    def add(self, kind: str, seed: int, text: str) -> None:
        with self.lock:
            self.findings.append((kind, seed, text))


def run_batch(tally: Tally, first: int, cases: int) -> None:
    """Have a batch run to its end, in as many children as that takes."""
    slow: int | None = None  # the seed that has taken too long once
    while cases > 0 and time.monotonic() < tally.until:
        reached, ended = run_child(tally, first, cases)
        if ended is None:
            return
        kind, text = ended
        if kind == "time":  # of the whole run
            return
        if kind == "hang" and reached != slow:
            slow, cases, first = reached, cases - (reached - first), reached
            continue
        tally.add(kind, reached, text)
        with tally.lock:
            tally.done += 1
        cases, first = cases - (reached - first) - 1, reached + 1


def run_child(tally: Tally, first: int, cases: int) -> tuple[int, tuple[str, str] | None]:
    """Run one child; the seed that it reached, and how it ended unless it came to its end."""
    with tempfile.TemporaryDirectory(prefix="detmap-fuzz-") as name:
        folder = Path(name)
        board, findings, said = folder / "board", folder / "findings", folder / "stderr"
        board.write_bytes(BOARD.pack(first, time.monotonic() + PREPARING, 0))
        findings.touch()
        (folder / "tmp").mkdir()
        words = [tally.target, str(first), str(cases), str(board), str(findings)]
        with open(said, "wb") as stderr, open(board, "r+b") as file:
            process = subprocess.Popen(
                [sys.executable, __file__, "--child", *words],
                cwd=folder / "tmp",
                env={**os.environ, "TMPDIR": str(folder / "tmp")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
            shared = mmap.mmap(file.fileno(), BOARD.size)
            try:
                ended = watch(process, shared, tally)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # what the cases have started, too
                process.wait()
            seed, _, done = BOARD.unpack(shared)
        with tally.lock:
            tally.done += done
        for line in findings.read_text().splitlines():
            row = json.loads(line)
            if "counts" in row:
                with tally.lock:
                    tally.counts.update(row["counts"])
            else:
                tally.add(row["kind"], row["seed"], row["text"])
        if ended is not None and ended[0] in ("crash", "hang"):
            ended = ended[0], f"{ended[1]}{last_place(said)}"
        return seed, ended


def watch(
    process: subprocess.Popen[bytes], shared: mmap.mmap, tally: Tally
) -> tuple[str, str] | None:
    """Wait for a child; how it ended, None if well."""
    while True:
        try:
            code = process.wait(0.05)
        except subprocess.TimeoutExpired:
            _, begin, _ = BOARD.unpack(shared)
            if begin and time.monotonic() - begin > tally.limit:
                process.send_signal(signal.SIGABRT)  # faulthandler says where it is
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1)
                return "hang", f"longer than {tally.limit:g} s"
            if time.monotonic() > tally.until:
                return "time", ""
            continue
        if code == 0:
            return None
        return "crash", signal.Signals(-code).name if code < 0 else f"the process ended with {code}"


def last_place(said: Path) -> str:
    """Where a child was when it died, as far as its stderr tells."""
    lines = said.read_text(errors="replace").splitlines()
    places = [line.strip() for line in lines if line.lstrip().startswith("File ")]
    dumped = any(line.startswith(("Fatal Python error", "Current thread")) for line in lines)
    if dumped and places:
        start = next((i for i, line in enumerate(lines) if line.startswith("Current thread")), 0)
        place = next((line.strip() for line in lines[start:] if "File " in line), places[0])
        return f" ({place})"
    return f" ({lines[-1]})" if lines else ""


def fuzz(target: str, arguments: argparse.Namespace) -> Tally:
    """Run the cases of one target and print its findings and its verdict."""
    begin = time.monotonic()
    cases = arguments.cases or (CASES if arguments.seconds is None else sys.maxsize)
    until = begin + (arguments.seconds or float("inf"))
    tally = Tally(target, arguments.seed, cases, until, arguments.limit)
    size = max(1, min(BATCH, -(-cases // (2 * arguments.jobs))))

    def work() -> None:
        while True:
            first, n = tally.take(size)
            if not n:
                return
            run_batch(tally, first, n)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(arguments.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for kind, seed, text in sorted(tally.findings, key=lambda row: row[1])[:SHOWN]:
        print(f"{path_of(target).stem}: seed {seed}: {kind}: {text}")
    name = path_of(target).stem
    print(verdict(name, tally.done, tally.findings, arguments.seed, time.monotonic() - begin))
    if tally.counts:
        reached = ", ".join(f"{name} {n:,}" for name, n in sorted(tally.counts.items()))
        print(f"  reached: {reached}")
    if len(tally.findings) >= ENOUGH:
        print(f"  given up after {len(tally.findings)} findings")
    sys.stdout.flush()
    return tally


def verdict(
    name: str, cases: int, findings: list[tuple[str, int, str]], seed: int, seconds: float
) -> str:
    """One line: how many cases, and how many of each kind of finding."""
    found = Counter(kind for kind, _, _ in findings)
    numbers = ", ".join(f"{found[kind]} {plural}" for kind, plural in KINDS.items())
    return f"{name}: {cases:,} cases, {numbers} (seed {seed}, {seconds:.0f} s)"


def main() -> int:
    """Run the targets; the total, where there are several."""
    names = sorted(path.stem for path in TARGETS.glob("[a-z]*.py"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="+", metavar="TARGET", help=f"all, {', '.join(names)}")
    parser.add_argument("--cases", type=int, help=f"of each target (default {CASES})")
    parser.add_argument("--seed", type=int, default=0, help="of the first case (default 0)")
    parser.add_argument("--seconds", type=float, help="for each target at most")
    parser.add_argument("--jobs", type=int, default=2, help="children at once (default 2)")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help=f"seconds of a case (default {LIMIT:g})"
    )
    arguments = parser.parse_args()
    targets = names if "all" in arguments.targets else arguments.targets
    for target in targets:
        if not path_of(target).is_file():
            parser.error(f"no target {target!r}: choose from all, {', '.join(names)}")
    begin = time.monotonic()
    tallies = [fuzz(target, arguments) for target in targets]
    findings = [row for tally in tallies for row in tally.findings]
    if len(tallies) > 1:
        total = sum(tally.done for tally in tallies)
        print(verdict("total", total, findings, arguments.seed, time.monotonic() - begin))
    return 1 if findings else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        target, first, cases, board, findings = sys.argv[2:]
        child(target, int(first), int(cases), board, findings)
    else:
        sys.exit(main())
