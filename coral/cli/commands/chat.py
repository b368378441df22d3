"""`coral chat`: lets a person talk in the terminal to a built-in agent with a model, which has its tools and its
memory.

Whenever the agent yields, the person has the next word. An agent of a run can be talked to while nobody supervises the
run. For a task without a run, the agent works in a copy of the seed, which is removed in the end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from coral.cli import EXIT_INTERRUPTED, EXIT_USER_ERROR
from coral.cli.parser import Parser
from coral.cli.run_data import run_lookup, send_request
from coral.errors import CoralError

TYPE_CHECKING = False  # as in typing, which takes long to import
if TYPE_CHECKING:
    from coral.native.llm.agent import LlmAgent
    from workspace.layout import Layout

PROMPT = "> "
SESSION = "chat"  # the session of an agent that had none


def add_arguments(parser: Parser) -> None:
    parser.description = (
        "Talk to a built-in agent with the brain llm, while its run stands still; or, with a task's "
        "folder and overrides, to a new one that works on a copy of the seed. An empty line ends it."
    )
    parser.add_argument("who", metavar="AGENT|TASK", help="an agent of a run, or a task's folder")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="of a task, such as agents.model=NAME")
    parser.add_argument("-m", "--message", help="say this alone, and end when the agent has answered")
    parser.add_argument("--json", action="store_true", help="for programs: the lines that the agent prints")
    run_lookup.add_arguments(parser)
    parser.exit_codes = {
        0: "the talk is over",
        EXIT_USER_ERROR: "there is no such agent, its run is supervised, or the model cannot be asked",
        EXIT_INTERRUPTED: "interrupted; every step that was done is in the agent's memory",
    }


def run(args: argparse.Namespace) -> int:
    from coral.native.llm.request import ModelError

    with _place(args) as (layout, agent_name):
        agent = _agent(layout, agent_name, as_json=args.json)
        try:
            _talk(agent, iter([args.message]) if args.message else _typed(sys.stdin.isatty()), print)
        except ModelError as error:
            raise CoralError(f"cannot ask the model: {error}", "`coral validate` says where it looks for it") from error
        finally:
            from coral.native.llm.main import interrupt

            interrupt(agent)
    return 0


@contextmanager
def _place(args: argparse.Namespace) -> Iterator[tuple[Layout, str]]:
    """Give the run and the agent; for a task, a temporary run that nobody supervises."""
    if not Path(args.who).exists() and "/" not in args.who:
        layout = run_lookup.run_of(args)
        if args.who not in {path.name for path in (layout.clone(args.who).parent).glob("*")}:
            raise CoralError(f"cannot chat: this run has no agent {args.who!r}", "`coral status` lists its agents")
        if not send_request.unsupervised(layout):
            hint = f"`{run_lookup.command('stop', layout)}` first, or `coral tell` the agents something"
            raise CoralError("cannot chat: the run is supervised, and its agent works", hint)
        yield layout, args.who
        return
    from coral.config.load import load
    from coral.runs.create import create_run

    path, overrides, _ = run_lookup.task_of("chat", args.who, args.overrides)
    with tempfile.TemporaryDirectory(prefix="coral-chat-", ignore_cleanup_errors=True) as folder:
        config = load(path, ["agents.count=1", "budget.none=true", *overrides])
        yield create_run(config, Path(folder), lambda _: None), "agent-1"


def _agent(layout: Layout, name: str, *, as_json: bool) -> LlmAgent:
    """Return the agent with its newest memory. CoralError if it is no built-in agent with a model."""
    from coral.agent_setup.roster import Roster
    from coral.cli.ui.chat_output import ChatOutput
    from coral.config.load import load_frozen
    from coral.journal import fold
    from coral.native.llm.conversation import LlmMemory
    from coral.native.llm.main import SET_ASIDE, build
    from coral.native.llm.settings import LlmOptions
    from coral.native.snapshots import Snapshots, newest_session
    from coral.processes import environment
    from coral.runtimes.native_llm import NativeLlm

    config = load_frozen(layout.task_file)
    roster = Roster(config, fold(layout.journal).fleet.run.members)
    assignment, runtime = roster.assignment(name), roster.runtime(name)
    if not isinstance(runtime, NativeLlm):
        hint = (
            f"only the built-in agent with a model can: agents.runtime={NativeLlm.name} 'agents.options={{brain: llm}}'"
        )
        raise CoralError(f"cannot chat: {name} is driven by {runtime.name} and has no such loop", hint)
    if problems := runtime.check():
        raise CoralError(f"cannot chat: {problems[0]}", "`coral validate` checks all of a task")
    options = LlmOptions.read(runtime.own_options)
    state, session = layout.state(name), newest_session(layout.state(name)) or SESSION
    snapshots = Snapshots.resume(state, session, LlmMemory, layout.attempts) or Snapshots.create(
        state, session, LlmMemory
    )
    output = ChatOutput(as_json=as_json)
    env = environment.of_agent(layout, name, config.grader.direction)
    agent = build(assignment.model, options, snapshots, output, layout.clone(name), env)
    if snapshots.problem:
        output.error(f"its newest memory was set aside: {snapshots.problem}")
        agent.receive(SET_ASIDE.format(snapshots.problem))
    return agent


def _typed(terminal: bool) -> Iterator[str]:
    """Yield the lines that a person types, until an empty one."""
    while True:
        try:
            line = input(PROMPT if terminal else "")
        except EOFError:
            return
        if not line.strip():
            return
        yield line


def _talk(agent: LlmAgent, words: Iterator[str], say: Callable[[str], object]) -> None:
    from coral.native.llm.agent import ChainEnd

    agent.recover()
    for text in words:
        agent.prompt(f"A person talks to you in a terminal, and answers when you yield. They say:\n\n{text}")
        agent.steps = agent.bench.options.steps
        end = agent.chain()
        if end is ChainEnd.CAPPED and not getattr(agent.bench.output, "as_json", False):
            say(f"  ... {agent.bench.options.max_steps} steps in a row; say something, and it goes on")
