"""The library of the kernels' machine code: used where it fits, passed over with a line where not;
and what a kernel refuses."""

from __future__ import annotations

import ast
import json
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from detmap.errors import DetmapError
from detmap.kernels import Kernel, jit, kernel, native
from tests.support.package_source import MODULES, PACKAGE, nodes
from tests.support.running import python
from tools import build_native

ROOT = Path(__file__).resolve().parents[2]
BUILT = native.LIBRARY
CHANGED = native.changed_since(build_native.kept()[0])
NUMBERS = np.arange(5.0)
MEGABYTE = 1 << 20


@kernel
def count_rows(numbers: Any) -> int:
    """Trivial on purpose: compiled in no time."""
    return numbers.shape[0]


@kernel
def as_pair(number: float) -> Any:
    """For kernels only."""
    return number, number


def kernel_of(source: str, name: str) -> Kernel[..., Any]:
    module = ModuleType(name)
    module.__dict__["kernel"] = kernel
    exec(f"@kernel\n{source}", module.__dict__)
    found: Kernel[..., Any] = module.__dict__["f"]
    return found


# --- which library is used ------------------------------------------------------------------------


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where this process looks for the library; nothing lies there yet."""
    path = tmp_path / native.LIBRARY.name
    monkeypatch.setattr(native, "LIBRARY", path)
    monkeypatch.delenv("DETMAP_KERNELS", raising=False)
    native.library.cache_clear()
    native.tell.cache_clear()
    yield path
    native.library.cache_clear()
    native.tell.cache_clear()


MADE_OF = f"{native.description()}; numba 1"


def test_a_library_of_these_sources_is_whole() -> None:
    sealed = native.seal(b"any code", MADE_OF)
    assert native.fault(sealed) == frozenset()
    body = len(sealed) - 65
    for place in {*range(20), *range(0, len(sealed), 97), *range(body, len(sealed))}:
        flipped = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        for damaged in (sealed[:place], flipped):
            with pytest.raises(OSError, match="it is damaged"):
                native.fault(damaged)


def test_kernels_that_changed_and_who_uses_them_are_left_to_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their code: docstrings, comments and line ends may differ."""

    def written(**texts: str) -> str:
        """The description of these modules."""
        for name, text in texts.items():
            path = tmp_path / ("wing/kernels" if name == "winged" else "kernels") / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        return f"{native.description()}; numba 1"

    monkeypatch.setattr(native, "FOLDER", tmp_path / "kernels")
    for name in ("digest", "sources_digest"):
        monkeypatch.setattr(native, name, getattr(native, name).__wrapped__)
    user = "from detmap.kernels.loop import (\n    f,\n)\n"
    far, package = "from detmap.kernels.user import f\n", "from detmap.kernels import loop\n"
    winged = "from detmap.wing.kernels import winged\nfrom detmap.kernels.loop import f\n"
    made_of = written(
        loop='"""One."""\n\n\ndef f(x):\n    """Two\n    lines."""\n    return x + 1  # é\n',
        **{
            "user": user,
            "far": far,
            "package": package,
            "winged": winged,
            "alone": "import numpy\n",
        },
    )
    for same in (
        '# word\n"""Öne #."""\ndef f(x):\n    "Three"\n\n    return x + 1\n',
        '"""One."""\r\ndef f(x):\r\n    return x + 1\r\n',
    ):
        assert written(loop=same) != made_of
        assert native.changed_since(made_of) == frozenset()
    users = {f"detmap.kernels.{name}" for name in ("loop", "user", "far", "package")}
    users.add("detmap.wing.kernels.winged")
    for other in ("def f(x):\n    return x + 2\n", "def f(x):\n    '#'\n    return x + 1, '#'\n"):
        assert native.changed_since(written(loop=other)) == frozenset()
        assert native.changed_since(made_of) == users
    made_of = written(alone="import os\n")
    written(new="x = 1\n")
    assert native.changed_since(made_of) == {"detmap.kernels.new"}
    shutil.rmtree(tmp_path / "wing")  # a wing that is taken off
    assert native.changed_since(made_of) == {"detmap.kernels.new"}


@pytest.mark.parametrize("described", ["", "kernels 0123; sources 4567; numba 1", "x=y"])
def test_a_library_that_describes_nothing_is_all_old(described: str) -> None:
    assert native.fault(native.seal(b"any code", described)) == set(native.sources())


