"""Measure detmap and its peers: how long, how much memory, and whether the numbers are the same.

    pip install -e '.[bench]'
    python tools/bench.py                                   # every measurement of W1
    python tools/bench.py W1 W2 --only files arrays --runs 7
    python tools/bench.py W1 W2 W3 W4 --json bench.json --readme

| measurement | |
|---|---|
| files | from two files to the twelve numbers, second call in a process |
| arrays | truth loaded, detections in arrays, to the twelve numbers, second call in a process |
| process | from the start of Python to its end, files to numbers, compiled kernels cached |
| rss | the most memory that this process held, as the operating system says |
| cold | detmap: the same process with an empty kernel cache |
| threads | detmap: from tables to numbers with 1, 2 and 4 threads |
| linear | detmap: time and memory of W1 at 1 and 10 million detections |
| voc | detmap: VOC 2007 test, XML and text to mAP, and the slow twin of its tests |

Every measurement has a process of its own; the tools take turns, and the median of the runs is
shown (`--statistic min` on a busy machine). All tools get the same number of processors and
threads. A time counts only if the stats are those of pycocotools to 1e-9: of its last run on the
same files, which is kept beside them; of detmap, and the report says so, where it never ran. How
each tool is called stands in `bench_tools.py`.
"""

from __future__ import annotations

import argparse
import importlib.metadata
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
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench_tools import TOOLS, Tool

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "detmap-bench"
DATA = HERE.parents[1] / "shared" / "data"
README = HERE.parent / "docs" / "performance.md"
MARKS = "<!-- bench:begin -->", "<!-- bench:end -->"
OWN = {
    "detmap": "detmap",
    "detmap.compat": "detmap",
}  # tools that are no peers, and their distribution
COMPARED = ("files", "arrays", "process", "rss")
MEASUREMENTS = (*COMPARED, "cold", "threads", "linear", "voc")
LARGE = ("W2", "W4")
TOLERANCE = 1e-9
LINEAR = (1_000_000, 10_000_000)
THREAD_VARIABLES = (
    "RAYON_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "ARROW_NUM_THREADS",
)
CACHE_VARIABLES = "DETMAP_CACHE_DIR", "NUMBA_CACHE_DIR"
MEANING = {
    "files": "files to numbers, second call",
    "arrays": "arrays to numbers, second call",
    "process": "whole process",
    "rss": "peak memory of the process",
}

Run = dict[str, Any]
Cell = str | int | float | None


