"""Measures the tokens that the built-in agent with a model sends again when it is interrupted and resumed."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks import machine, table
from benchmarks.arena import BenchmarkError, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, median, number
from benchmarks.model_place import READ, SECONDS, Place, model_place, scripted_model
from benchmarks.prompts import CHARACTERS, PROMPTS, REFLECT, prompt_text
from benchmarks.results import Result

NAME = "resent"
INTERRUPTS, QUICK_INTERRUPTS = 5, 2  # of each kind; more would fill the window
STEPS = 3  # whole steps in a launch, before the one that is interrupted
FIRST = "the first one"
STEP, IN_TOOL, IN_ANSWER = "a step within a launch", "the first one after a cut command", "... after a cut answer"
UNCACHED = ", not in the cache"
TARGET = Target(median=1500)
Body = Mapping[str, Any]


def measure(ask: Ask) -> Iterable[Result]:
    here, interrupts = machine.here(), QUICK_INTERRUPTS if ask.quick else INTERRUPTS
    ask.say(f"{2 * interrupts} interrupts of one conversation")
    yield Result(NAME, machine.today(), here, {"characters": CHARACTERS, "steps": STEPS}, _sent_again(interrupts))


def full() -> Mapping[str, Full]:
    counts = {STEP: (2 * INTERRUPTS + 1) * STEPS, IN_TOOL: INTERRUPTS, IN_ANSWER: INTERRUPTS}
    series = {name: count for kind, count in counts.items() for name in (kind, kind + UNCACHED)}
    return {NAME: Full({"characters": CHARACTERS, "steps": STEPS}, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    values = [value for kind in (IN_TOOL, IN_ANSWER) for value in results[NAME].series[kind + UNCACHED]]
    return [check("a resumed request to a model, what is not in the cache", values, TARGET, "tokens", _WHY)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## What an interrupt sends again", "", _ABOUT, ""]
    lines += ["| request, medians in tokens | without a cache | with one |", "|---|---:|---:|"]
    for kind in (STEP, IN_TOOL, IN_ANSWER):
        sent, uncached = (number(median(result.series[name])) for name in (kind, kind + UNCACHED))
        lines.append(f"| {kind} | {sent} | {uncached} |")
    return [*lines, "", table.origin(result)]


_ABOUT = f"""The built-in agent with the brain `llm`: what has to be paid for in full of each request. One conversation
on the wire `messages` is interrupted {2 * INTERRUPTS} times, while a command runs and while an answer comes, and
resumed with the prompt of a heartbeat. Before that, each launch makes {STEPS} whole steps, whose results have some
1,500 tokens. A model is sent the whole conversation with every step. Without a cache all of it is paid for, and an
answer that was cut costs one such request more. With one, what an earlier request has marked is read from there, even
though the process has ended in between, as long as the server keeps it. A token is taken as {CHARACTERS} characters."""

_WHY = "What a resumed request adds is the prompt of the launch; the rest must be what was sent before, byte by byte."


def _sent_again(interrupts: int) -> dict[str, list[float]]:
    model = scripted_model()
    read = model.Step(calls=[READ], times=STEPS)
    series: dict[str, list[float]] = {}
    known: set[tuple[str, ...]] = set()
    with model_place(model.ModelServer()) as place:
        before = FIRST
        for launch in range(2 * interrupts + 1):
            end = IN_ANSWER if launch % 2 else IN_TOOL
            # With a number in it: a gate refuses a call that has failed three times.
            command = {"command": f"touch running; sleep 600; : {launch}", "request_heartbeat": True}
            last = model.Step(say="I think about it", hang=True)
            place.server.then(read, last if end == IN_ANSWER else model.Step(calls=[("run", command)]))
            first = len(place.server.turns)
            _interrupted(place, end, first + STEPS + 1, resume=launch > 0)
            for turn, asked in enumerate(place.server.turns[first:]):
                kind = STEP if turn else before
                sent, uncached = _sizes(asked.body, known)
                series.setdefault(kind, []).append(sent)
                series.setdefault(kind + UNCACHED, []).append(uncached)
            before = end
    for kind in (FIRST, FIRST + UNCACHED):  # no interrupt came before the first request
        del series[kind]
    return series


def _interrupted(place: Place, end: str, requests: int, *, resume: bool) -> None:
    """Make one launch, which is interrupted during the answer to its last request or the command that this asks for."""
    running = place.clone / "running"
    running.unlink(missing_ok=True)
    arrived: Callable[[], bool] = running.exists if end == IN_TOOL else lambda: place.server.begun >= requests
    child = place.launch(prompt_text(*PROMPTS[REFLECT]), session="one", resume=resume)
    wait_until(arrived, SECONDS, "the end of a launch")
    child.send_signal(signal.SIGINT)
    child.wait(SECONDS)
    if len(place.server.turns) != requests:
        raise BenchmarkError("an agent has asked more often than it was to")


def _sizes(body: Body, known: set[tuple[str, ...]]) -> tuple[float, float]:
    """Return the tokens of a request, and of its part that no earlier request has left in the cache. `known`: the
    beginnings of requests, up to a mark, that are in the cache; those of this request are added."""
    blocks, marks = list[str](), list[int]()
    for block in _blocks(body):
        if "cache_control" in block:
            marks.append(len(blocks))
        blocks.append(json.dumps({name: value for name, value in block.items() if name != "cache_control"}))
    beginnings = [tuple(blocks[: mark + 1]) for mark in marks]
    # A server looks for a hit before each mark, too, block by block.
    held = next((end for end in range(len(blocks), 0, -1) if tuple(blocks[:end]) in known), 0)
    known.update(beginnings)
    return _tokens(blocks), _tokens(blocks[held:])


def _blocks(body: Body) -> Iterator[Body]:
    """Yield the parts of a request in the order in which the server caches them."""
    yield {"tools": body["tools"]}
    yield from body["system"]
    for message in body["messages"]:
        yield from ({"role": message["role"], **block} for block in message["content"])


def _tokens(blocks: Sequence[str]) -> float:
    return round(sum(map(len, blocks)) / CHARACTERS)
