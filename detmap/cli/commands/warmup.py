"""Compile the kernels before the first evaluation."""

import argparse

from detmap.cli import streams

EXAMPLES = (
    "detmap warmup",
    "DETMAP_KERNELS=numba detmap warmup",
    "NUMBA_CACHE_DIR=/scratch/numba DETMAP_KERNELS=numba detmap warmup",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare no options."""


def run(arguments: argparse.Namespace) -> int:
    """Run every kernel once."""
    from detmap.warmup import warmup

    streams.inform(f"{warmup()}\n")
    return 0
