"""Finds and calls the tools and gates of a task's own. They are called here alone, since they may raise any error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coral.native.llm import gates
from coral.native.llm.conversation import ToolCall
from coral.native.llm.gates import SHIPPED, Decision, Gate, GateSignal, RefusedCall
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError
from coral.own_code import find_own

if TYPE_CHECKING:
    from coral.native.llm.tools.base import AgentTool


def own_tools(specs: Sequence[str]) -> list[type[AgentTool]]:
    if not specs:
        return []
    from coral.native.llm.tools.base import AgentTool  # with pydantic, which a start does without

    found = []
    for spec in specs:
        tool = find_own("tool", spec)
        if not (
            isinstance(tool, type) and issubclass(tool, AgentTool) and isinstance(getattr(tool, "name", None), str)
        ):
            raise ValueError(f"cannot use the tool {spec!r}: it is no subclass of AgentTool with a name")
        found.append(tool)
    return found


def own_gates(specs: Iterable[str]) -> tuple[Gate, ...]:
    """Return the shipped gates, and after them the task's own. ValueError if one cannot be used."""
    found = [find_own("gate", spec) for spec in specs]
    if strange := [spec for spec, gate in zip(specs, found, strict=True) if not callable(gate)]:
        raise ValueError(f"cannot use the gate {strange[0]!r}: it is no function")
    return (*SHIPPED, *(gate for gate in found if callable(gate)))


def decide(chosen: Sequence[Gate], signal: GateSignal, calls: tuple[ToolCall, ...], place: int) -> Decision:
    """Return the decision of the gates on the call at `place`. If one raises an error, the call is refused: a limit
    that is broken must not let calls pass."""
    try:
        return gates.ask(chosen, signal, calls, place)
    except (Exception, SystemExit) as problem:  # noqa: BLE001  it is not our code
        return RefusedCall(calls[place], f"a gate of this task is broken: {type(problem).__name__}: {problem}")


def read(tool: type[AgentTool], call: ToolCall) -> AgentTool:
    """Return the tool with the arguments of the call. Whatever its validators raise becomes a ToolError."""
    from coral.native.llm.tools.arguments import read_arguments

    with _as_tool_error(tool.name):
        return read_arguments(tool, call)


def perform(tool: AgentTool, bench: Workbench) -> str:
    """Run a tool and return its result. Whatever it raises becomes a ToolError."""
    with _as_tool_error(tool.name):
        return str(tool.perform(bench))


@contextmanager
def _as_tool_error(name: str) -> Iterator[None]:
    try:
        yield
    except ToolError:
        raise
    except (Exception, SystemExit) as problem:  # `sys.exit` would end the launch
        raise ToolError(f"{name} broke: {type(problem).__name__}: {problem}; try another way") from problem
