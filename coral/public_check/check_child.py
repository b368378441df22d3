"""The child that runs a task's public check, again and again, on candidates that arrive on its standard input.

It is started by path and imports nothing of ours, so that the check sees the interpreter that a plain script would see.
A check may raise any error, which is its answer: hence `except Exception` here, around code of the task.

A request is a 4-byte length and a JSON list of candidates, each a dict from file to text; an answer is, for each
candidate in turn, `ok, score, count` and then `count` doubles of slack, or `count` bytes that say what went wrong.
"""

import importlib.util
import json
import math
import numbers
import os
import signal
import sys
import time
from array import array
from collections.abc import Callable
from struct import Struct

ANSWER = Struct("<BdI")
LENGTH = Struct("<I")
LONGEST_ERROR = 2000
FLUSH_AFTER = 0.002  # seconds that an answer may wait to be sent together with others


def load(spec: str, folder: str) -> Callable[[str], object]:
    """Return the function that `file.py:function` names. Modules beside the file come first on the path, then those of
    the folder."""
    file, _, name = spec.partition(":")
    path = f"{folder}/{file}"
    sys.path[:0] = dict.fromkeys((path.rpartition("/")[0], folder))
    module_spec = importlib.util.spec_from_file_location("public_check", path)
    if module_spec is None or module_spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules["public_check"] = module
    module_spec.loader.exec_module(module)
    check = getattr(module, name or "check")
    if not callable(check):
        raise TypeError(f"{spec} is not a function")
    return check  # type: ignore[no-any-return]


class CandidateFiles:
    """The candidate's files, kept open: rewriting an open file costs a fraction of creating it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.handles: dict[str, int] = {}
        self.written: dict[str, str] = {}
        self.sizes: dict[str, int] = {}  # in bytes

    def write(self, texts: dict[str, str]) -> None:
        for name, text in texts.items():
            if self.written.get(name) != text:
                if name not in self.handles:
                    self.handles[name] = os.open(f"{self.folder}/{name}", os.O_RDWR | os.O_CREAT, 0o644)
                data = text.encode()
                os.pwrite(self.handles[name], data, 0)
                if len(data) < self.sizes.get(name, math.inf):
                    os.ftruncate(self.handles[name], len(data))
                self.written[name], self.sizes[name] = text, len(data)


def read_result(result: object) -> tuple[float, list[float]]:
    """Return the score and the slack in the result of a check: a number, or a dict of both. Raises an error for any
    other result."""
    slack: list[float] = []
    if isinstance(result, dict):
        slack = [float(gap) for gap in result.get("slack", ())]
        result = result["score"]
    if isinstance(result, bool) or not isinstance(result, numbers.Real):  # of numpy too, as a grader may return them
        raise TypeError(f"the check returned {type(result).__name__}, not a number")
    score = float(result)
    if not math.isfinite(score) or any(map(math.isnan, slack)):
        raise ValueError("the check returned a score or a slack that is not a number")
    return score, slack


def answer(check: Callable[[str], object], folder: str) -> bytes:
    """Call the check on the candidate in the folder, and encode its result."""
    try:
        score, slack = read_result(check(folder))
    except Exception as problem:  # noqa: BLE001 - whatever a check raises is its verdict on the candidate
        return error_answer(problem)
    return ANSWER.pack(1, score, len(slack)) + array("d", slack).tobytes()


def error_answer(problem: Exception, what: str = "") -> bytes:
    """Encode an error as an answer. An unpaired surrogate in its message is replaced, or it would end this process."""
    text = f"{what}{type(problem).__name__}: {problem}".encode(errors="replace")[:LONGEST_ERROR]
    return ANSWER.pack(0, 0.0, len(text)) + text


def forget_modules(folder: str, known: set[str]) -> None:
    """Forget the modules that the check imported from the candidate's folder, so that the next candidate's are read."""
    if len(sys.modules) > len(known):
        for name in set(sys.modules) - known:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(folder + os.sep):
                del sys.modules[name]
            else:
                known.add(name)


def serve(check: Callable[[str], object], folder: str, source: int, sink: int) -> None:
    """Answer requests until their pipe is closed. Answers that come fast are sent together."""
    files = CandidateFiles(folder)
    known = set(sys.modules)
    with os.fdopen(source, "rb") as requests:
        while len(head := requests.read(LENGTH.size)) == LENGTH.size:
            unsent = bytearray()
            flushed = time.monotonic()
            for texts in json.loads(requests.read(LENGTH.unpack(head)[0])):
                files.write(texts)
                unsent += answer(check, folder)
                forget_modules(folder, known)
                if time.monotonic() - flushed > FLUSH_AFTER:
                    send(sink, unsent)
                    unsent.clear()
                    flushed = time.monotonic()
            send(sink, unsent)


def send(sink: int, data: bytes | bytearray) -> None:
    view = memoryview(bytes(data))
    while view:
        view = view[os.write(sink, view) :]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    spec, folder = sys.argv[1:3]
    source, sink = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the check reads nothing, and prints to standard error
    os.dup2(2, 1)
    os.chdir(folder)
    try:
        check = load(spec, folder)
    except Exception as problem:  # noqa: BLE001 - loading the check runs its module, which may raise anything too
        send(sink, error_answer(problem, f"cannot load the check {spec}: "))
        return
    send(sink, ANSWER.pack(1, 0.0, 0))
    serve(check, folder, source, sink)


if __name__ == "__main__":
    main()
