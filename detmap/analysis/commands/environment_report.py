"""Versions, optional packages and kernels of this installation, for bug reports."""

import os
from importlib import metadata

from detmap.core.results.signature import environment
from detmap.kernels import native

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
"""The package of each extra of detmap-eval."""

HOSTS = (
    *("torchmetrics", "lightning", "ultralytics", "torchvision", "mmengine", "detectron2"),
    *("mlflow", "wandb", "tensorboard", "evaluate", "huggingface_hub", "transformers"),
    *("supervision", "sahi", "fiftyone", "ray", "pyspark", "distributed", "pytest", "pre-commit"),
)
"""Packages in which detmap's integrations run."""


def text() -> str:
    """Returns one line per fact."""
    known, reason, _ = native.library()
    kernels = "the compiled library" if known is not None else f"numba ({reason})"
    if older := native.library().age():
        kernels += f", and numba ({older})"
    facts = environment() | {
        "processors": str(os.cpu_count()),
        "NumPy sorts with": ", ".join(_instructions()) or "no vector instructions",
        "kernels": kernels,
        "DETMAP_KERNELS": os.environ.get("DETMAP_KERNELS", "not set"),
    }
    extras = {
        f"extra {name}": f"{package} {_version(package) or 'is not installed'}"
        for name, package in OPTIONAL.items()
    }
    found = [f"{host} {version}" for host in HOSTS if (version := _version(host))]
    lines = facts | extras | {"hosts found": ", ".join(found) or "none"}
    width = max(map(len, lines))
    return "".join(f"{name:<{width}}  {value}\n" for name, value in lines.items())


def _version(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _instructions() -> list[str]:
    """Instruction sets that decide the order of NumPy's unstable sort."""
    from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]

    return [name for name in ("AVX2", "AVX512_SKX") if __cpu_features__.get(name)]
