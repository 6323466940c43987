"""Take pictures of a report in headless Chromium, to look at it: wide and narrow, light and dark,
and as it prints.

    detmap report TRUTH DETECTIONS -o report.html
    python tools/look.py report.html pictures/          # seven pictures and a PDF
    python tools/look.py report.html docs/report.png    # its head, as the README shows it

Needs Chromium, its driver and `pip install selenium`.
"""

import argparse
import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

VIEWS = {
    "1280": (1280, "light"),
    "1280-dark": (1280, "dark"),
    "768": (768, "light"),
    "560": (560, "light"),
    "390": (390, "light"),
    "390-dark": (390, "dark"),
}
HEAD = (960, 640)  # of the picture in the README


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("place", type=Path, help="a folder, or one file for the head alone")
    arguments = parser.parse_args()
    with browser() as driver:
        if arguments.place.suffix == ".png":
            show(driver, arguments.page, HEAD[0], "light")
            arguments.place.write_bytes(picture(driver, whole=False))
            return
        arguments.place.mkdir(parents=True, exist_ok=True)
        for name, (width, scheme) in VIEWS.items():
            show(driver, arguments.page, width, scheme)
            (arguments.place / f"{name}.png").write_bytes(picture(driver, whole=True))
        show(driver, arguments.page, 1280, "light", media="print")
        (arguments.place / "print.png").write_bytes(picture(driver, whole=True))
        pages = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        (arguments.place / "print.pdf").write_bytes(base64.b64decode(pages["data"]))


@contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium, for as long as it is needed."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        yield driver
    finally:
        driver.quit()


def show(driver: Any, page: Path, width: int, scheme: str, media: str = "") -> None:
    """Open the page as somebody sees it."""
    size = {"width": width, "height": HEAD[1], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    driver.get(page.resolve().as_uri())


def picture(driver: Any, *, whole: bool) -> bytes:
    """PNG of the page, or of what is seen of it."""
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": whole})
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    main()
