"""Prepares what one agent starts: the clone, the prompt and the program of its launches, the programs of its jobs."""

import os
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from attempts.files import write_bytes
from coral.agent_setup.clone import CloneRepair
from coral.agent_setup.command import environment_of, program_of
from coral.fleet.actions import Spawn
from coral.fleet.run_state import Fleet, Job
from coral.processes.process import Program
from coral.supervisor.context import RunContext
from coral.views.prompt import launch_prompt


@dataclass(frozen=True, slots=True)
class PreparedLaunch:
    """`session`: None where only the program will say it; `warnings`: about the templates of the prompt."""

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
        """Make the clone ready, and write the prompt. OSError where the launch cannot start."""
        self._clone.restore()
        program, session = program_of(self._context, fleet, self._agent, spawn, tag)
        text, warnings = launch_prompt(self._context, fleet, self._agent, spawn, clock)
        write_bytes(program.stdin, text.encode("utf-8", "replace"), durable=False)
        return PreparedLaunch(program, session, warnings)

    def job_program(self, job: Job, tag: str) -> Program:
        """OSError where the job's folder is not in the agent's clone."""
        clone, output = self._layout.clone(self._agent).resolve(), self._layout.job_output(self._agent, job.number)
        folder = (clone / job.folder).resolve()
        if not folder.is_relative_to(clone) or not folder.is_dir():
            raise NotADirectoryError(f"there is no folder {job.folder} in the workspace")
        return Program(
            argv=job.argv,
            env=environment_of(self._context, self._agent),
            cwd=folder,
            stdin=Path(os.devnull),
            stdout=output,
            stderr=output,
            tag=tag,
            code=self._layout.job_code(self._agent, job.number),
        )
