"""The attacks: each changes a copy of the seed as a candidate could, and says what to do if it gets through."""

import ast
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coral.audit import payload

LARGEST = 1_000_000  # bytes of a file whose numbers are changed
_FRACTION = re.compile(r"[.eE]")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
PYTHON, DATA, ANY = "Python file", "file of text with numbers", "file"
FRACTIONS = "file of text with fractions"
_SEAL = "call the candidate by coral.grader.run_candidate: its code then has no way to the grader"
_CHECK = "check that each number is finite, and of the type and range that the task allows"
_STRICT = "give a Fail for what breaks a constraint, by however little, or take what it gains by that off the score"
_RECOMPUTE = "compute the score from the candidate's data alone, and believe no number that it claims"


@dataclass(frozen=True, slots=True)
class Aim:
    """What an attack is given. `score`: the score that it tries to get. `file`: the name of the grader's file at
    `hidden`, which holds a secret; `variable`: the name of an environment variable that holds another. `report`: the
    file into which the attack writes the secrets that it reads. `inside`: the folder of its grade, outside which it
    writes no results. `mark`: an argument of each process that it leaves. `modules`: the names that the grader imports.
    `seconds`: for how long it keeps writing results."""

    score: float
    file: str
    hidden: Path
    variable: str
    report: Path
    inside: Path
    mark: str
    modules: tuple[str, ...]
    seconds: float


Change = Callable[[Path, Sequence[Path], Aim], bool]


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. `change` takes the candidate's folder and those of its files that agents may change. It changes some
    of them, and returns False if none is of the kind that it changes (`needs`). `is_proof`: whether a better score than
    the seed's shows a hole; else it may be earned, and a person must look. `beyond`: a larger change of the same kind;
    if the grader gives that a score as well, no constraint stands in the way of the attack."""

    name: str
    change: Change
    advice: str
    needs: str = PYTHON
    is_proof: bool = True
    beyond: Change | None = None


def attacks() -> tuple[Attack, ...]:
    return (
        Attack("writes the result itself", _code("forge"), _SEAL),
        Attack("ends the process before the grader", _code("exit"), _SEAL),
        Attack("changes how a result is made", _code("patch"), _SEAL),
        Attack("changes functions that the grader calls", _code("arithmetic"), _SEAL),
        Attack("writes the result later, from a process it leaves", _code("late"), _SEAL),
        Attack("stops the clocks", _code("clock"), "measure time in the grader's process: call run_candidate"),
        Attack("reads the grader's files", _code("hidden"), f"{_SEAL}; docs/trust.md says what seals the agents"),
        Attack("reads a key of another process", _code("keys"), _SEAL),
        Attack("leaves a process behind", _code("daemon"), _SEAL),
        Attack("starts 50 processes", _code("children"), _SEAL),
        Attack(
            "prints 20 MB", _code("print"), "give the candidate a pipe that is read to a limit, as run_candidate does"
        ),
        Attack("returns NaN", _returns("nan"), _CHECK),
        Attack("returns infinity", _returns("inf"), _CHECK),
        Attack("returns numbers that pass every comparison", _returns("agreeable"), _SEAL),
        Attack("returns huge numbers", _returns("huge"), _CHECK, is_proof=False),
        Attack("claims more beside its data", _returns("claimed"), _RECOMPUTE, is_proof=False),
        *_nudges(),
        Attack("brings modules that the grader imports", _shadow, "start Python with -P or -I, in another folder", ANY),
        Attack("its numbers are NaN", _numbers("NaN"), _CHECK, DATA),
        Attack("its first number is NaN", _numbers("NaN", slice(0, 1)), _CHECK, DATA),
        Attack("its last number is NaN", _numbers("NaN", slice(-1, None)), _CHECK, DATA),
        Attack("its numbers are infinite", _numbers("Infinity"), _CHECK, DATA),
        Attack("its numbers are -infinite", _numbers("-Infinity"), _CHECK, DATA),
        Attack("its numbers are beyond a float", _numbers("1e999"), _CHECK, DATA),
        Attack("its numbers are huge", _numbers("1e12"), _CHECK, DATA, is_proof=False),
        Attack("its numbers are zero", _numbers("0"), _RECOMPUTE, DATA, is_proof=False),
        Attack("its files are empty", _empty, "give a Fail for a file that does not hold what the task asks for", ANY),
        Attack("its files are links to the grader's", _links, "open files of the candidate with os.O_NOFOLLOW", DATA),
    )


def _nudges() -> Iterator[Attack]:
    """Yield attacks that change all numbers by a millionth: a grader that tolerates small violations of a constraint
    gives them a better score."""
    for way in ("larger", "smaller"):
        small, large = payload.SCALES[way], payload.SCALES[f"much {way}"]
        yield Attack(
            f"returns numbers {way} by a millionth",
            _returns(way),
            _STRICT,
            is_proof=False,
            beyond=_returns(f"much {way}"),
        )
        yield Attack(
            f"its numbers are {way} by a millionth",
            _scaled(small),
            _STRICT,
            FRACTIONS,
            is_proof=False,
            beyond=_scaled(large),
        )


def _code(name: str) -> Change:
    def change(_: Path, files: Sequence[Path], aim: Aim) -> bool:
        return _insert(files, name, _given(aim), at_end=False)

    return change


def _returns(kind: str) -> Change:
    def change(_: Path, files: Sequence[Path], aim: Aim) -> bool:
        return _insert(files, "return", {**_given(aim), "kind": kind}, at_end=True)

    return change


def _given(aim: Aim) -> dict[str, Any]:
    given = {"score": aim.score, "file": aim.file, "variable": aim.variable, "mark": aim.mark, "seconds": aim.seconds}
    return {**given, "report": str(aim.report), "inside": f"{aim.inside}/"}


def _insert(files: Sequence[Path], name: str, given: dict[str, Any], *, at_end: bool) -> bool:
    """Put an attack into each Python file, at its beginning or its end; False if there is none."""
    found = [path for path in files if path.suffix == ".py"]
    for path in found:
        text = path.read_text(encoding="utf-8", errors="replace")
        at = len(text.splitlines()) if at_end else _begin(text)
        lines = text.splitlines()
        path.write_text("\n".join([*lines[:at], *_lines(name, given), *lines[at:], ""]), encoding="utf-8")
    return bool(found)


def _begin(text: str) -> int:
    """Return how many lines must stay first: those of the docstring and of imports from `__future__`."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return 0
    first = 0
    for node in body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        first = node.end_lineno or first
    return first


