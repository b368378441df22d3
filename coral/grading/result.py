"""Reads what a grader wrote: its progress and its result. Whatever it wrote, reading raises no error, and only a finite
number is a score.

A candidate may be able to write the result, so it is not trusted: it must be a regular file of at most one mebibyte
with JSON, of which each field is checked.
"""

import contextlib
import json
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from attempts.fields import json_safe, one_line, printable
from attempts.files import open_plain, parse_object, read_end
from attempts.record import CLOSED, OPEN, Metric
from coral.fleet import events as on
from coral.fleet.events import Outcome
from coral.grading.command import BEATS, RESULT, STDERR, STDOUT
from coral.grading.finite_score import finite_score
from coral.processes.result_channel import ResultChannel
from heartbeats.beat import Beat, from_dict as beat_from_dict
from workspace.layout import Layout

LARGEST = 1 << 20  # bytes of a result
FEEDBACK = 20_000  # bytes of feedback, as UTF-8
METRICS, NAME, TEXT = 100, 100, 1000  # entries; characters of a name and of a text
REASON = 500  # characters
TIMED_OUT = "it did not finish within its timeout: raise grader.timeout, or do less"
SHOWN_KEYS = 8
_READ = {"score", "metrics", "feedback", "unread"}
_FAILURES = {"error", "errors", "fail", "failure", "reason", "message"}  # as graders name what we call `failed`
TAIL = 10_000  # bytes of output that the operator is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeResult:
    """One grade. `score` is None unless the outcome is `scored`; `reason` says why.

    `output` is what the grader itself printed last. It may hold hidden data: it is for the operator, never published.
    `channel` is `closed` if code of the candidate cannot have written the result: no such code was seen to run in the
    grader's process. `opened`: what such code did, and where. `void`: why the grader says that nobody is at fault; on
    a closed channel that is believed, on an open one the grade counts as crashed. `again`: such an attempt is to be
    graded again, as it did not get its turn on a cluster; of a grader on this machine that is not believed. `unread`:
    names in the result whose values no record keeps, at most SHOWN_KEYS.
    """

    outcome: Outcome
    score: float | None = None
    reason: str = ""
    feedback: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    output: str = ""
    channel: str = OPEN
    opened: str = ""
    void: str = ""
    again: bool = False
    unread: tuple[str, ...] = ()


class _UnusableError(Exception):
    """There is no result that can be read. The message says why."""


def read_result(
    folder: Path, exit_code: int | None, channel: ResultChannel | None = None, *, is_remote: bool = False
) -> GradeResult:
    """Judge a grade that has ended. `exit_code` is Popen's: negative for a signal; None for a timeout. `channel`: the
    one by which the grader answered, which is closed here; without one, the file of the grader is read. `is_remote`:
    whether it ran on a cluster, so that the process that answered is ours.

    A grader that ended badly has not scored, whatever it wrote before; but it may still say that the candidate failed.
    """
    if channel is None:
        return _judged(folder, exit_code, lambda: _of_file(folder / RESULT))
    with contextlib.closing(channel):
        result, opened = _judged(folder, exit_code, lambda: channel.result(LARGEST)), channel.notices()
    if result.outcome is Outcome.CRASHED and result.void and not opened:
        outcome = Outcome.LOST if result.again and is_remote else Outcome.VOID
        result = replace(result, outcome=outcome, reason=result.void)
    return replace(result, channel=OPEN if opened else CLOSED, opened=one_line(opened.partition("\n")[0], REASON))


def _judged(folder: Path, exit_code: int | None, read: Callable[[], bytes | None]) -> GradeResult:
    output = _joined(_tail(folder / STDOUT), _tail(folder / STDERR))
    trouble = TIMED_OUT if exit_code is None else _bad_end(exit_code)
    try:
        data = _parsed(read())
    except _UnusableError as error:
        return _crashed(trouble if exit_code is None else f"{trouble or 'it ended'}, and {error}", output)
    if "failed" in data and exit_code is not None:
        return _failed(data["failed"], data, output)
    if "void" in data and exit_code is not None and not trouble:
        void = one_line(str(data["void"]), REASON) or "the grader gave no reason"
        crashed = _crashed(f"it says that the candidate is not at fault: {void}", output)
        return replace(crashed, void=void, again=data.get("again") is True)
    if "crashed" in data:
        return _crashed(str(data["crashed"]), _with_traceback(output, data.get("output")))
    return _crashed(trouble, output) if trouble else _scored(data, output)


def _scored(data: Mapping[str, object], output: str) -> GradeResult:
    if "score" not in data:
        return _crashed(_no_score(data), output)
    if data["score"] is None:
        return _failed("the grader gave no score", data, output)
    try:
        score = finite_score(data["score"])
    except ValueError as error:
        return _failed(str(error), data, output)
    metrics, feedback = _metrics(data.get("metrics")), _feedback(data)
    return GradeResult(
        outcome=Outcome.SCORED, score=score, feedback=feedback, metrics=metrics, output=output, unread=_unread(data)
    )  # fmt: skip


