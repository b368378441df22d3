"""Runs an agent with the brain `llm`: reads its options and prompt, and goes on until an interrupt or the last step."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from coral.native.interrupt import on_interrupt
from coral.native.llm.agent import LlmAgent
from coral.native.llm.chat_wire import ChatWire
from coral.native.llm.client import ModelClient
from coral.native.llm.conversation import LlmMemory
from coral.native.llm.messages_wire import MessagesWire
from coral.native.llm.outer import OuterLoop
from coral.native.llm.output import LlmOutput
from coral.native.llm.patience import Patience
from coral.native.llm.perceive import Perception
from coral.native.llm.plugins import own_gates, own_tools
from coral.native.llm.request import ModelError, ModelWire
from coral.native.llm.settings import LlmOptions
from coral.native.llm.textual import TextualWire
from coral.native.llm.toolset import Toolset
from coral.native.llm.transcript import Transcript
from coral.native.llm.window import clip, request_tokens
from coral.native.llm.workbench import Workbench
from coral.native.main import EXIT_FAILED, EXIT_UNKNOWN_SESSION, open_memory
from coral.native.snapshots import Snapshots

WIRES: Mapping[str, type[ChatWire] | type[MessagesWire]] = {"chat": ChatWire, "messages": MessagesWire}
INSTRUCTIONS = "AGENTS.md"
LONGEST_INSTRUCTIONS = 30_000  # characters
SET_ASIDE = "Your newest memory was set aside: {}. What you remember of attempts may be gone: trust the records."


def run(args: argparse.Namespace, options: LlmOptions, output: LlmOutput) -> int:
    """Run the launch, and return its exit code. ValueError says what is wrong with the options or the session."""
    snapshots = open_memory(args, LlmMemory)
    if snapshots is None:
        return EXIT_UNKNOWN_SESSION
    agent = build(args.model, options, snapshots, output, Path.cwd(), os.environ)
    prompt = sys.stdin.read()
    _begin(agent, options, f"{SET_ASIDE.format(snapshots.problem)}\n\n{prompt}" if snapshots.problem else prompt)
    # Set before the first line is printed: with that line, the prompt counts as received, and memory has it by now.
    on_interrupt(snapshots.save, lambda: interrupt(agent))
    output.session(args.session)
    try:
        output.end(OuterLoop(agent).run())
    except ModelError as problem:
        snapshots.save()  # with what the tries that failed have used
        output.model_failed(str(problem), problem.status, problem.retry_after)
        print(f"coral.native: {problem}", file=sys.stderr)
        return EXIT_FAILED
    return 0


def build(
    model: str,
    options: LlmOptions,
    snapshots: Snapshots[LlmMemory],
    output: LlmOutput,
    clone: Path,
    environment: Mapping[str, str],
) -> LlmAgent:
    """Make an agent in the folder `clone`. ValueError if a tool or gate of the task cannot be found."""
    agents = list[LlmAgent]()
    bench = Workbench(
        clone=clone,
        agent=environment.get("CORAL_AGENT", "agent"),
        snapshots=snapshots,
        output=output,
        options=options,
        transcript=Transcript(snapshots.folder / "transcript.jsonl"),
        environment={name: value for name, value in environment.items() if name not in options.key_names},
        settle=lambda text, attempt, heartbeats: agents[0].settle(text, attempt, heartbeats),
    )
    tools = Toolset(own_tools(options.tools))
    wire: ModelWire = WIRES[options.wire]()
    if options.calls == "text":
        wire = TextualWire(wire)
    client = ModelClient(wire, options.url, environment.get(options.key_name, ""), options.answer_seconds)
    client.spend, client.alive = bench.spend, output.answering
    perception = Perception(bench, tools, client, Patience(output.retry), model, _instructions(clone))
    agents.append(LlmAgent(bench, tools, own_gates(options.gates), perception, options.steps))
    return agents[0]


def _begin(agent: LlmAgent, options: LlmOptions, prompt: str) -> None:
    """Take the prompt into memory, before anything is printed."""
    bench = agent.bench
    if "persona" not in bench.memory.blocks and options.persona:
        bench.memory = bench.memory.edit("persona", options.persona)
    if prompt.strip():
        agent.receive(clip(prompt, options.window))


def interrupt(agent: LlmAgent) -> None:
    """Report what the unfinished answer has used, and end what the process has started, while it is being
    interrupted."""
    client = agent.perception.client
    if client.reading is not None:
        usage = client.reading.usage
        asked = usage.input + usage.cached or request_tokens(agent.perception.request(agent.memory))
        agent.bench.output.usage(input=asked - usage.cached, cached=usage.cached, output=usage.output)
    if agent.bench.running is not None:
        agent.bench.running.interrupt()
    if agent.bench.group:
        from coral.native.llm.tools.commands import kill_group

        kill_group(agent.bench.group)


def _instructions(clone: Path) -> str:
    try:
        return clip((clone / INSTRUCTIONS).read_text("utf-8", "replace"), LONGEST_INSTRUCTIONS)
    except OSError:
        return ""
