"""Prints the output of the built-in agent for a person: its replies in full, and one short line for each call of a
tool."""

import json
from collections.abc import Mapping
from typing import Any

from coral.native.llm.output import LlmOutput
from coral.views.format import clean

LONGEST = 200  # characters of a line about a tool
SAYS = "send_message"


class ChatOutput(LlmOutput):
    """`as_json`: print the agent's lines as they are, for programs."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self.as_json = as_json

    def line(self, data: dict[str, object]) -> None:
        text = json.dumps(data, ensure_ascii=False) if self.as_json else shown(data)
        if text:
            print(text, flush=True)


def shown(data: Mapping[str, Any]) -> str:
    """Return the text for one line of the agent's output; empty for what a person need not see."""
    match data["type"]:
        case "text":
            return clean(str(data["reply"]))
        case "tool":
            return _tool(data["tool"])
        case "error":
            return f"  ! {_short(str(data['error']))}"
        case "retry":
            return f"  ... again in {data['retry']['seconds']:g} s: {_short(data['retry']['reason'])}"
        case "compacted":
            return f"  ... {data['message']}"
    return ""


def _tool(tool: Mapping[str, Any]) -> str:
    """Return a line for the call of a tool with its arguments, or for the beginning of its result. A call of SAYS is
    left out, since its text is shown as a reply."""
    if tool["failed"]:
        return f"  ! {_short(tool['text'])}"
    if tool["name"] == SAYS:
        return ""
    if tool["over"]:
        return f"  < {_short(tool['text'])}"
    call = f"{tool['name']} {_arguments(tool)}"
    return f"  > {_short(call)}"


def _arguments(tool: Mapping[str, Any]) -> str:
    """Return the arguments as `name=value`, without `request_heartbeat`, which tells a person nothing."""
    try:
        given = json.loads(tool["text"])
    except ValueError:
        return str(tool["text"])
    if not isinstance(given, dict):
        return str(tool["text"])
    plain = {name: value for name, value in given.items() if name != "request_heartbeat"}
    return " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in plain.items())


def _short(text: str) -> str:
    line = clean(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
