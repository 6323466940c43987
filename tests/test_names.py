"""Options have one name in Python, on the command line and in receipts."""

import argparse
import inspect

import pytest

import detmap
from detmap.cli import dispatch
from detmap.files import DETECTION_OPTIONS, TRUTH_OPTIONS
from detmap.reproducibility.receipt import OPTIONS
from tests.support import builders as make

PRINTED = {"help", "format", "table", "digits", "percent", "output", "run"}
"""How a command prints; functions return values."""
ELSEWHERE = {
    "set": "settings, a dict",
    "fix": "detmap.doctor and its fixes",
    "start": "of --from, which is no name in Python",
    "end": "of --to",
    "receipt": "detmap.verify",
    "signature": "detmap.verify",
}
"""Options that have another place in Python."""
FUNCTIONS = ("report", "tools", "reproduce", "inspect", "convert", "show", "verify", "explain")


def options_of(name: str) -> set[str]:
    """The options of a command."""
    parser = dispatch.parser([name], [name])
    (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return {each.dest for each in commands.choices[name]._actions}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_options_of_its_command(name: str) -> None:
    parameters = inspect.signature(getattr(detmap, name)).parameters
    own = {*parameters, *ELSEWHERE, *PRINTED}
    if "reading" in parameters or name == "explain":  # explain reads as evaluate does
        own |= {*TRUTH_OPTIONS, *DETECTION_OPTIONS}
    missing = options_of(name) - own - {f"{each}_place" for each in ("truth", "detections")}
    other = {"show": {"keys", "formats"}, "explain": {"protocol"}}  # which is --from
    assert missing <= other.get(name, set())


def test_the_names_of_reading_are_those_of_commands_and_receipts() -> None:
    names = {*TRUTH_OPTIONS, *DETECTION_OPTIONS}
    assert names <= options_of("eval")
    assert names - {"image_sizes", "class_names"} <= {*OPTIONS}
    read_truth = inspect.signature(detmap.read_truth).parameters
    read_detections = inspect.signature(detmap.read_detections).parameters
    assert {*TRUTH_OPTIONS.values()} <= {*read_truth}
    assert {*DETECTION_OPTIONS.values()} <= {*read_detections}


def test_a_wrong_parameter_names_the_right_one() -> None:
    with pytest.raises(TypeError, match="write truth_format="):
        detmap.inspect(make.SHAPES, trut_format="voc")
    assert detmap.inspect(make.SHAPES, truth_format="voc")["images"] == 60
