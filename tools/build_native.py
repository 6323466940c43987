"""Make the library of the kernels' machine code, which `detmap.kernels.native` opens.

    python tools/build_native.py                  # for this machine, beside the kernels
    python tools/build_native.py --compile        # of the kernels as they are now, by numba
    python tools/build_native.py --check          # which kernels changed since then; exit 1 if any
    python tools/build_native.py --wheels dist    # a wheel for every platform, on one Linux machine

Numba's part takes most of the time and is the same for every platform: its optimised modules are
kept in `kernels.ll.xz` beside this file, with a description of the sources. It is made anew for a
release, by --compile, which needs numba and all that detmap imports. In between, numba compiles
the kernels that changed where they are used. The rest needs llvmlite and a linker (``cc``, or the
package ziglang, which links for every platform).

What is compiled is listed nowhere: detmap's warm-up uses everything public once as plain Python,
and each kernel is compiled for the types of arguments that it then meets. The code is for every
processor of its kind; that no operation is fused is checked in the assembly for arm.
"""

import argparse
import importlib.util
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MODULES = Path(__file__).with_name("kernels.ll.xz")
C_FUNCTIONS = "memset", "memcpy", "memmove"
NEVER_CALLED = re.compile(r"NRT_|numba_|Py|llvm\.trap$")  # kernels raise and allocate nothing
FUSED = re.compile(r"^\s*v?fn?m(add|sub|la|ls)", re.MULTILINE)
GENERIC = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_JIT": "0"}


class Platform(NamedTuple):
    """One for which a wheel is made: LLVM's name of it, zig's, the file, the wheel's tag."""

    triple: str
    zig: str
    file: str
    tag: str


PLATFORMS = {
    "linux-x86_64": Platform(
        "x86_64-unknown-linux-gnu",
        "x86_64-linux-gnu.2.17",
        "_native.so",
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
    ),
    "linux-aarch64": Platform(
        "aarch64-unknown-linux-gnu",
        "aarch64-linux-gnu.2.17",
        "_native.so",
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
    ),
    "darwin-x86_64": Platform(
        "x86_64-apple-macosx11.0.0", "x86_64-macos.11.0", "_native.dylib", "macosx_11_0_x86_64"
    ),
    "darwin-arm64": Platform(
        "arm64-apple-macosx11.0.0", "aarch64-macos.11.0", "_native.dylib", "macosx_11_0_arm64"
    ),
    "win32-amd64": Platform(
        "x86_64-pc-windows-gnu", "x86_64-windows-gnu", "_native.dll", "win_amd64"
    ),
}


@cache
def native() -> Any:
    """`detmap.kernels.native`, without the packages that the other kernels import."""
    sys.path.insert(0, str(ROOT))
    spec = importlib.util.spec_from_file_location("native", ROOT / "detmap/kernels/native.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def host() -> str:
    """The name of the machine, as in `PLATFORMS` if it is there."""
    import platform

    return f"{sys.platform}-{platform.machine()}".lower()


# --- from the kernels to modules ------------------------------------------------------------------


def record(work: Any) -> list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]]:
    """The kernels that Python calls during some work, the types and arguments, once for each
    combination of types; they run as plain Python meanwhile.
    """
    import threading
    import warnings

    from detmap.kernels import Kernel

    uses: dict[Any, Any] = {}
    within = threading.local()
    call = Kernel.__call__

    def recorded(self: Any, *args: Any) -> Any:
        outermost = not getattr(within, "kernel", False)
        if outermost:
            shape: list[object] = []
            self._flatten(args, shape, [])
            key = tuple(shape)
            uses.setdefault((self.__module__, self.__name__, key), (self, key, args))
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


@cache
def uses() -> list[Any]:
    """What the warm-up calls."""
    import detmap.compat  # noqa: F401  (an error here, where the warm-up would pass it over)
    from detmap.warmup import warmup

    return record(warmup)


