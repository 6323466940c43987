"""Machine code on disk: found again without numba, named inside, in a folder of the user's, or not
used; and what a kernel refuses."""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import detmap
from detmap.errors import DetmapError
from detmap.kernels import Kernel, compiler, folder, grouping, identity, kernel, linker, object_code

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
import numpy as np
from detmap.kernels.grouping import group
key, rows = np.array([1, 0, 1, 2], dtype=np.int32), np.empty(4, dtype=np.int32)
off = np.empty(4, dtype=np.int64)
group(key, np.arange(4, dtype=np.int32), rows, off)
print(rows.tolist(), off.tolist(), "numba" in sys.modules)
"""
RIGHT = "[1, 0, 2, 3] [0, 1, 3, 4]"
NUMBERS = np.arange(5.0)

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of files")
linux = pytest.mark.skipif(sys.platform != "linux", reason="ELF")


@kernel
def count_rows(numbers: Any) -> int:
    """Trivial on purpose: compiled in no time."""
    return numbers.shape[0]


@kernel
def count_twice(numbers: Any) -> int:
    """A second one."""
    return 2 * numbers.shape[0]


@kernel
def as_pair(number: float) -> Any:
    """For kernels only."""
    return number, number


def start(
    cache: Path | str, *flags: str, script: str = SCRIPT, **more: Any
) -> subprocess.Popen[str]:
    environment = {**os.environ, "DETMAP_CACHE_DIR": str(cache), **more.pop("environment", {})}
    return subprocess.Popen(
        [sys.executable, *flags, "-c", script],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **{"cwd": ROOT, **more},
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip(), err


class Cache:
    """A cache folder for kernels of this process, what was compiled, and what was said."""

    def __init__(self, path: Path, log: pytest.LogCaptureFixture) -> None:
        self.path, self.log, self.compiled = path, log, 0

    def call(self, function: Kernel[..., Any] = count_rows) -> int:
        """Of a kernel as a new process has it."""
        folder._said.clear()
        self.log.clear()
        self.compiled = 0
        return int(Kernel(function.function)(NUMBERS))

    def said(self) -> list[str]:
        return [record.getMessage() for record in self.log.records]

    def file(self, name: str = "count_rows") -> Path:
        (found,) = self.path.glob(f"{name}-*.kernel")
        return found


@pytest.fixture
def cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Cache]:
    cache = Cache(tmp_path / "cache", caplog)
    build = compiler.build

    def counted(*args: Any) -> Any:
        cache.compiled += 1
        return build(*args)

    monkeypatch.setattr(compiler, "build", counted)
    monkeypatch.setenv("DETMAP_CACHE_DIR", str(cache.path))
    monkeypatch.setenv("DETMAP_KERNELS", "cache")
    with caplog.at_level(logging.WARNING, logger="detmap"):
        yield cache
    folder._said.clear()


# --- a first process and those after it -----------------------------------------------------------


@pytest.mark.slow
def test_the_first_process_compiles_and_says_so_once_and_the_second_needs_no_numba(
    tmp_path: Path,
) -> None:
    out, err = finish(start(tmp_path / "cache"))
    assert out == f"{RIGHT} True"
    assert err.count("compiling kernels") == 1
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".kernel"]
    assert finish(start(tmp_path / "cache")) == (f"{RIGHT} False", "")


@pytest.mark.slow
def test_processes_that_start_at_once_wait_for_nothing_and_leave_whole_files(
    tmp_path: Path,
) -> None:
    outcomes = [finish(process) for process in [start(tmp_path / "cache") for _ in range(2)]]
    assert {out.removesuffix(" True").removesuffix(" False") for out, _ in outcomes} == {RIGHT}
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".kernel"]
    assert finish(start(tmp_path / "cache")) == (f"{RIGHT} False", "")


@pytest.mark.slow
def test_the_folder_and_its_files_are_the_users_alone(cache: Cache) -> None:
    assert cache.call() == 5
    assert cache.compiled == 1
    assert cache.path.stat().st_mode & 0o777 == 0o700
    assert cache.file().stat().st_mode & 0o777 == 0o600
    assert cache.call() == 5
    assert (cache.compiled, cache.said()) == (0, [])


@pytest.mark.slow
def test_two_threads_that_ask_at_once_compile_once(cache: Cache) -> None:
    fresh: Kernel[..., Any] = Kernel(count_rows.function)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fresh, [NUMBERS] * 8)) == [5] * 8
    assert cache.compiled == 1


# --- A1, A2, A7, B1: nothing from outside decides what code runs ----------------------------------


@pytest.mark.slow
def test_no_module_starts_a_process() -> None:
    """A1, A2: helpers ran whatever lay beside the data, and whatever `sys.executable` was."""
    starters = {"subprocess", "multiprocessing", "pty"}
    calls = {"fork", "system", "popen", "posix_spawn", "posix_spawnp", "spawnv", "execv", "execve"}
    package = Path(detmap.__file__).parent
    for path in package.rglob("*.py"):
        if (
            path == package / "cli" / "browser.py"
        ):  # prints a report as PDF where a user asks for it
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not starters & {name.split(".")[0] for name in names}, path
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
                assert node.attr not in calls, path


@pytest.mark.slow
def test_a_cold_cache_runs_nothing_that_lies_beside_the_data(tmp_path: Path) -> None:
    """A1."""
    for name in ("numpy", "numba", "llvmlite", "detmap"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close(); raise SystemExit(3)")
    out, _ = finish(start(tmp_path / "cache", "-I", cwd=tmp_path))
    assert out == f"{RIGHT} True"
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_a_program_that_is_no_python_compiles_alone(tmp_path: Path) -> None:
    """A2."""
    script = "import sys; sys.executable = None" + SCRIPT
    assert finish(start(tmp_path / "cache", script=script))[0] == f"{RIGHT} True"


@pytest.mark.slow
@posix
@pytest.mark.slow
def test_claims_of_older_versions_are_no_reason_to_wait_or_to_write(tmp_path: Path) -> None:
    """A7, B1: claims with any content, FIFOs and links."""
    place = tmp_path / "cache"
    finish(start(place))
    (file,) = place.glob("*.kernel")
    file.rename(tmp_path / "kept")
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    file.with_suffix(".claim").symlink_to(victim)
    os.mkfifo(place / f"{file.stem}.1.claim")
    assert finish(start(place))[0] == f"{RIGHT} True"
    assert victim.read_text() == "untouched"


# --- A6: a file is what it says, or is not used ---------------------------------------------------


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    head, _, code = data[len(identity.MAGIC) + 32 :].partition(b"\n")
    return json.loads(head), code


def signed(content: bytes) -> bytes:
    """A file with the right digest over any content."""
    return identity.MAGIC + hashlib.sha256(content).digest() + content


def with_header(data: bytes, **changes: object) -> bytes:
    header, code = header_of(data)
    return signed(json.dumps({**header, **changes}).encode() + b"\n" + code)


def with_code(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    header, code = header_of(data)
    return signed(json.dumps(header).encode() + b"\n" + change(code))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-100],
    "flipped": lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:],
    "longer": lambda data: data + b"\0",
    "without a line": lambda data: signed(b"no line"),
    "no header": lambda data: signed(b"[1]\n" + header_of(data)[1]),
    "deep header": lambda data: signed(b"[" * 100_000 + b"\n"),
    "not UTF-8": lambda data: signed(b"\xff\n"),
    "numbers in the header": lambda data: with_header(data, symbol=1),
    "another kernel": lambda data: with_header(data, kernel="detmap.kernels.match.best_free"),
    "other types": lambda data: with_header(data, types="<f4:1"),
    "stale source": lambda data: with_header(data, source="0" * 64),
    "stale compilers": lambda data: with_header(data, compilers="numba 0.1"),
    "another version": lambda data: with_header(data, detmap="0.0.1"),
    "another processor": lambda data: with_header(data, processor="znver9"),
    "another platform": lambda data: with_header(data, platform="linux s390x"),
    "another symbol": lambda data: with_header(data, symbol="cfunc.nothing"),
    "no symbol": lambda data: with_header(data, symbol=""),
    "unknown parameters": lambda data: with_header(data, parameters="pz"),
    "unknown result": lambda data: with_header(data, result="str"),
    "text for code": lambda data: with_code(data, lambda code: b"no object code" * 100),
    "no code": lambda data: with_code(data, lambda code: b""),
    "zeros for code": lambda data: with_code(data, lambda code: bytes(len(code))),
    "the magic alone": lambda data: with_code(data, lambda code: code[:64]),
    "half of the code": lambda data: with_code(data, lambda code: code[: len(code) // 2]),
    "code of another machine": lambda data: with_code(
        data, lambda code: code[:18] + struct.pack("<H", 8) + code[20:]
    ),
    "sections elsewhere": lambda data: with_code(
        data, lambda code: code[:40] + struct.pack("<Q", 1 << 62) + code[48:]
    ),
    "sections nowhere": lambda data: with_code(
        data, lambda code: code[:40] + struct.pack("<Q", (1 << 64) - 1) + code[48:]
    ),
}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_not_what_it_says_is_compiled_anew(cache: Cache, damage: str) -> None:
    cache.call()
    good = cache.file().read_bytes()
    bad = DAMAGES[damage](good)
    assert bad != good
    cache.file().write_bytes(bad)
    assert cache.call() == 5
    assert cache.compiled == 1
    assert len(cache.said()) == 1
    assert "passed over and compiled anew" in cache.said()[0]
    assert cache.call() == 5
    assert (cache.compiled, cache.said()) == (0, [])


@pytest.mark.slow
def test_a_file_copied_over_another_is_compiled_anew(cache: Cache) -> None:
    cache.call(count_rows)
    cache.call(count_twice)
    shutil.copy(cache.file("count_twice"), cache.file("count_rows"))
    assert cache.call() == 5
    assert cache.compiled == 1
    assert "its kernel is 'tests.kernels.test_store.count_twice'" in cache.said()[0]


def change_place(cache: Cache, how: str) -> None:
    file = cache.file()
    kept = cache.path.parent / "kept"
    file.rename(kept)
    if how == "link":
        file.symlink_to(kept)
    elif how == "endless":
        file.symlink_to("/dev/zero")
    elif how == "circle":
        file.symlink_to(file)
    elif how == "FIFO":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    elif how == "huge":
        with open(file, "wb") as sparse:
            sparse.truncate(1 << 40)
    elif how == "writable by others":
        shutil.copy(kept, file)
        file.chmod(0o622)
    elif how == "somebody else's":
        shutil.copy(kept, file)
        os.chown(file, 12345, 12345)


PLACES = ("link", "endless", "circle", "FIFO", "folder", "huge", "writable by others")


@pytest.mark.slow
@posix
@pytest.mark.parametrize("how", [*PLACES, "somebody else's"])
def test_what_is_no_file_of_the_users_alone_is_not_read(cache: Cache, how: str) -> None:
    if how == "somebody else's" and os.geteuid():
        pytest.skip("only root gives files away")
    cache.call()
    change_place(cache, how)
    assert cache.call() == 5
    assert cache.compiled == 1
    assert "passed over and compiled anew" in cache.said()[0]
    assert len(cache.said()) == (2 if how == "folder" else 1)  # which cannot be replaced
    assert cache.call() == 5
    assert cache.compiled == (1 if how == "folder" else 0)


@posix
@pytest.mark.parametrize("how", ["mode 777", "mode 770", "a link", "somebody else's", "a file"])
def test_a_folder_that_is_not_the_users_alone_is_not_used(cache: Cache, how: str) -> None:
    if how == "somebody else's" and os.geteuid():
        pytest.skip("only root gives folders away")
    cache.call()
    cache.file().write_bytes(b"")  # would be replaced in a folder that is used
    elsewhere = cache.path.parent / "elsewhere"
    if how == "a link":
        cache.path.rename(elsewhere)
        cache.path.symlink_to(elsewhere)
    elif how == "a file":
        cache.path.rename(elsewhere)
        cache.path.write_text("in the way")
    elif how == "somebody else's":
        os.chown(cache.path, 12345, -1)
    else:
        cache.path.chmod(int(how.split()[1], 8))
    assert cache.call() == 5
    assert cache.compiled == 1
    assert len(cache.said()) == 1
    assert "DETMAP_CACHE_DIR" in cache.said()[0]
    if how != "a file":
        assert [path.stat().st_size for path in cache.path.iterdir()] == [0]


def test_object_code_is_looked_through_before_it_is_linked() -> None:
    assert object_code.fault(b"", "f", ()) != ""
    assert object_code.fault(b"\x7fELF" + bytes(200), "f", ()) != ""
    entry = compiler.Entry("f", "None", "p", b"\x7fELF\x02\x01\x01" + bytes(300))
    with pytest.raises(linker.BadCodeError):
        linker.link(entry)


# --- where the folder is --------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("name", ["DETMAP_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_a_relative_folder_is_passed_over_aloud(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`HOME=rel` put machine code beside the data."""
    folder._said.clear()
    for each in ("DETMAP_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, "rel")
    found = folder.folder()
    assert found is None or (found.is_absolute() and tmp_path not in found.parents)
    assert "no absolute path" in caplog.text
    assert name in caplog.text
    folder._said.clear()


@pytest.mark.parametrize("root", ["/", "//", "/usr/.."])
def test_the_root_of_the_system_is_no_cache(
    root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder._said.clear()
    monkeypatch.setenv("DETMAP_CACHE_DIR", root)
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    found = folder.folder()
    assert found is not None
    assert found.is_relative_to(tmp_path)
    assert "the whole system" in caplog.text
    folder._said.clear()


def test_a_tilde_is_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`DETMAP_CACHE_DIR='~/x'` was literal."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("DETMAP_CACHE_DIR", "~/x")
    assert folder.folder() == tmp_path / "x"


@pytest.mark.parametrize("value", ["~nobody_of_this_name/x", ".", "a/../b", "~"])
def test_no_value_makes_a_relative_folder(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DETMAP_CACHE_DIR", value)
    found = folder.folder()
    assert found is None or found.is_absolute()
    folder._said.clear()


def test_an_unknown_source_of_kernels_is_an_error(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DETMAP_KERNELS", "moon")
    with pytest.raises(DetmapError, match="'moon' is not known"):
        cache.call()
    monkeypatch.setenv("DETMAP_KERNELS", "wheel")
    with pytest.raises(DetmapError, match="kernel count_rows: this installation carries none"):
        cache.call()
    monkeypatch.setenv("DETMAP_KERNELS", "compile")
    assert cache.call() == 5
    assert not cache.path.exists()


# --- A8: the digest of the source -----------------------------------------------------------------


def kernel_of(source: str, name: str) -> Kernel[..., Any]:
    module = ModuleType(name)
    module.__dict__["kernel"] = kernel
    exec(f"@kernel\n{source}", module.__dict__)
    found: Kernel[..., Any] = module.__dict__["f"]
    return found


def test_without_sources_the_digest_is_that_of_the_code() -> None:
    first, same, other, inner = (
        identity.source_digest(kernel_of(source, "no_source_of_this_module"))
        for source in (
            "def f(x) -> int: return x + 1",
            "def f(x) -> int:  return x + 1",
            "def f(x) -> int: return x + 2",
            "def f(x) -> int: return (lambda: x + 3)()",
        )
    )
    assert first == same
    assert len({first, other, inner}) == 3


def test_a_constant_of_another_module_is_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity.source_digest(grouping.rank_by_score)
    scope = grouping.rank_by_score.function.__globals__
    name = next(
        n
        for n in grouping.rank_by_score.function.__code__.co_names
        if n in scope and isinstance(scope[n], int)
    )
    monkeypatch.setitem(scope, name, 77)
    assert identity.source_digest(grouping.rank_by_score) != before


@pytest.mark.slow
@pytest.mark.parametrize("form", ["zip", "pyc"])
def test_a_program_without_source_files_has_a_digest_of_its_own(tmp_path: Path, form: str) -> None:
    package = Path(detmap.__file__).parent
    script = "from detmap.kernels import grouping, identity\n"
    script += "print(identity.source_digest(grouping.group))"
    if form == "zip":
        place = tmp_path / "app.zip"
        with zipfile.ZipFile(place, "w") as archive:
            for path in package.rglob("*.py"):
                archive.write(path, path.relative_to(package.parent))
    else:
        place = tmp_path / "site"
        shutil.copytree(package, place / "detmap", ignore=shutil.ignore_patterns("__pycache__"))
        compile_all = (
            "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=1, legacy=True)"
        )
        subprocess.run([sys.executable, "-c", compile_all, str(place)], check=True)
        for path in place.rglob("*.py"):
            path.unlink()
    out, _ = finish(
        start(
            tmp_path / "cache",
            cwd="/",
            script=f"import sys; sys.path.insert(0, {str(place)!r})\n{script}",
        )
    )
    here = identity.source_digest(grouping.group)
    assert len(out) == 64
    assert (out == here) == (form == "zip")
    assert out != hashlib.sha256().hexdigest()


def test_the_compilers_are_named_without_importing_them() -> None:
    from importlib.metadata import version

    wanted = f"numba {version('numba')}, llvmlite {version('llvmlite')}, numpy {np.__version__}"
    assert identity.compilers() == wanted


# --- B2: fork -------------------------------------------------------------------------------------

FORK = """
import os, signal, threading, time
import numpy as np
from detmap.kernels import compiler
from detmap.kernels.grouping import group
from detmap.kernels.overlap import copy_boxes
begun, build = threading.Event(), compiler.build
def slow(*args):
    begun.set()
    time.sleep(0.3)
    return build(*args)
compiler.build = slow
key, rows = np.array([1, 0, 1, 2], dtype=np.int32), np.empty(4, dtype=np.int32)
off = np.empty(4, dtype=np.int64)
thread = threading.Thread(target=group, args=(key, np.arange(4, dtype=np.int32), rows, off))
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(60)
    group(key, np.arange(4, dtype=np.int32), rows, off)
    ok = rows.tolist() == [1, 0, 2, 3] and copy_boxes(np.zeros((1, 4)), 1.0, np.ones((1, 4))) < 2
    os._exit(7 if ok else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""


@posix
@pytest.mark.slow
def test_a_fork_while_another_thread_compiles_gives_a_child_that_works(tmp_path: Path) -> None:
    """B2."""
    process = start(tmp_path / "cache", "-W", "ignore::DeprecationWarning", script=FORK)
    assert finish(process)[0] == "7"


# --- numba's inner parts, and what a kernel refuses -----------------------------------------------


@pytest.mark.parametrize(
    "place, name",
    [
        ("numba.core.codegen.CodeLibrary", "_get_compiled_object"),
        ("numba", "cfunc"),
        ("numba.core.ccallback.CFunc", "native_name"),
        ("numba.core.types", "CPointer"),
    ],
)
def test_where_numba_has_moved_its_inner_parts_kernels_still_run(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    import numba.core.ccallback  # noqa: F401

    monkeypatch.delattr(f"{place}.{name}")
    assert cache.call() == 5
    assert len(cache.said()) == 2  # it compiles, and how it goes on
    assert "run by numba alone" in cache.said()[-1]
    assert list(cache.path.iterdir()) == []


def test_where_an_option_of_numba_is_gone_kernels_still_run(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(compiler.STANDING_ALONE, "_no_such_option", True)
    assert cache.call() == 5
    assert "run by numba alone" in cache.said()[-1]


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


def test_types_are_spelled_with_their_fields() -> None:
    room = grouping.sorter(3)
    shape: list[object] = []
    count_rows._flatten((room, 1, 2.0, np.zeros((2, 2), np.uint8)), shape, [])
    words = identity.spelled(tuple(shape))
    assert words.startswith("tuple() Sorter(")
    assert words.endswith(" i f |u1:2")


def test_one_file_for_both_names_of_the_same_type() -> None:
    assert identity.spelled(((np.dtype(np.longlong), 1),)) == "<i8:1"
