"""An agent of the Agent Client Protocol without the SDK, for what no SDK would do: `acp_raw.py FOLDER WAY`."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER, WAY = Path(sys.argv[1]), sys.argv[2]
STRAY = ("123", "null", "true", '["x"]', '{"score": 1}', '{"id": [], "result": 1}', '{"id": true, "result": 1}')
REPLAYED = 200
PERMISSION = 900


def send(*messages: dict[str, Any]) -> None:
    """Send the messages in one piece."""
    os.write(1, "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages).encode())


def stray() -> None:
    for number in range(6):
        # Of every request that there may be.
        os.write(1, f'{{"id": {number}, "score": 1}}\n'.encode())
    os.write(1, "".join(f"{line}\n" for line in (*STRAY, "[" * 9999)).encode())


def said(text: str) -> dict[str, Any]:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return {"method": "session/update", "params": {"sessionId": "s-1", "update": update}}


def opened() -> None:
    """Do what the way of this agent says once it has a conversation."""
    if WAY == "dies":
        os.read(0, 1000)  # of the prompt, which is longer than a pipe
        os._exit(7)
    if WAY == "stalls":
        os.read(0, 1000)
        subprocess.Popen(["sleep", "300"])  # a tool that holds the agent's input and output
        FOLDER.joinpath("stalled").touch()
        while not FOLDER.joinpath("die").exists():
            time.sleep(0.01)
        os._exit(7)


def prompted(id: int) -> None:
    if WAY == "refuses":
        send({"id": id, "error": "boom"})
    elif WAY == "asks":
        send(said("I wait."))
        FOLDER.joinpath("waits").write_text(str(id))
    else:
        send(said("New."), {"id": id, "result": {"stopReason": "end_turn"}})


def cancelled() -> None:
    options = [{"optionId": "o", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": "s-1", "toolCall": {"toolCallId": "t", "title": "Late"}, "options": options}
    send({"id": PERMISSION, "method": "session/request_permission", "params": params})


def answered(result: Any) -> None:
    FOLDER.joinpath("answer").write_text(json.dumps(result))
    send({"id": int(FOLDER.joinpath("waits").read_text()), "result": {"stopReason": "cancelled"}})


def take(message: dict[str, Any]) -> None:
    if WAY == "prints":
        stray()
    id, method = message.get("id", -1), message.get("method")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}})
    elif method == "session/new":
        send({"id": id, "result": {"sessionId": "s-1"}})
        opened()
    elif method == "session/load":
        # The conversation comes behind the answer.
        send({"id": id, "result": {}}, *[said("HEARTBEAT_OK")] * REPLAYED)
    elif method == "session/prompt":
        prompted(id)
    elif method == "session/cancel":
        cancelled()
    elif id == PERMISSION:
        answered(message["result"])


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for line in sys.stdin.buffer:
        take(json.loads(line))
