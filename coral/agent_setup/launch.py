"""Prepares what one agent starts: the clone, the prompt and the program of its launches, and the programs of its
jobs."""

import contextlib
import os
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from attempts.files import write_bytes
from coral.agent_setup.clone import CloneRepair
from coral.agent_setup.own_user import keep_copy
from coral.agent_setup.remote import forget_mirror, is_placed, on_node
from coral.agent_setup.roster import place_of
from coral.agent_setup.view import seal_program
from coral.fleet.actions import Spawn
from coral.fleet.agents.budgets import money_left
from coral.fleet.run_state import Fleet, Job
from coral.processes import environment
from coral.processes.process import Program
from coral.runtimes.model import Command, LaunchSpec
from coral.supervisor.context import RunContext
from coral.views.prompt import launch_prompt
from workspace.clone_overlay import place
from workspace.plain_file import folder_of, link_below
from workspace.seal import Level


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """A launch that can be started. `session`: its id; None if the program will report it. `warnings`: problems with
    the templates of the prompt."""

    program: Program
    session: str | None
    warnings: list[str]


class LaunchSetup:
    def __init__(self, run_context: RunContext, agent: str, pool: Executor) -> None:
        """`pool`: the threads in which a clone that git cannot use is made again."""
        self._context = run_context
        self._layout = run_context.layout
        self._agent = agent
        self._clone = CloneRepair(run_context, agent, pool)

    def prepare(self, spawn: Spawn, fleet: Fleet, clock: float, tag: str) -> PreparedLaunch:
        """Make the clone ready, and write the prompt. OSError if the launch cannot start."""
        self._clone.restore()
        program, session = program_of(self._context, fleet, self._agent, spawn, tag)
        text, warnings = launch_prompt(self._context, fleet, self._agent, spawn, clock)
        write_bytes(program.stdin, text.encode("utf-8", "replace"), durable=False)
        return PreparedLaunch(program, session, warnings)

    def close(self) -> None:
        keep_logins(self._context, self._agent)

    def job_program(self, job: Job, tag: str) -> Program:
        """Return the program of a job, sealed as the agent is. OSError if the job's folder is not in the agent's clone,
        or if the agent runs on a cluster."""
        if is_placed(self._context, self._agent):
            raise OSError("agents on a cluster have no jobs: run the command in the foreground")
        clone, output = self._layout.clone(self._agent).resolve(), self._layout.job_output(self._agent, job.number)
        folder = (clone / job.folder).resolve()
        if not folder.is_relative_to(clone) or not folder.is_dir():
            raise NotADirectoryError(f"there is no folder {job.folder} in the workspace")
        command = first_command(self._context, self._agent)
        program = Program(
            argv=job.argv,
            env=launch_environment(_environment(self._context, self._agent), command),
            cwd=folder,
            stdin=Path(os.devnull),
            stdout=output,
            stderr=output,
            tag=tag,
            code=self._layout.job_code(self._agent, job.number),
        )
        return seal_program(self._context, self._agent, program, command)


def has_copies(run_context: RunContext, agent: str) -> bool:
    """Return whether an agent's program has copies of the user's logins. On a cluster it has the logins of its node."""
    return run_context.level is Level.USER and not is_placed(run_context, agent)


def keep_logins(run_context: RunContext, agent: str) -> None:
    """Copy logins that the agent's program has refreshed back to the user's files, where the program has copies of
    them."""
    if has_copies(run_context, agent):
        for name, source in first_command(run_context, agent).links.items():
            with contextlib.suppress(OSError):  # it is kept at the next launch, or given up
                keep_copy(run_context.layout.state(agent), name, source)


def _environment(run_context: RunContext, agent: str) -> dict[str, str]:
    return environment.of_agent(run_context.layout, agent, run_context.config.grader.direction)


