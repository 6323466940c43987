"""Measure detmap and its peers: how long, how much memory, and whether the numbers are the same.

    pip install -e '.[bench]'
    python tools/bench.py                                   # W1, every job of a workload
    python tools/bench.py W1 W2 --only files arrays --runs 7
    python tools/bench.py W1 W2 W3 W4 lvis --runs 3 --readme  # the tables of docs/performance.md
    python tools/bench.py small linear batches voc lvis

| job of a workload | |
|---|---|
| files | from two files to the twelve numbers, second call in a process |
| arrays | truth loaded, detections in arrays, to the twelve numbers, second call in a process |
| process | from the start of Python to its end, files to numbers, and the most memory it held |
| cold | detmap: the same process with an empty cache of machine code |
| segm | masks, 20 an image, from two files to the twelve numbers (only where --only names it) |
| keypoints | 17 points, 20 people an image, from two files to the ten numbers (as segm) |
| threads | detmap: from tables to numbers with 1, 2 and 4 threads |

| other job | |
|---|---|
| linear | 1, 2, 4 and 8 million detections with W1's statistics, beside the peers |
| small | two files of 236 kB, 50 calls in a process |
| voc | detmap: VOC 2007 test, XML and text to mAP |
| batches | W1 in 313 batches of 16: the peers that stream, and torchmetrics' backends |
| lvis | 5,000 images, 1,203 classes, 300 boxes an image, beside the peers that evaluate LVIS |

Every run is a process of its own (`bench_jobs.py`); the tools take turns, and the median of the
runs is shown with half of their range. All tools get the same
processors and threads. A time counts only if the numbers are those of the reference: of
pycocotools' last run on the same files, which is kept beside them; where it never ran, of the first
tool, and the report says so. How each tool is called stands in `peers.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import select
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lvis_peers
from peers import BY_NAME, PEERS, Peer

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "detmap-bench"
DATA = HERE.parents[1] / "shared" / "data"
PAGE = HERE.parent / "docs" / "performance.md"
MARKS = "<!-- bench:begin -->", "<!-- bench:end -->"
LARGE = ("W2", "W4")
LVIS_QUARTER = 1_500_000
LINEAR = (1_000_000, 2_000_000, 4_000_000, 8_000_000)
SECOND = {"call": "files to numbers, second call", "cpu": "the same, processor time"}
THREADS = ("RAYON", "OMP", "OPENBLAS", "MKL", "NUMBA", "ARROW")  # ..._NUM_THREADS
CACHES = ("NUMBA_CACHE_DIR",)
KINDS = {"seconds": ("call", "median"), "cpu": ("cpu", "median cpu")}
BYTES = ("rss",)  # values in bytes; all others are seconds

Task = dict[str, Any]
Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """Some tools at one job on one set of data.

    Parameters
    ----------
    table : under which it is shown
    data : name of the workload
    label : of the job, in progress
    tasks : column to what its process is told; the first is the reference where there is no other
    shows : value of a run to its meaning: `call` (the last one), `median` (of the calls), `cpu` and
        `median cpu` (their processor time), `process`, `rss`, or what the job measures besides
    tolerance : within which all numbers must be the reference's
    """

    table: str
    data: str
    label: str
    tasks: dict[str, Task]
    shows: dict[str, str]
    tolerance: float = 1e-9


# --- the table of jobs ----------------------------------------------------------------------------


def compared(
    bench: Bench, name: str, job: str, calls: int, shows: dict[str, str]
) -> Iterator[Line]:
    """Every peer on one workload."""
    files = bench.workload(name)
    wanted = [p for p in bench.peers if bench.options.slow or not (p.slow and name in LARGE)]
    tasks = {p.name: {**files, "tool": p.name, "job": job, "calls": calls} for p in wanted}
    bench.warm_up(files)
    yield Line("Time and memory", name, job, tasks, shows)


def files_job(bench: Bench, name: str) -> Iterator[Line]:
    return compared(bench, name, "files", 2, SECOND)


def arrays_job(bench: Bench, name: str) -> Iterator[Line]:
    return compared(bench, name, "arrays", 2, {"call": "arrays to numbers, second call"})


def process_job(bench: Bench, name: str) -> Iterator[Line]:
    shows = {"process": "whole process", "rss": "peak memory of the process"}
    return compared(bench, name, "files", 1, shows)


def shapes_job(bench: Bench, name: str, kind: str) -> Iterator[Line]:
    files = bench.workload(name, masks=20, keypoints=20)
    shapes = {"truth": files["people"], "detections": files["keypoints"]}
    files |= {"detections": files["masks"]} if kind == "segm" else shapes
    wanted = [p.name for p in bench.peers if kind in p.kinds]
    task = {**files, "kind": kind, "job": "files", "calls": 2}
    bench.warm_up({**files, "kind": kind})
    tasks = {name: {**task, "tool": name} for name in wanted}
    shows = {**SECOND, "rss": "peak memory of the process"}
    what = {"segm": "masks", "keypoints": "keypoints"}[kind]
    yield Line("Masks and keypoints, 20 an image", f"{name} {what}", kind, tasks, shows)


def cold_job(bench: Bench, name: str) -> Iterator[Line]:
    task = {**bench.workload(name), "job": "files", "calls": 1, "cold": True}
    shows = {"process": "whole process, empty cache of machine code"}
    yield Line("detmap alone: cold", name, "cold", {"detmap": task}, shows)


def threads_job(bench: Bench, name: str) -> Iterator[Line]:
    files = bench.workload(name)
    bench.warm_up(files)
    tasks = {
        f"{n} thread{'s' * (n > 1)}": {**files, "job": "tables", "calls": 2, "threads": n}
        for n in (1, 2, 4)
    }
    shows = {"call": "tables to numbers, second call"}
    yield Line("detmap alone: threads", name, "threads", tasks, shows, tolerance=0.0)


def linear_job(bench: Bench) -> Iterator[Line]:
    wanted = [p for p in bench.peers if bench.options.slow or not p.slow]
    for n in LINEAR:
        files = {**bench.workload("W1", n), "job": "files", "calls": 2}
        bench.warm_up(files)
        tasks = {p.name: {**files, "tool": p.name} for p in wanted}
        shows = {**SECOND, "rss": "peak memory of the process"}
        yield Line("More detections", f"{n:,}", "linear", tasks, shows)


def small_job(bench: Bench) -> Iterator[Line]:
    folder = HERE.parent / "datasets" / "shapes"
    files = {
        "truth": folder / "instances_test.json",
        "detections": folder / "detections" / "contours.json",
    }
    task = {name: str(file) for name, file in files.items()} | {"job": "files", "calls": 50}
    bench.warm_up(task)
    tasks = {p.name: {**task, "tool": p.name} for p in bench.peers}
    shows = {"median": "files to numbers, 50 calls", "median cpu": "the same, processor time"}
    yield Line("Two small files", "shapes", "small", tasks, shows)


def voc_job(bench: Bench) -> Iterator[Line]:
    archives = bench.options.data / "voc2007-test"
    if not archives.is_dir():
        say(f"voc: skipped, {archives} is absent (--data)")
        return
    folder = bench.options.cache / "voc2007-test"
    if not (folder / "yolov2-voc").is_dir():
        for archive in ("VOCdevkit.tar.xz", "yolov2-voc.tar.xz"):
            with tarfile.open(archives / archive) as file:
                file.extractall(folder, filter="data")
    paths = {"truth": str(folder / "VOCdevkit"), "detections": str(folder / "yolov2-voc")}
    bench.warm_up(paths, job="voc")
    tasks = {"detmap": {**paths, "job": "voc", "calls": 2}}
    yield Line("VOC", "VOC 2007", "voc", tasks, {"call": "XML and text to mAP, second call"})


def batches_job(bench: Bench) -> Iterator[Line]:
    """W1 in 313 batches of 16: the streaming evaluators, and torchmetrics if it is installed."""
    task = {**bench.workload("W1"), "job": "batches", "calls": 313, "threads": 1}
    streams = [p.name for p in bench.peers if p.streams]
    metrics = ["detmap.integrations.torchmetrics", "detmap.compat"]
    backends = ("pycocotools", "faster_coco_eval")
    metrics += [f"torchmetrics {each}" for each in backends if find_spec(each)]
    shows = {"median": "update, a batch of 16 images", "median cpu": "the same, processor time"}
    shows |= {"final": "final numbers", "final cpu": "the same, processor time"}
    for title, tools in (("Batches of 16", streams), ("Batches of 16, torchmetrics", metrics)):
        if tools is streams or find_spec("torchmetrics"):
            tasks = {name: {**task, "tool": name} for name in tools}
            yield Line(title, "W1", "batches", tasks, shows, tolerance=0.0)
    shows = {"median": "update, and its precision, recall and F1", "median cpu": "processor time"}
    tasks = {"detmap": {**task, "tool": "detmap", "counts": True}}
    yield Line("Batches of 16 with their counts", "W1", "batches", tasks, shows, tolerance=0.0)


def lvis_job(bench: Bench) -> Iterator[Line]:
    """lvis-api and faster-coco-eval take minutes and 8 GB: only with --slow."""
    files = {**bench.workload("W5", LVIS_QUARTER), "job": "lvis", "calls": 2}
    bench.warm_up(files)
    wanted = bench.options.tools or [*lvis_peers.DISTRIBUTIONS]
    tasks = {
        name: {**files, "tool": name, "calls": 1 if name in lvis_peers.SLOW else 2}
        for name, distribution in lvis_peers.DISTRIBUTIONS.items()
        if name in wanted
        and (bench.options.slow or name not in lvis_peers.SLOW)
        and is_installed(distribution)
    }
    shows = {"call": "files to numbers, second call", "rss": "peak memory of the process"}
    yield Line("LVIS, a quarter of its size", "W5", "lvis", tasks, shows)


OF_WORKLOAD: dict[str, Callable[[Bench, str], Iterator[Line]]] = {
    "files": files_job,
    "arrays": arrays_job,
    "process": process_job,
    "cold": cold_job,
    "threads": threads_job,
    "segm": partial(shapes_job, kind="segm"),
    "keypoints": partial(shapes_job, kind="keypoints"),
}
EXTRA = ("segm", "keypoints")  # jobs of a workload that are done where --only names them
OTHERS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "linear": linear_job,
    "voc": voc_job,
    "small": small_job,
    "batches": batches_job,
    "lvis": lvis_job,
}
WORKLOADS = ("W1", "W2", "W3", "W4")


# --- the runner -----------------------------------------------------------------------------------


@dataclass
class Bench:
    """The options, and every run so far.

    Parameters
    ----------
    options : of the command line
    peers : those that are installed and wanted
    """

    options: argparse.Namespace
    peers: list[Peer]
    lines: list[Line] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def measure(self, line: Line) -> None:
        """Each task `--runs` times, taking turns; a slow one `--slow-runs` times, a failed one
        once.
        """
        say(f"{line.data}: {line.label}")
        at, runs = len(self.lines), self.options.runs
        self.lines.append(line)
        left = dict.fromkeys(line.tasks, runs)
        names = list(line.tasks)
        for turn in range(runs):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                if left[name] <= turn:
                    continue
                run = self.run({"tool": "detmap", **line.tasks[name]})
                self.runs.append({"line": at, "data": line.data, "column": name, **run})
                seconds, memory = run["values"]["process"], run["values"]["rss"] / 2**20
                took = run["values"].get("call", seconds)
                say(f"  {line.label} {name}: {took:.3f} s, {memory:.0f} MB {run['failure']}")
                if run["failure"]:
                    left[name] = 0
                elif took > self.options.patience:
                    left[name] = min(left[name], self.options.slow_runs)

    def run(self, task: Task) -> Run:
        """One process: its numbers, its times and its peak memory."""
        options = self.options
        task = {"patience": options.patience, "memory": options.memory << 30, **task}
        task = {"threads": options.threads, **task}
        threads = {f"{name}_NUM_THREADS": str(task["threads"]) for name in THREADS}
        environment = os.environ | threads
        # An installed package has its bytecode, as the peers do here; so shall a checkout.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            if task.pop("cold", False):
                environment |= dict.fromkeys(CACHES, folder)
            answer = Path(folder, "answer.json")
            cpus = sorted(os.sched_getaffinity(0))[: task["threads"]]
            task |= {"cpus": cpus, "answer": str(answer)}
            with open(Path(folder, "stderr"), "w+b") as errors:
                begin = time.perf_counter()
                child = subprocess.Popen(
                    [sys.executable, str(HERE / "bench_jobs.py"), json.dumps(task)],
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=environment,
                )
                status, usage = wait(child, options.timeout)
                whole = time.perf_counter() - begin
                errors.seek(0)
                complaint = errors.read()[-2000:].decode(errors="replace").strip().splitlines()
            empty = {"stats": [], "seconds": [], "cpu": [], "extra": {}}
            found = json.loads(answer.read_bytes()) if answer.exists() else empty
        values = {"process": whole, "rss": usage.ru_maxrss * 1024, **found["extra"]}
        for key, (last, median) in KINDS.items():
            if found[key]:
                values |= {last: found[key][-1], median: statistics.median(found[key])}
        failure = ""
        if status != 0 or not found["stats"]:
            failure = (complaint or [f"exit status {status}"])[-1]
            if whole >= options.timeout:
                failure = f"no end within {options.timeout} s"
        return {"task": task, "values": values, "failure": failure, **found}

    def warm_up(self, files: dict[str, str], job: str = "files") -> None:
        """Compile and cache detmap's kernels, and have the files in memory; not recorded."""
        self.run({**files, "tool": "detmap", "job": job, "calls": 1})

    def workload(
        self, name: str, detections: int = 0, masks: int = 0, keypoints: int = 0
    ) -> dict[str, str]:
        """The paths of a workload, made when they are not there."""
        command = [sys.executable, str(HERE / "workloads.py"), name]
        command += ["--out", str(self.options.cache)]
        command += ["--detections", str(detections)] if detections else []
        command += ["--masks", str(masks)] if masks else []
        command += ["--keypoints", str(keypoints)] if keypoints else []
        command += ["--boxes", str(self.options.data / "coco-val2017-boxes")]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"bench: workload {name} was not made")
        folder = self.options.cache / (f"{name}-{detections}" if detections else name)
        names = {"truth": "instances.json", "detections": "results.json"}
        names |= {"table": "detections.npy", "masks": "masks.json"}
        names |= {"people": "keypoints_truth.json", "keypoints": "keypoints.json"}
        return {key: str(folder / file) for key, file in names.items()}

    # --- what was found ---------------------------------------------------------------------------

    def judge(self) -> None:
        """Give every run its distance from the reference, and a failure where it is too far."""
        for at, line in enumerate(self.lines):
            runs = [run for run in self.runs if run["line"] == at and run["stats"]]
            if not runs:
                continue
            reference, source = self.reference(line, runs)
            for run in runs:
                pairs = list(zip(run["stats"], reference, strict=False))
                apart = max((abs(a - b) for a, b in pairs), default=0.0)
                same = len(run["stats"]) == len(reference)
                run |= {"reference": source, "apart": apart}
                run["identical"] = run["stats"] == reference
                if not same or not apart <= line.tolerance:
                    run["failure"] = f"the numbers differ by {apart:.1e}"

    def reference(self, line: Line, runs: list[Run]) -> tuple[list[float], str]:
        """The numbers that are right, and whose they are."""
        if line.data in WORKLOADS:
            kept = self.options.cache / line.data / "pycocotools.json"
            own = [run["stats"] for run in runs if run["column"] == "pycocotools"]
            if own:
                kept.write_text(json.dumps(own[0]), encoding="ascii")
            if kept.exists():
                return json.loads(kept.read_bytes()), "pycocotools"
        first = next((run for run in runs if run["column"] == next(iter(line.tasks))), runs[0])
        return first["stats"], first["column"]

    def found(self, at: int, column: str, key: str) -> list[float]:
        """A value of all runs; empty where one failed or there is none."""
        runs = [run for run in self.runs if (run["line"], run["column"]) == (at, column)]
        if any(run["failure"] or key not in run["values"] for run in runs):
            return []
        return [run["values"][key] for run in runs]

    def value(self, at: int, column: str, key: str) -> float | None:
        """The median of a value's runs; None where one failed or there is none."""
        found = self.found(at, column, key)
        return statistics.median(found) if found else None

    def rows(self, table: str) -> tuple[list[str], list[tuple[str, ...]]]:
        """Columns and cells of a table."""
        lines = [(at, line) for at, line in enumerate(self.lines) if line.table == table]
        columns = list(dict.fromkeys(name for _, line in lines for name in line.tasks))
        peers = [name for name in columns if name in RIVALS]
        rows = []
        for at, line in lines:
            for key, meaning in line.shows.items():
                values = {name: self.value(at, name, key) for name in columns}
                others = [v for name in peers if (v := values[name]) is not None]
                best = min(others, default=None) if peers else values[columns[0]]
                cells = [
                    cell(value, key, best, self.found(at, name, key))
                    for name, value in values.items()
                ]
                if peers:
                    own = values.get("detmap")
                    cells.append(f"{own / best:.2f}" if own and best else "-")
                rows.append((line.data, meaning, *cells))
        return columns + ["detmap / best peer"] * bool(peers), rows

    def remarks(self, table: str) -> list[str]:
        """Who agrees with whom in every bit, and what did not count."""
        ats = [at for at, line in enumerate(self.lines) if line.table == table]
        runs = [run for run in self.runs if run["line"] in ats]
        said = []
        for data in dict.fromkeys(run["data"] for run in runs if "apart" in run):
            here = [run for run in runs if run["data"] == data and "apart" in run]
            names = dict.fromkeys(run["column"] for run in here)
            far = {n: max(run["apart"] for run in here if run["column"] == n) for n in names}
            equal = [n for n in names if all(r["identical"] for r in here if r["column"] == n)]
            text = f"{data}: identical in every bit to {here[0]['reference']}: "
            text += ", ".join(equal) or "none"
            said.append("; ".join([text, *(f"{n} is off by {d:.1e}" for n, d in far.items() if d)]))
        failed = (f"{r['data']} {r['column']}: {r['failure']}" for r in runs if r["failure"])
        return [*said, *dict.fromkeys(failed)]