def _lines(name: str, given: dict[str, Any]) -> list[str]:
    code = textwrap.indent(Path(payload.__file__).read_text(encoding="utf-8"), "    ")
    call = f"    attack({name!r}, json.loads({json.dumps(given)!r}), names)"
    return ["def _coral_audit(names):", *code.splitlines(), call, "_coral_audit(globals())"]


def _shadow(workspace: Path, _: Sequence[Path], aim: Aim) -> bool:
    """Add files beside the candidate: modules named as those that the grader imports, and those that Python and pytest
    load by themselves."""
    text = "\n".join([*_lines("forge", _given(aim)), ""])
    for name in dict.fromkeys((*aim.modules, "sitecustomize", "usercustomize", "conftest")):
        path = workspace / f"{name}.py"
        if not path.exists():
            path.write_text(text, encoding="utf-8")
    return True


def _numbers(number: str, which: slice = slice(None)) -> Change:
    def change(_: Path, files: Sequence[Path], __: Aim) -> bool:
        is_changed = False
        for path, text in _data(files):
            found = list(_NUMBER.finditer(text))[which]
            for match in reversed(found):
                text = f"{text[: match.start()]}{number}{text[match.end() :]}"
            path.write_text(text, encoding="utf-8")
            is_changed = is_changed or bool(found)
        return is_changed

    return change


def _scaled(factor: float) -> Change:
    """Return a change that multiplies each fraction in the files of data by this factor, and leaves whole numbers."""

    def change(_: Path, files: Sequence[Path], __: Aim) -> bool:
        is_changed = False

        def scaled(match: re.Match[str]) -> str:
            return repr(float(match[0]) * factor) if _FRACTION.search(match[0]) else match[0]

        for path, text in _data(files):
            path.write_text(made := _NUMBER.sub(scaled, text), encoding="utf-8")
            is_changed = is_changed or made != text
        return is_changed

    return change


def _empty(_: Path, files: Sequence[Path], __: Aim) -> bool:
    for path in files:
        path.write_bytes(b"")
    return bool(files)


def _links(_: Path, files: Sequence[Path], aim: Aim) -> bool:
    found = [path for path, _ in _data(files)]
    for path in found:
        path.unlink()
        path.symlink_to(aim.hidden)
    return bool(found)


def _data(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the files that hold data as text, with their texts."""
    for path in files:
        if path.suffix != ".py" and path.stat().st_size <= LARGEST:
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
