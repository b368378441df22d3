"""The steps of a script. SIGINT ends a step that waits; quick steps are finished, so that none is left half done."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any


class Interrupted(BaseException):
    """SIGINT came while a step waited. `over`: whether the step counts as done. A BaseException, so that no handler of
    errors catches it."""

    def __init__(self, over: bool = True) -> None:
        super().__init__()
        self.over = over


class Interrupts:
    """Handles SIGINT. `pending`: one came while the program did not wait, and is not answered yet."""

    def __init__(self) -> None:
        self.pending = False
        self._waiting = False
        signal.signal(signal.SIGINT, self._on_signal)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Raise Interrupted as soon as SIGINT comes in this context, or on entry if one is pending."""
        try:
            self._waiting = True  # before `pending` is read: for a signal between the two, the handler raises
            if self.pending:
                raise Interrupted
            yield
        finally:
            self._waiting = False

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.pending = True
        if self._waiting:
            self._waiting = False
            raise Interrupted


SLICE = 0.5  # seconds of one wait: a signal just before a wait is answered after it
LEAVE = 30.0  # seconds that `coral eval` has to exit after an interrupt
FORKED = 600.0  # seconds that a forked child lives unless the script says otherwise


@dataclass(frozen=True, slots=True)
class Context:
    """What a step may use. `known`: the values of {n}, {agent} and {launch}. `passed` marks the step as done."""

    interrupts: Interrupts
    known: Mapping[str, str]
    say: Callable[[Mapping[str, object]], None]
    passed: Callable[[], None]

    def text(self, template: object) -> str:
        text = str(template)
        for name, value in self.known.items():
            text = text.replace(f"{{{name}}}", value)
        return text


def _print(context: Context, value: Any) -> None:
    sys.stdout.write(context.text(value) + "\n")
    sys.stdout.flush()


def _say(context: Context, value: Any) -> None:
    context.say({"phase": "say", "reply": context.text(value)})


def _use(context: Context, value: Any) -> None:
    """Report a usage of tokens and money, as if a model had answered."""
    context.say({"phase": "use", "usage": dict(value)})


def _retry(context: Context, value: Any) -> None:
    """Report a retry every so many seconds, as if no model answered, until an interrupt."""
    attempt = 0
    while True:
        attempt += 1
        context.say({"phase": "retrying", "retry": {"attempt": attempt, "reason": "overloaded"}})
        _sleep(context, value)


def _sleep(context: Context, value: Any) -> None:
    deadline = time.monotonic() + float(value)
    with context.interrupts.waiting():
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, SLICE))


def _busy(context: Context, value: Any) -> None:
    deadline = time.monotonic() + float(value)
    with context.interrupts.waiting():
        while time.monotonic() < deadline:
            sum(range(1000))


def _edit(context: Context, value: Any) -> None:
    path = Path(context.text(value["file"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text() if path.exists() else ""
    if "replace" in value:
        old, new = value["replace"]
        path.write_text(before.replace(context.text(old), context.text(new)))
    else:
        path.write_text(before + context.text(value["append"]) if "append" in value else context.text(value["content"]))
    context.say({"edited": str(path)})


def _submit(context: Context, value: Any) -> None:
    """Run `coral eval`, as agents do. An interrupted step counts as done if the submission was made."""
    options = value if isinstance(value, Mapping) else {"message": value}
    argv = [shutil.which("coral") or "coral", "eval", "-m", context.text(options["message"])]
    argv += [] if options.get("wait", True) else ["--no-wait"]
    argv += [f"--{name}" for name in ("again", "tune") if options.get(name)]
    argv += ["--timeout", str(options["timeout"])] if "timeout" in options else []
    before = _last_submission()
    try:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    except OSError as error:
        context.say({"phase": "submit", "error": f"cannot run coral eval: {error}"})
        return
    try:
        with context.interrupts.waiting():
            code = child.wait()
    except Interrupted:
        _end(child)
        raise Interrupted(over=_last_submission() != before) from None
    if code:
        context.say({"phase": "submit", "error": f"coral eval ended with exit code {code}"})


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End the child. The signal may have gone to the whole process group; if it went to this process alone, pass it
    on."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(SLICE)
        return
    child.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(LEAVE)
        return
    child.kill()
    child.wait()


def _last_submission() -> str:
    """Return the name of the newest submission of this agent, whether the supervisor has taken it in or not."""
    attempts, agent = Path(os.environ.get("CORAL_RUN", ".")) / "attempts", os.environ.get("CORAL_AGENT", "")
    names: list[str] = []
    for folder in ("inbox", "replies"):  # in this order: a submission moves from the first to the second
        if (attempts / folder / agent).is_dir():
            names += [path.stem for path in (attempts / folder / agent).glob("[0-9]*.json")]
    return max(names, default="")


def _fork(context: Context, value: Any) -> None:
    """Start a child that outlives this process: with `session` in a session of its own, with `deaf` ignoring SIGINT and
    SIGTERM."""
    options = value or {}
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        if options.get("session"):
            os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN if options.get("deaf") else signal.SIG_DFL)
        os.write(tell, b".")
        os.close(tell)
        time.sleep(float(options.get("seconds", FORKED)))
        os._exit(0)
    os.close(tell)
    os.read(ready, 1)
    os.close(ready)
    context.say({"phase": "fork", "message": f"child {pid}"})


def _ignore(_context: Context, value: Any) -> None:
    for name in [value] if isinstance(value, str) else value:
        signal.signal(signal.Signals[f"SIG{name}"], signal.SIG_IGN)


def _crash(context: Context, value: Any) -> None:
    context.passed()  # or every next launch would crash at the same step
    if isinstance(value, int):
        os._exit(value)
    os.kill(os.getpid(), signal.Signals[f"SIG{value}"])
    time.sleep(LEAVE)


STEPS: Mapping[str, Callable[[Context, Any], None]] = {
    "print": _print,
    "say": _say,
    "use": _use,
    "retry": _retry,
    "sleep": _sleep,
    "hang": lambda context, _: _sleep(context, float("inf")),
    "busy": _busy,
    "edit": _edit,
    "submit": _submit,
    "fork": _fork,
    "ignore": _ignore,
    "crash": _crash,
}