RIVALS = {peer.name for peer in PEERS if not peer.is_own} | {"lvis-api"}


def cell(value: float | None, key: str, best: float | None, runs: list[float]) -> str:
    """``0.43 s ±2% (1.20)`` or ``150 MB ±0% (1.20)``: half of the range of several runs, and the
    ratio to the best.
    """
    if value is None:
        return "-"
    text = f"{value / 2**20:.0f} MB" if key in BYTES else f"{value:.{2 if value >= 10 else 3}f} s"
    if key not in BYTES and value < 0.02:
        text = f"{value * 1e3:.2f} ms"
    if len(runs) > 1:
        text += f" ±{50 * (max(runs) - min(runs)) / value:.0f}%"
    return f"{text} ({value / best:.2f})" if best else text


def wait(child: subprocess.Popen[bytes], timeout: float) -> tuple[int, Any]:
    """Exit status and resource usage of a child; killed at the timeout."""
    deadline = time.perf_counter() + timeout
    descriptor = os.pidfd_open(child.pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.perf_counter()))
        if not ready:
            child.kill()
        _, status, usage = os.wait4(child.pid, 0)
    finally:
        os.close(descriptor)
    child.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
    return child.returncode, usage


def facts(peers: Iterable[Peer]) -> dict[str, Any]:
    """What the numbers depend on."""
    import importlib.metadata

    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        cpu = next(names, cpu)
    versions = {peer.distribution or peer.name: peer.installed() for peer in peers}
    versions |= {name: importlib.metadata.version(name) for name in ("numpy", "numba")}
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": versions,
    }


