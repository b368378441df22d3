"""The process of the `acp` runtime: it starts an agent, sends it the prompt from standard input by the Agent Client
Protocol, and prints what happens, a JSON object a line.

SIGINT reaches only this process: it asks the agent, which is in another process group, to end its turn and save.
"""

import os
import signal
import sys

# Before anything else is imported, because SIGINT may come at once. No exception: an import could swallow it.
if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import argparse
import asyncio
import contextlib
import json
import logging
from pathlib import Path

from coral.runtimes.acp.conversation import AgentSession, Choices, Refused
from coral.runtimes.acp.tracking import cut
from coral.runtimes.exits import INTERRUPTED

POLL_SECONDS = 0.1
LEAVE_SECONDS = 2.0  # for an agent to exit once its input is closed
BUFFER = 16 << 20  # bytes


def main() -> int:
    logging.disable(logging.CRITICAL)  # or the SDK's log would mix with the events
    args = _arguments()
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    return asyncio.run(_run(args, prompt))


async def _run(args: argparse.Namespace, prompt: str) -> int:
    stop, pipe = asyncio.Event(), asyncio.subprocess.PIPE
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    try:
        agent = await asyncio.create_subprocess_exec(
            *args.command, stdin=pipe, stdout=pipe, limit=BUFFER, process_group=0
        )
    except OSError as error:
        message = f"{args.command[0]} cannot be started: {error.strerror}"
        _say(type="error", during="start", message=message, gone=True)
        return 1
    assert agent.stdin is not None
    assert agent.stdout is not None
    session = AgentSession(agent.stdin, agent.stdout, _say, Path(args.state))
    choices = Choices(args.model, args.mode, args.effort, args.auth, args.patience)
    turn = asyncio.create_task(session.run(os.getcwd(), args.session, prompt, choices))  # noqa: PTH109
    try:
        await _wait(session, turn, stop, agent)
        return await _outcome(session, turn, stop, agent)
    finally:
        await _leave(session, agent)


async def _wait(
    session: AgentSession, turn: "asyncio.Task[None]", stop: asyncio.Event, agent: asyncio.subprocess.Process
) -> None:
    """Wait until the turn is over or the agent is gone. If the agent does not end its turn when asked, the supervisor
    ends the agent: only the supervisor knows how long that may take."""
    stopped, gone = asyncio.create_task(stop.wait()), asyncio.create_task(_gone(agent))
    await asyncio.wait({turn, stopped, gone}, return_when=asyncio.FIRST_COMPLETED)
    if not turn.done() and stopped.done():
        # Not awaited alone: an agent that does not read its input does not read the request to cancel either.
        cancelling = asyncio.create_task(session.cancel())
        await asyncio.wait({cancelling, turn, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not cancelling.done() or cancelling.result():
            await asyncio.wait({turn, gone}, return_when=asyncio.FIRST_COMPLETED)
        cancelling.cancel()
    if not turn.done() and gone.done():
        await asyncio.wait({turn}, timeout=LEAVE_SECONDS)  # its last messages may still be in the pipe
    for task in (stopped, gone):
        task.cancel()


async def _gone(agent: asyncio.subprocess.Process) -> None:
    """Wait until the agent's process has ended. asyncio would also wait for its pipes, which a tool may hold open."""
    while agent.returncode is None:
        await asyncio.sleep(POLL_SECONDS)


async def _outcome(
    session: AgentSession, turn: "asyncio.Task[None]", stop: asyncio.Event, agent: asyncio.subprocess.Process
) -> int:
    if not turn.done():
        turn.cancel()
        await asyncio.wait({turn})
    error = None if turn.cancelled() else turn.exception()
    if not turn.cancelled() and error is None:
        return 0
    if stop.is_set() and not isinstance(error, Refused):
        _say(type="interrupted")
        return INTERRUPTED
    if isinstance(error, Refused):
        fields = {"during": error.during, "message": str(error), "code": error.code, "data": cut(error.data)}
        _say(type="error", **fields, kind=error.kind, stopped=stop.is_set())
    elif error is None or isinstance(error, OSError):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_gone(agent), LEAVE_SECONDS)
        how = "has hung up" if agent.returncode is None else f"ended with exit code {agent.returncode}"
        _say(type="error", during=session.during, message=f"the agent {how}", gone=True, exit=agent.returncode)
    else:
        raise error
    return 1


async def _leave(session: AgentSession, agent: asyncio.subprocess.Process) -> None:
    """Let the agent exit by itself. If it does not, it gets SIGTERM; after that the supervisor ends it."""
    with contextlib.suppress(OSError, TimeoutError):  # it may have gone in the middle of a message
        await asyncio.wait_for(session.close(), LEAVE_SECONDS)
    assert agent.stdin is not None
    agent.stdin.close()
    for ask in (None, agent.terminate):
        if agent.returncode is None and ask is not None:
            with contextlib.suppress(ProcessLookupError):
                ask()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_gone(agent), LEAVE_SECONDS)
            return


def _say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Send a prompt to an agent.", allow_abbrev=False)
    parser.add_argument("--session", default="", help="the conversation to go on with; none begins one")
    parser.add_argument("--state", required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--mode", default="")
    parser.add_argument("--effort", default="")
    parser.add_argument("--auth", default="")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds for everything but the prompt")
    parser.add_argument("command", nargs="+", help="the agent's, behind --")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
