"""A parser whose complaints are ours: two lines and exit 1, because `coral eval` means something else by exit 2."""

from __future__ import annotations

import argparse
from math import isfinite

from coral.errors import CoralError

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from typing import NoReturn


def finite(text: str) -> float:
    """A number of a person's: `nan` and `inf` are none."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def count(text: str) -> int:
    """How many of something: a slip such as -3 would otherwise mean all of them, or one."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def _unmeasured(prog: str) -> argparse.HelpFormatter:
    """What argparse checks its own arguments with. To ask for the terminal's width is for help alone: what tells it
    takes longer to import than all arguments to read."""
    return argparse.HelpFormatter(prog, width=80)


class Parser(argparse.ArgumentParser):
    """argparse with our errors and without abbreviated options, which would break when an option is added."""

    def __init__(self, *, prog: str, description: str | None = None) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, formatter_class=_unmeasured)
        self._verbs: argparse._SubParsersAction[Parser] | None = None

    def read(self, words: list[str]) -> argparse.Namespace:
        """Parse; `coral start TASK --detach agents.count=4` has an option between its positional words."""
        mixed = not self._verbs and self._get_positional_actions()
        if mixed:
            return self.parse_intermixed_args(words)
        args, rest = self.parse_known_args(words)
        if rest:  # told by the verb that does not know them: `coral heartbeat` knows --json, its `set` does not
            verb = self._verbs.choices.get(args.verb) if self._verbs else None
            (verb or self).error(f"unrecognized arguments: {' '.join(rest)}")
        return args

    def format_help(self) -> str:
        self.formatter_class = argparse.HelpFormatter
        return super().format_help()

    def verbs(self) -> argparse._SubParsersAction[Parser]:
        """The choice between a command's own verbs, such as `coral heartbeat set`."""
        self._verbs = self.add_subparsers(dest="verb", metavar="VERB", title="verbs")
        return self._verbs

    def error(self, message: str) -> NoReturn:
        raise CoralError(f"cannot run {self.prog}: {message}", f"`{self.prog} --help` explains it")
