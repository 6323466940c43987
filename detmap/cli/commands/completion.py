"""Print a completion script for bash, zsh or fish."""

import argparse

from detmap.cli import options, streams

SHELLS = ("bash", "zsh", "fish")

EXAMPLES = (
    "detmap completion bash > ~/.local/share/bash-completion/completions/detmap",
    "detmap completion zsh > ~/.zfunc/_detmap    # a folder of $fpath",
    "detmap completion fish > ~/.config/fish/completions/detmap.fish",
)


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    command.add_argument("shell", choices=SHELLS, help="Choose the shell.")
    options.add_output(command)


def run(arguments: argparse.Namespace) -> int:
    """Write the script of the whole command line."""
    from detmap.cli.dispatch import COMMANDS, parser
    from detmap.core import protocol
    from detmap.errors import require

    shtab = require("shtab", "completion")
    whole = parser(COMMANDS)
    for action in _actions(whole):
        if action.type is options.protocol:
            action.choices = protocol.names()
        elif action.type in options.PATHS:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    streams.write(shtab.complete(whole, arguments.shell), arguments.output)
    return 0


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """List the options of a parser and of its commands."""
    actions = []
    for action in parser._actions:
        actions.append(action)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                actions += _actions(command)
    return actions
