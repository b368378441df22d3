"""What is wrong with a task, each finding at its place; all of them are told at once, in the order of the file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coral.errors import CoralError

Path = tuple[str | int, ...]
MAX_LISTED = 50  # problems; whoever has more of them has one that they follow from
LONGEST = 500  # characters of one problem


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """Where a value stands: line and column from 1 in the file, or the override that set it."""

    line: int
    column: int
    override: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    path: Path
    text: str
    mark: Mark | None = None


def dotted(path: Path) -> str:
    """`heartbeats[2].every`, the way a person would say it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def nearest(marks: Mapping[Path, Mark], path: Path) -> Mark:
    """The mark of the path, or of the closest section around it: a missing key has no place of its own."""
    while path and path not in marks:
        path = path[:-1]
    return marks.get(path, Mark(1, 1))


def shown(value: object) -> str:
    """A value as the message repeats it: recognisable, and short enough for one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse(name: str, problems: Iterable[Problem], marks: Mapping[Path, Mark]) -> None:
    """Raise one error that lists every problem; return when there is none."""
    placed: dict[tuple[Mark, Path, str], Problem] = {}
    for problem in problems:
        # A value that could not even be read needs no second complaint about its type.
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
        "mend it where you typed it; `coral validate` takes the same words and spends nothing"
        if all(mark.override for mark, _, _ in placed)
        else "mend these lines; `coral validate` checks the task again and spends nothing",
    )


def _line(name: str, mark: Mark, problem: Problem) -> str:
    place = f"override {mark.override}" if mark.override else f"{name}:{mark.line}:{mark.column}"
    subject = f"{dotted(problem.path)}: " if problem.path else ""
    text = f"{subject}{problem.text}"
    line = f"{place}: {text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}"
    return line.encode("utf-8", "replace").decode()  # an argument of the command line may hold any bytes
