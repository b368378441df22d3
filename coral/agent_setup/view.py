"""Seals the programs of an agent: decides at which level, and what they can read and write."""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from coral.agent_setup.roster import mounts_of
from coral.config.load import Config
from coral.errors import CoralError
from coral.processes.process import Program
from coral.runtimes.model import Command
from coral.supervisor.context import RunContext
from workspace import seal
from workspace.seal import Access, Level

_PACKAGES = ("attempts", "coral", "heartbeats", "workspace")
_PROGRAMS = ("bin", ".bin", "sbin")  # folders of programs, which need what lies beside the folder
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")


def level_for(config: Config) -> Level:
    """The level at which this machine can seal the agents. CoralError if it cannot, and the task requires it."""
    if config.workspace.seal == "none":
        return Level.NONE
    problem = seal.problem()
    if problem and config.workspace.seal == "require":
        raise CoralError(
            f"cannot seal the agents: {problem}",
            "`workspace.seal: best` runs them unsealed; docs/trust.md says what sealing needs",
        )
    return Level.NONE if problem else Level.BUBBLEWRAP


def seal_warning(config: Config) -> str:
    """What to tell a user whose agents run unsealed because this machine cannot seal them; empty otherwise."""
    problem = seal.problem() if config.workspace.seal == "best" else ""
    return f"the agents are not sealed, because {problem}: docs/trust.md says what they can reach" if problem else ""


def seal_program(run_context: RunContext, agent: str, program: Program, command: Command) -> Program:
    """Seal the program of an agent's launch or job at the run's level.

    `command`: the agent's first launch. It says which files its programs need. A later launch has the name of a session
    in it, which the agent itself chose: it could name files that it must not see.
    """
    if run_context.level is Level.NONE:
        return program
    config, layout = run_context.config, run_context.layout
    cache = layout.state(agent) / "cache"
    with contextlib.suppress(OSError):  # the agent has a file there
        cache.mkdir(parents=True, exist_ok=True)
    env = {name: value for name, value in program.env.items() if name not in _TEMPORARY}
    view = seal.view_of_agent(
        layout,
        agent,
        share=config.workspace.share,
        hidden=[folder for folder in (config.folder,) if folder.is_dir()],
        read=_needed(program, command),
        write=[*_writable(run_context, agent), *command.links.values(), *command.writes],
    )
    for folder in command.scratch:
        with contextlib.suppress(OSError):  # it cannot be made: the program does without it, as it would unsealed
            folder.mkdir(parents=True, exist_ok=True)
            view |= {folder.resolve(): Access.PRIVATE} | dict.fromkeys(folder.resolve().iterdir(), Access.READ)
    argv = seal.sealed(program.argv, view, program.cwd)
    return replace(program, argv=argv, env={"XDG_CACHE_HOME": str(cache), **env}, sealed=True)


def _needed(program: Program, command: Command) -> Iterator[Path]:
    """Files and folders that a program may need to start. They are readable even inside a hidden folder. The arguments
    of a job are not among them, because an agent chose those."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path.home())
    for name in _PACKAGES:
        if (found := find_spec(name)) is not None and found.submodule_search_locations:
            yield Path(found.submodule_search_locations[0])
    for folder in program.env.get("PATH", "").split(os.pathsep):
        if Path(folder).is_absolute():
            yield from (Path(folder), *([Path(folder).parent] if Path(folder).name in _PROGRAMS else []))
    yield from (Path(word) for word in command.argv if Path(word).is_absolute() and os.path.lexists(word))


def _writable(run_context: RunContext, agent: str) -> Iterator[Path]:
    config = run_context.config
    yield from (Path(path).expanduser() for path in config.workspace.writable)
    yield from (mount.source for mount in mounts_of(config, run_context.roster.assignment(agent)))
