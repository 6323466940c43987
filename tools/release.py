"""Rehearse a release: build every distribution, try what runs here, say what is missing.

    python tools/release.py build dist    # the source distribution and the wheels of all platforms
    python tools/release.py try dist      # this machine's wheel and the source, each alone
    python tools/release.py ready dist    # what is missing for a release; exit 1 if anything is

The workflow of releases calls the three. `build` needs ``pip install -e '.[release]'``.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import build_native

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.findall(r'version__ = "(.+)"', (ROOT / "detmap" / "version.py").read_text())[0]
README = (ROOT / "README.md").read_text()
OUTPUT = README.partition("```text\ncoco-bbox:")[2].partition("\nnote:")[0].splitlines()[2:]
"""The table that the README prints; its first lines are the title and the header."""


def run(*command: object, **options: object) -> str:
    """The output of a command; the release ends where one fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return str(done.stdout)


# --- build ----------------------------------------------------------------------------------------


def build(place: Path) -> None:
    """The source distribution, and a wheel for each platform, by the build backend."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    code = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", code, place.absolute(), cwd=ROOT)
    run(sys.executable, ROOT / "tools" / "build_native.py", "--wheels", place.absolute())
    for file in sorted(place.iterdir()):
        print(f"{file.stat().st_size / 1e6:6.1f} MB  {file.name}")


# --- try ------------------------------------------------------------------------------------------


def environment(place: Path, what: str, **options: object) -> Path:
    """The interpreter of a new environment in which something is installed."""
    run(sys.executable, "-m", "venv", place)
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(python, "-m", "pip", "install", "-q", what, **options)
    return python


def sample(python: Path, kernels: str, folder: Path) -> None:
    """The README's first command on the sample that the package has; its table must be printed."""
    given = os.environ | {"DETMAP_KERNELS": kernels}
    run(python, "-m", "detmap", "demo", "--copy", folder / "shapes")
    paths = "shapes", "shapes/detections/contours"
    words = [python, "-m", "detmap", "eval", *paths, "-p", "coco-bbox"]
    out = run(*words, cwd=folder, env=given).splitlines()
    if lost := [line for line in OUTPUT if line not in out]:
        sys.exit(f"{python} does not print\n" + "\n".join(lost))
    where = "the library" if kernels else "numba"
    print(f"the README's first command, kernels by {where}: its numbers")


def readme(python: Path, folder: Path) -> None:
    """The README's blocks, on the installed package: no source of it lies beside them."""
    for name in ("README.md", "tests", "datasets", "tools", "pyproject.toml", "docs", "configs"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    command = [python, "-m", "pytest", "--noconftest", "-p", "no:cacheprovider", "-n", "0", "-m"]
    out = run(*command, "", "-k", "README-", "tests/test_blocks.py", cwd=folder)
    print("README's blocks:", re.findall(r"\d+ passed.*", out + "passed")[0])


def try_here(place: Path) -> None:
    """The wheel of this machine, and the source distribution where no compiler is."""
    tag = build_native.PLATFORMS[build_native.host()].tag
    (wheel,) = place.glob(f"*-{tag}.whl")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for folder in ("1", "2", "clone"):
            (work / folder).mkdir()
        python = environment(work / "wheel", f"{wheel}[test]")
        where = run(python, "-c", "import detmap; print(detmap.__file__)", cwd=work).strip()
        if not Path(where).is_relative_to(work):
            sys.exit(f"the wheel is not what is imported: {where}")
        print(f"{wheel.name}: installed in an empty environment, Python {sys.version.split()[0]}")
        sample(python, "native", work / "1")
        readme(python, work / "clone")
        (source,) = place.glob("*.tar.gz")
        bare = os.environ | {"PATH": str(work)}  # no compiler
        python = environment(work / "source", str(source), env=bare)
        print(f"{source.name}: installed in an empty environment without a compiler")
        sample(python, "", work / "2")


# --- ready ----------------------------------------------------------------------------------------


def missing(place: Path) -> Iterator[str]:
    """What a release still lacks, a line each."""
    head = re.findall(r"^## (.+)$", (ROOT / "docs" / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    if not head.startswith(VERSION):
        yield f"docs/CHANGELOG.md begins with {head!r}, not with {VERSION}"
    cited = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[0]
    if cited != VERSION:
        yield f"CITATION.cff has version {cited}, detmap {VERSION}"
    tag = os.environ.get("GITHUB_REF_NAME", f"v{VERSION}")
    if tag != f"v{VERSION}":
        yield f"the tag is {tag}, the version {VERSION}"
    if VERSION.startswith("0."):
        yield f"detmap/version.py has {VERSION}: raise it"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if not any("Production/Stable" in line for line in project["classifiers"]):
        yield "pyproject.toml calls the package a beta"
    if changed := build_native.native().changed_since(build_native.kept()[0]):
        yield f"tools/kernels.ll.xz is older than {', '.join(sorted(changed))}: --compile"
    if run("git", "status", "--porcelain", cwd=ROOT):
        yield "git status is not clean"
    for tag in [platform.tag for platform in build_native.PLATFORMS.values()]:
        if not (place / f"detmap_eval-{VERSION}-py3-none-{tag}.whl").is_file():
            yield f"no wheel for {tag}"
    if not (place / f"detmap_eval-{VERSION}.tar.gz").is_file():
        yield "no source distribution"


def ready(place: Path) -> None:
    """Print what is missing."""
    lines = list(missing(place))
    print("\n".join(f"missing: {line}" for line in lines) or f"{VERSION} can be released")
    sys.exit(bool(lines))


STEPS: dict[str, Callable[[Path], None]] = {"build": build, "try": try_here, "ready": ready}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("folder", type=Path, help="where the distributions are")
    given = parser.parse_args()
    STEPS[given.step](given.folder)
