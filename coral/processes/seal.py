"""Seals a program at one of the levels of `workspace.seal`, and finds out which of them this machine has."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from coral.errors import CoralError
from coral.grader import landlock
from coral.grader.sandbox import calls_in_namespaces, landlock_rules
from coral.processes import own_user
from coral.processes.own_user import Places, user_line
from coral.processes.process import Program
from coral.processes.restricted import restricted
from workspace.owner import User
from workspace.seal import Level, View, bubblewrap, bubblewrap_problem, with_devices

_PACKAGES = ("attempts", "coral", "heartbeats", "workspace")


ANYWHERE = Places()


def level_for(asked: str, places: Places = ANYWHERE) -> Level:
    """Return the level that `workspace.seal` asks for: the named one, or for `best` and `require` the strongest that
    works on this machine in these places. CoralError if the named one does not work, or `require` finds none."""
    if asked in ("best", "require"):
        level = strongest(places)
        reason = missing(level, places) if asked == "require" and level is Level.NONE else ""
    else:
        level = Level(asked)
        reason = problem(level, places)
    if reason:
        raise CoralError(
            f"cannot seal the agents: {reason}",
            "`workspace.seal: best` takes what works here; docs/trust.md says what sealing needs",
        )
    return level


def warning(asked: str, places: Places = ANYWHERE) -> str:
    """Return the warning to a user whose agents are not sealed, or less than is possible elsewhere; "" if there is
    none."""
    if asked != "best" or (level := strongest(places)) is Level.BUBBLEWRAP:
        return ""
    what = "not sealed" if level is Level.NONE else f"sealed by {name_of(level)} alone"
    return f"the agents are {what}, because {missing(level, places)}: docs/trust.md says what they can reach"


def name_of(level: Level) -> str:
    """Return the level's name for a sentence: "sealed by ..."."""
    return "users of their own" if level is Level.USER else str(level)


def strongest(places: Places = ANYWHERE) -> Level:
    """Return the strongest level that works here."""
    return next(level for level in Level if not problem(level, places))


def problem(level: Level, places: Places = ANYWHERE) -> str:
    """Return why a level does not work on this machine, in these places; "" if it works."""
    match level:
        case Level.BUBBLEWRAP:
            return bubblewrap_problem()
        case Level.LANDLOCK:
            return _landlock_problem()
        case Level.USER:
            return own_user.problem((*python_folders(), Path(sys.executable))) or own_user.problem_of_places(places)
        case Level.NONE:
            return ""


def missing(level: Level, places: Places = ANYWHERE) -> str:
    """Return why the level is not a stronger one. For root without any level, also why users of their own do not
    work."""
    reason = problem(Level.BUBBLEWRAP)
    is_root_without = level is Level.NONE and os.geteuid() == 0
    return f"{reason}, and {problem(Level.USER, places)}" if is_root_without else reason


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A level and what its programs may reach. `network`: whether they have the machine's network. `user`: under which
    user they run, at that level; `candidates`: see `user_line`; `space`: see `bubblewrap`."""

    level: Level
    view: View
    network: bool
    user: User | None = None
    candidates: Path | None = None
    space: int | None = None

    @property
    def has_namespace(self) -> bool:
        return self.level is Level.BUBBLEWRAP

    @property
    def calls(self) -> bytes:
        """The filter of system calls that `call_filter.filtered` adds to bubblewrap's arguments; empty at other
        levels."""
        return calls_in_namespaces(network=self.network) if self.has_namespace else b""

    def line(self, argv: Sequence[str], folder: Path) -> list[str]:
        """Return the arguments that start a program in this sandbox, with `folder` as its current folder."""
        match self.level:
            case Level.BUBBLEWRAP:
                return bubblewrap(argv, self.view, folder, network=self.network, space=self.space)
            case Level.LANDLOCK:
                return _landlocked(argv, self.view, network=self.network)
            case Level.USER:
                assert self.user is not None
                return user_line(argv, self.user, network=self.network, candidates=self.candidates)
            case Level.NONE:
                return list(argv)


UNSEALED = Sandbox(Level.NONE, {}, network=True)


def seal(program: Program, sandbox: Sandbox) -> Program:
    """Return the program with the arguments that start it in the sandbox."""
    if sandbox.level is Level.NONE:
        return program
    argv, user = sandbox.line(program.argv, program.cwd), 0 if sandbox.user is None else sandbox.user.number
    return replace(program, argv=argv, sealed=sandbox.has_namespace, calls=sandbox.calls, user=user)


def python_folders() -> Iterator[Path]:
    """Yield the folders of this Python, of its environment and of Coral's packages."""
    yield from (Path(sys.prefix), Path(sys.base_prefix))
    for name in _PACKAGES:
        if (found := find_spec(name)) is not None and found.submodule_search_locations:
            yield Path(found.submodule_search_locations[0])


def module_folders() -> list[Path]:
    """Return the folders from which this Python imports modules."""
    return [Path(folder) for folder in sys.path if Path(folder).is_absolute()]


def _landlocked(argv: Sequence[str], view: View, *, network: bool) -> list[str]:
    shown = {str(path): str(access) for path, access in with_devices(view).items()}
    return restricted(landlock_rules(shown, network), argv)


@cache
def _landlock_problem() -> str:
    try:
        return "" if landlock.version() > 0 else "the kernel has no Landlock"
    except (AttributeError, OSError) as error:  # as on a system other than Linux
        return f"there is no Landlock: {error}"
