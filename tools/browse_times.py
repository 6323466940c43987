"""Measure the page of all images of a report folder: size, writing, opening, a threshold move.

    python tools/browse_times.py shapes W1          # data sets
    python tools/browse_times.py W1x20 --opens 3    # W1 with 20 copies of its images: 100,000

W1 is made by `tools/workloads.py` if it is not in the cache. Writing is processor time after the
error analysis, without pictures. The times of the browser are medians of several opens in headless
Chromium, from disk: until the first list is there and until its cards are drawn; a move of the
threshold with all counts; a filter; memory of the page's process.
"""

import argparse
import shutil
import subprocess
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

HERE = Path(__file__).resolve().parent
CACHE = Path.home() / ".cache" / "detmap-bench"
SHAPES = HERE.parent / "datasets" / "shapes"
READY = "return Number(document.documentElement.dataset.ready ?? 0) / 1000"
DRAWN = """
const near = [...document.querySelectorAll("#cards canvas")]
  .filter(each => each.getBoundingClientRect().top < innerHeight);
return near.every(each => "drawn" in each.dataset) ? performance.now() / 1000 : 0;
"""
MOVE = """
const done = arguments[arguments.length - 1];
const field = document.querySelector("#head .exact input");
const note = document.getElementById("note"), begin = performance.now();
new MutationObserver((_, observer) => {
  observer.disconnect();
  done(performance.now() - begin);
}).observe(note, {childList: true, characterData: true, subtree: true});
field.value = arguments[0];
field.dispatchEvent(new Event("change"));
"""
PRESS = """
const done = arguments[arguments.length - 1], begin = performance.now();
document.querySelector("[data-key=kind4]").click();
done(performance.now() - begin);
"""


def tables(name: str) -> tuple[Truth, dict[str, Detections]]:
    """The ground truth and detections of a data set."""
    if name == "shapes":
        truth = detmap.read_truth(SHAPES / "instances_test.json")
        files = [SHAPES / "detections" / f"{each}.json" for each in ("contours", "template")]
        return truth, {file.stem: detmap.read_detections(file, truth) for file in files}
    base, _, times = name.partition("x")
    command = [sys.executable, str(HERE / "workloads.py"), base, "--out", str(CACHE)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    truth = detmap.read_truth(CACHE / base / "instances.json")
    found = detmap.read_detections(CACHE / base / "results.json", truth)
    return repeated(truth, found, int(times or 1))


def repeated(truth: Truth, found: Detections, times: int) -> tuple[Truth, dict[str, Detections]]:
    """The same images several times."""
    n = len(truth.images)
    images = replace(
        truth.images,
        ids=np.arange(1, n * times + 1),
        stems=truth.images.stems * times,
        files=truth.images.files * times,
        width=np.tile(truth.images.width, times),
        height=np.tile(truth.images.height, times),
    )

    def rows(table: Any) -> Any:
        every = np.tile(np.arange(len(table)), times)
        shift = np.repeat(np.arange(times, dtype=np.int32) * n, len(table))
        taken = table.take(every)
        return replace(taken, images=images, image=taken.image + shift)

    return rows(truth), {"detector": rows(found)}


def chromium() -> Any:
    """A headless Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,900")
    options.add_argument("--enable-precise-memory-info")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(120)
    return driver


def wait(driver: Any, script: str) -> float:
    """Wait until a script returns the seconds since the page was opened."""
    for _ in range(6000):
        if seconds := driver.execute_script(script):
            return float(seconds)
        time.sleep(0.01)
    sys.exit("browse_times: the page did not open")


def renderer_megabytes() -> float:
    """Resident memory of the largest renderer process."""
    found = [0.0]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if b"--type=renderer" in (status.parent / "cmdline").read_bytes():
                rows = dict(line.split(":", 1) for line in status.read_text().splitlines())
                found.append(int(rows["VmRSS"].split()[0]) / 1024)
        except (OSError, KeyError):
            continue
    return max(found)


def opened(page: Path, scores: list[float]) -> dict[str, float]:
    """Times of one open, in seconds, and memory in MB."""
    driver = chromium()
    try:
        driver.get(page.as_uri())
        first, drawn = wait(driver, READY), wait(driver, DRAWN)
        moves = [driver.execute_async_script(MOVE, score) / 1000 for score in scores]
        pressed = driver.execute_async_script(PRESS) / 1000
        heap = driver.execute_script("return performance.memory.usedJSHeapSize") / 1e6
        row = {"first list": first, "drawn": drawn, "move": median(moves), "filter": pressed}
        return {**row, "heap MB": heap, "renderer MB": renderer_megabytes()}
    finally:
        driver.quit()


def measured(name: str, opens: int) -> dict[str, Any]:
    """One row of the table."""
    truth, detectors = tables(name)
    found = {key: diagnose(truth, each, "coco-bbox") for key, each in detectors.items()}
    with_best = {key: (each, best_f1(each).score) for key, each in found.items()}
    with tempfile.TemporaryDirectory() as folder:
        place, begin = Path(folder) / "report", time.process_time()
        index = b"<!doctype html><title>report</title>"
        size, _ = writer.write(place, index, with_best, title=name, wanted=Wanted())
        writing = time.process_time() - begin
        first = sum((place / "data" / f"{each}.js").stat().st_size for each in ("meta", "truth"))
        first += sum(path.stat().st_size for path in (place / "data").glob("det*.js"))
        best = next(iter(with_best.values()))[1]
        scores = [best * factor for factor in (1.1, 0.9, 0.7, 1.3, 0.5)]
        rows = [opened(place / "images.html", scores) for _ in range(opens)]
    middle = {key: median(row[key] for row in rows) for key in rows[0]}
    counts = {"images": len(truth.images), "detections": sum(map(len, detectors.values()))}
    sizes = {"MB": size / 1e6, "MB at opening": first / 1e6, "writing": writing}
    return {"data set": name, **counts, **sizes, **middle}


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sets", nargs="+", help="shapes, W1, or W1x20 for 20 copies of its images")
    parser.add_argument("--opens", type=int, default=3)
    options = parser.parse_args()
    for n, name in enumerate(options.sets):
        row = measured(name, options.opens)
        if not n:
            sys.stdout.write(f"| {' | '.join(row)} |\n|{'---|' * len(row)}\n")
        cells = (f"{cell:,.3g}" if isinstance(cell, float) else str(cell) for cell in row.values())
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
