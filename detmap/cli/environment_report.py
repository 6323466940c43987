"""Versions, optional packages and kernels of this installation, for bug reports."""

from __future__ import annotations

import os
from importlib import metadata

from detmap.kernels import native
from detmap.results.signature import environment

OPTIONAL = {
    "plot": "matplotlib",
    "parity": "pycocotools",
    "frames": "pandas",
    "images": "pillow",
    "yolo": "pyyaml",
    "parquet": "pyarrow",
    "dask": "dask",
    "torch": "torch",
    "report": "jinja2",
    "completion": "shtab",
}
"""The package that each extra of detmap-eval stands on."""


def text() -> str:
    """Returns one line per fact."""
    known, reason = native.library()
    facts = environment() | {
        "processors": str(os.cpu_count()),
        "NumPy sorts with": ", ".join(_instructions()) or "no vector instructions",
        "kernels": "the compiled library" if known is not None else f"numba ({reason})",
        "DETMAP_KERNELS": os.environ.get("DETMAP_KERNELS", "not set"),
    }
    extras = {f"extra {name}": _version(package) for name, package in OPTIONAL.items()}
    width = max(map(len, facts | extras))
    return "".join(f"{name:<{width}}  {value}\n" for name, value in (facts | extras).items())


def _version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} is not installed"


def _instructions() -> list[str]:
    """Instruction sets that decide the order of NumPy's unstable sort."""
    from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]

    return [name for name in ("AVX2", "AVX512_SKX") if __cpu_features__.get(name)]
