"""Mutation tests of the files of a change: mutmut changes one expression at a time and runs tests.

    pip install mutmut==3.8.1
    python tools/mutation.py                                   # what differs from HEAD
    python tools/mutation.py --base HEAD~5                     # what differs from another commit
    python tools/mutation.py detmap/core/curves/scores.py --tests tests/curves tests/protocol

mutmut works in a copy of the checkout, below the folder of temporary files. At the end the script
prints each mutant that no test notices, as a difference. Such a mutant needs a test, or it shows
code without effect. docs/CONTRIBUTING.md tells how to read the list.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SURVIVED = {"survived", "no tests", "suspicious"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="modules; default: those that differ from --base")
    parser.add_argument("--base", default="HEAD", help="commit to compare with (HEAD)")
    parser.add_argument("--tests", nargs="+", help="tests to run; default: the files' folders")
    parser.add_argument("--processes", type=int, default=2, help="mutants at a time (2)")
    asked = parser.parse_args()
    files = asked.files or changed_files(asked.base)
    if not files:
        print(f"no module of detmap differs from {asked.base}")
        return 0
    tests = asked.tests or sorted(set(map(folder_of_tests, files)))
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy_checkout(Path(folder), files, tests)
        command = [sys.executable, "-m", "mutmut"]
        run = [*command, "run", "--max-children", str(asked.processes)]
        subprocess.run(run, cwd=folder, check=True)
        return 1 if report_survivors(command, folder) else 0


def changed_files(base: str) -> list[str]:
    """Modules of detmap that differ from a commit, in the working tree."""
    names = _git("diff", "--name-only", base, "--", "detmap")
    return [name for name in names if name.endswith(".py") and (ROOT / name).is_file()]


def folder_of_tests(file: str) -> str:
    """tests/curves for detmap/core/curves/scores.py; all tests where no folder has the name."""
    folder = f"tests/{file.removeprefix('detmap/').removeprefix('core/').partition('/')[0]}"
    return folder if (ROOT / folder).is_dir() else "tests"


def copy_checkout(target: Path, files: list[str], tests: list[str]) -> None:
    """Copy what git knows, with the compiled kernels, and tell mutmut what to change and run."""
    names = _git("ls-files", "--cached", "--others", "--exclude-standard")
    names += [str(path.relative_to(ROOT)) for path in ROOT.glob("detmap/kernels/_native.*")]
    for name in names:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    copied = sorted({Path(name).parts[0] for name in names} - {"detmap", "tests", "pyproject.toml"})
    settings = {
        "source_paths": ["detmap"],
        "only_mutate": files,
        "also_copy": copied,
        "pytest_add_cli_args": ["-n0", "-p", "no:cacheprovider", "-m", "not slow"],
        "pytest_add_cli_args_test_selection": tests,
    }
    with (target / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.mutmut]\n")
        file.writelines(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())


def report_survivors(command: list[str], folder: str) -> int:
    """Print each mutant that no test notices; return their number."""
    listed = subprocess.run(
        [*command, "results"], cwd=folder, check=True, capture_output=True, text=True
    )
    rows = [line.strip().rpartition(": ") for line in listed.stdout.splitlines()]
    names = [name for name, _, status in rows if status in SURVIVED]
    for name in names:
        subprocess.run([*command, "show", name], cwd=folder, check=True)
    print(f"{len(names)} mutants that no test notices")
    return len(names)


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main())
