"""The process of the `scripted` runtime: it does the steps of its script one after the other, in a session.

SIGINT ends it at once while it waits, else after the step. It saves its place in the script, where the next launch of
the session goes on. Every prompt that it gets is kept in `prompts.jsonl` in its state folder.
"""

import os
import signal
import sys

# Before anything else is imported, because SIGINT may come at once. No exception: an import could swallow it.
if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import argparse
import json
import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from attempts.files import write_json
from coral.runtimes.exits import INTERRUPTED, UNKNOWN_SESSION, USAGE
from coral.runtimes.scripted.script import load, walk
from coral.runtimes.scripted.steps import STEPS, Context, Interrupted, Interrupts

SESSIONS, PROMPTS = "sessions", "prompts.jsonl"


def main() -> int:
    interrupts = Interrupts()
    args = _arguments()
    session = _Session(Path(args.state), args.session)
    if not session.open(resume=args.resume):
        _say({"error": f"unknown session {args.session}", "ended": True})
        return UNKNOWN_SESSION
    _keep_prompt(Path(args.state), args)
    _say({"session": args.session, "phase": "starting", "message": f"launch {args.launch}, step {session.done + 1}"})
    try:
        script = load(args.script)
    except (OSError, ValueError) as error:
        _say({"error": f"cannot read the script: {error}", "ended": True})
        return USAGE
    return _follow(script if isinstance(script, list) else [], session, interrupts, args)


def _follow(script: list[object], session: "_Session", interrupts: Interrupts, args: argparse.Namespace) -> int:
    for step in islice(walk(script), session.done, None):
        if interrupts.pending:
            return _interrupted()
        known = {"n": str(step.round), "agent": str(args.agent), "launch": str(args.launch)}
        context = Context(interrupts=interrupts, known=known, say=_say, passed=session.passed)
        _say({"phase": step.name, "message": f"step {session.done + 1}"})
        try:
            STEPS[step.name](context, step.value)
        except Interrupted as interrupted:
            if interrupted.over:
                session.passed()
            return _interrupted()
        session.passed()
    _say({"phase": "done", "ended": True})
    return 0


def _interrupted() -> int:
    _say({"phase": "interrupted", "ended": True})
    return INTERRUPTED


class _Session:
    """Keeps how many steps of the script a conversation has done, in a file that is always complete."""

    def __init__(self, state: Path, name: str) -> None:
        self._path = state / SESSIONS / f"{name}.json"
        self.done = 0

    def open(self, *, resume: bool) -> bool:
        """Begin or resume the session; False if there is none to resume."""
        if resume:
            try:
                self.done = int(json.loads(self._path.read_text())["done"])
            except (OSError, ValueError, TypeError, KeyError):
                return False
        self._save()
        return True

    def passed(self) -> None:
        self.done += 1
        self._save()

    def _save(self) -> None:
        write_json(self._path, {"done": self.done}, durable=False)


def _keep_prompt(state: Path, args: argparse.Namespace) -> None:
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    entry = {"session": args.session, "launch": args.launch, "resumed": args.resume, "time": time.time(), "text": text}
    with (state / PROMPTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def _say(data: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Follow a script.", allow_abbrev=False)
    parser.add_argument("--session", required=True)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--state", required=True)
    parser.add_argument("--agent", default=os.environ.get("CORAL_AGENT", ""))
    parser.add_argument("--launch", type=int, default=1)
    parser.add_argument("--script", required=True, help="steps as JSON, or the path of a file with them")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
