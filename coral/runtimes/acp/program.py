"""The process of the `acp` runtime: it starts an agent, has a conversation with it by the Agent Client Protocol, and
prints what happens, a JSON object a line. The prompt comes on its standard input.

SIGINT is for us alone: the agent, in a process group of its own, is asked to end its turn, and ends when it has saved.
"""

import os
import signal
import sys

# Before anything else is loaded: an interrupt at birth is an interrupt too. No exception, for an import may lose it.
if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import argparse
import asyncio
import contextlib
import json
import logging
from pathlib import Path

from coral.runtimes.acp.conversation import Refused, Talk, Wishes
from coral.runtimes.acp.notes import cut
from coral.runtimes.exits import INTERRUPTED

LOOK_SECONDS = 0.1
LEAVE_SECONDS = 2.0  # for an agent to end once nobody talks to it
BUFFER = 16 << 20  # bytes


def main() -> int:
    logging.disable(logging.CRITICAL)  # the SDK's own words would stand between those of the agent
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
        why = f"{args.command[0]} cannot be started: {error.strerror}"
        _say(type="error", during="start", message=why, gone=True)
        return 1
    assert agent.stdin is not None
    assert agent.stdout is not None
    talk = Talk(agent.stdin, agent.stdout, _say, Path(args.state))
    wishes = Wishes(args.model, args.mode, args.effort, args.auth, args.patience)
    talking = asyncio.create_task(talk.hold(os.getcwd(), args.session, prompt, wishes))  # noqa: PTH109
    try:
        await _wait(talk, talking, stop, agent)
        return await _outcome(talk, talking, stop, agent)
    finally:
        await _leave(talk, agent)


async def _wait(
    talk: Talk, talking: "asyncio.Task[None]", stop: asyncio.Event, agent: asyncio.subprocess.Process
) -> None:
    """Until it is over, or the agent is gone. One that is asked to end its turn, and does not, is the supervisor's to
    end: nobody else knows how long it may take."""
    stopped, gone = asyncio.create_task(stop.wait()), asyncio.create_task(_gone(agent))
    await asyncio.wait({talking, stopped, gone}, return_when=asyncio.FIRST_COMPLETED)
    if not talking.done() and stopped.done():
        # Not awaited alone: an agent that does not read does not take this in either.
        cancelling = asyncio.create_task(talk.cancel())
        await asyncio.wait({cancelling, talking, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not cancelling.done() or cancelling.result():
            await asyncio.wait({talking, gone}, return_when=asyncio.FIRST_COMPLETED)
        cancelling.cancel()
    if not talking.done() and gone.done():
        await asyncio.wait({talking}, timeout=LEAVE_SECONDS)  # its last words may still be on their way
    for each in (stopped, gone):
        each.cancel()


async def _gone(agent: asyncio.subprocess.Process) -> None:
    """Until its process has ended; asyncio waits for the ends of its pipes as well, and a tool may hold them."""
    while agent.returncode is None:
        await asyncio.sleep(LOOK_SECONDS)


async def _outcome(
    talk: Talk, talking: "asyncio.Task[None]", stop: asyncio.Event, agent: asyncio.subprocess.Process
) -> int:
    if not talking.done():
        talking.cancel()
        await asyncio.wait({talking})
    error = None if talking.cancelled() else talking.exception()
    if not talking.cancelled() and error is None:
        return 0
    if stop.is_set() and not isinstance(error, Refused):
        _say(type="interrupted")
        return INTERRUPTED
    if isinstance(error, Refused):
        told = {"during": error.during, "message": str(error), "code": error.code, "data": cut(error.data)}
        _say(type="error", **told, stopped=stop.is_set())
    elif error is None or isinstance(error, OSError):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_gone(agent), LEAVE_SECONDS)
        how = "has hung up" if agent.returncode is None else f"ended with exit code {agent.returncode}"
        _say(type="error", during=talk.during, message=f"the agent {how}", gone=True, exit=agent.returncode)
    else:
        raise error
    return 1


async def _leave(talk: Talk, agent: asyncio.subprocess.Process) -> None:
    """Let the agent end by itself; who does not is asked once, and then is the supervisor's to end."""
    with contextlib.suppress(OSError, TimeoutError):  # it may have gone in the midst of a message
        await asyncio.wait_for(talk.close(), LEAVE_SECONDS)
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
    parser = argparse.ArgumentParser(description="Talk to an agent.", allow_abbrev=False)
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
