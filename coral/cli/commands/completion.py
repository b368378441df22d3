"""`coral completion`: prints a script by which a shell completes commands, options and topics."""

import argparse

from coral.cli.help.commands import parsers, whole_parser
from coral.cli.help.pages import pages
from coral.cli.parser import Parser

SHELLS = ("bash", "zsh", "fish")
_INSTALL = {
    "bash": 'eval "$(coral completion bash)"      in ~/.bashrc',
    "zsh": "coral completion zsh > DIR/_coral    in a folder DIR of $fpath",
    "fish": "coral completion fish > ~/.config/fish/completions/coral.fish",
}
_FOLDERS, _FILES = {"TASK", "DIR", "RUN"}, {"FILE", "PATH"}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="; ".join(f"{shell}: {how}" for shell, how in _INSTALL.items()))


def run(args: argparse.Namespace) -> int:
    import shtab

    root = whole_parser()
    for parser in parsers(root):
        for action in parser._actions:
            _say_what_it_takes(action)
    print(shtab.complete(root, shell=args.shell))
    return 0


def _say_what_it_takes(action: argparse.Action) -> None:
    """Mark an argument as a file or a folder, which the shell completes, or as one of the topics of the
    documentation."""
    import shtab

    if action.metavar in _FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif action.metavar in _FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    elif action.metavar == "TOPIC":
        action.choices = sorted(pages())
