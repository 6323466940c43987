"""Measure the page of all images of a report folder: size, writing, opening, a threshold move.

    python tools/browse_times.py TRUTH DETECTIONS [B]        # such as W1 of tools/workloads.py
    python tools/browse_times.py TRUTH DETECTIONS --copies 20     # each image 20 times

Prints the row of the table in docs/report.md. Writing is processor time after the error analysis,
without pictures; the others are medians of several opens in headless Chromium, from disk.
"""

import argparse
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import detmap
from detmap.analysis.browse import writer
from detmap.analysis.browse.pictures import Wanted
from detmap.analysis.diagnosis import diagnose
from detmap.analysis.diagnosis.operating_sweep import best_f1
from detmap.core.tables import Detections, Truth

READY = "return Number(document.documentElement.dataset.ready ?? 0) / 1000"
MOVE = """
const done = arguments[arguments.length - 1], note = document.getElementById("note");
const field = document.querySelector("#head .exact input"), begin = performance.now();
new MutationObserver((_, observer) => { observer.disconnect(); done(performance.now() - begin); })
  .observe(note, {childList: true, characterData: true, subtree: true});
field.value = arguments[0];
field.dispatchEvent(new Event("change"));
"""


def copied(table: Any, images: Any, n: int, times: int) -> Any:
    """A table with each image several times."""
    shift = np.repeat(np.arange(times, dtype=np.int32) * n, len(table))
    taken = table.take(np.tile(np.arange(len(table)), times))
    return replace(taken, images=images, image=taken.image + shift)


def repeated(truth: Truth, tables: list[Detections], times: int) -> tuple[Truth, list[Detections]]:
    """The ground truth and detections with each image several times."""
    one, n = truth.images, len(truth.images)
    images = replace(
        one,
        ids=np.arange(1, n * times + 1),
        stems=one.stems * times,
        files=one.files * times,
        width=np.tile(one.width, times),
        height=np.tile(one.height, times),
    )
    every = [copied(table, images, n, times) for table in (truth, *tables)]
    return every[0], every[1:]


def chromium() -> Any:
    """A headless Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for name in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{name}")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(120)
    return driver


def renderer_megabytes(root: int) -> float:
    """Resident memory of the largest renderer process below a process."""
    rows: dict[int, dict[str, str]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            lines = (place / "status").read_text().splitlines()
            rows[int(place.name)] = dict(line.split(":", 1) for line in lines if ":" in line)
            rows[int(place.name)]["command"] = (place / "cmdline").read_text()
        except OSError:  # it has ended
            continue
    below = [root]
    for pid in below:
        below += [each for each, row in rows.items() if int(row["PPid"]) == pid]
    own = [rows[pid] for pid in below if "--type=renderer" in rows[pid].get("command", "")]
    return max(int(row["VmRSS"].split()[0]) for row in own) / 1024


def opened(page: Path, scores: list[float]) -> dict[str, float]:
    """Times of one open, in seconds, and memory in MB."""
    driver = chromium()
    try:
        driver.get(page.as_uri())
        end = time.monotonic() + 60
        while not (first := driver.execute_script(READY)):
            if time.monotonic() > end:
                sys.exit("browse_times: the page did not open")
            time.sleep(0.01)
        root = driver.service.process.pid
        moves = [driver.execute_async_script(MOVE, score) / 1000 for score in scores]
        return {
            "first list s": first,
            "move s": median(moves),
            "memory MB": renderer_megabytes(root),
        }
    finally:
        driver.quit()


def measured(truth: Truth, tables: list[Detections], opens: int) -> dict[str, float]:
    """One row of the table."""
    found = [diagnose(truth, each, "coco-bbox") for each in tables]
    best = [best_f1(each).score for each in found]
    row: dict[str, float] = {"images": len(truth.images), "detections": sum(map(len, tables))}
    with tempfile.TemporaryDirectory() as folder:
        place, begin = Path(folder) / "report", time.process_time()
        detectors = {f"detector {k}": each for k, each in enumerate(zip(found, best, strict=True))}
        size, _ = writer.write(place, b"", detectors, title="times", wanted=Wanted())
        row["written in s"] = time.process_time() - begin
        first = [*place.glob("data/det*.js"), place / "data/meta.js", place / "data/truth.js"]
        row |= {"size MB": size / 1e6, "at opening MB": sum(p.stat().st_size for p in first) / 1e6}
        scores = [best[0] * factor for factor in (1.1, 0.9, 0.7, 1.3, 0.5)]
        rows = [opened(place / "images.html", scores) for _ in range(opens)]
    return row | {key: median(one[key] for one in rows) for key in rows[0]}


def main() -> None:
    """Print the row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("truth")
    parser.add_argument("detections", nargs="+")
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--opens", type=int, default=3)
    options = parser.parse_args()
    truth = detmap.read_truth(options.truth)
    tables = [detmap.read_detections(each, truth) for each in options.detections]
    row = measured(*repeated(truth, tables, options.copies), options.opens)
    sys.stdout.write("".join(f"{name}: {value:,.3g}\n" for name, value in row.items()))


if __name__ == "__main__":
    main()
