"""The lines between our client and an agent of the Agent Client Protocol: a JSON object each, and nothing else counts.

A tool that inherits the agent's output prints there what it likes, and an agent may answer as no protocol has it.
"""

import asyncio
import json
from typing import Any

from coral.runtimes.event import parse

INTERNAL = -32603  # of JSON-RPC: an error without a number of its own


class Wire:
    """What the SDK's Connection wants below it. `received`: how many messages have come."""

    def __init__(self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
        self._writer = writer
        self._reader = reader
        self.received = 0

    async def send(self, message: dict[str, Any]) -> None:
        """OSError where the agent is gone."""
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None after the last one."""
        while line := await self._line():
            await asyncio.sleep(0)  # a flood keeps nothing else from its turn
            event = parse(line)
            message = None if event is None else sound(event.raw())
            if message is not None:
                self.received += 1
                return message
        return None

    async def close(self) -> None:
        """The agent's input is closed by who started it."""

    async def _line(self) -> bytes:
        """However long it is; what has no end is the last."""
        parts: list[bytes] = []
        while True:
            try:
                return b"".join((*parts, await self._reader.readuntil(b"\n")))
            except asyncio.LimitOverrunError as error:
                parts.append(await self._reader.readexactly(error.consumed))
            except asyncio.IncompleteReadError as error:
                return b"".join((*parts, error.partial))


def sound(message: object) -> dict[str, Any] | None:
    """A message as the SDK can take it; None for what is none: it looks an answer up by its id, and an error's words
    by their names."""
    if not isinstance(message, dict):
        return None
    if message.get("method") is not None or "id" not in message:
        return message
    id, error = message["id"], message.get("error")
    if type(id) is not int or message.keys().isdisjoint(("jsonrpc", "result", "error")):
        return None
    if error is None or message.get("result") is not None:
        return message
    if not isinstance(error, dict):
        error = {"code": INTERNAL, "message": error if isinstance(error, str) else json.dumps(error)}
    return {"id": id, "error": error}
