"""The clone that an agent works in: set up once, restored before each launch, cloned again when git cannot use it."""

import contextlib
import os
from concurrent.futures import Executor, Future
from dataclasses import asdict
from pathlib import Path

from attempts.files import parse_object, read_bytes, write_json
from coral.agent_setup.remote import forget_mirror
from coral.agent_setup.roster import Mount, mounts_of
from coral.errors import CoralError
from coral.runtimes.model import Runtime
from coral.runtimes.registry import INSTRUCTION_FILES
from coral.supervisor.context import RunContext
from coral.views.prompt import instructions
from heartbeats.render import render_file
from workspace import hub, knowledge
from workspace.clone_overlay import Instructions, link_shared, mount, place, put_back, write_instructions
from workspace.errors import GitError
from workspace.layout import SHARED
from workspace.plain_file import folder_of


def create_knowledge(run_context: RunContext, agent: str) -> None:
    """Create the shared knowledge that this agent sees: its folders, the checklist, the role of the agent."""
    shared = _shared(run_context, agent)
    knowledge.create(shared)
    if not (shared / "HEARTBEAT.md").exists():
        place(shared, "HEARTBEAT.md", _checklist(run_context))
    if not (shared / "roles" / f"{agent}.md").exists():  # the agent may have changed its role
        write_role(run_context, agent)


def write_role(run_context: RunContext, agent: str) -> None:
    if role := run_context.roster.assignment(agent).role:
        shared = _shared(run_context, agent)
        place(shared, f"roles/{agent}.md", f"---\nagent: {agent}\n---\n\n{role.strip()}\n")


def _checklist(run_context: RunContext) -> str:
    """Return the text of the task's checklist, or Coral's own if the task has none."""
    try:
        return read_bytes(run_context.layout.checklist).decode("utf-8")
    except (FileNotFoundError, ValueError):
        return render_file("checklist", {})


def set_up_clone(run_context: RunContext, agent: str, commit: str) -> None:
    """Add to a new clone at this commit what is not in git: the shared knowledge, the mounts, the instructions. The
    text of the instructions is also kept in the run's folder, so that `restore_clone` can write it again."""
    clone, filename = run_context.layout.clone(agent), run_context.roster.runtime(agent).instruction_file
    link_shared(clone, _shared(run_context, agent))
    set_up_mounts(clone, _mounts(run_context, agent), filename)
    renew_instructions(run_context, agent, commit)


def renew_instructions(run_context: RunContext, agent: str, commit: str) -> None:
    """Write what the task says now into a clone: the instruction file, which includes the file of that name in this
    commit, and the name of the check."""
    clone, filename = run_context.layout.clone(agent), run_context.roster.runtime(agent).instruction_file
    forget_mirror(run_context.layout, agent)
    others = [name for name in INSTRUCTION_FILES if name != filename and (clone / name).is_file()]
    text = instructions(run_context, agent)
    if others:  # few programs read more than one such file
        text = f"{text.rstrip()}\n\nThe task has instructions of its own: read {' and '.join(others)} as well.\n"
    written = write_instructions(clone, run_context.layout.hub, commit, filename, text)
    write_json(run_context.layout.instructions(agent), asdict(written), durable=False)
    _write_check(run_context, agent)


def change_program(run_context: RunContext, agent: str, before: Runtime) -> None:
    """Write the instructions of an agent's new runtime into its clone. The instruction file of `before`, the old
    runtime, is removed unless the seed has a file of that name. CoralError if a folder has the name of the new one."""
    clone, runtime = run_context.layout.clone(agent), run_context.roster.runtime(agent)
    old, new = before.instruction_file, runtime.instruction_file
    if (clone / new).is_dir():
        hint = f"{runtime.name} reads a file of that name: tell the agent to rename it"
        raise CoralError(f"cannot write {new} for {agent}: it is a folder in its workspace", hint)
    if old != new and not _kept_instructions(run_context, agent).tracked:
        with contextlib.suppress(OSError), folder_of(clone, old) as place_of_file:
            os.unlink(Path(old).name, dir_fd=place_of_file)
    renew_instructions(run_context, agent, run_context.rules.seed_commit)