def test_an_old_kernel_is_not_called(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "detmap.kernels.match"
    monkeypatch.setattr(native, "fault", lambda data: frozenset([module]))
    shutil.copy(BUILT, library)
    assert native.entry(module, "best_free", "int", ()) is None
    assert native.library().opened is not None
    assert native.library().age() == f"kernels of match changed since {library.name} was made"
    assert "e, f, g and 1 more" in native.Library(None, "", frozenset("efgh")).age()
    monkeypatch.setenv("DETMAP_KERNELS", "native")
    with pytest.raises(DetmapError, match=r"_native\.\w+ has no digest_f"):
        native.entry("detmap.kernels.digest", "f", "int", ())
    with pytest.raises(DetmapError, match="kernels of match changed since _native"):
        native.entry(module, "best_free", "int", ())


def test_the_library_is_of_these_kernels() -> None:
    """Says which kernels numba compiles until the next release; `build_native.py --check` too."""
    if CHANGED:
        pytest.skip(f"kernels.ll.xz is older than {', '.join(sorted(CHANGED))}")


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "is not used: it is damaged"),
        (native.seal(b"code of another architecture", MADE_OF), "is not used: the system cannot"),
    ],
)
def test_a_library_that_does_not_fit_is_passed_over_with_a_line(
    content: bytes, words: str, library: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library.write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="detmap"):
        for _ in range(2):
            assert native.entry("detmap.kernels.match", "f", "int", ("i",)) is None
    (record,) = caplog.records
    assert words in record.getMessage()


def test_a_pipe_in_place_of_the_library_is_not_read(library: Path) -> None:
    library.unlink(missing_ok=True)
    os.mkfifo(library)
    assert native.entry("detmap.kernels.match", "f", "int", ("i",)) is None
    assert "no linker at installation" in native.library()[1]


def test_the_native_library_wins_over_plain_python() -> None:
    code = "import sys; from detmap import kernels; print(kernels.PLAIN_PYTHON)"
    for mode, plain in (("native", "False"), ("numba", "True")):
        ran = python("-c", code, NUMBA_DISABLE_JIT=1, DETMAP_KERNELS=mode)
        assert ran.out.strip() == plain


def test_who_waits_for_numba_is_told_once_why_and_what_to_do(library: Path, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, logger="detmap"):
        for _ in range(2):
            native.tell()
    (record,) = caplog.records
    assert f"there is no {library.name}" in record.getMessage()
    assert "python tools/build_native.py" in record.getMessage()


def test_the_environment_forces_either(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DETMAP_KERNELS", "numba")
    assert native.entry("detmap.kernels.match", "f", "int", ()) is None
    monkeypatch.setenv("DETMAP_KERNELS", "native")
    with pytest.raises(DetmapError, match="kernel f: there is no _native"):
        native.entry("detmap.kernels.match", "f", "int", ())
    monkeypatch.setenv("DETMAP_KERNELS", "moon")
    with pytest.raises(DetmapError, match="'moon' is not known"):
        native.entry("detmap.kernels.match", "f", "int", ())


def test_the_digest_is_that_of_every_kernel_whatever_the_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "FOLDER", tmp_path / "kernels")
    (tmp_path / "kernels" / "inner").mkdir(parents=True)
    seen = set()
    for content in ("a\n", "a\r\n", "a  # words\n", "b\n"):
        (tmp_path / "kernels" / "inner" / "loop.py").write_bytes(content.encode())
        (tmp_path / "kernels" / "native.py").write_text(f"machinery {len(seen)}")
        seen.add(native.digest.__wrapped__())
    assert len(seen) == 2


def test_a_symbol_says_kernel_and_types() -> None:
    key = ((np.dtype(np.longlong), 1), "i", "f", (np.dtype(np.bool_), 2))
    wanted = "match_best_free__i8x1_i_f_b1x2"
    assert native.symbol("detmap.kernels.match", "best_free", key) == wanted
    assert native.symbol("a.match", "best_free", ((np.dtype("i8"), 1), *key[1:])) == wanted
    assert native.letters(key) == "piifpii"


def test_a_kernel_of_somebody_else_is_never_called_in_the_library() -> None:
    assert native.entry("elsewhere.kernels.match", "best_free", "int", ()) is None


