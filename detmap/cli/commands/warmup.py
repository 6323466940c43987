"""Compile the kernels ahead of the first evaluation."""

from __future__ import annotations

import argparse

from detmap.cli import streams

EXAMPLES = ("detmap warmup", "NUMBA_CACHE_DIR=/scratch/numba DETMAP_KERNELS=numba detmap warmup")


def add(command: argparse.ArgumentParser) -> None:
    """There are no options."""


def run(arguments: argparse.Namespace) -> int:
    """Use every kernel once."""
    from detmap.warmup import warmup

    warmup()
    streams.inform("the kernels are ready\n")
    return 0
