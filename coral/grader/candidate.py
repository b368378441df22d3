"""`run_candidate` runs code of the candidate for a grader: in a process of its own, sealed and limited, which answers
with data.

The candidate cannot reach the grader, its files, its environment or the result. It may answer anything, and the grader
judges the answer. What it prints is for feedback only. Standard library only.
"""

import contextlib
import io
import json
import marshal
import math
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coral.grader import inside, landlock, sandbox
from coral.grader.as_user import ANSWER, StartedAsUser
from coral.grader.remove_tree import remove_tree
from coral.types import Fail

LARGEST = 64 << 20  # bytes of an answer; and ...
LARGEST_JSON = 4 << 20  # ... of what is no array in it, which takes far more memory once it is read
PRINTED = 20_000  # bytes of each stream of a candidate that are kept
_TAIL = 2_000  # characters of each stream that a Fail shows
_DEVICES = ("null", "zero", "full", "random", "urandom")
_MARGIN = 0.5  # seconds that Python needs beside the candidate

_worked: set[str] = set()  # the levels at which a candidate has run in this process

Returns = type | Callable[[Any], Any] | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class CandidateAnswer:
    """The answer of a candidate. `value`: what its function returned; of a program, the bytes of its standard output.
    `sealed`: the level of its sandbox, see `coral.grader.sandbox`."""

    value: Any
    stdout: str
    stderr: str
    seconds: float
    sealed: str


@dataclass(frozen=True, slots=True)
class Array:
    """Requires an array of numpy, for `returns` of `run_candidate`: of this shape (None: any length) and type, and
    without NaN and infinity if `finite` is true."""

    shape: tuple[int | None, ...]
    dtype: str = "float64"
    finite: bool = True

    def __call__(self, value: Any) -> Any:
        import numpy

        found = numpy.asarray(value)
        if found.dtype.kind not in "biuf" or not numpy.can_cast(found.dtype, self.dtype, "same_kind"):
            raise ValueError(f"an array of {self.dtype}, not of {found.dtype}")
        fits = len(found.shape) == len(self.shape) and all(
            wanted in (None, length) for wanted, length in zip(self.shape, found.shape, strict=True)
        )
        if not fits:
            wanted = " x ".join("any" if length is None else str(length) for length in self.shape)
            raise ValueError(f"an array of {wanted}, not of {' x '.join(map(str, found.shape)) or 'no shape'}")
        found = found.astype(self.dtype)
        if self.finite and not numpy.isfinite(found).all():
            raise ValueError("an array of finite numbers")
        return found


def run_candidate(
    workspace: str | Path,
    program: str | Sequence[str],
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    stdin: bytes = b"",
    returns: Returns = None,
    seconds: float = 10.0,
    memory: int = 4_000_000_000,
    seal: Sequence[str] = (),
) -> CandidateAnswer:
    """Call a function of the candidate (`solution.py:solve`) with JSON data and arrays, or run its program (a list of
    words, from its folder) with `stdin`.

    `returns`: what the value must be: a type (a float is finite), `Array(...)`, a dict of such, or a function that
    returns the value to use and raises ValueError. `memory`: bytes of addresses, of which libraries reserve more than
    they use. `seal`: the levels that are tried in their order; by default all that can work.

    Raises Fail, which is the candidate's fault: it ended badly, took too long, or gave something else. OSError where
    none of the levels works here; ValueError for what is no level.
    """
    if isinstance(seal, str) or not set(seal) <= set(sandbox.LEVELS):
        raise ValueError(f"seal={seal!r} is not a list of levels, of {', '.join(sandbox.LEVELS)}")
    place = Path(workspace).resolve()
    request = _request(program, args, kwargs or {}, stdin, seconds, memory)
    # A level that worked once in this process works again: never go on with a weaker one because a candidate has used
    # up what the machine has.
    seal = seal or sandbox.levels()
    for level in [level for level in seal if level in _worked] or seal:
        started = time.monotonic()
        with contextlib.suppress(_NotSealedError):
            run = _run(level, place, request, seconds + _MARGIN)
            _worked.add(level)
            return _judged(run, program, returns, seconds, time.monotonic() - started, level)
    raise OSError(f"no sandbox works here, of {', '.join(seal)}: see docs/trust.md")


class _NotSealedError(Exception):
    """The candidate's process did not get as far as being sealed."""


