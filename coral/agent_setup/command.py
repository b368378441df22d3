"""How an agent's program is started: what its runtime says, in the environment, folder and files that a launch has."""

from dataclasses import asdict

from attempts.files import parse_object, read_bytes, write_json
from coral.agent_setup import mounts, settings
from coral.fleet.actions import Spawn
from coral.fleet.agents.budgets import money_left
from coral.fleet.run_state import Fleet
from coral.processes import environment
from coral.processes.process import Program
from coral.runtimes.model import LaunchSpec
from coral.runtimes.registry import INSTRUCTION_FILES
from coral.supervisor.context import RunContext
from coral.views.prompt import instructions
from heartbeats.render import render_file
from workspace import hub, knowledge
from workspace.clone_overlay import Instructions, link_shared, place, put_back, write_instructions


def settle_in(run_context: RunContext, agent: str, commit: str) -> None:
    """Furnish a new clone, which is at this commit, and remember how."""
    clone, filename = run_context.layout.clone(agent), run_context.roster.runtime(agent).instruction_file
    link_shared(clone, run_context.layout.shared_of(agent, run_context.config.workspace.share))
    others = [name for name in INSTRUCTION_FILES if name != filename and (clone / name).is_file()]
    mounts.set_up(clone, _mounts(run_context, agent), filename)
    text = instructions(run_context, agent)
    if others:  # few programs read more than one such file
        text = f"{text.rstrip()}\n\nThe task has instructions of its own: read {' and '.join(others)} as well.\n"
    given = write_instructions(clone, run_context.layout.hub, commit, filename, text)
    write_json(run_context.layout.instructions(agent), asdict(given), durable=False)


def stock(run_context: RunContext, agent: str) -> None:
    """What the shared knowledge begins with: its folders, the checklist, what this agent was asked to be."""
    shared = run_context.layout.shared_of(agent, run_context.config.workspace.share)
    knowledge.create(shared)
    if not (shared / "HEARTBEAT.md").exists():
        place(shared, "HEARTBEAT.md", render_file("checklist", {}))
    role = run_context.roster.part(agent).role
    if role and not (shared / "roles" / f"{agent}.md").exists():  # its agent keeps it true
        place(shared, f"roles/{agent}.md", f"---\nagent: {agent}\n---\n\n{role.strip()}\n")


def settle_again(run_context: RunContext, agent: str) -> None:
    """A clone once more, from the last attempt of its agent, for who has none that git would take. It takes long."""
    layout, filename = run_context.layout, run_context.roster.runtime(agent).instruction_file
    recent = run_context.standings.recent_of.get(agent)
    commit = recent[-1].commit if recent else run_context.rules.seed_commit
    hub.clone_again(layout.hub, layout.clone(agent), agent, commit, exclude=[f"/{filename}"])
    settle_in(run_context, agent, commit)


def furnish(run_context: RunContext, agent: str) -> None:
    """Put back what agents may have removed: the shared knowledge, the way to it, and the instructions."""
    clone, filename = run_context.layout.clone(agent), run_context.roster.runtime(agent).instruction_file
    share = run_context.config.workspace.share
    shared = run_context.layout.shared_of(agent, share)
    if not knowledge.is_there(shared):
        for each in (
            run_context.roster if share else (agent,)
        ):  # the others would find it there, and their parts missing
            stock(run_context, each)
    link_shared(clone, shared)
    mounts.keep_up(clone, _mounts(run_context, agent))
    if not (clone / filename).exists():
        put_back(clone, filename, _remembered(run_context, agent))


def _mounts(run_context: RunContext, agent: str) -> list[mounts.Mount]:
    return mounts.mounts_of(run_context.config, run_context.roster.part(agent))


def _remembered(run_context: RunContext, agent: str) -> Instructions:
    try:
        kept = parse_object(read_bytes(run_context.layout.instructions(agent)))
        return Instructions(str(kept["text"]), bool(kept["tracked"]))
    except (OSError, ValueError, KeyError):  # its file was removed or spoiled: without the words of the seed, then
        return Instructions(instructions(run_context, agent), tracked=False)


def program_of(run_context: RunContext, fleet: Fleet, spawn: Spawn, tag: str) -> tuple[Program, str | None]:
    """The program of a launch whose prompt is written, and its session, where that is known before it starts."""
    layout, agent, launch = run_context.layout, spawn.agent, spawn.launch
    money = money_left(fleet, fleet.agents[agent], run_context.rules)
    command = run_context.roster.runtime(agent).command(_spec(run_context, agent, launch, spawn.session, money))
    settings.settle(command, layout.state(agent))
    program = Program(
        argv=command.argv,
        env=settings.environment(environment.of_agent(layout, agent), command),
        cwd=layout.clone(agent),
        stdin=layout.prompt(agent, launch),
        stdout=layout.output(agent, launch),
        stderr=layout.errors(agent, launch),
        tag=tag,
    )
    return program, command.session or spawn.session


def session_of(run_context: RunContext, agent: str, launch: int) -> str | None:
    """The session that this launch began, where that is known before it says so: asked again, it is the same one."""
    return run_context.roster.runtime(agent).command(_spec(run_context, agent, launch, None)).session or None


def environment_of(run_context: RunContext, agent: str) -> dict[str, str]:
    """What the tools of an agent's program find around them."""
    command = run_context.roster.runtime(agent).command(_spec(run_context, agent, 1, None))
    return settings.environment(environment.of_agent(run_context.layout, agent), command)


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
        model=run_context.roster.part(agent).model,
        editable=config.task.editable,
        check=config.task.check,
        direction=config.grader.direction.value,
        run_root=layout.root,
        seed=_seed(agent),
        money=money,
    )


def _seed(agent: str) -> int:
    """A number of its own for every agent, the same in every launch."""
    digits = "".join(each for each in agent if each.isdigit())
    return int(digits or 0)