class Bench:
    """The options, and every run so far.

    Parameters
    ----------
    options : of the command line
    tools : those that are installed
    """

    def __init__(self, options: argparse.Namespace, tools: Sequence[Tool]) -> None:
        self.options = options
        self.tools = tools
        self.runs: list[Run] = []

    # --- one run ----------------------------------------------------------------------------------
    # ---------------------

    def run(self, label: str, tool: str, files: dict[str, str], **task: Any) -> Run:
        """One process; its own times, its whole time, its peak memory, its stats."""
        options = self.options
        threads = task.setdefault("threads", options.threads)
        environment = (
            os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads)) | task.pop("environment", {})
        )
        cpus = sorted(os.sched_getaffinity(0))[:threads]
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder, "answer.json")
            task = (
                {"calls": 2, "patience": options.patience, "memory": options.memory << 30}
                | files
                | task
            )
            task |= {"tool": tool, "cpus": cpus, "answer": str(answer)}
            with open(Path(folder, "stderr"), "w+b") as errors:
                begin = time.perf_counter()
                child = subprocess.Popen(
                    [sys.executable, str(HERE / "bench_tools.py"), json.dumps(task)],
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=environment,
                )
                status, usage = wait(child, options.timeout)
                whole = time.perf_counter() - begin
                errors.seek(0)
                complaint = errors.read()[-2000:].decode(errors="replace").strip().splitlines()
            found = (
                json.loads(answer.read_bytes()) if answer.exists() else {"stats": [], "seconds": []}
            )
        run = {
            "workload": files.get("name", ""),
            "measurement": label,
            "tool": tool,
            "threads": threads,
            "process": whole,
            "cpu": usage.ru_utime + usage.ru_stime,
            "rss": usage.ru_maxrss * 1024,
            "seconds": found["seconds"],
            "stats": found["stats"],
            "failure": "",
        }
        if status != 0 or not found["stats"]:
            slow = whole >= options.timeout
            run["failure"] = (
                f"no end within {options.timeout} s"
                if slow
                else (complaint or [f"exit status {status}"])[-1]
            )
            say(f"  {tool}: {run['failure']}")
        self.runs.append(run)
        return run

    def take_turns(self, label: str, tasks: dict[str, Callable[[], Run]]) -> None:
        """Each task `--runs` times, one after the other; a slow one `--slow-runs` times, a
        failed one once.
        """
        left = dict.fromkeys(tasks, self.options.runs)
        for turn in range(self.options.runs):
            for name in rotated(list(tasks), turn):
                if left[name] <= turn:
                    continue
                run = tasks[name]()
                say(f"  {label} {name}: {seconds_of(run):.3f} s, {run['rss'] / 2**20:.0f} MB")
                if run["failure"]:
                    left[name] = 0
                elif seconds_of(run) > self.options.patience:
                    left[name] = min(left[name], self.options.slow_runs)

    # --- what is measured
    # ----------------------------------------------------------------------------------------------

    def compare(self, name: str, wanted: Iterable[str]) -> None:
        """Every tool on one workload, `files`, `arrays`, and `process` with `rss`."""
        files = self.workload(name)
        tools = [
            tool.name
            for tool in self.tools
            if self.options.slow or not (tool.slow and name in LARGE)
        ]
        jobs = {"files": ("files", 2), "arrays": ("arrays", 2), "process": ("files", 1)}
        for label in dict.fromkeys(
            "process" if each == "rss" else each for each in wanted if each in COMPARED
        ):
            job, calls = jobs[label]
            say(f"{name}: {label}")
            if "detmap" in tools:
                self.warm_up(files)
            self.take_turns(
                label,
                {tool: self.bound(label, tool, files, job=job, calls=calls) for tool in tools},
            )

    def cold(self, name: str) -> None:
        """The whole process where no kernel was ever compiled."""
        files = self.workload(name)

        def task() -> Run:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                run = self.run(
                    "cold",
                    "detmap",
                    files,
                    job="files",
                    calls=1,
                    environment=dict.fromkeys(CACHE_VARIABLES, folder),
                )
                return run

        say(f"{name}: cold")
        self.take_turns("cold", {"detmap": task})

    def threads(self, name: str) -> None:
        """From tables to numbers with 1, 2 and 4 threads."""
        files = self.workload(name)
        self.warm_up(files)
        say(f"{name}: threads")
        self.take_turns(
            "threads",
            {
                f"{n} threads": self.bound("threads", "detmap", files, job="tables", threads=n)
                for n in (1, 2, 4)
            },
        )

    def linear(self) -> None:
        """W1's statistics with 1 and 10 million detections."""
        sizes = {f"{n}": self.workload("W1", n) for n in LINEAR}
        self.warm_up(sizes[str(LINEAR[0])])
        say("linear")
        for label, calls in (("files", 2), ("process", 1)):
            self.take_turns(
                f"linear {label}",
                {
                    n: self.bound(label, "detmap", files, job="files", calls=calls)
                    for n, files in sizes.items()
                },
            )

    def voc(self) -> None:
        """VOC 2007 test and the output of a real detector; the slow twin on the same tables."""
        archives = self.options.data / "voc2007-test"
        if not archives.is_dir():
            say(f"voc: skipped, {archives} is absent (--data)")
            return
        folder = self.options.cache / "voc2007-test"
        if not (folder / "yolov2-voc").is_dir():
            for archive in ("VOCdevkit.tar.xz", "yolov2-voc.tar.xz"):
                with tarfile.open(archives / archive) as file:
                    file.extractall(folder, filter="data")
        files = {
            "name": "VOC 2007",
            "truth": str(folder / "VOCdevkit"),
            "detections": str(folder / "yolov2-voc"),
        }
        self.warm_up(files, job="voc")
        say("voc")
        self.take_turns("voc", {"detmap": self.bound("voc", "detmap", files, job="voc")})
        self.take_turns(
            "voc tables",
            {
                "detmap": self.bound("voc tables", "detmap", files, job="voc-tables"),
                "slow twin": self.bound("voc tables", "slow twin", files, job="voc-twin"),
            },
        )

    def bound(self, label: str, tool: str, files: dict[str, str], **task: Any) -> Callable[[], Run]:
        """A run to be made later."""
        return lambda: self.run(label, tool, files, **task)

    def warm_up(self, files: dict[str, str], job: str = "files") -> None:
        """Compile and cache detmap's kernels, and have the files in memory; not recorded."""
        self.run("warm-up", "detmap", files, job=job, calls=1)
        self.runs.pop()

    def workload(self, name: str, detections: int = 0) -> dict[str, str]:
        """The paths of a workload, made when they are not there."""
        command = [
            sys.executable,
            str(HERE / "workloads.py"),
            name,
            "--out",
            str(self.options.cache),
        ]
        command += ["--detections", str(detections)] if detections else []
        command += ["--boxes", str(self.options.data / "coco-val2017-boxes")]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"bench: workload {name} was not made")
        full = f"{name}-{detections}" if detections else name
        folder = self.options.cache / full
        paths = {"truth": "instances.json", "detections": "results.json", "table": "detections.npy"}
        return {"name": full} | {key: str(folder / file) for key, file in paths.items()}

    # --- what was found ---------------------------------------------------------------------------
    # ---------------------

    def judge(self) -> None:
        """Give every run its distance from the reference stats, and a failure where it is too
        far.
        """
        for name in dict.fromkeys(run["workload"] for run in self.runs):
            runs = [run for run in self.runs if run["workload"] == name and run["stats"]]
            kept = self.options.cache / name / "pycocotools.json"
            own = [run["stats"] for run in runs if run["tool"] == "pycocotools"]
            if own:
                kept.write_text(json.dumps(own[0]), encoding="ascii")
            detmaps = [run["stats"] for run in runs if run["tool"] == "detmap"]
            reference, source = [], ""
            if kept.exists():
                reference, source = json.loads(kept.read_bytes()), "pycocotools"
            elif detmaps:
                reference, source = detmaps[0], "detmap"
            for run in runs:
                same_length = len(run["stats"]) == len(reference)
                apart = max(
                    (abs(a - b) for a, b in zip(run["stats"], reference, strict=False)), default=0.0
                )
                run |= {"reference": source, "apart": apart, "identical": run["stats"] == reference}
                if not same_length or not apart <= TOLERANCE:
                    run["failure"] = f"stats differ by {apart:.1e}"

    def middle(self, values: Iterable[float]) -> float:
        """The median, or the smallest where that is asked for."""
        return min(values) if self.options.statistic == "min" else statistics.median(values)

    def median(self, workload: str, label: str, tool: str) -> float | None:
        """Of the runs that count; None where one failed or there is none."""
        runs = [
            run
            for run in self.runs
            if (run["workload"], run["measurement"], run["tool"]) == (workload, label, tool)
        ]
        if not runs or any(run["failure"] for run in runs):
            return None
        return self.middle(seconds_of(run) for run in runs)

    def value(self, workload: str, row: str, tool: str) -> float | None:
        """The median of a row of the table: seconds, or bytes."""
        if row != "rss":
            return self.median(workload, row, tool)
        if self.median(workload, "process", tool) is None:
            return None
        return self.middle(
            run["rss"]
            for run in self.runs
            if (run["workload"], run["measurement"], run["tool"]) == (workload, "process", tool)
        )

    def comparison(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        """Header and rows: every tool's median and its ratio to the best peer of the row."""
        names = [tool.name for tool in self.tools]
        header = ("", "", *names, "detmap / best peer")
        rows: list[tuple[Cell, ...]] = []
        for workload in self.options.workloads:
            for row in COMPARED:
                values = {name: self.value(workload, row, name) for name in names}
                peers = [
                    value for name, value in values.items() if name not in OWN and value is not None
                ]
                if not any(value is not None for value in values.values()):
                    continue
                best = min(peers, default=None)
                show = megabytes if row == "rss" else seconds
                cells = [show(value, best) for value in values.values()]
                own = values.get("detmap")
                rows.append(
                    (workload, MEANING[row], *cells, f"{own / best:.2f}" if own and best else "-")
                )
        return header, rows

    def detmap_rows(self) -> list[tuple[Cell, ...]]:
        """What is measured of detmap alone."""
        rows: list[tuple[Cell, ...]] = []
        for workload in self.options.workloads:
            if cold := self.median(workload, "cold", "detmap"):
                rows.append((workload, "whole process, empty kernel cache", f"{cold:.2f} s"))
            by_threads = {
                n: [
                    seconds_of(run)
                    for run in self.runs
                    if not run["failure"]
                    and (run["workload"], run["measurement"], run["threads"])
                    == (workload, "threads", n)
                ]
                for n in (1, 2, 4)
            }
            if all(by_threads.values()):
                one, two, four = (self.middle(times) for times in by_threads.values())
                bits = {
                    tuple(run["stats"])
                    for run in self.runs
                    if run["workload"] == workload
                    and run["measurement"] == "threads"
                    and run["stats"]
                }
                rows.append(
                    (
                        workload,
                        "tables to numbers, 1, 2, 4 threads",
                        f"{one:.3f} s, {two:.3f} s, {four:.3f} s",
                    )
                )
                rows.append((workload, "1 thread / 2 threads", f"{one / two:.2f}"))
                rows.append((workload, "same bits", "yes" if len(bits) == 1 else "NO"))
        small, large = (f"W1-{n}" for n in LINEAR)
        for row, unit, scale in (
            ("files", "us", 1e6),
            ("process", "us", 1e6),
            ("rss", "bytes", 1.0),
        ):
            low, high = self.value(small, row, "detmap"), self.value(large, row, "detmap")
            if low and high:
                low, high = low / LINEAR[0] * scale, high / LINEAR[1] * scale
                text = f"{low:.3f} {unit}, {high:.3f} {unit}, ratio {high / low:.2f}"
                rows.append(("linear", f"{MEANING[row]}, a detection at 1 M and 10 M", text))
        if files := self.median("VOC 2007", "voc", "detmap"):
            rows.append(("VOC 2007", "XML and text to mAP, second call", f"{files:.3f} s"))
        tables, twin = (
            self.median("VOC 2007", "voc tables", tool) for tool in ("detmap", "slow twin")
        )
        if tables and twin:
            rows.append(("VOC 2007", "tables to mAP, second call", f"{tables:.4f} s"))
            rows.append(
                (
                    "VOC 2007",
                    "the slow twin, from plain objects to mAP",
                    f"{twin:.3f} s, {twin / tables:.0f} times",
                )
            )
        return rows

    def remarks(self) -> list[str]:
        """Who agrees with whom in every bit, and what did not count."""
        lines = []
        for workload in self.options.workloads:
            runs = [run for run in self.runs if run["workload"] == workload and run["stats"]]
            if not runs:
                continue
            identical = [
                t.name
                for t in self.tools
                if all(r["identical"] for r in runs if r["tool"] == t.name)
                and any(r["tool"] == t.name for r in runs)
            ]
            apart = {
                t.name: max((r["apart"] for r in runs if r["tool"] == t.name), default=0.0)
                for t in self.tools
            }
            line = f"{workload}: identical in every bit to {runs[0]['reference']}: {', '.join(identical) or 'none'}"
            lines.append(
                "; ".join(
                    [line, *(f"{name} is off by {far:.1e}" for name, far in apart.items() if far)]
                )
            )
        failures = dict.fromkeys(
            f"{run['workload']} {run['measurement']}, {run['tool']}: {run['failure']}"
            for run in self.runs
            if run["failure"]
        )
        counts = {
            f"{run['tool']} on {run['workload']}": len(run["seconds"])
            for run in self.runs
            if run["measurement"] in ("files", "arrays") and len(run["seconds"]) == 1
        }
        first = (
            [f"first call instead of the second, being slow: {', '.join(counts)}"] if counts else []
        )
        few = dict.fromkeys(
            f"{tool} on {load}"
            for (load, _, tool), n in self.numbers().items()
            if n < self.options.runs
        )
        fewer = [f"fewer runs, being slow: {', '.join(few)}"] if few else []
        return [*lines, *first, *fewer, *failures]

    def numbers(self) -> Counter[tuple[str, str, str]]:
        """How many runs there are of a workload, measurement and tool of the comparison."""
        keys = (
            (run["workload"], run["measurement"], run["tool"])
            for run in self.runs
            if run["measurement"] in COMPARED
        )
        return Counter(key for key in keys if key[0] in self.options.workloads)


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


def seconds_of(run: Run) -> float:
    """What a run measured: its last call, or the whole process where that is the measurement."""
    if run["measurement"] in ("process", "cold") or not run["seconds"]:
        return float(run["process"])
    return float(run["seconds"][-1])


def rotated(names: list[str], turn: int) -> list[str]:
    """Another one begins each time."""
    k = turn % len(names)
    return names[k:] + names[:k]


def seconds(value: float | None, best: float | None) -> str:
    """``0.43 s (1.2)``."""
    return "-" if value is None else f"{value:.{2 if value >= 10 else 3}f} s{ratio(value, best)}"


def megabytes(value: float | None, best: float | None) -> str:
    """``150 MB (1.2)``."""
    return "-" if value is None else f"{value / 2**20:.0f} MB{ratio(value, best)}"


def ratio(value: float, best: float | None) -> str:
    """To the best peer."""
    return f" ({value / best:.2f})" if best else ""


def environment(tools: Iterable[Tool]) -> dict[str, Any]:
    """What the numbers depend on."""
    cpu = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        cpu = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), ""
        )
    packages = [*dict.fromkeys(OWN.get(tool.name, tool.name) for tool in tools), "numpy", "numba"]
    return {
        "cpu": cpu or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "date": time.strftime("%Y-%m-%d"),
        "load": os.getloadavg()[0],
    }


