"""Files that GitHub reads: issue forms, policies, the metadata of the action; the checklist."""

import re
from typing import Any

import pytest

from tests.support import builders as make
from tests.support.running import run

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
