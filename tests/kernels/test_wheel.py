"""The kernels that travel in the wheel: all that anything public needs, for any processor of the
kind, with the same bits as those compiled here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tools import build_kernels

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 1 << 20

RECORD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from detmap.kernels import identity
from tools.build_kernels import record
from {module} import {name} as work
uses = record(work)
names = [(use.kernel.__module__, use.kernel.__qualname__) for use in uses]
spelled = [identity.spelled(use.key) for use in uses]
json.dump([[*name, key] for name, key in zip(names, spelled, strict=True)], sys.stdout)
"""


def recorded(module: str, name: str) -> set[tuple[str, ...]]:
    """The kernels and types that some work calls for."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RECORD.format(module=module, name=name), str(ROOT)],
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    return {tuple(each) for each in json.loads(done.stdout.splitlines()[-1])}


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
    assert build_kernels.FUSED.search(f"fmul d0, d1\n{line}\n")


def test_what_is_not_fused_is_not_mistaken_for_it() -> None:
    lines = [
        "\tmadd x0, x1, x2, x3",
        "\tfmov d0, d1",
        "\tfmul d0, d1, d2",
        "\tfadd d0",
        "\tfmax d0",
    ]
    assert not build_kernels.FUSED.search("\n".join(lines))


# --- a wheel --------------------------------------------------------------------------------------

built_here = pytest.mark.skipif(
    (sys.platform, os.uname().machine if hasattr(os, "uname") else "") != ("linux", "x86_64"),
    reason="wheels are built on Linux, x86-64",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the build makes it, here without an environment of its own."""
    place = tmp_path_factory.mktemp("wheel")
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(place)], cwd=ROOT, check=True)
    (found,) = place.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def site(wheel: Path) -> Path:
    """Where it is unpacked, which is all that its installation is."""
    place = wheel.parent / "site"
    zipfile.ZipFile(wheel).extractall(place)
    return place


def surface(site: Path, cache: Path, kernels: str) -> Any:
    """What everything public gives, by kernels from there."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
        "DETMAP_CACHE_DIR": str(cache),
        "DETMAP_KERNELS": kernels,
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.kernels.surface"],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["detmap"].startswith(str(site))
    return found


@built_here
@pytest.mark.slow
def test_the_wheel_is_one_for_all_machines_and_small(wheel: Path) -> None:
    assert wheel.name.endswith("py3-none-any.whl")
    assert wheel.stat().st_size < 2 * MEGABYTE
    names = zipfile.ZipFile(wheel).namelist()
    x86, arm = (
        [name for name in names if name.startswith(f"detmap/_data/kernels/{place}/")]
        for place in ("linux-x86_64", "linux-aarch64")
    )
    assert len(x86) == len(arm) > 20
    assert not any(name.startswith(("tools", "tests")) for name in names)


@built_here
@pytest.mark.slow
def test_a_run_from_the_wheel_compiles_nothing_and_has_the_bits_of_every_level(
    site: Path, tmp_path: Path
) -> None:
    carried = surface(site, tmp_path / "none", "wheel")
    assert not carried["numba"]
    assert not (tmp_path / "none").exists()
    assert surface(site, tmp_path / "none", "")["outcomes"] == carried["outcomes"]
    assert not (tmp_path / "none").exists()
    compiled = surface(site, tmp_path / "cache", "cache")
    assert compiled["numba"]
    assert compiled["outcomes"] == carried["outcomes"]
    again = surface(site, tmp_path / "cache", "cache")
    assert not again["numba"]
    assert again["outcomes"] == carried["outcomes"]


@built_here
@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_a_wheel_nothing(site: Path, tmp_path: Path) -> None:
    """With an unwritable cache every run compiled anew."""
    (tmp_path / "file").write_text("in the way")
    assert not surface(site, tmp_path / "file" / "cache", "")["numba"]


@built_here
@pytest.mark.slow
def test_a_damaged_kernel_of_the_wheel_is_compiled(site: Path, tmp_path: Path) -> None:
    place = site / "detmap" / "_data" / "kernels" / "linux-x86_64"
    (file,) = place.glob("fold_rows-*")
    kept = file.read_bytes()
    try:
        file.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        assert surface(site, tmp_path / "cache", "")["numba"]
        assert [path.name[:9] for path in (tmp_path / "cache").iterdir()] == ["fold_rows"]
    finally:
        file.write_bytes(kept)


@built_here
@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("qemu-aarch64-static") and shutil.which("aarch64-linux-gnu-gcc")),
    reason="needs qemu-user-static and gcc-aarch64-linux-gnu",
)
def test_the_code_for_aarch64_gives_every_byte_that_this_machine_gives(
    site: Path, tmp_path: Path
) -> None:
    """Run by an emulator and linked by GNU's linker; LLVM's own linker on aarch64 is not tried."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
        "DETMAP_KERNELS": "wheel",
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.kernels.crossed", str(site), str(tmp_path)],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == {}
    assert found["read"] == found["bytes"] > 10 * MEGABYTE
    assert found["kernels"] > 20
    assert found["calls"] > 10 * found["kernels"]
