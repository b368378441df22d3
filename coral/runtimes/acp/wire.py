"""Sends and receives the messages of the Agent Client Protocol, a JSON object a line; other lines are skipped.

A tool that inherits the agent's output may print there, and an agent may answer against the protocol.
"""

import asyncio
import json
from typing import Any

from coral.runtimes.json_object import parse

INTERNAL = -32603  # of JSON-RPC: an error without a number of its own


class Wire:
    """The transport of the SDK's Connection. `received`: how many messages have come."""

    def __init__(self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
        self._writer = writer
        self._reader = reader
        self.received = 0

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message. OSError if the agent is gone."""
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None after the last one."""
        while line := await self._line():
            await asyncio.sleep(0)  # or a flood of messages would block every other task
            event = parse(line)
            message = None if event is None else sound(event.raw())
            if message is not None:
                self.received += 1
                return message
        return None

    async def close(self) -> None:
        """Do nothing: the process that started the agent closes its input."""

    async def _line(self) -> bytes:
        """Read a line of any length; the last may have no newline. Empty at the end."""
        parts: list[bytes] = []
        while True:
            try:
                return b"".join((*parts, await self._reader.readuntil(b"\n")))
            except asyncio.LimitOverrunError as error:
                parts.append(await self._reader.readexactly(error.consumed))
            except asyncio.IncompleteReadError as error:
                return b"".join((*parts, error.partial))


def sound(message: object) -> dict[str, Any] | None:
    """Return the message in a form that the SDK can process; None if it has no such form. The SDK finds the request of
    an answer by a number, and expects an object as error."""
    if not isinstance(message, dict):
        return None
    if message.get("method") is not None or "id" not in message:
        return message
    number, error = message["id"], message.get("error")
    if type(number) is not int or message.keys().isdisjoint(("jsonrpc", "result", "error")):
        return None
    if error is None or message.get("result") is not None:
        return message
    if not isinstance(error, dict):
        error = {"code": INTERNAL, "message": error if isinstance(error, str) else json.dumps(error)}
    return {"id": number, "error": error}