def restore_clone(run_context: RunContext, agent: str) -> None:
    """Restore what the agent may have removed: the shared knowledge, the link to it, the mounts, the instructions, the
    name of the check."""
    clone, filename = run_context.layout.clone(agent), run_context.roster.runtime(agent).instruction_file
    shared, mounts = _shared(run_context, agent), _mounts(run_context, agent)
    places = [
        clone / SHARED,
        clone / filename,
        run_context.layout.check(agent),
        *(clone / planned.at for planned in mounts),
    ]
    before = [_identity(path) for path in places]
    if not knowledge.is_there(shared):
        # For all agents that share it: none of the others would create it again, and their roles would be missing.
        for sharer in run_context.roster if run_context.config.workspace.share else (agent,):
            create_knowledge(run_context, sharer)
    link_shared(clone, shared)
    restore_mounts(clone, mounts)
    if not (clone / filename).exists():
        put_back(clone, filename, _kept_instructions(run_context, agent))
    if not run_context.layout.check(agent).exists():
        with contextlib.suppress(OSError, GitError):  # the agent can work without it
            _write_check(run_context, agent)
    if [_identity(path) for path in places] != before:
        forget_mirror(run_context.layout, agent)


def _identity(path: Path) -> tuple[int, int]:
    """Return what differs as soon as something else is at a path."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return status.st_ino, status.st_ctime_ns
    return 0, 0


def set_up_mounts(clone: Path, mounts: list[Mount], instruction_file: str) -> None:
    """Link the mounts in a new clone. CoralError if the seed or the instructions are at the same path."""
    for planned in mounts:
        if planned.at == instruction_file or (clone / planned.at).exists():
            hint = "see agents.mounts in task.yaml: choose another path"
            raise CoralError(f"cannot mount {planned.source}: {planned.at} is taken", hint)
        mount(clone, planned.at, planned.source)


def restore_mounts(clone: Path, mounts: list[Mount]) -> None:
    """Link again the mounts that the agent removed. A file of the agent at the same path stays."""
    for planned in mounts:
        with contextlib.suppress(OSError, GitError):
            mount(clone, planned.at, planned.source)


def reclone(run_context: RunContext, agent: str) -> None:
    """Clone the hub again, at the commit of the agent's last attempt. Slow: for a thread."""
    layout, filename = run_context.layout, run_context.roster.runtime(agent).instruction_file
    recent = run_context.results.of_agent.get(agent)
    commit = recent[-1].commit if recent else run_context.rules.seed_commit
    hub.clone_again(layout.hub, layout.clone(agent), agent, commit, exclude=[filename, SHARED])
    set_up_clone(run_context, agent, commit)


class CloneRepair:
    """Restores an agent's clone before each launch. A clone that git cannot use is made again by a thread, because the
    loop must not wait for git; until then the agent's start fails, and it waits as after any failed start."""

    def __init__(self, run_context: RunContext, agent: str, pool: Executor) -> None:
        self._context = run_context
        self._agent = agent
        self._pool = pool
        self._recloning: Future[None] | None = None

    def restore(self) -> None:
        """Make the clone ready for a launch. OSError if it is no repository: then a thread has begun to clone it again;
        the error names the failure of the try before, if there was one."""
        future = self._recloning
        if future is not None and not future.done():
            raise OSError("its repository is still being made again")
        self._recloning = None
        if hub.is_whole(self._context.layout.clone(self._agent)):
            restore_clone(self._context, self._agent)
            return
        self._recloning = self._pool.submit(reclone, self._context, self._agent)
        error = future.exception() if future is not None else None
        failure = f", which failed before: {error}" if error is not None else ""
        raise OSError(f"its repository was removed or damaged; it is made again{failure}")


def _shared(run_context: RunContext, agent: str) -> Path:
    return run_context.layout.shared_of(agent, run_context.config.workspace.share)


def _write_check(run_context: RunContext, agent: str) -> None:
    clone, file = run_context.layout.clone(agent), run_context.layout.check(agent)
    place(clone, str(file.relative_to(clone)), run_context.config.task.check)


def _mounts(run_context: RunContext, agent: str) -> list[Mount]:
    return mounts_of(run_context.config, run_context.roster.assignment(agent))


def _kept_instructions(run_context: RunContext, agent: str) -> Instructions:
    try:
        kept = parse_object(read_bytes(run_context.layout.instructions(agent)))
        return Instructions(str(kept["text"]), bool(kept["tracked"]))
    except (OSError, ValueError, KeyError):  # the file was removed or damaged: then without the seed's own text
        return Instructions(instructions(run_context, agent), tracked=False)
