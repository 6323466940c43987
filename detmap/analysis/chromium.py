"""Print a page to PDF or PNG with an installed Chromium."""

import re
import shutil
import subprocess
from pathlib import Path

from detmap.core.base import atomic_files
from detmap.errors import DetmapError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LONGEST = 120  # seconds
WIDTH, HIGHEST = 1280, 16_000  # pixels of a picture
MEASURE = b"<script>document.body.dataset.height = document.documentElement.scrollHeight</script>"


def find() -> str:
    """The path of Chromium.

    Raises
    ------
    DetmapError : Chromium is not on the path
    """
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    raise DetmapError(
        "report",
        "PDF and PNG output need Chromium, which is not installed",
        "install it, or write HTML",
    )


def pdf(page: bytes) -> bytes:
    """Print a page to PDF.

    Raises
    ------
    DetmapError : Chromium fails or times out
    """
    with atomic_files.temporary_folder() as folder:
        made = folder / "report.pdf"
        _run(folder, page, "--no-pdf-header-footer", f"--print-to-pdf={made}")
        return _content(made)


def png(page: bytes) -> bytes:
    """Take a picture of a whole page, `WIDTH` pixels wide.

    Raises
    ------
    DetmapError : Chromium fails or times out
    """
    begin = page.index(b'<meta http-equiv="Content-Security-Policy"')
    open_page = page[:begin] + page[page.index(b">", begin) + 1 :]  # to run a script that measures
    measured = open_page.replace(b"</body>", MEASURE + b"</body>")
    with atomic_files.temporary_folder() as folder:
        size = f"--window-size={WIDTH},900"
        found = re.search(rb"data-height=\"(\d+)\"", _run(folder, measured, size, "--dump-dom"))
        height = min(int(found[1]) if found else HIGHEST, HIGHEST)
        made = folder / "report.png"
        size = f"--window-size={WIDTH},{height}"
        _run(folder, page, size, "--hide-scrollbars", f"--screenshot={made}")
        return _content(made)


def _run(folder: Path, page: bytes, *wanted: str) -> bytes:
    """Open a page in Chromium; return what it prints."""
    source = folder / "report.html"
    source.write_bytes(page)
    command = [
        find(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={folder}/profile",
        *wanted,
        source.as_uri(),
    ]
    try:
        return subprocess.run(command, capture_output=True, timeout=LONGEST, check=False).stdout
    except subprocess.TimeoutExpired:
        raise DetmapError("report", "Chromium timed out", "write HTML") from None


def _content(made: Path) -> bytes:
    if not made.is_file():
        raise DetmapError("report", "Chromium wrote no file", "write HTML and print it")
    return made.read_bytes()
