"""Print a page to PDF with an installed Chromium."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from detmap.errors import DetmapError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LONGEST = 120  # seconds


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
        "report", "PDF output needs Chromium, which is not installed", "install it, or write HTML"
    )


def pdf(page: bytes) -> bytes:
    """Print a page to PDF.

    Raises
    ------
    DetmapError : Chromium fails or times out
    """
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_bytes(page)
        command = [
            find(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder}/profile",
            "--no-pdf-header-footer",
            f"--print-to-pdf={made}",
            source.as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            raise DetmapError("report", "Chromium timed out", "write HTML") from None
        if not made.is_file():
            raise DetmapError("report", "Chromium wrote no PDF", "write HTML and print it")
        return made.read_bytes()
