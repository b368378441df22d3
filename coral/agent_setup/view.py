"""Seals the programs of an agent: decides which files they can read and write."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from attempts.files import expanded
from coral.agent_setup.own_user import as_own_user
from coral.agent_setup.roster import mounts_of
from coral.processes.process import Program
from coral.processes.seal import Sandbox, module_folders, python_folders, seal
from coral.runtimes.model import Command
from coral.supervisor.context import RunContext
from workspace.seal import Access, Level, view_of_agent

_PROGRAMS = ("bin", ".bin", "sbin")  # folders of programs, which need what lies beside the folder
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")


def seal_program(run_context: RunContext, agent: str, program: Program, command: Command) -> Program:
    """Seal the program of an agent's launch or job at the run's level.

    `command`: the agent's first launch, which says which files its programs need. A later launch has the id of a
    session in its arguments; the agent chose that id, and could name files with it that it must not see.
    """
    level = run_context.level
    if level is Level.NONE:
        return program
    if level is Level.USER:
        return as_own_user(run_context, agent, program, command)
    config, layout = run_context.config, run_context.layout
    env = {"XDG_CACHE_HOME": str(layout.state(agent) / "cache")}
    if level is Level.LANDLOCK:  # there is no /tmp of its own
        env["TMPDIR"] = str(layout.state(agent) / "tmp")
    for folder in map(Path, env.values()):
        with contextlib.suppress(OSError):  # the agent has a file there
            folder.mkdir(parents=True, exist_ok=True)
    env |= {name: value for name, value in program.env.items() if name not in _TEMPORARY}
    view = view_of_agent(
        layout,
        agent,
        level,
        share=config.workspace.share,
        hidden=[folder for folder in (config.folder,) if folder.is_dir()],
        read=_needed(program, command),
        modules=module_folders(),
        write=[*_writable(run_context, agent), *command.links.values(), *command.writes],
    )
    for folder in command.scratch.values():
        with contextlib.suppress(OSError):  # it cannot be made: the program does without it, as it would unsealed
            folder.mkdir(parents=True, exist_ok=True)
            view |= {folder.resolve(): Access.PRIVATE} | dict.fromkeys(folder.resolve().iterdir(), Access.READ)
    return seal(replace(program, env=env), Sandbox(level, view, network=True))


def _needed(program: Program, command: Command) -> Iterator[Path]:
    """Yield files and folders that a program may need to start. They are readable even inside a hidden folder. The
    arguments of a job are not among them, because an agent chose those."""
    yield from (*python_folders(), Path.home())
    for folder in program.env.get("PATH", "").split(os.pathsep):
        if Path(folder).is_absolute():
            yield from (Path(folder), *([Path(folder).parent] if Path(folder).name in _PROGRAMS else []))
    yield from (Path(word) for word in command.argv if Path(word).is_absolute() and os.path.lexists(word))


def _writable(run_context: RunContext, agent: str) -> Iterator[Path]:
    config = run_context.config
    yield from (expanded(path) for path in config.workspace.writable)
    yield from (mount.source for mount in mounts_of(config, run_context.roster.assignment(agent)))
