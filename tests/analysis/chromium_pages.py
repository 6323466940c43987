"""What tests of pages in Chromium share; the fixture `browser` is in conftest.py."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, ("chromium", "chromedriver"))), reason="Chromium and its driver"
    ),
]
UNFOLD = "for (const each of document.querySelectorAll('details')) each.open = true"
AXE = Path(os.environ.get("DETMAP_AXE", "/nowhere/axe.min.js"))
needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="DETMAP_AXE names axe.min.js of axe-core")


@contextmanager
def window(browser: Any, width: int, scheme: str = "light") -> Iterator[None]:
    """A window of this width; Chromium has none below 500 pixels of its own."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    yield
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@contextmanager
def without_policy(browser: Any) -> Iterator[None]:
    """Pages without their policy, which keeps axe-core out."""
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    yield
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})


def require_no_fault(browser: Any) -> None:
    """Runs axe-core on a page without its policy."""
    browser.execute_script(AXE.read_text())
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    faults = [
        (each["id"], each["impact"], [node["html"][:120] for node in each["nodes"][:3]])
        for each in found["violations"]
    ]
    assert faults == []
