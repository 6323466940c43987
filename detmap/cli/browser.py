"""Chromium, where it is installed: a page as PDF."""

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
    DetmapError : there is none on the path
    """
    for name in NAMES:
        path = shutil.which(name)
        if path is not None:
            return path
    raise DetmapError(
        "report", "PDF is made by Chromium, which is not there", "install it, or write HTML"
    )


def pdf(page: bytes) -> bytes:
    """A page printed.

    Raises
    ------
    DetmapError : Chromium fails, or takes too long
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
            raise DetmapError("report", "Chromium does not come back", "write HTML") from None
        if not made.is_file():
            raise DetmapError("report", "Chromium made no PDF", "write HTML and print it")
        return made.read_bytes()
