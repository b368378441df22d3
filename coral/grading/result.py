"""What a grader wrote, as a GradeResult. Nothing it can leave raises here, and nothing but a finite number scores.

Candidates may reach the file, so it is read like an attack: a regular file, one mebibyte, JSON, checked field by field.
"""

import errno
import json
import os
import signal
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from attempts.fields import json_safe, one_line, printable
from attempts.record import Metric
from coral.fleet.events import Outcome
from coral.grading.score import finite_score

LARGEST = 1 << 20  # bytes of a result
FEEDBACK = 20_000  # bytes of feedback, as UTF-8
METRICS, NAME, TEXT = 100, 100, 1000  # entries; characters of a name and of a text
REASON = 500  # characters
TAIL = 10_000  # bytes of output that the operator is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeResult:
    """One grade. `score` is None unless the outcome is `scored`; `reason` says why.

    `output` is what the grader itself printed last. It may hold hidden data: it is for the operator, never published.
    """

    outcome: Outcome
    score: float | None = None
    reason: str = ""
    feedback: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    output: str = ""


class _UnusableError(Exception):
    """Why there is no result to read."""


def read_result(path: Path, exit_code: int | None, stdout: Path, stderr: Path, timed_out: bool) -> GradeResult:
    """Judge a grade that has ended. `exit_code` is Popen's: negative for a signal, None if nobody saw it.

    A grader that ended badly has not scored, whatever it wrote before; that the candidate failed, it may still say.
    """
    output = _joined(_tail(stdout), _tail(stderr))
    trouble = "it did not finish within its timeout, grader.timeout" if timed_out else _bad_end(exit_code)
    try:
        data = _load(path)
    except _UnusableError as error:
        return _crashed(f"{trouble or 'it ended'}, and {error}" if not timed_out else trouble, output)
    if "failed" in data and not timed_out:
        return _failed(data["failed"], data, output)
    if "crashed" in data:
        return _crashed(str(data["crashed"]), _with_traceback(output, data.get("output")))
    return _crashed(trouble, output) if trouble else _scored(data, output)


def _scored(data: Mapping[str, object], output: str) -> GradeResult:
    if "score" not in data:
        return _crashed("its result has no score", output)
    if data["score"] is None:
        return _failed("the grader gave no score", data, output)
    try:
        score = finite_score(data["score"])
    except ValueError as error:
        return _failed(str(error), data, output)
    metrics, feedback = _metrics(data.get("metrics")), _feedback(data)
    return GradeResult(outcome=Outcome.SCORED, score=score, feedback=feedback, metrics=metrics, output=output)


def _failed(reason: object, data: Mapping[str, object], output: str) -> GradeResult:
    text = _reason(reason if isinstance(reason, str) else "") or "the grader refused it without a reason"
    metrics, feedback = _metrics(data.get("metrics")), _feedback(data)
    return GradeResult(outcome=Outcome.FAILED, reason=text, feedback=feedback, metrics=metrics, output=output)


def _crashed(reason: str, output: str) -> GradeResult:
    return GradeResult(outcome=Outcome.CRASHED, reason=_reason(f"the grader crashed: {reason}"), output=output)


def _joined(first: str, second: str) -> str:
    """One text behind the other, each from the start of a line."""
    return f"{first}\n{second}" if first and second and not first.endswith("\n") else first + second


def _with_traceback(output: str, recorded: object) -> str:
    """What was printed, and the traceback that the runner recorded if it is not among that: stderr may be closed."""
    text = printable(recorded[-TAIL:]) if isinstance(recorded, str) else ""
    return output if text.strip() in output else _joined(output, text)


def _reason(text: str) -> str:
    return one_line(text, REASON)


def _bad_end(code: int | None) -> str:
    if code == 0:
        return ""
    if code is None:
        return "nobody saw how it ended"
    return f"it was ended by {_signal_name(-code)}" if code < 0 else f"it ended with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _load(path: Path) -> dict[str, object]:
    """The object in the file; anything else in JSON is taken as a score by itself."""
    try:
        value: object = json.loads(_read(path).decode("utf-8"))
    except UnicodeDecodeError:
        raise _UnusableError("its result is not UTF-8") from None
    except RecursionError:
        raise _UnusableError("its result is nested too deeply") from None
    except ValueError as error:  # JSONDecodeError, and integers of more digits than Python reads
        raise _UnusableError(f"its result is not JSON that can be read: {error}") from None
    return value if isinstance(value, dict) else {"score": value}


def _read(path: Path) -> bytes:
    try:
        with _open(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST:
                raise _UnusableError(f"its result has {size} bytes; at most {LARGEST} are read")
            return file.read(LARGEST)
    except FileNotFoundError:
        raise _UnusableError("it wrote no result") from None
    except OSError as error:
        raise _UnusableError(f"its result cannot be read: {error.strerror}") from None


def _open(path: Path) -> BinaryIO:
    """A regular file to read: a link is not followed, a FIFO is not waited for, a folder is an OSError like those."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return open(handle, "rb")


def _feedback(data: Mapping[str, object]) -> str:
    text = data.get("feedback")
    if not isinstance(text, str):
        return ""
    raw = printable(text).encode()
    if len(raw) <= FEEDBACK:
        return raw.decode()
    return raw[:FEEDBACK].decode(errors="ignore") + f"\n[cut: the feedback has {len(raw)} bytes]"


def _metrics(value: object) -> dict[str, Metric]:
    """The first hundred plain values. A list or an object is left out, for metrics are shown in a table."""
    if not isinstance(value, dict):
        return {}
    plain = ((name, metric) for name, metric in value.items() if _keeps(name, metric))
    return {printable(name): _metric(metric) for name, metric in islice(plain, METRICS)}


def _keeps(name: str, metric: object) -> bool:
    return 0 < len(name) <= NAME and (metric is None or isinstance(metric, bool | int | float | str))


def _metric(value: object) -> Metric:
    safe = json_safe(value)
    return safe[:TEXT] if isinstance(safe, str) else safe


def _tail(path: Path) -> str:
    """The last bytes of what was printed, or nothing if it cannot be read."""
    try:
        with _open(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return printable(file.read(TAIL).decode("utf-8", "replace"))
    except OSError:
        return ""
