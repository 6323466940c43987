"""How time grows with detections, images, classes and thresholds: what is measured, and the figure.

python tools/bench.py growth --runs 2 --statistic min --figure docs/growth.png
"""

from pathlib import Path
from typing import Any

BASE = {"images": 4_000, "per_image": 100, "classes": 80, "thresholds": 10}
AXES = {
    "detections per image": ("per_image", (50, 100, 150, 200)),
    "images": ("images", (2_000, 4_000, 6_000, 8_000)),
    "classes": ("classes", (80, 400, 800, 1_200)),
    "IoU thresholds": ("thresholds", (10, 20, 40, 60)),
}


def tasks(axis: str) -> dict[str, dict[str, Any]]:
    """The tasks of an axis, by column."""
    key, sizes = AXES[axis]
    base = {"job": "growth", "calls": 3, "threads": 1, **BASE}
    return {f"{size:,}": {**base, key: size} for size in sizes}


def draw(found: dict[str, dict[int, float]], path: Path) -> None:
    """Writes the figure: per axis the seconds at each size, and the straight line next to them."""
    import numpy as np
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(found), figsize=(12, 2.9), sharey=True)
    for panel, (axis, seconds) in zip(panels, found.items(), strict=True):
        sizes, times = np.array(list(seconds)), np.array(list(seconds.values()))
        slope, start = np.polyfit(sizes, times, 1)
        panel.plot(sizes, times, "o", label="measured")
        panel.plot(sizes, start + slope * sizes, "-", label="least squares")
        panel.set_xlabel(axis)
        panel.set_xlim(left=0)
        panel.grid(alpha=0.3)
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("processor time (s)")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