# --- numba ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_numba_runs_what_the_library_lacks_with_the_types_of_the_c_function() -> None:
    fresh: Kernel[..., Any] = kernel_of("def f(x, n) -> int: return x.shape[0] + n", "own")
    assert fresh(NUMBERS, 2) == fresh(NUMBERS, np.int8(2)) == fresh(NUMBERS, np.True_) + 1 == 7
    assert len(jit.cached(fresh).signatures) == 1


@pytest.mark.slow
def test_the_cache_of_numba_knows_other_files(monkeypatch: Any) -> None:
    """Numba compares the file of the outermost function only."""
    keys = []
    for digest in ("a", "b"):
        monkeypatch.setattr(native, "digest", lambda digest=digest: digest)
        cache = jit.cached(count_rows)._cache  # type: ignore[attr-defined]
        from numba.core.registry import cpu_target

        keys.append(cache._index_key((), cpu_target.target_context.codegen()))
    assert keys[0] != keys[1]


@pytest.mark.slow
def test_no_module_starts_a_process() -> None:
    """Helpers ran whatever lay beside the data, and whatever `sys.executable` was."""
    starters = {"subprocess", "multiprocessing", "pty"}
    calls = {"fork", "system", "popen", "posix_spawn", "posix_spawnp", "spawnv", "execv", "execve"}
    for path in MODULES:
        # a report as PDF, where a user asks for it
        if path == PACKAGE / "analysis" / "chromium.py":
            continue
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not starters & {name.split(".")[0] for name in names}, path
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
                assert node.attr not in calls, path


# --- what a kernel refuses ------------------------------------------------------------------------


def test_a_kernel_without_a_return_annotation_is_refused_when_it_is_made() -> None:
    for annotation in ("", " -> str", " -> NDArray[np.int32]"):
        with pytest.raises(TypeError, match="kernel f is annotated to return"):
            kernel_of(f"def f(x){annotation}: return x", "refused")
    for annotation in ("None", "int", "float"):
        kernel_of(f"def f(x) -> {annotation}: return x", "accepted")


def test_a_kernel_for_kernels_only_is_refused_when_python_calls_it() -> None:
    with pytest.raises(TypeError, match="kernel as_pair is annotated to return Any"):
        as_pair(1.0)


@pytest.mark.parametrize(
    "args, kwargs, error, words",
    [
        ((NUMBERS,), {"numbers": NUMBERS}, TypeError, "takes no arguments by name: numbers"),
        ((), {"numbers": NUMBERS}, TypeError, "takes no arguments by name"),
        ((), {}, TypeError, "takes 1 arguments, not 0"),
        ((NUMBERS, 1), {}, TypeError, "takes 1 arguments, not 2"),
        ((NUMBERS[::2],), {}, ValueError, "takes C-contiguous arrays only"),
        ((np.ones((3, 2), order="F"),), {}, ValueError, "takes C-contiguous arrays only"),
        ((NUMBERS.astype(">f8"),), {}, TypeError, "takes no arrays of >f8"),
        ((np.array(["a"]),), {}, TypeError, "takes no arrays of <U1"),
        ((np.array([None]),), {}, TypeError, "takes no arrays of object"),
        (("5",), {}, TypeError, "not str"),
        ((None,), {}, TypeError, "not NoneType"),
        (([1, 2],), {}, TypeError, "not list"),
    ],
)
def test_a_kernel_names_itself_in_what_it_refuses(
    args: tuple[Any, ...], kwargs: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=f"kernel count_rows .*{words}"):
        count_rows(*args, **kwargs)


# --- what is compiled -----------------------------------------------------------------------------


