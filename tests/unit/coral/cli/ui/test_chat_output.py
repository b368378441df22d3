"""What a person sees of an agent in `coral chat`."""

import pytest

from coral.cli.ui.chat_output import shown


def tool(name: str, text: str, *, over: bool = False, failed: bool = False) -> dict[str, object]:
    return {"type": "tool", "tool": {"id": "c", "name": name, "text": text, "over": over, "failed": failed}}


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (tool("check", '{"request_heartbeat": true}'), "  > check"),
        (
            tool("run", '{"command": "ls é", "seconds": 3, "request_heartbeat": false}'),
            '  > run command="ls é" seconds=3',
        ),
        (tool("run", '{"command": '), '  > run {"command":'),
        (tool("run", "[1]"), "  > run [1]"),
        (tool("run", "a\nb " + "x" * 300, over=True), "  < a b " + "x" * 193 + "..."),
        (tool("run", "exit code 1", over=True, failed=True), "  ! exit code 1"),
        (tool("send_message", '{"message": "hi", "request_heartbeat": false}'), ""),
        (tool("send_message", "said", over=True), ""),
        (tool("send_message", "message: Field required", over=True, failed=True), "  ! message: Field required"),
        ({"type": "text", "reply": "hi\nyou"}, "hi\nyou"),
        ({"type": "beat", "phase": "thinking", "message": "asking m"}, ""),
    ],
)
def test_calls_are_quiet_lines_and_what_is_said_stands_out(line: dict[str, object], seen: str) -> None:
    assert shown(line) == seen
