"""What every command takes and prints: argparse with our errors (two lines and exit 1, because exit 2 means "not
finished yet"), and JSON for programs."""

from __future__ import annotations

import argparse
import os
from math import isfinite, nan

from coral.errors import CoralError

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from typing import NoReturn

TOOL_SECONDS = 540.0  # agent programs cut a tool off after ten minutes; where it is less, CORAL_TOOL_SECONDS says so


def finite(text: str) -> float:
    """A number that a person typed: not `nan` and not `inf`."""
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def count(text: str) -> int:
    """How many of something: without this check a slip such as -3 would mean all of them, or one."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def print_json(data: object, indent: int | None = 1) -> int:
    """Print what `--json` promises to programs; returns the exit code of a command that has done so."""
    import json  # only here: most evals print none

    print(json.dumps(data, indent=indent, default=str), flush=True)
    return 0


def _fixed_width(prog: str) -> argparse.HelpFormatter:
    """The formatter with which argparse checks its own arguments. Only a help needs the terminal's width: the module
    that finds it takes longer to import than all arguments to parse."""
    return argparse.HelpFormatter(prog, width=80)


def attempt_number(text: str) -> int:
    """The number of an attempt, with or without its #."""
    if not text.removeprefix("#").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of an attempt")
    return int(text.removeprefix("#"))


def patience(timeout: float | None) -> float:
    """How many seconds to wait: `timeout`, or as long as the agent's program lets one of its tools run."""
    if timeout is not None:
        return max(0.0, timeout)
    try:
        seconds = float(os.environ.get("CORAL_TOOL_SECONDS", ""))
    except ValueError:
        return TOOL_SECONDS
    return seconds if 0 < seconds < 1e6 else TOOL_SECONDS


class Parser(argparse.ArgumentParser):
    """argparse with our errors, an example and exit codes in the help, and no abbreviated options: those would break
    when an option is added."""

    def __init__(self, *, prog: str, description: str | None = None, example: str | None = None) -> None:
        """`example`: what follows the command's name in an example of its use; None where there is no example."""
        self._example = example
        self.exit_codes: dict[int, str] = {}  # where they say more than "done" and "refused"
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_fixed_width)
        self._verbs: argparse._SubParsersAction[Parser] | None = None

    def read(self, words: list[str]) -> argparse.Namespace:
        """Parse; `coral start TASK --detach agents.count=4` has an option between its positional words."""
        mixed = not self._verbs and self._get_positional_actions()
        if mixed:
            return self.parse_intermixed_args(words)
        args, rest = self.parse_known_args(words)
        if rest:  # reported by the verb that does not know them: `coral heartbeat` knows --json, its `set` does not
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
        """One use of the command as somebody would type it."""
        return f"{self.prog} {self._example or ''}".rstrip()

    def verbs(self) -> argparse._SubParsersAction[Parser]:
        """The choice between a command's own verbs, such as `coral heartbeat set`."""
        self._verbs = self.add_subparsers(dest="verb", metavar="VERB", title="verbs")
        return self._verbs

    def known_verbs(self) -> dict[str, Parser]:
        """The parsers of the command's own verbs, by name."""
        return dict(self._verbs.choices) if self._verbs else {}

    def error(self, message: str) -> NoReturn:
        raise CoralError(f"cannot run {self.prog}: {message}", f"`{self.prog} --help` explains it")