def installed(wanted: Sequence[str] | None) -> list[Tool]:
    """The tools that are here and wanted."""
    found = []
    for tool in TOOLS:
        if wanted and tool.name not in wanted:
            continue
        try:
            importlib.metadata.version(OWN.get(tool.name, tool.name))
        except importlib.metadata.PackageNotFoundError:
            say(f"{tool.name} is not installed: skipped")
        else:
            found.append(tool)
    return found


def write_readme(text: str, file: Path) -> None:
    """Put the table between the two marks."""
    content = file.read_text(encoding="utf-8")
    begin, end = MARKS
    if (
        content.count(begin) != 1
        or content.count(end) != 1
        or content.index(begin) > content.index(end)
    ):
        sys.exit(f"bench: {file} has no block between {begin} and {end}")
    before, after = content.split(begin)[0], content.split(end)[1]
    file.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def say(line: str) -> None:
    """Progress, to stderr."""
    print(line, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "workloads",
        nargs="*",
        default=["W1"],
        metavar="WORKLOAD",
        help="W1, W2, W3, W4 (default W1)",
    )
    parser.add_argument(
        "--only", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS, help="measurements to make"
    )
    parser.add_argument(
        "--tools", nargs="+", choices=[tool.name for tool in TOOLS], help="tools to measure"
    )
    parser.add_argument("--runs", type=int, default=5, help="runs of each measurement (default 5)")
    parser.add_argument(
        "--statistic", choices=("median", "min"), default="median", help="what is shown of the runs"
    )
    parser.add_argument(
        "--slow-runs",
        type=int,
        default=1,
        help="runs of what is slower than --patience (default 1)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=20.0,
        metavar="S",
        help="seconds that make slow (default 20)",
    )
    parser.add_argument("--slow", action="store_true", help="the slow tools on W2 and W4 as well")
    parser.add_argument(
        "--threads", type=int, default=2, help="threads and processors for every tool (default 2)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="S",
        help="end a run after this (default 600)",
    )
    parser.add_argument(
        "--memory",
        type=int,
        default=12,
        metavar="GB",
        help="address space of a run, 0: no limit (default 12)",
    )
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help=f"folder of the workloads (default {CACHE})"
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folder of the real data, for W3 and voc"
    )
    parser.add_argument(
        "--json", type=Path, help="write every run and the environment to this file"
    )
    parser.add_argument("--readme", action="store_true", help=f"rewrite the table in {README.name}")
    return parser.parse_args()