def program_of(run_context: RunContext, fleet: Fleet, agent: str, spawn: Spawn, tag: str) -> tuple[Program, str | None]:
    """Return the program of a launch, and its session if that is known before the program says it."""
    layout = run_context.layout
    launch = spawn.launch
    money = money_left(fleet, fleet.agents[agent], run_context.rules)
    command = run_context.roster.runtime(agent).command(_spec(run_context, agent, launch, spawn.session, money))
    fill_state_folder(command, layout.state(agent), copies=has_copies(run_context, agent))
    program = Program(
        argv=command.argv,
        env=launch_environment(_environment(run_context, agent), command),
        cwd=layout.clone(agent),
        stdin=layout.prompt(agent, launch),
        stdout=layout.output(agent, launch),
        stderr=layout.errors(agent, launch),
        tag=tag,
    )
    place = place_of(run_context.config.agents, run_context.roster.assignment(agent))
    if place is not None:
        placed = on_node(run_context, agent, launch, program, place)
    else:
        forget_mirror(layout, agent)
        placed = seal_program(run_context, agent, program, first_command(run_context, agent))
    return placed, command.session or spawn.session


def session_of(run_context: RunContext, agent: str, launch: int) -> str | None:
    """Return the id of the session that this launch began, if the runtime chose it: for the same launch it chooses the
    same id again. None where the program chose it."""
    return run_context.roster.runtime(agent).command(_spec(run_context, agent, launch, None)).session or None


def first_command(run_context: RunContext, agent: str) -> Command:
    """Return the command of an agent's first launch, which resumes no session."""
    return run_context.roster.runtime(agent).command(_spec(run_context, agent, 1, None))


def fill_state_folder(command: Command, state: Path, *, copies: bool = False) -> None:
    """Add the command's settings files and links to the state folder; with `copies`, copies instead of links, see
    `own_user.keep_copy`. What is there already stays, because the program may have changed it; only the lock of a
    program is removed, because the launch that took it has ended. OSError if that is not possible."""
    state.mkdir(parents=True, exist_ok=True)
    for name in command.locks:
        with contextlib.suppress(OSError), folder_of(state, name) as place_of_lock:
            # OSError: there is none, or it is no empty folder.
            os.rmdir(Path(name).name, dir_fd=place_of_lock)
    for name, text in command.files.items():
        if not os.path.lexists(state / name):
            place(state, name, text)
    for name, target in command.links.items():
        if copies:
            keep_copy(state, name, target)
            continue
        link = state / name
        if target.exists() and not os.path.lexists(link):
            link_below(state, name, str(target.resolve()))


def set_aside(state: Path, launch: int) -> None:
    """Move all files of an agent's state folder into a folder inside it, so that another program finds none of them;
    transcripts of earlier sessions are read there. `launch`: the last launch of the old program. OSError if that is not
    possible."""
    kept = f".before-{launch + 1}"
    with contextlib.suppress(FileNotFoundError):
        names = [name for name in os.listdir(state) if not name.startswith(".before-")]  # noqa: PTH208
        # By descriptors: the agent may lay a link in the place of the folder, and its files would go elsewhere.
        with folder_of(state, f"{kept}/any", make=True) as inside, folder_of(state, kept) as place_of_state:
            for name in names:
                os.rename(name, name, src_dir_fd=place_of_state, dst_dir_fd=inside)


def launch_environment(base: Mapping[str, str], command: Command) -> dict[str, str]:
    """Return the base environment without the variables that the command drops, and with those that it adds."""
    dropped = {name for name in base if name.startswith(command.drop) and not name.startswith(command.keep)}
    return {**{name: value for name, value in base.items() if name not in dropped}, **command.env}


def _spec(
    run_context: RunContext, agent: str, launch: int, session: str | None, money: float | None = None
) -> LaunchSpec:
    config, layout = run_context.config, run_context.layout
    return LaunchSpec(
        agent=agent,
        launch=launch,
        session=session,
        clone=layout.clone(agent),
        state=layout.state(agent),
        model=run_context.roster.assignment(agent).model,
        editable=config.task.editable,
        check=config.task.check,
        direction=config.grader.direction.value,
        run_root=layout.root,
        seed=_seed(agent),
        money=money,
    )


def _seed(agent: str) -> int:
    """Return the number in the agent's name, the same in every launch; for a name without one, a hash of the name."""
    digits = "".join(filter(str.isdecimal, agent))
    return int(digits) if digits else crc32(agent.encode())
