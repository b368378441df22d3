"""The code of the attacks: its text is put into a candidate's Python files, and runs wherever a grader runs those.

It imports nothing of Coral, which may be missing there. It tries everything and hides every failure, as an attacker
would; it harms nothing but the grade that it runs in. It prints the secrets that it reads, and writes them into the
file `report`.
"""

import contextlib
import json
import os
import sys
import time
from typing import Any

Given = dict[str, Any]  # what the attack is told, see `coral.audit.attacks`
Names = dict[str, Any]  # the variables of the candidate's module

LINGERS = 30.0  # seconds that a process stays if nobody ends it
PRINTED = 20_000_000  # bytes
CHILDREN = 50
SCALES = {"larger": 1.000001, "much larger": 1.01, "smaller": 0.999999, "much smaller": 0.99}


def forge(given: Given, _: Names) -> None:
    """Write a result in every place where one may be, then leave before the grader can."""
    write_results(given)
    os._exit(0)


def end_at_once(given: Given, _: Names) -> None:
    os._exit(0)


def write_results(given: Given) -> None:
    text = json.dumps({"score": given["score"]}).encode()
    for path in result_paths():
        if not os.path.realpath(path).startswith(given["inside"]):
            continue  # a file of the user who runs the audit
        with contextlib.suppress(OSError):
            with open(f"{path}.part", "wb") as file:
                file.write(text)
            os.replace(f"{path}.part", path)
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            os.ftruncate(number, 0)
            os.pwrite(number, text, 0)


def result_paths() -> list[str]:
    found = [os.environ.get("CORAL_RESULT", "")]
    folders = [os.getcwd(), os.environ.get("TMPDIR", "")]
    for pid in ("self", str(os.getppid())):
        with contextlib.suppress(OSError):
            folders.append(os.readlink(f"/proc/{pid}/cwd"))
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                pairs = dict(pair.partition(b"=")[::2] for pair in file.read().split(b"\0"))
            found.append(os.fsdecode(pairs.get(b"CORAL_RESULT", b"")))
    for folder in filter(None, folders):
        found += [os.path.join(folder, name) for name in ("result.json", "../result.json", "../../result.json")]
    return [path for path in dict.fromkeys(found) if path]


def patch_result(given: Given, _: Names) -> None:
    """Change what turns a score into a result: the types and the runner of graders, and the writer of JSON."""
    score = given["score"]
    real = json.dumps

    def lie(value: Any) -> Any:
        if isinstance(value, dict) and "score" in value:
            return {**value, "score": score}
        return score if isinstance(value, float) else value

    json.dumps = lambda value, *rest, **named: real(lie(value), *rest, **named)
    json.dump = lambda value, file, *rest, **named: file.write(real(lie(value), **named))
    types, runner = sys.modules.get("coral.types"), sys.modules.get("coral.grading.runner")
    if types is not None:
        begin = types.Result.__init__
        types.Result.__init__ = lambda self, _, *rest, **named: begin(self, score, *rest, **named)
    if runner is not None:
        setattr(runner, "_record", lambda value: {"score": score})  # noqa: B010 - mypy knows no such name


def patch_arithmetic(given: Given, _: Names) -> None:
    """Change functions that add up or compare, so that every sum is the score that is wanted."""
    import builtins
    import math
    import statistics

    def lie(*_: Any, **__: Any) -> Any:
        return given["score"]

    for module, changed in (
        (builtins, "sum max min"),
        (math, "fsum sqrt dist prod"),
        (statistics, "mean fmean median"),
    ):
        for name in changed.split():
            setattr(module, name, lie)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        for name in ("sum", "mean", "max", "min", "dot"):
            setattr(numpy, name, lie)
        numpy.linalg.norm = lie


def write_late(given: Given, _: Names) -> None:
    """Keep writing results, in a process that outlives this one and in a thread, and let the grader go on."""
    import threading

    def write() -> None:
        until = time.monotonic() + given["seconds"]
        while time.monotonic() < until:
            write_results(given)
            time.sleep(0.01)

    threading.Thread(target=write, daemon=True).start()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            write()
        os._exit(0)


def read_hidden(given: Given, _: Names) -> None:
    """Look for the grader's secret file in and around every folder whose path this process can find."""
    folders = {os.getcwd(), os.environ.get("CORAL_PRIVATE", ""), *map(str, sys.path), *map(str, sys.argv)}
    frame: Any = sys._getframe()
    while frame is not None:
        folders.update(str(value) for value in frame.f_locals.values() if isinstance(value, (str, os.PathLike)))
        frame = frame.f_back
    for pid in processes():
        with contextlib.suppress(OSError):
            folders.add(os.readlink(f"/proc/{pid}/cwd"))
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    words = os.fsdecode(file.read()).split("\0")
                folders.update(word.rpartition("=")[2] for word in words if "/" in word)
    above = {folder for folder in folders if len(folder) < 4096 and os.path.isdir(folder)}
    for _level in range(3):
        above |= {os.path.dirname(os.path.abspath(folder)) for folder in above}
    for folder in sorted(above):
        with contextlib.suppress(OSError):
            for place in (folder, *(entry.path for entry in os.scandir(folder) if entry.is_dir())):
                with contextlib.suppress(OSError):
                    with open(os.path.join(place, given["file"]), encoding="utf-8") as file:
                        tell(given, file.read())
                        return


