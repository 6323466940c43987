"""The library of another platform, run by an emulator on what the kernels of this machine were
called with.

    python -m tests.kernels.crossed linux-aarch64 FOLDER
    python -m tests.kernels.crossed win32-amd64 FOLDER

Every kernel call of `surface` is written down: the memory that it was given, and the same
afterwards. A small C program makes the same calls in the library; every byte must be the same.
Where FOLDER holds the library already, from a wheel, that one is called.
"""

import ctypes
import json
import struct
import subprocess
import sys
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from detmap.kernels import Kernel, native
from tools import build_native

ZIG = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu"]
TOOLS = {  # the compiler, options for a program that finds the library beside it, the emulator
    "linux-aarch64": (
        ["aarch64-linux-gnu-gcc"],
        ["-Wl,-rpath,."],
        ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"],
    ),
    "win32-amd64": (ZIG, [], ["wine64"]),
}
CALLS = 40  # of a kernel and types; so many are compared
LARGEST = 1 << 20  # bytes of memory of a call
HEAD = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef int64_t i; typedef double f; typedef char *p;
static FILE *in, *out;
static uint64_t word(void) { uint64_t w; if (fread(&w, 8, 1, in) != 1) exit(0); return w; }
static char *region[512], *owned[512]; static uint64_t size[512];
static p pointer(void) { uint64_t r = word(), o = word(); return region[r] + o; }
static i integer(void) { return (i)word(); }
static f real(void) { union { uint64_t w; double d; } u; u.w = word(); return u.d; }
"""
MAIN = """
int main(int n, char **names) {{
  in = fopen(names[1], "rb"); out = fopen(names[2], "wb");
  for (;;) {{
    uint64_t which = word(), regions = word();
    union {{ int64_t i; double f; }} result; result.i = 0;
    for (uint64_t r = 0; r < regions; r++) {{
      size[r] = word(); owned[r] = malloc(size[r] + 64);
      region[r] = owned[r] + (64 - (uintptr_t)owned[r] % 64);
      if (size[r] && fread(region[r], size[r], 1, in) != 1) return 3;
    }}
    switch (which) {{
{cases}
    }}
    fwrite(&result, 8, 1, out);
    for (uint64_t r = 0; r < regions; r++) {{
        fwrite(region[r], 1, size[r], out); free(owned[r]);
    }}
    fflush(out);
  }}
}}
"""


class Recorder:
    """Kernel calls, as the C program reads them, and what must come out."""

    def __init__(self) -> None:
        self.kernels: dict[tuple[str, str, str], int] = {}
        self.counts: Counter[int] = Counter()
        self.calls: list[bytes] = []
        self.results: list[bytes] = []
        self.names: list[str] = []
        self._lock = threading.Lock()

    def call(self, kernel: Any, args: tuple[Any, ...], run: Any) -> Any:
        shape: list[object] = []
        flat: list[Any] = []
        kernel._flatten(args, shape, flat)
        letters = native.letters(tuple(shape))
        symbol = native.symbol(kernel.__module__, kernel.__name__, tuple(shape))
        with self._lock:
            which = self.kernels.setdefault((symbol, kernel.result, letters), len(self.kernels))
            spans = regions(list(arrays(args)))
            if self.counts[which] >= CALLS or sum(end - begin for begin, end in spans) > LARGEST:
                return run(*args)
            self.counts[which] += 1
            words = [struct.pack("<QQ", which, len(spans))]
            for begin, end in spans:
                words.append(struct.pack("<Q", end - begin) + ctypes.string_at(begin, end - begin))
            for letter, value in zip(letters, flat, strict=True):
                if letter == "p":
                    at = [r for r, (begin, end) in enumerate(spans) if begin <= value <= end][-1:]
                    words.append(
                        struct.pack("<QQ", at[0], value - spans[at[0]][0]) if at else bytes(16)
                    )
                else:
                    words.append(struct.pack("<q" if letter == "i" else "<d", value))
            result = run(*args)
            made = {"int": "<q", "float": "<d"}.get(kernel.result)
            after = struct.pack(made, result) if made else bytes(8)
            self.calls.append(b"".join(words))
            self.names.append(kernel.__name__)
            self.results.append(after + b"".join(ctypes.string_at(b, e - b) for b, e in spans))
            return result


def arrays(args: Any) -> Any:
    """Every array among arguments."""
    for arg in args:
        if isinstance(arg, tuple):
            yield from arrays(arg)
        elif isinstance(arg, np.ndarray):
            yield arg


def regions(found: list[Any]) -> list[tuple[int, int]]:
    """The memory of arrays, each piece once where some overlap."""
    spans: list[tuple[int, int]] = [(0, 0)][:0]
    for begin, end in sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in found):
        if spans and begin < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return spans or [(0, 0)]


def compare(name: str, folder: Path) -> dict[str, Any]:
    """Record, link, run, compare."""
    from tests.kernels import surface

    recorder, call = Recorder(), Kernel.__call__
    Kernel.__call__ = lambda self, *args: recorder.call(self, args, lambda *a: call(self, *a))  # type: ignore[method-assign, assignment]
    try:
        surface.outcomes()
    finally:
        Kernel.__call__ = call  # type: ignore[method-assign]
    (folder / "main.c").write_text(program(recorder))
    (folder / "calls").write_bytes(b"".join(recorder.calls))
    compiler, options, emulator = TOOLS[name]
    platform = build_native.PLATFORMS[name]
    if not (folder / platform.file).exists():
        code = build_native.emit(build_native.kept()[1], platform.triple)
        (folder / "kernels.o").write_bytes(code)
        link = [*compiler, "-shared", "-nostdlib", "-o", platform.file, "kernels.o"]
        subprocess.run(link, cwd=folder, check=True)
    made = [*compiler, "-O1", "-o", "run.exe", "main.c", platform.file, *options]
    subprocess.run(made, cwd=folder, check=True)
    subprocess.run([*emulator, "./run.exe", "calls", "results"], cwd=folder, check=True)
    found, at, wrong = (folder / "results").read_bytes(), 0, Counter[str]()
    for kernel, wanted in zip(recorder.names, recorder.results, strict=True):
        wrong[kernel] += found[at : at + len(wanted)] != wanted
        at += len(wanted)
    text = {"kernels": len(recorder.kernels), "calls": len(recorder.calls), "bytes": at}
    return {**text, "read": len(found), "wrong": +wrong}


def program(recorder: Recorder) -> str:
    """The source of the program that makes the calls."""
    declared, cases = [], []
    for (symbol, result, letters), which in recorder.kernels.items():
        returned = {"None": "void", "float": "f", "int": "i"}[result]
        declared.append(f"extern {returned} {symbol}({', '.join(letters)});")
        readers = {"p": "pointer()", "i": "integer()", "f": "real()"}
        locals_ = "".join(
            f"{letter} a{n} = {readers[letter]}; " for n, letter in enumerate(letters)
        )
        into = {"void": "", "i": "result.i = ", "f": "result.f = "}[returned]
        passed = ", ".join(f"a{n}" for n in range(len(letters)))
        cases.append(f"    case {which}: {{ {locals_}{into}{symbol}({passed}); break; }}")
    return HEAD + "\n".join(declared) + MAIN.format(cases="\n".join(cases))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    json.dump(compare(sys.argv[1], Path(sys.argv[2]).absolute()), sys.stdout)
