"""Compile every kernel for the wheel: object code for plain x86-64 and plain armv8-a, on Linux.

    python tools/build_kernels.py OUT              # OUT/linux-x86_64/*.kernel,
    OUT/linux-aarch64/... python tools/build_kernels.py OUT --assembly   # and the assembly beside
    it, to be read

The wheel's build runs it (`tools/build_hook.py`). What is compiled is nowhere listed: detmap's
warm-up uses everything public once, on next to nothing and as plain Python, and each kernel is
compiled for the types of arguments that it then meets. The files are those of the cache
(`detmap.kernels.identity`), for a processor that every machine of its kind can stand in for.

The code for aarch64 is LLVM's, from the same optimised module as that for x86-64: no operation
is fused, added or reordered on the way, which is checked here in its assembly.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TRIPLES = {"linux x86_64": "x86_64-unknown-linux-gnu", "linux aarch64": "aarch64-unknown-linux-gnu"}
HOST = "linux x86_64"  # where this runs; elsewhere it was never tried
FUSED = re.compile(r"^\s*v?fn?m(add|sub|la|ls)", re.MULTILINE)


class Use(NamedTuple):
    """A kernel, and arguments of the types for which it is wanted."""

    kernel: Any
    key: tuple[object, ...]
    args: tuple[Any, ...]


def record(work: Callable[[], None]) -> list[Use]:
    """The kernels that Python calls during some work, once for each combination of types; they run
    as plain Python meanwhile.
    """
    from detmap.kernels import Kernel

    uses: dict[tuple[object, ...], Use] = {}
    within = threading.local()
    call = Kernel.__call__

    def recorded(self: Any, *args: Any) -> Any:
        outermost = not getattr(within, "kernel", False)
        if outermost:
            shape: list[object] = []
            for arg in args:
                self._flatten(arg, shape, [])
            key = tuple(shape)
            uses.setdefault((self.__module__, self.__qualname__, key), Use(self, key, args))
        within.kernel = True
        try:
            return self.function(*args)
        finally:
            within.kernel = not outermost

    Kernel.__call__ = recorded  # type: ignore[method-assign]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of the wrap-around of digests
            work()
    finally:
        Kernel.__call__ = call  # type: ignore[method-assign]
    return list(uses.values())


def keep_modules() -> dict[str, str]:
    """Have numba leave the optimised module of each library here, by its name.

    Making object code of a module changes it in ways that suit the one processor only; so a copy
    from before that is kept, and is what other libraries are linked with.
    """
    import llvmlite.binding as binding
    from numba.core.codegen import CPUCodeLibrary

    modules: dict[str, str] = {}
    optimise = CPUCodeLibrary._optimize_final_module

    def kept(self: Any) -> None:
        optimise(self)
        modules[self.name] = str(self._final_module)
        copy = self._final_module.clone()
        for function in copy.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"  # as numba does it
        self._shared_module = copy

    CPUCodeLibrary._optimize_final_module = kept
    return modules


def translated(module: str, triple: str) -> tuple[bytes, str]:
    """Object code and assembly of an optimised module."""
    import llvmlite.binding as binding

    target = binding.Target.from_triple(triple)
    machine = target.create_target_machine(opt=3, jit=True)
    if "@llvm.x86." in module:
        raise AssertionError(
            f"operations of x86-64 only: {set(re.findall(r'@llvm.x86[^(]*', module))}"
        )
    module = re.sub(r'^target triple = ".*"$', f'target triple = "{triple}"', module, flags=re.M)
    layout = f'target datalayout = "{machine.target_data}"'
    module = re.sub(r'^target datalayout = ".*"$', layout, module, flags=re.M)
    module = re.sub(r'"(target-cpu|target-features|tune-cpu)"="[^"]*"', "", module)
    parsed = binding.parse_assembly(module)
    return machine.emit_object(parsed), machine.emit_assembly(parsed)


def build(out: Path, keep_assembly: bool) -> list[Path]:
    """Write the files of all kernels; their paths.

    Raises
    ------
    AssertionError : a kernel cannot be carried: it needs numba, or a fused operation came in
    """
    import llvmlite.binding as binding

    import detmap.compat  # noqa: F401  (an error here, where the warm-up would pass it over)
    from detmap.kernels import compiler, identity, object_code, store
    from detmap.warmup import warmup

    if identity.platform() != HOST:
        raise SystemExit(f"build_kernels: this is no {HOST}")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    outside = {*compiler.C_FUNCTIONS, *compiler.NEVER_CALLED}
    written, modules = [], keep_modules()
    for use in record(warmup):
        built = compiler.build(use.kernel, use.args)
        for platform, triple in TRIPLES.items():
            code, assembly = translated(modules[built.library.name], triple)
            if FUSED.search(assembly):
                raise AssertionError(f"{use.kernel.__name__} for {platform}: a fused operation")
            entry = compiler.Entry(built.symbol, built.result, built.parameters, code)
            reason = object_code.fault(code, built.symbol, outside, platform.split()[1])
            if reason:
                raise AssertionError(f"{use.kernel.__name__} for {platform}: {reason}")
            is_ = identity.identity(use.kernel, use.key, platform, store.BASELINE[platform])
            path = out / platform.replace(" ", "-") / identity.file_name(is_)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(identity.pack(entry, is_, compiled_by=identity.compilers()))
            written.append(path)
            if keep_assembly:
                path.with_suffix(".s").write_text(assembly, encoding="utf-8")
    return written


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--assembly", action="store_true", help="write the assembly as well")
    options = parser.parse_args()
    # Before numba is imported: any x86-64 machine, and nothing that this one has beyond it.
    os.environ |= {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_JIT": "0"}
    sys.path.insert(0, str(ROOT))
    written = build(options.out, options.assembly)
    size = sum(path.stat().st_size for path in written)
    print(f"{len(written)} files, {size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