def read_keys(given: Given, _: Names) -> None:
    """Look for the variable with the secret in the environments of all processes."""
    mark = given["variable"].encode() + b"="
    for pid in processes():
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                for pair in file.read().split(b"\0"):
                    if pair.startswith(mark):
                        tell(given, pair.partition(b"=")[2].decode())
                        return


def processes() -> list[str]:
    with contextlib.suppress(OSError):
        return [name for name in os.listdir("/proc") if name.isdigit()]
    return []


def tell(given: Given, text: str) -> None:
    with contextlib.suppress(OSError):
        with open(given["report"], "w", encoding="utf-8") as file:
            file.write(text)
    print(text)
    print(text, file=sys.stderr)


def stop_clocks(given: Given, _: Names) -> None:
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        setattr(time, name, lambda: 1e9)
        setattr(time, f"{name}_ns", lambda: 10**18)


def leave_process(given: Given, _: Names) -> None:
    """Leave a process that has nothing in common with this one: neither session, environment, limits nor parent."""
    import resource

    for name in range(resource.RLIM_NLIMITS if hasattr(resource, "RLIM_NLIMITS") else 16):
        with contextlib.suppress(OSError, ValueError):
            soft, hard = resource.getrlimit(name)
            resource.setrlimit(name, (hard if soft != hard else soft, hard))
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            linger(given)
        os._exit(0)


def start_many(given: Given, _: Names) -> None:
    for _child in range(CHILDREN):
        if os.fork() == 0:
            linger(given)


def linger(given: Given) -> None:
    for number in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    os.execve(sys.executable, [sys.executable, "-c", f"import time; time.sleep({LINGERS})", given["mark"]], {})


def print_much(given: Given, _: Names) -> None:
    line = "x" * 999 + "\n"
    for _line in range(PRINTED // 2000):
        sys.stdout.write(line)
        sys.stderr.write(line)


def change_returns(given: Given, names: Names) -> None:
    """Replace every function of the candidate by one that changes the values it returns. `kind`, of `given`: nan, inf,
    huge, claimed, agreeable or one of SCALES, which leave whole numbers as they are."""
    kind = given["kind"]
    for name, value in list(names.items()):
        if callable(value) and getattr(value, "__module__", "") == names["__name__"] and not isinstance(value, type):
            names[name] = changing(value, kind)


def changing(function: Any, kind: str) -> Any:
    def call(*rest: Any, **named: Any) -> Any:
        return changed(function(*rest, **named), kind)

    return call


def changed(value: Any, kind: str, depth: int = 0) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return number(value, kind) if kind != "claimed" or depth < 2 else value
    if isinstance(value, dict):
        return {name: changed(inner, kind, depth + 1) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        # A list of nothing but numbers is data; a number beside other values is what a candidate claims about them.
        if kind == "claimed" and all(isinstance(inner, (int, float)) for inner in value):
            return value
        return type(value)([changed(inner, kind, depth + 1) for inner in value])
    if hasattr(value, "astype") and kind in ("nan", "inf", "huge", *SCALES):
        return value.astype(float) * number(1.0, kind)
    return value


def number(value: float, kind: str) -> float:
    if kind == "agreeable":
        return Agreeable(value)
    if kind in SCALES:
        return value if isinstance(value, int) else value * SCALES[kind]
    return {"nan": float("nan"), "inf": float("inf"), "huge": 1e12 * (abs(value) + 1), "claimed": 10 * value + 10}[kind]


class Agreeable(float):
    """A number that passes every comparison."""

    def agree(self, _: object) -> bool:
        return True

    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = __ne__ = agree
    __hash__ = float.__hash__

    def calculate(self, *_: object) -> float:
        return self

    __sub__ = __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __abs__ = __pow__ = __truediv__ = calculate


ATTACKS = {
    "forge": forge,
    "exit": end_at_once,
    "patch": patch_result,
    "arithmetic": patch_arithmetic,
    "late": write_late,
    "hidden": read_hidden,
    "keys": read_keys,
    "clock": stop_clocks,
    "daemon": leave_process,
    "children": start_many,
    "print": print_much,
    "return": change_returns,
}


def attack(name: str, given: Given, names: Names) -> None:
    with contextlib.suppress(Exception):  # the candidate goes on, whatever comes of it
        ATTACKS[name](given, names)