@dataclass(slots=True)
class _Run:
    code: int | None  # None: it took too long, or answered too much
    answer: bytes
    stdout: bytes
    stderr: bytes
    is_too_much: bool = False


@dataclass(frozen=True, slots=True)
class _Request:
    """What the candidate's process gets on its standard input: `data`, then the bytes of `more`."""

    data: dict[str, Any]
    more: bytes


def _request(
    program: str | Sequence[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    stdin: bytes,
    seconds: float,
    memory: int,
) -> _Request:
    processor = (math.ceil(seconds) + 1) * (os.cpu_count() or 1)  # seconds of all its threads
    limits = {"AS": memory, "CPU": processor, "FSIZE": sandbox.SPACE, "NOFILE": 256, "CORE": 0}
    data: dict[str, Any] = {"limits": limits, "argv": [], "entry": []}
    if not isinstance(program, str):
        return _Request({**data, "argv": list(program)}, stdin)
    path, _, function = program.partition(":")
    if not function or path.startswith("/") or ".." in Path(path).parts:
        raise ValueError(f"{program!r} is not file.py:function of the workspace, nor a list of words")
    (packed, named), blocks = inside.pack([list(args), dict(kwargs)])
    return _Request({**data, "entry": [path, function], "args": packed, "kwargs": named}, b"".join(blocks))


def _run(level: str, workspace: Path, request: _Request, seconds: float) -> _Run:
    with contextlib.ExitStack() as stack:
        scratch = tempfile.mkdtemp(prefix="candidate-")
        stack.callback(remove_tree, scratch)
        source = stack.enter_context(tempfile.TemporaryFile())
        lock = None
        if level == "landlock":
            view = dict.fromkeys([*_readable(), str(workspace)], "read") | {"/": "hidden", scratch: "write"}
            view |= dict.fromkeys((f"/dev/{name}" for name in _DEVICES), "write")
            code = Path(landlock.__file__).read_text(encoding="utf-8").rpartition("\nif ")[0]
            lock = {"code": code, **sandbox.landlock_rules(view, network=False)}
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        home = "/tmp" if level == "bubblewrap" else scratch
        path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
        env = {"PATH": path, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}
        before: list[str] = []
        passed: tuple[int, ...] = (writing,)
        if level == "bubblewrap":
            filter = stack.enter_context(tempfile.TemporaryFile())
            filter.write(sandbox.calls_in_namespaces(network=False))
            filter.seek(0)
            before, passed = sandbox.bubblewrap(workspace, env, filter.fileno()), (writing, filter.fileno())
        python = [sys.executable, "-I", "-B", "-u", "-c", Path(inside.__file__).read_text(encoding="utf-8")]
        start = _STARTS.get(level, start_sealed)
        with contextlib.ExitStack() as given:
            given.callback(os.close, writing)
            answer = ANSWER if level == "user" else writing
            plain = json.loads(json.dumps({**request.data, "answer": answer, "landlock": lock}))
            asked = marshal.dumps(plain)
            source.write(b"%d\n" % len(asked) + asked + request.more)
            source.seek(0)
            try:
                child = start([*before, *python], workspace, env, source.fileno(), passed)
            except OSError as error:
                raise _NotSealedError from error
        stack.callback(_end, child)
        return _followed(child, reading, seconds, prints_answer=bool(request.data["argv"]))


def start_sealed(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int, given: tuple[int, ...]
) -> "subprocess.Popen[bytes]":
    """Start a candidate in a sandbox. See `coral.grading.foreign_code`, which knows this function by its name."""
    return _start(argv, cwd, env, stdin, given)


def start_unsealed(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int, given: tuple[int, ...]
) -> "subprocess.Popen[bytes]":
    return _start(argv, cwd, env, stdin, given)


def start_as_user(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int, given: tuple[int, ...]
) -> StartedAsUser:
    return StartedAsUser(argv, cwd, env, stdin, given[0])


_STARTS: Mapping[str, Callable[..., "subprocess.Popen[bytes] | StartedAsUser"]] = {
    "none": start_unsealed,
    "user": start_as_user,
}


def _start(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int, given: tuple[int, ...]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(env),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=given,
        start_new_session=True,
    )


def _readable() -> list[str]:
    named = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives")
    files = ("/etc/ld.so.cache", "/etc/localtime", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")
    return [*named, *files, *sandbox.prefixes()]


def _end(child: "subprocess.Popen[bytes] | StartedAsUser") -> None:
    """End the candidate with its process group, of which some may be left."""
    if isinstance(child, StartedAsUser):
        child.end()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
    child.wait()


def _followed(
    child: "subprocess.Popen[bytes] | StartedAsUser", reading: int, seconds: float, *, prints_answer: bool
) -> _Run:
    """Read the answer and both streams of a candidate until it ends, for at most `seconds` and up to the sizes above.
    `prints_answer`: its standard output is its answer, of which LARGEST bytes are kept and not PRINTED. Raises
    _NotSealedError if it ended before it was sealed."""
    assert child.stdout is not None
    assert child.stderr is not None
    ends = {reading: bytearray(), child.stdout.fileno(): bytearray(), child.stderr.fileno(): bytearray()}
    answer, stdout, stderr = ends.values()
    deadline, is_too_much = time.monotonic() + seconds, False
    with selectors.DefaultSelector() as ready:
        for end in ends:
            os.set_blocking(end, False)
            ready.register(end, selectors.EVENT_READ)
        while ready.get_map() and not is_too_much and (left := deadline - time.monotonic()) > 0:
            has_ended = child.poll() is not None
            found = ready.select(0.0 if has_ended else min(left, 0.05))
            for key, _ in found:
                piece = os.read(key.fd, 1 << 16)
                if not piece:
                    ready.unregister(key.fd)
                ends[key.fd] += piece
                is_too_much = len(stdout if prints_answer else answer) > LARGEST
                del stdout[LARGEST + 1 if prints_answer else PRINTED :], stderr[PRINTED:]
            if has_ended and not found:
                break
    code = child.poll() if not is_too_much else None
    if code is None and not is_too_much and time.monotonic() < deadline:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = child.wait(max(deadline - time.monotonic(), 0.0))
    if code is not None and not answer:
        raise _NotSealedError
    return _Run(code, bytes(answer[1:]), bytes(stdout), bytes(stderr), is_too_much)


def _judged(
    run: _Run, program: str | Sequence[str], returns: Returns, seconds: float, took: float, level: str
) -> CandidateAnswer:
    name = program if isinstance(program, str) else program[0]
    stdout, stderr = (data[:PRINTED].decode("utf-8", "replace") for data in (run.stdout, run.stderr))
    printed = "\n".join(text[-_TAIL:] for text in (stdout, stderr) if text)
    if run.is_too_much:
        raise Fail(f"{name} answered with more than {LARGEST} bytes", printed)
    if run.code is None:
        raise Fail(f"{name} did not end within {seconds:g} seconds", printed)
    if run.code != 0:
        last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
        raise Fail(f"{name} ended with {_ending(run.code)}" + (f": {last.strip()[:300]}" if last else ""), printed)
    try:
        value = run.stdout if not isinstance(program, str) else _unpacked(run.answer)
        return CandidateAnswer(_checked(value, returns), stdout, stderr, took, level)
    except (ValueError, RecursionError) as error:
        raise Fail(f"{name} must give {error}", printed) from None


def _ending(code: int) -> str:
    number = -code if code < 0 else code - 128
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(number).name}"
    return f"exit code {code}"


def _unpacked(answer: bytes) -> Any:
    head, found, rest = answer.partition(b"\n")
    if not found:
        raise ValueError("data, and it gave none")
    if len(head) > LARGEST_JSON:
        raise ValueError(f"at most {LARGEST_JSON} bytes of JSON beside its arrays")
    try:
        data = json.loads(head, parse_constant=_no_number, parse_float=_finite)
        return inside.unpack(data, io.BytesIO(rest))
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(f"data: {error}") from None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a finite number")


def _finite(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)


def _checked(value: Any, returns: Returns) -> Any:
    """Return the value as `returns` asks for it. ValueError says what was asked for."""
    if returns is None:
        return value
    if isinstance(returns, Mapping):
        if not isinstance(value, dict) or value.keys() != returns.keys():
            raise ValueError(f"a dict with {', '.join(map(str, returns))}")
        return {name: _checked(value[name], inner) for name, inner in returns.items()}
    if not isinstance(returns, type):
        return returns(value)
    if returns is float and isinstance(value, int | float) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an integer may be too large
            if math.isfinite(value):
                return float(value)
        raise ValueError("a finite number")
    if not isinstance(value, returns) or (returns is int and isinstance(value, bool)):
        raise ValueError(f"a {returns.__name__}, not a {type(value).__name__}")
    return value
