"""Agents with users of their own: their part of the run, their environment, and copies of logins and settings.

Copies are needed because the home of the user who started the run is closed to these users.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coral.agent_setup.remote import check_seal
from coral.agent_setup.roster import Roster
from coral.config.load import Config
from coral.grading.sandbox import places_of
from coral.processes.own_user import Places
from coral.processes.process import Program, open_output
from coral.processes.seal import Sandbox, level_for, seal
from coral.runtimes.model import Command, LaunchSpec
from coral.supervisor.context import RunContext
from workspace.layout import Layout, folder_of_runs
from workspace.owner import close_runs, divide_for, give_agent, user_of_agent
from workspace.plain_file import folder_of, read_below, read_plain, write_below
from workspace.seal import Level

_LARGEST_LOGIN, _LARGEST_SETTING = 1 << 20, 1 << 26  # bytes; settings may bring programs with them
_OF_THE_OTHER_HOME = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMP", "TEMP")


def sealed_for(config: Config, roster: Roster, runs: Path) -> tuple[Level, Config]:
    """Return the level at which a run's agents are sealed, and the task with `workspace.seal` set to it, so that
    graders have the same level. Users of their own are possible only if they can reach the agents' programs. CoralError
    as `seal.level_for`."""
    level = level_for(config.workspace.seal, places_of_agents(config, roster, runs))
    if config.grader.is_remote:  # none of its graders is sealed here
        return level, config
    return level, replace(config, workspace=config.workspace.model_copy(update={"seal": level.value}))


def divided_for_level(layout: Layout, config: Config, roster: Roster) -> tuple[Level, Config]:
    """Do the same as `sealed_for` for an existing run, and give the run's files to the users that own them at that
    level. OSError if that cannot be done; CoralError for the seal that the task asks for."""
    check_seal(config)
    level, config = sealed_for(config, roster, folder_of_runs(layout))
    divide_for(level, layout, tuple(roster), config.workspace.share)
    return level, config


def places_of_agents(config: Config, roster: Roster, runs: Path) -> Places:
    places = places_of(config, runs)
    return replace(places, reached=(*places.reached, *dict.fromkeys(_programs(roster))))


def _programs(roster: Roster) -> Iterator[Path]:
    nowhere = Path("/")
    for agent in roster:
        spec = LaunchSpec(agent=agent, launch=1, session=None, clone=nowhere, state=nowhere, run_root=nowhere)
        if found := shutil.which(roster.runtime(agent).command(spec).argv[0]):
            yield Path(found)


def as_own_user(run_context: RunContext, agent: str, program: Program, command: Command) -> Program:
    """Return the program as the agent's own user, whose home is the agent's state folder. OSError if the agent's part
    of the run cannot be given to that user."""
    layout = run_context.layout
    state = layout.state(agent)
    give_agent(layout, agent, run_context.config.workspace.share)
    close_runs(folder_of_runs(layout), but=layout.root)
    own = {"HOME": state, "XDG_CACHE_HOME": state / "cache", "TMPDIR": state / "tmp"}
    for folder in ("cache", "tmp"):
        with contextlib.suppress(OSError), folder_of(state, f"{folder}/any", make=True):  # the agent has a file there
            pass
    for name, source in command.scratch.items():
        copy_folder(state, name, source)
    env = {name: value for name, value in program.env.items() if name not in _OF_THE_OTHER_HOME or name in command.env}
    env |= {name: str(path) for name, path in own.items() if name not in command.env}
    env |= {"USER": agent, "LOGNAME": agent}
    for path in (program.stdout, program.stderr):
        open_output(path).close()  # made here, because a job's shell would make it with another owner
    sandbox = Sandbox(Level.USER, {}, network=True, user=user_of_agent(layout, agent))
    return seal(replace(program, env=env), sandbox)


def keep_copy(state: Path, name: str, source: Path) -> None:
    """Make a file of the user's and its copy `state/name` the same: the newer of the two, by modification time,
    replaces the other, because both sides refresh logins. OSError if that cannot be written."""
    theirs, ours = _changed(source, follow=True), _changed(state / name, follow=False)
    if theirs is None or theirs == ours:
        return
    if ours is None or theirs > ours:
        _copy(state, name, source, theirs, _LARGEST_LOGIN)
    elif (data := read_below(state, name, _LARGEST_LOGIN)) is not None:
        _replace(source.resolve(), data, ours)


def copy_folder(state: Path, name: str, source: Path) -> None:
    """Copy the files of a folder of the user's to `state/name`, except those whose copy has the same modification time.
    Files that the agent has added there stay. OSError if that cannot be written."""
    for folder, _, files in os.walk(source):
        for path in (Path(folder, file) for file in files):
            copy = f"{name}/{path.relative_to(source)}"
            changed = _changed(path, follow=True)
            if changed is not None and changed != _changed(state / copy, follow=False):
                _copy(state, copy, path, changed, _LARGEST_SETTING)


def _copy(state: Path, name: str, source: Path, changed: int, most: int) -> None:
    if (data := read_plain(source, most, follow=True)) is not None:
        write_below(state, name, data)
        with folder_of(state, name) as place:
            os.utime(Path(name).name, ns=(changed, changed), dir_fd=place, follow_symlinks=False)


def _changed(path: Path, *, follow: bool) -> int | None:
    """Return when a regular file was modified last, in nanoseconds; None where there is none."""
    try:
        found = path.stat(follow_symlinks=follow)
    except OSError:
        return None
    return found.st_mtime_ns if stat.S_ISREG(found.st_mode) else None


def _replace(path: Path, data: bytes, changed: int) -> None:
    before = path.stat()
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.touch(mode=0o600)
    made.write_bytes(data)
    os.chown(made, before.st_uid, before.st_gid)
    made.chmod(stat.S_IMODE(before.st_mode))
    os.utime(made, ns=(changed, changed))
    made.replace(path)
