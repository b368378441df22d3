"""What an agent prints, for a person: what it says stands out, its tools are one quiet line each."""

import json
from collections.abc import Mapping
from typing import Any

from coral.native.output import Output
from coral.views.format import clean

LONGEST = 200  # characters of a line about a tool


class ChatOutput(Output):
    """`as_json`: the lines that the agent prints for programs, as they are."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self.as_json = as_json

    def _line(self, data: dict[str, object]) -> None:
        text = json.dumps(data, ensure_ascii=False) if self.as_json else shown(data)
        if text:
            print(text, flush=True)


def shown(data: Mapping[str, Any]) -> str:
    """The lines for one line of the agent's output; empty for what a person need not see."""
    match data["type"]:
        case "text":
            return clean(str(data["reply"]))
        case "tool" if not data["tool"]["over"]:
            return f"  > {data['tool']['name']} {_short(data['tool']['text'])}"
        case "tool" if data["tool"]["failed"]:
            return f"  ! {_short(data['tool']['text'])}"
        case "error":
            return f"  ! {_short(str(data['error']))}"
        case "retry":
            return f"  ... again in {data['retry']['seconds']:g} s: {_short(data['retry']['reason'])}"
        case "compacted":
            return f"  ... {data['message']}"
    return ""


def _short(text: str) -> str:
    line = clean(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
