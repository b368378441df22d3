"""What all commands share: argparse with our errors (two lines and exit code 1, because 2 means "not finished yet"),
checks of numbers, and JSON for programs."""

from __future__ import annotations

import argparse
import os
from math import isfinite, nan

from coral.errors import CoralError

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from typing import NoReturn

TOOL_SECONDS = 540.0  # agent programs end a tool after ten minutes, or as CORAL_TOOL_SECONDS says


def finite(text: str) -> float:
    """Parse a number that a person typed; `nan` and `inf` are refused."""
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def count(text: str) -> int:
    """Parse a whole number from 0. Without this check a slip such as -3 would mean all of something, or one."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def print_json(data: object, indent: int | None = 1) -> int:
    """Print data for `--json`; return 0, the exit code of the command."""
    import json  # only here: most evals print none

    print(json.dumps(data, indent=indent, default=str), flush=True)
    return 0


def _fixed_width(prog: str) -> argparse.HelpFormatter:
    """Return the formatter with which argparse checks its own arguments. Only `--help` needs the width of the terminal:
    the module that finds it out takes longer to import than parsing all arguments."""
    return argparse.HelpFormatter(prog, width=80)


def attempt_number(text: str) -> int:
    """Parse the number of an attempt, with or without its #."""
    if not text.removeprefix("#").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an attempt")
    return int(text.removeprefix("#"))


def patience(timeout: float | None) -> float:
    """Return how many seconds to wait: `timeout`, or else about as long as the agent's program lets a tool run."""
    if timeout is not None:
        return max(0.0, timeout)
    try:
        seconds = float(os.environ.get("CORAL_TOOL_SECONDS", ""))
    except ValueError:
        return TOOL_SECONDS
    return seconds if 0 < seconds < 1e6 else TOOL_SECONDS


class Parser(argparse.ArgumentParser):
    """An argparse parser with our errors, and with an example and exit codes in its help. Options cannot be
    abbreviated: an abbreviation would break when another option is added."""

    def __init__(self, *, prog: str, description: str | None = None, example: str | None = None) -> None:
        """`example`: what follows the command's name in an example of its use; None if there is no example."""
        self._example = example
        self.exit_codes: dict[int, str] = {}  # those that mean more than "done" and "refused"
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_fixed_width)
        self._verbs: argparse._SubParsersAction[Parser] | None = None

    def read(self, words: list[str]) -> argparse.Namespace:
        """Parse the words of a command. Options may stand between positional words, as in `coral start TASK --detach
        agents.count=4`."""
        mixed = not self._verbs and self._get_positional_actions()
        if mixed:
            return self.parse_intermixed_args(words)
        args, rest = self.parse_known_args(words)
        if rest:  # the verb reports them, since `coral heartbeat` may know an option that its `set` does not
            verb = self._verbs.choices.get(args.verb) if self._verbs else None
            (verb or self).error(f"unrecognized arguments: {' '.join(rest)}")
        return args

    def format_help(self) -> str:
        self.formatter_class = argparse.HelpFormatter
        parts = [super().format_help()]
        if self.exit_codes:
            codes = "".join(f"  {code:<5} {meaning}\n" for code, meaning in self.exit_codes.items())
            parts.append(f"exit codes:\n{codes}")
        if self._example is not None:
            parts.append(f"example:\n  {self.example}\n")
        return "\n".join(parts)

    @property
    def example(self) -> str:
        """An example of the command as somebody would type it."""
        return f"{self.prog} {self._example or ''}".rstrip()

    def verbs(self) -> argparse._SubParsersAction[Parser]:
        """Add verbs to the command, such as `set` in `coral heartbeat set`; return the action that takes their
        parsers."""
        self._verbs = self.add_subparsers(dest="verb", metavar="VERB", title="verbs")
        return self._verbs

    def known_verbs(self) -> dict[str, Parser]:
        """Return the parsers of the command's verbs, by name."""
        return dict(self._verbs.choices) if self._verbs else {}

    def error(self, message: str) -> NoReturn:
        raise CoralError(f"cannot run {self.prog}: {message}", f"`{self.prog} --help` explains it")
