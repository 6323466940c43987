"""Files that GitHub reads: issue forms, policies, workflows, the action; the checklist; recipes."""

import re
import subprocess
import tomllib
from typing import Any

import pytest

from tests.support import builders as make
from tests.support.running import run
from tools import build_native

yaml = pytest.importorskip("yaml", reason="needs detmap-eval[yolo]")

GITHUB = make.ROOT / ".github"
FORMS = sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))


def keys(content: Any, allowed: str) -> None:
    """GitHub refuses a file with keys that it does not know."""
    assert set(content) <= set(allowed.split()), content


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_the_keys_of_github(path: Any) -> None:
    form = yaml.safe_load(path.read_text())
    keys(form, "name description labels title body")
    assert len({part["id"] for part in form["body"]}) == len(form["body"])
    for part in form["body"]:
        keys(part, "type id attributes validations")
        keys(part["attributes"], "label description placeholder value render")
        keys(part.get("validations", {}), "required")
        assert part["type"] == "textarea"
        assert all(isinstance(value, str) for value in part["attributes"].values())
    for command in re.findall(r"`detmap (\w+)", path.read_text()):
        assert run(command, "--help").code == 0


def test_the_action_has_the_keys_of_github() -> None:
    action = yaml.safe_load((make.ROOT / "action.yml").read_text())
    keys(action, "name description branding inputs outputs runs author")
    for each in action["inputs"].values():
        keys(each, "description required default")
    for each in action["outputs"].values():
        keys(each, "description value")
    keys(action["runs"], "using steps")
    for step in action["runs"]["steps"]:
        keys(step, "name id shell env run if uses with")
        named = set(re.findall(r"inputs\.([\w-]+)", str(step)))
        assert named <= set(action["inputs"])


def test_policies_and_the_checklist_of_releases() -> None:
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
        assert len((GITHUB / name).read_text().split()) > 40
    steps = (GITHUB / "RELEASE_CHECKLIST.md").read_text()
    for platform in ("Linux x86-64 and aarch64", "macOS 11 x86-64 and arm64", "Windows x86-64"):
        assert platform in steps
    for path in re.findall(r"`(?:python )?((?:tools|docs|tests|\.ci)/[\w./]+)", steps):
        assert (make.ROOT / path).exists(), path


# --- workflows, image and recipe ------------------------------------------------------------------

PROJECT = tomllib.loads((make.ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text()) for path in (GITHUB / "workflows").glob("*.yml")
}
RUNNERS = {
    "ubuntu-latest": "linux-x86_64",
    "ubuntu-24.04-arm": "linux-aarch64",
    "macos-15-intel": "darwin-x86_64",
    "macos-latest": "darwin-arm64",
    "windows-latest": "win32-amd64",
}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_scripts_of_a_workflow_are_bash_and_name_what_is_here(name: str) -> None:
    jobs = WORKFLOWS[name]["jobs"].values()
    scripts = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert scripts
    for script in scripts:
        assert subprocess.run(["bash", "-n", "-c", script]).returncode == 0
        for extra in re.findall(r"\[(\w+)\]'", script):
            assert extra in PROJECT["optional-dependencies"]
        for path in re.findall(r"(?<![\w/])(?:tools|docs|\.ci)/[\w./]+", script):
            assert (make.ROOT / path).is_file()
    assert all(job["timeout-minutes"] <= 60 for job in jobs if "timeout-minutes" in job)
    for job in jobs:
        needs = job.get("needs")
        assert needs is None or needs in WORKFLOWS[name]["jobs"]


def test_every_version_of_python_and_every_wheel_is_tried() -> None:
    versions = {
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if re.search(r"Python :: 3\.\d", line)
    }
    tests = WORKFLOWS["tests"]["jobs"]
    assert set(tests["tests"]["strategy"]["matrix"]["python"]) == versions
    assert set(tests["gate"]["steps"][1]["with"]["python-version"].split()) == versions
    tried = WORKFLOWS["release"]["jobs"]["try"]["strategy"]["matrix"]
    assert {RUNNERS[name] for name in tried["os"]} == set(build_native.PLATFORMS)
    assert {min(versions), max(versions)} == set(tried["python"])
    publish = WORKFLOWS["release"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert "tag" in publish["if"]


def test_the_recipe_of_conda_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((make.ROOT / "conda" / "recipe.yaml").read_text())
    run = [text.replace(" ", "") for text in recipe["requirements"]["run"]]
    assert run == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    version = (make.ROOT / "detmap" / "version.py").read_text()
    assert f'"{recipe["context"]["version"]}"' in version
    assert recipe["build"]["python"]["entry_points"] == ["detmap = detmap.cli:entry"]
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_the_image_copies_what_a_build_reads() -> None:
    lines = (make.ROOT / "Dockerfile").read_text().splitlines()
    copied = {
        name
        for line in lines
        if line.startswith("COPY") and "--from" not in line
        for name in line.split()[1:-1]
    }
    hatch = tomllib.loads((make.ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = hatch["targets"]["wheel"]
    read = {name.partition("/")[0] for name in (*wheel["packages"], *wheel["force-include"])}
    read |= {PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml", ".gitignore", "tools"}
    assert copied == read
    assert all((make.ROOT / name).exists() for name in copied)