def _unread(data: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of what is neither score, metrics nor feedback, and of metrics that are no plain value. Our own
    runner gives the first ones as `unread`: any of them may be a key that has a meaning here."""
    metrics, named = (value if isinstance(value, dict) else {} for value in (data.get("metrics"), data.get("unread")))
    beside = (name for name in data if name not in _READ)
    lost = (f"metrics.{name}" for name, metric in metrics.items() if not _is_plain(metric))
    return tuple(one_line(name, NAME) for name in islice(chain(named, beside, lost), SHOWN_KEYS))


def _no_score(data: Mapping[str, object]) -> str:
    names = one_line(", ".join(islice(data, SHOWN_KEYS)), NAME) or "no keys"
    failed = '; say {"failed": "why"} of a candidate that fails' if data.keys() & _FAILURES else ""
    return f"its result has no score; it has {names}{failed}"


def _failed(reason: object, data: Mapping[str, object], output: str) -> GradeResult:
    text = one_line(reason, REASON) if isinstance(reason, str) else ""
    return GradeResult(
        outcome=Outcome.FAILED,
        reason=text or "the grader refused it without a reason",
        feedback=_feedback(data),
        metrics=_metrics(data.get("metrics")),
        output=output,
    )


def _crashed(reason: str, output: str) -> GradeResult:
    return GradeResult(outcome=Outcome.CRASHED, reason=one_line(f"the grader crashed: {reason}", REASON), output=output)


def _joined(first: str, second: str) -> str:
    """Return the second text after the first, on a new line."""
    return f"{first}\n{second}" if first and second and not first.endswith("\n") else first + second


def _with_traceback(output: str, recorded: object) -> str:
    """Return the output with the traceback that the runner recorded, unless the output has it: stderr may be closed."""
    text = printable(recorded[-TAIL:]) if isinstance(recorded, str) else ""
    return output if text.strip() in output else _joined(output, text)


# The exit codes of a shell and of `env`, by POSIX, that cannot start a program.
_OF_SHELLS = {126: ": a program may not be executed; is `chmod +x` missing?", 127: ": a program was not found"}


def _bad_end(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}{_OF_SHELLS.get(code, '')}" if code else ""
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"


def _of_file(path: Path) -> bytes | None:
    try:
        with open_plain(path) as file:
            return file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _UnusableError(f"its result cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _parsed(raw: bytes | None) -> dict[str, object]:
    """Return the object that was written; any other JSON is taken as the score itself."""
    if raw is None:
        raise _UnusableError("it wrote no result")
    if len(raw) > LARGEST:
        raise _UnusableError(f"its result has more than {LARGEST} bytes")
    try:
        value: object = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _UnusableError("its result is not UTF-8") from None
    except RecursionError:
        raise _UnusableError("its result is nested too deeply") from None
    except ValueError as error:  # JSONDecodeError, and integers of more digits than Python reads
        raise _UnusableError(f"its result is not JSON that can be read: {error}") from None
    return value if isinstance(value, dict) else {"score": value}


def _feedback(data: Mapping[str, object]) -> str:
    text = data.get("feedback")
    if not isinstance(text, str):
        return ""
    raw = printable(text).encode()
    if len(raw) <= FEEDBACK:
        return raw.decode()
    return raw[:FEEDBACK].decode(errors="ignore") + f"\n[cut: the feedback has {len(raw)} bytes]"


def _metrics(value: object) -> dict[str, Metric]:
    """Return the first hundred plain values. A list or an object is left out, for metrics are shown in a table."""
    if not isinstance(value, dict):
        return {}
    plain = ((name, json_safe(metric)) for name, metric in value.items() if 0 < len(name) <= NAME and _is_plain(metric))
    return {printable(name): safe[:TEXT] if isinstance(safe, str) else safe for name, safe in islice(plain, METRICS)}


def _is_plain(metric: object) -> bool:
    return metric is None or isinstance(metric, bool | int | float | str)


def _tail(path: Path) -> str:
    """Return the end of what was printed; empty if it cannot be read."""
    return printable(read_end(path, TAIL).decode("utf-8", "replace"))


LONGEST_BEAT = 4096  # bytes


def graded_event(
    layout: Layout,
    number: int,
    launch: int,
    code: int | None,
    seconds: float,
    channel: ResultChannel | None = None,
    *,
    is_remote: bool = False,
) -> on.Graded:
    """Return the event of an ended grading process, with its result. The checkout stays: removing it takes too long for
    the loop.

    `code` is None where nobody saw the exit: then a result that is there is taken, and otherwise the grade is lost.
    `channel`, `is_remote`: see `read_result`; the supervisor that takes a grade over has no channel, and reads the
    file.
    """
    folder = layout.grading(number)
    lost = on.Graded(number=number, launch=launch, outcome=on.Outcome.LOST)
    if code is None and not (folder / RESULT).exists():
        return lost
    result = read_result(folder, code or 0, channel, is_remote=is_remote)
    if code is None and result.outcome is on.Outcome.CRASHED:
        return lost
    return on.Graded(
        number=number,
        launch=launch,
        outcome=result.outcome,
        score=result.score,
        reason=result.reason,
        feedback=result.feedback,
        metrics=result.metrics,
        seconds=round(seconds, 3),
        channel=result.channel,
    )


def beats_file(layout: Layout, number: int) -> Path:
    """Return the file to which the grader of an attempt, and what it runs, writes beats."""
    return layout.grading(number) / BEATS


def progress_of(layout: Layout, number: int) -> Beat | None:
    """Return the last beat that the grader of a running grade reported; None while there is no readable one."""
    lines = read_end(beats_file(layout, number), LONGEST_BEAT).splitlines()
    try:
        return beat_from_dict(parse_object(lines[-1])) if lines else None
    except ValueError:  # a candidate may reach the file, too
        return None