def is_installed(name: str) -> bool:
    """Whether a distribution is installed; says so where not."""
    import importlib.metadata

    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        say(f"{name} is not installed: skipped")
        return False
    return True


def write_block(page: Path, text: str) -> None:
    """Put a text between the two marks of a page."""
    before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    page.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}", encoding="utf-8")


def say(line: str) -> None:
    """Progress, to stderr."""
    print(line.rstrip(), file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = (*WORKLOADS, *OTHERS)
    add = parser.add_argument
    add("what", nargs="*", default=["W1"], metavar="JOB", help=f"{', '.join(names)} (default W1)")
    add("--only", nargs="+", choices=[*OF_WORKLOAD], help="jobs of the workloads")
    add("--tools", nargs="+", choices=[*BY_NAME], help="peers to measure (default all)")
    add("--runs", type=int, default=5, help="runs of each measurement (default 5)")
    add("--slow-runs", type=int, default=1, help="runs of what is slower than --patience")
    add("--patience", type=float, default=20.0, metavar="S", help="what is slow (default 20)")
    add("--slow", action="store_true", help="the slow tools on W2 and W4 as well")
    add("--threads", type=int, default=2, help="threads and processors of a tool (default 2)")
    add("--timeout", type=float, default=600.0, metavar="S", help="end a run (default 600)")
    add("--memory", type=int, default=12, metavar="GB", help="address space of a run, 0: no limit")
    add("--cache", type=Path, default=CACHE, help=f"folder of the workloads (default {CACHE})")
    add("--data", type=Path, default=DATA, help="folder of the real data, for W3 and voc")
    add("--readme", action="store_true", help="rewrite the tables of docs/performance.md")
    options = parser.parse_args()
    if wrong := [name for name in options.what if name not in names]:
        parser.error(f"no job {wrong[0]!r}: choose from {', '.join(names)}")
    return options


def main() -> None:
    """Measure, judge, report."""
    options = parse()
    wanted = (peer for peer in PEERS if not options.tools or peer.name in options.tools)
    bench = Bench(
        options, [each for each in wanted if is_installed(each.distribution or each.name)]
    )
    for name in options.what:
        if name in OTHERS:
            for line in OTHERS[name](bench):
                bench.measure(line)
            continue
        for job in options.only or [job for job in OF_WORKLOAD if job not in EXTRA]:
            for line in OF_WORKLOAD[job](bench, name):
                bench.measure(line)
    bench.judge()
    report(bench, facts(bench.peers))


def report(bench: Bench, known: dict[str, Any]) -> None:
    """Print the tables, write them into the pages where asked."""
    sys.path.insert(0, str(HERE.parent))
    from detmap.core.output import formats
    from detmap.core.output.table import Table

    options = bench.options
    tables = []
    for title in dict.fromkeys(line.table for line in bench.lines):
        columns, rows = bench.rows(title)
        remarks = tuple(bench.remarks(title))
        tables.append(Table(title, ("", "", *columns), tuple(rows), remarks))
    versions = ", ".join(f"{name} {version}" for name, version in known["versions"].items())
    about = [
        f"Median of {options.runs} runs, each in a process of its own; ±: half of the range of the"
        f" runs; {options.threads} threads; in brackets the ratio to the best peer, or to the first"
        " column; - was not run or does not count.",
        f"{known['cpu']}, {known['cores']} cores, Python {known['python']}; {versions}.",
    ]
    print(formats.text(tables), end="")
    print("\n".join(about))
    if options.readme:
        text = formats.markdown(tables).strip() + "\n\n" + "\n".join(f"- {line}" for line in about)
        write_block(PAGE, text)


if __name__ == "__main__":
    main()