def wrapper(kernel: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """A Python function that takes pointers, sides and numbers and calls the kernel, and its
    signature.
    """
    import numba
    import numpy as np
    from numba.core import types

    from detmap.kernels.jit import compiled

    function = compiled(kernel, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    names: dict[str, Any] = {"carray": numba.carray, "kernel": function}
    parameters: list[Any] = []

    def spell(arg: object) -> str:
        """The expression that rebuilds an argument from the parameters."""
        place = len(parameters)
        if isinstance(arg, np.ndarray):
            sides = [f"p{place + 1 + i}" for i in range(arg.ndim)]
            pointer = types.CPointer(numba.from_dtype(arg.dtype))
            parameters.extend([pointer, *[types.int64] * arg.ndim])
            return f"carray(p{place}, ({', '.join(sides)},))"
        if isinstance(arg, tuple):
            names[type(arg).__name__] = type(arg)
            return f"{type(arg).__name__}({', '.join([spell(inner) for inner in arg])})"
        parameters.append(types.float64 if isinstance(arg, float) else types.int64)
        return f"p{place}"

    call = f"kernel({', '.join([spell(arg) for arg in args])})"
    listed = ", ".join(f"p{i}" for i in range(len(parameters)))
    exec(f"def entry({listed}):\n    return {call}\n", names)
    results = {"None": types.void, "float": types.float64, "int": types.int64}
    return names["entry"], results[kernel.result](*parameters)


def compile_one(place: int) -> str:
    """The optimised module of one of the `uses`; nothing but its C function can be seen."""
    import llvmlite.binding as binding
    from numba.core.ccallback import CFunc
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.sigutils import normalize_signature

    JITCodeLibrary._finalize_specific = lambda self: None  # no machine code of modules
    kernel, key, args = uses()[place]
    function, signature = wrapper(kernel, args)
    normal = normalize_signature(signature)
    result = CFunc(function, normal, {}, {"error_model": "numpy"})._compile_uncached()
    with global_compiler_lock:
        result.library._ensure_finalized()
    module = result.library._final_module
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration:
            each.linkage = binding.Linkage.internal
    entry = module.get_function(result.fndesc.llvm_cfunc_wrapper_name)
    entry.linkage = binding.Linkage.external
    entry.name = native().symbol(kernel.__module__, kernel.__name__, key)
    return str(module)


def compile_all() -> str:
    """One module of all kernels, on all processors; it needs nothing but memset and its like.

    Raises
    ------
    AssertionError : a kernel calls what is not there without numba
    """
    import multiprocessing

    import llvmlite.binding as binding

    with multiprocessing.get_context("spawn").Pool(
        initializer=sys.path.insert, initargs=(0, str(ROOT))
    ) as pool:
        modules = pool.map(compile_one, range(len(uses())), chunksize=1)
    whole = binding.parse_assembly(modules[0])
    for module in modules[1:]:
        whole.link_in(binding.parse_assembly(module))
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    binding.initialize_native_target()
    machine = binding.Target.from_default_triple().create_target_machine()
    options = binding.create_pipeline_tuning_options()
    passes.run(whole, binding.create_pass_builder(machine, options))
    return without_python(str(whole))


def without_python(module: str) -> str:
    """A module that defines what it names of Python and numba and never reaches: a trap each."""
    strange = set()

    def body(found: re.Match[str]) -> str:
        head, name, rest = found.groups()
        if name in C_FUNCTIONS or name.startswith("llvm."):
            return found[0]
        if not NEVER_CALLED.match(name):
            strange.add(name)
        return (
            f"define internal {head}@{name}{rest} {{\n  call void @llvm.trap()\n  unreachable\n}}"
        )

    module = re.sub(r"^declare ([^@\n]*)@([\w.]+)(\([^\n]*)$", body, module, flags=re.M)
    module = re.sub(r"^(@\w+ = )external (global \w+)$", r"\1internal \2 0", module, flags=re.M)
    if strange:
        raise AssertionError(f"kernels call {', '.join(sorted(strange))}: needs numba's runtime")
    return (
        module
        if "declare void @llvm.trap()" in module
        else module + "\ndeclare void @llvm.trap()\n"
    )


# --- from modules to a library --------------------------------------------------------------------


def kept() -> tuple[str, str]:
    """The description of the sources and compilers, and the module of all kernels.

    Raises
    ------
    LookupError : there is none
    """
    if not MODULES.exists():
        raise LookupError(f"there is no {MODULES.name}: python tools/build_native.py --compile")
    head, _, module = lzma.decompress(MODULES.read_bytes()).decode().partition("\n")
    return head.removeprefix("; "), module


def compile_anew() -> None:
    """Make the module of all kernels as they are now."""
    os.environ |= GENERIC  # before numba is imported
    import llvmlite
    import numba
    import numpy

    print(f"numba compiles {len(uses())} kernels on {os.cpu_count()} processors")
    versions = (
        f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, numpy {numpy.__version__}"
    )
    text = f"; {native().description()}; {versions}\n{compile_all()}"
    MODULES.write_bytes(lzma.compress(text.encode(), preset=9))


def emit(module: str, triple: str) -> bytes:
    """Object code for a platform.

    Raises
    ------
    AssertionError : an operation of x86-64 only, or a fused operation
    """
    import llvmlite.binding as binding

    if "@llvm.x86." in module:
        raise AssertionError(f"for x86-64 only: {set(re.findall(r'@llvm.x86[^(]*', module))}")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine(
        opt=3, reloc="pic", codemodel="small"
    )
    layout = f'target datalayout = "{machine.target_data}"'
    module = re.sub(r'^target triple = ".*"$', f'target triple = "{triple}"', module, flags=re.M)
    module = re.sub(r'^target datalayout = ".*"$', layout, module, flags=re.M)
    module = re.sub(r'"(target-cpu|target-features|tune-cpu)"="[^"]*"', "", module)
    parsed = binding.parse_assembly(module)
    if not triple.startswith("x86") and FUSED.search(machine.emit_assembly(parsed)):
        raise AssertionError(f"a fused operation for {triple}")
    return bytes(machine.emit_object(parsed))


def linker(name: str) -> list[str]:
    """The command that links for a platform.

    Raises
    ------
    LookupError : there is none
    """
    if name == host() and sys.platform != "win32":
        for command in ("cc", "gcc", "clang"):
            if shutil.which(command):
                return [command, *(["-nostdlib"] if sys.platform == "linux" else [])]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[name].zig]
    raise LookupError("there is no linker: cc, or the package ziglang")


def build(name: str, out: Path) -> None:
    """Write the library of a platform.

    Raises
    ------
    LookupError : the platform is not known, or there is no linker
    OSError : the linker failed
    """
    if name not in PLATFORMS:
        raise LookupError(f"{name} is not one of {', '.join(PLATFORMS)}")
    made_of, module = kept()
    command = linker(name)
    with tempfile.TemporaryDirectory() as place:
        objects, made = Path(place, "kernels.o"), Path(place, PLATFORMS[name].file)
        objects.write_bytes(emit(module, PLATFORMS[name].triple))
        command += ["-shared", "-s", "-o", str(made), str(objects)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
        draft = out.with_name(f".{out.name}.{os.getpid()}")
        draft.write_bytes(native().seal(made.read_bytes(), made_of))
        draft.replace(out)  # at once: a process may run the old one


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="compile the kernels anew first")
    parser.add_argument("--check", action="store_true", help="say which kernels changed; exit 1")
    parser.add_argument("--wheels", metavar="OUT", help="make the wheels of all platforms")
    options = parser.parse_args()
    if options.compile:
        compile_anew()
    changed = sorted(native().changed_since(kept()[0]))
    if changed:
        print(f"numba compiles what is newer than {MODULES.name}: {', '.join(changed)}")
    if options.check or (changed and options.wheels):
        sys.exit(bool(changed))
    if options.wheels:
        code = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
        for name in PLATFORMS:
            subprocess.run(
                [sys.executable, "-c", code, str(Path(options.wheels).absolute())],
                env=os.environ | {"DETMAP_PLATFORM": name},
                cwd=ROOT,
                check=True,
            )
            print(f"{name}: done")
        return
    out = ROOT / "detmap" / "kernels" / PLATFORMS[host()].file
    build(host(), out)
    print(f"{out}: {out.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