def main() -> None:
    """Measure, judge, report."""
    options = parse()
    bench = Bench(options, installed(options.tools))
    own = any(tool.name == "detmap" for tool in bench.tools)
    for name in options.workloads:
        bench.compare(name, options.only)
        if own and "cold" in options.only:
            bench.cold(name)
        if own and "threads" in options.only:
            bench.threads(name)
    if own and "linear" in options.only:
        bench.linear()
    if own and "voc" in options.only:
        bench.voc()
    bench.judge()

    facts = environment(bench.tools)
    if options.json:
        options.json.write_text(
            json.dumps({"environment": facts, "runs": bench.runs}, indent=1) + "\n",
            encoding="ascii",
        )

    from detmap.report import (
        formats,
    )  # not before: a large parent would show in its children's peak memory
    from detmap.report.table import Table

    header, rows = bench.comparison()
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    how = f"{options.statistic.capitalize()} of {options.runs} runs, each in a process of its own"
    about = (
        f"{how}; {options.threads} threads; in brackets the ratio to the best peer; - was not run or does not count.",
        f"{facts['cpu']}, {facts['cores']} cores, Python {facts['python']}; {versions}.",
    )
    tables = (
        [Table("Time and memory", header, tuple(rows), (*about, *bench.remarks()))] if rows else []
    )
    if alone := bench.detmap_rows():
        tables.append(Table("detmap alone", ("", "", ""), tuple(alone)))
    print(formats.plain(tables), end="")
    if options.readme:
        write_readme(formats.markdown(tables).strip(), README)


if __name__ == "__main__":
    main()
