"""With the JIT off every kernel is plain Python: the same bits, and every line of it is run."""

import pytest

from tests.support.builders import ROOT
from tests.support.running import python

NO_KERNELS = ("__init__", "native", "jit", "intrinsics")


def run(*command: str, **environment: str) -> str:
    done = python(*command, cwd=ROOT, timeout=1800, **environment)
    assert done.code == 0, done.out[-2000:] + done.err[-2000:]
    return done.out


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What the exercise prints without the JIT, and the coverage of the kernels."""
    data = f"--data-file={tmp_path_factory.mktemp('coverage') / 'data'}"
    off = {"NUMBA_DISABLE_JIT": "1"}
    printed = run(
        "-m",
        "coverage",
        "run",
        data,
        "--include=*/detmap/kernels/*,*/detmap/*/kernels/*",
        "--omit=" + ",".join(f"*/{name}.py" for name in NO_KERNELS),
        "-m",
        "tests.kernels.exercise",
        **off,
    )
    return printed, run("-m", "coverage", "report", data, "--show-missing")


@pytest.mark.slow
def test_some_kernels_have_the_same_bits_as_compiled() -> None:
    code = "from tests.kernels.exercise import *; print(corners(), cells(), refusals())"
    assert run("-W", "error", "-c", code) == run("-W", "error", "-c", code, NUMBA_DISABLE_JIT="1")


@pytest.mark.slow
def test_the_same_bits_as_compiled(plain: tuple[str, str]) -> None:
    assert run("-m", "tests.kernels.exercise") == plain[0]


@pytest.mark.slow
def test_every_line_is_run(plain: tuple[str, str]) -> None:
    total = next(line for line in plain[1].splitlines() if line.startswith("TOTAL"))
    assert total.split()[-1] == "100%", plain[1]
