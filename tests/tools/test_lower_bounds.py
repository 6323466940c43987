"""The oldest versions that pyproject.toml allows, as CI installs them."""

import tomllib

import pytest

from tests.support.builders import ROOT
from tools.lower_bounds import pins

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_dependency_of_every_extra_has_a_lower_bound() -> None:
    assert all("==" in each for each in pins(PROJECT, PROJECT["optional-dependencies"]))


def test_an_extra_brings_those_that_it_names() -> None:
    project = {
        "name": "a",
        "dependencies": ["numpy>=2.0"],
        "optional-dependencies": {
            "test": ["a[more]", "pytest >= 8"],
            "more": ["dask[distributed]>=2024.1,<2030", "torch==2.13.0", "a[test]"],
        },
    }
    assert pins(project) == ["numpy==2.0"]
    wanted = [*("dask[distributed]==2024.1", "numpy==2.0", "pytest==8", "torch==2.13.0")]
    assert pins(project, ["test"]) == wanted
    project["dependencies"] = ["numpy"]
    with pytest.raises(ValueError, match="numpy: give a lower bound"):
        pins(project)
