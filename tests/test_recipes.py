"""The numbers that docs/recipes.md and docs/formats.md print beside commands are theirs."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support import builders as make
from tests.support import writers
from tests.support.running import run

pytest.importorskip("yaml")
pytest.importorskip("PIL")
TEXT = "".join((make.ROOT / "docs" / page).read_text() for page in ("recipes.md", "formats.md"))
COMMANDS = re.findall(r"^detmap (eval .*?) +# (?:.*: )?(\w+) (0\.\d+)$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipes")
    writers.recipes(folder)
    (folder / "datasets").symlink_to(make.ROOT / "datasets")
    return folder


def test_every_command_has_its_number() -> None:
    assert len(COMMANDS) == len(re.findall("^detmap eval", TEXT, re.MULTILINE)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize(("command", "metric", "number"), COMMANDS)
def test_the_number_of_a_command(
    desk: Path, monkeypatch: pytest.MonkeyPatch, command: str, metric: str, number: str
) -> None:
    monkeypatch.chdir(desk)
    outcome = run(*shlex.split(command), "--format", "json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["metrics"][metric]
    assert round(found, 4) == float(number)