RECORD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from detmap.kernels import native
from tools.build_native import record
from {module} import {name} as work
symbols = [native.symbol(each.__module__, each.__name__, key) for each, key, _ in record(work)]
json.dump(symbols, sys.stdout)
"""


def recorded(module: str, name: str) -> set[str]:
    """The kernels and types that some work calls for."""
    code = RECORD.format(module=module, name=name)
    done = python("-W", "ignore", "-c", code, ROOT, cwd="/", timeout=1800)
    assert done.code == 0, done.err
    return set(json.loads(done.out.splitlines()[-1]))


@pytest.mark.slow
def test_the_warm_up_leaves_nothing_to_compile_for_anything_public() -> None:
    """`rank` compiled again after `warmup`."""
    warm = recorded("detmap.warmup", "warmup")
    assert len(warm) > 20
    assert recorded("tests.kernels.surface", "outcomes") - warm == set()


@pytest.mark.parametrize(
    "line",
    [
        "fmadd d0, d1, d2, d3",
        "\tfmla v0.2d, v1.2d, v2.2d",
        "fnmsub s0",
        "\tvfmadd213sd",
        "vfnmadd231pd",
    ],
)
def test_a_fused_operation_is_noticed(line: str) -> None:
    assert build_native.FUSED.search(f"fmul d0, d1\n{line}\n")


def test_what_is_not_fused_is_not_mistaken_for_it() -> None:
    lines = ["\tmadd x0, x1, x2, x3", "\tfmov d0, d1", "\tfmul d0, d1, d2", "\tfmax d0"]
    assert not build_native.FUSED.search("\n".join(lines))


def test_a_kernel_that_needs_numba_at_run_time_is_refused() -> None:
    stub = "declare void @NRT_Free(ptr) #1\n@PyExc_E = external global i8\n"
    made = build_native.without_python(stub)
    assert "define internal void @NRT_Free(ptr) #1 {" in made
    assert "@PyExc_E = internal global i8 0" in made
    with pytest.raises(AssertionError, match="kernels call strange_helper"):
        build_native.without_python("declare void @strange_helper(ptr)\n")


# --- wheels ---------------------------------------------------------------------------------------


def can_link() -> bool:
    """Whether this machine can link."""
    try:
        return bool(build_native.linker(build_native.host()))
    except (LookupError, KeyError):
        return False


can_build = pytest.mark.skipif(not can_link(), reason="there is no linker for this machine")


def made(kind: str, place: Path, **environment: str) -> Path:
    """A distribution as the build makes it, here without an environment of its own."""
    build = f"import sys; from hatchling.build import build_{kind} as b; b(sys.argv[1])"
    command = [sys.executable, "-c", build, str(place)]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | environment)
    (found,) = place.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel of this machine is unpacked, which is all that its installation is."""
    place = tmp_path_factory.mktemp("wheel")
    wheel = made("wheel", place)
    assert not wheel.name.endswith("none-any.whl")
    assert wheel.stat().st_size < 2 * MEGABYTE
    names = zipfile.ZipFile(wheel).namelist()
    assert names.count(f"detmap/kernels/{native.LIBRARY.name}") == 1
    assert not any(name.startswith(("tools", "tests")) for name in names)
    zipfile.ZipFile(wheel).extractall(place / "site")
    return place / "site"


def surface(site: Path, kernels: str) -> Any:
    """What everything public gives, by kernels from there."""
    environment = {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "DETMAP_KERNELS": kernels}
    done = python("-P", "-m", "tests.kernels.surface", cwd="/", timeout=1800, **environment)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["detmap"].startswith(str(site))
    return found


@can_build
@pytest.mark.slow
def test_a_run_from_the_wheel_has_the_bits_of_numba(site: Path) -> None:
    carried = surface(site, "" if CHANGED else "native")
    assert carried["numba"] == bool(CHANGED)
    assert surface(site, "numba")["outcomes"] == carried["outcomes"]


def test_without_a_linker_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda command: None)
    monkeypatch.setattr(build_native.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LookupError, match="there is no linker"):
        build_native.linker("linux-x86_64")


@pytest.mark.slow
def test_the_source_distribution_can_build_the_library(tmp_path: Path) -> None:
    with tarfile.open(made("sdist", tmp_path)) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tools/build_hook.py", "tools/build_native.py", "tools/kernels.ll.xz"} <= inside
    assert not any("/_native." in name for name in inside)


@can_build
@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("qemu-aarch64-static") and shutil.which("aarch64-linux-gnu-gcc")),
    reason="needs qemu-user-static and gcc-aarch64-linux-gnu",
)
def test_the_code_for_aarch64_gives_every_byte_that_this_machine_gives(tmp_path: Path) -> None:
    from tests.kernels import crossed

    found = crossed.compare("linux-aarch64", tmp_path)
    assert found["wrong"] == {}
    assert found["read"] == found["bytes"] > 10 * MEGABYTE
    assert found["kernels"] > 20
    assert found["calls"] > 10 * found["kernels"]
