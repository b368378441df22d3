"""The problems of a task, each with its place in the file; one error lists them all, in the order of the file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coral.errors import CoralError

KeyPath = tuple[str | int, ...]
MAX_LISTED = 50  # problems; with more of them, most follow from one
LONGEST = 500  # characters of one problem


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """The place of a value: line and column of the file, from 1, or the override of the command line that set it."""

    line: int
    column: int
    override: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    path: KeyPath
    text: str
    mark: Mark | None = None


def dotted(path: KeyPath) -> str:
    """`heartbeats[2].every`"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def nearest(marks: Mapping[KeyPath, Mark], path: KeyPath) -> Mark:
    """The mark of the path, or of the closest section around it: a missing key has no mark."""
    while path and path not in marks:
        path = path[:-1]
    return marks.get(path, Mark(1, 1))


def shown(value: object) -> str:
    """A value as messages repeat it: recognisable, and short enough for one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse(name: str, problems: Iterable[Problem], marks: Mapping[KeyPath, Mark]) -> None:
    """Raise one error that lists every problem; return when there is none."""
    placed: dict[tuple[Mark, KeyPath, str], Problem] = {}
    for problem in problems:
        # One message for a value that could not be read: its type is wrong as well.
        same = problem.text if not problem.path else ""
        placed.setdefault((problem.mark or nearest(marks, problem.path), problem.path, same), problem)
    if not placed:
        return
    in_order = sorted(placed.items(), key=lambda item: item[0][0])
    lines = [_line(name, mark, problem) for (mark, _, _), problem in in_order[:MAX_LISTED]]
    count = "one problem" if len(placed) == 1 else f"{len(placed)} problems"
    lines += [f"... and {len(placed) - MAX_LISTED} more"] if len(placed) > MAX_LISTED else []
    raise CoralError(
        f"cannot use this task: {count}\n" + "\n".join(f"  {line}" for line in lines),
        "correct it where you typed it; `coral validate` checks the same words and costs nothing"
        if all(mark.override for mark, _, _ in placed)
        else "correct these lines; `coral validate` checks the task again and costs nothing",
    )


def _line(name: str, mark: Mark, problem: Problem) -> str:
    place = f"override {mark.override}" if mark.override else f"{name}:{mark.line}:{mark.column}"
    subject = f"{dotted(problem.path)}: " if problem.path else ""
    text = f"{subject}{problem.text}"
    line = f"{place}: {text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}"
    return line.encode("utf-8", "replace").decode()  # an argument of the command line may hold any bytes
