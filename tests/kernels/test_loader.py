"""Machine code that is loaded without LLVM: the same function, in memory that nobody writes to."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detmap.kernels import compiler, grouping, kernel, linker, loader
from detmap.kernels.compiler import Entry
from detmap.kernels.object_code import WITH_ADDENDS, sections_of

pytestmark = pytest.mark.skipif(not loader.HERE, reason="Linux on x86-64 only")

ROOT = Path(__file__).resolve().parents[2]


@kernel
def blot(numbers: Any) -> float:
    """A call of memset, a constant in a section of its own, a loop."""
    total = 0.0
    for i in range(numbers.size):
        total += numbers[i] * 0.1
    numbers[:] = 0
    return total


@pytest.fixture(scope="module")
def entry() -> Entry:
    return compiler.build(blot, (np.zeros(1),)).entry()


def run(address: int, numbers: np.ndarray[Any, Any]) -> float:
    signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)
    return float(signature(address)(numbers.ctypes.data, numbers.size))


def load(entry: Entry) -> int | None:
    return loader.load(entry.machine_code, entry.symbol, *linker._addresses())


@pytest.mark.slow
def test_the_same_bits_as_by_llvm(entry: Entry) -> None:
    numbers = np.random.default_rng(0).normal(size=1000)
    own, llvm, plain = numbers.copy(), numbers.copy(), numbers.copy()
    expected = blot.function(plain)
    assert run(load(entry) or 0, own) == run(linker._linked(entry, False), llvm) == expected
    assert not own.any()
    assert not llvm.any()


@pytest.mark.slow
def test_code_is_run_and_not_written_to(entry: Entry) -> None:
    address = load(entry) or 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(word, 16) for word in line.split()[0].split("-"))
        if begin <= address < end:
            assert line.split()[1] == "r-xp"
            return
    raise AssertionError("the code is nowhere")


@pytest.mark.slow
def test_what_kernels_do_not_have_is_left_to_llvm(entry: Entry) -> None:
    """A relocation of another kind."""
    table = next(
        section
        for section in sections_of(entry.machine_code)
        if section.kind == WITH_ADDENDS and section.size
    )
    code = bytearray(entry.machine_code)
    struct.pack_into("<I", code, table.offset + 8, 24)
    assert load(entry._replace(machine_code=bytes(code))) is None


def test_kernels_from_the_cache_need_neither_numba_nor_llvm() -> None:
    key, rows, off = np.array([1, 0], np.int32), np.empty(2, np.int32), np.empty(3, np.int64)
    grouping.group(key, np.arange(2, dtype=np.int32), rows, off)  # compiled once, if ever
    script = """
import sys
import numpy as np
from detmap.kernels import grouping
key, rows, off = np.array([1, 0], np.int32), np.empty(2, np.int32), np.empty(3, np.int64)
grouping.group(key, np.arange(2, dtype=np.int32), rows, off)
print(rows.tolist(), [name for name in ("numba", "llvmlite.binding") if name in sys.modules])
"""
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert out.strip() == "[1, 0] []"
