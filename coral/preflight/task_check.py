"""Checks a task before money is spent on it: each finding is data, and comes from trying the real thing."""

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from coral.agent_setup.prices import budget_concerns, unenforceable_budgets
from coral.agent_setup.roster import assignments_of
from coral.config.load import Config
from coral.config.model import Assignment
from coral.errors import CoralError
from coral.fleet.events import Outcome
from coral.grading.once import grade_once
from coral.grading.result import GradeResult
from coral.native.search.check import CheckBroken, PublicCheck
from coral.runtimes import registry
from coral.runtimes.model import Runtime
from coral.views.format import plural
from heartbeats.render import problems

OUTPUT_LINES = 20  # of a grader that failed
CHECK_SECONDS = 60.0
MAX_FILES = 100_000


@dataclass(frozen=True, slots=True)
class TaskFinding:
    """`name`: what was checked; `text`: what was found, on one line."""

    name: str
    ok: bool
    text: str
    details: tuple[str, ...] = ()


def quick_findings(config: Config) -> list[TaskFinding]:
    """The checks that take no time: the seed, its public check, the heartbeats, the runtime."""
    found = [look(config) for look in (_seed, *([_check] if config.task.check else []), _heartbeats)]
    inspected: list[TaskFinding] = []
    for assignment in assignments_of(config):
        finding, runtime = _runtime(config, assignment)
        found.append(finding)
        inspected += _inspected(config, runtime) if runtime is not None else []
    return [*found, *dict.fromkeys(inspected)]


def grade_findings(config: Config, say: Callable[[str], None]) -> Iterator[TaskFinding]:
    """Grades the seed twice: it must score, and score the same again. `say` is called before a step that takes long."""
    say("grading the seed")
    try:
        began = time.monotonic()
        first = _grade(config)
        seconds = time.monotonic() - began
    except CoralError as error:
        yield TaskFinding("grader", False, str(error), (error.hint,))
        return
    yield _graded(first)
    if first.score is None:
        return
    if (target := config.budget.target) is not None and not config.grader.direction.better(target, first.score):
        text = f"the seed reaches the target {target:g} already"
        yield TaskFinding("target", False, text, ("set budget.target further",))
    if found_concerns := tuple(budget_concerns(config, seconds)):
        yield TaskFinding("budget", True, "it may be too small; nothing is refused for that", found_concerns)
    say("grading the seed once more")
    yield _repeated(first.score, _grade(config), config.grader.noise)


def _seed(config: Config) -> TaskFinding:
    seed, globs = config.seed, config.task.editable
    below = (path for path in islice(seed.rglob("*"), MAX_FILES) if ".git" not in path.relative_to(seed).parts)
    names = [path.relative_to(seed).as_posix() for path in below if path.is_file()]
    kind = "a git repository" if (seed / ".git").exists() else "a folder"
    text = f"{config.task.seed}: {kind} of {plural(len(names), 'file')}"
    if not globs:
        return TaskFinding("seed", True, text)
    matched = {glob: {path for path in seed.glob(glob.lstrip("/")) if path.is_file()} for glob in globs}
    text += f", {len(set().union(*matched.values()))} of them editable"
    empty = tuple(_no_match(glob, names) for glob in globs if not matched[glob])
    return TaskFinding("seed", not empty, text, empty)


def _no_match(glob: str, names: list[str]) -> str:
    close = get_close_matches(glob, names, n=3)
    return f"task.editable: no file matches {glob}" + (f"; did you mean {' or '.join(close)}?" if close else "")


def _inspected(config: Config, runtime: Runtime) -> list[TaskFinding]:
    found = runtime.inspect(config.seed, config.task.editable)
    if found is None:
        return []
    return [TaskFinding(found.name, not found.hint, found.text, (found.hint,) if found.hint else ())]


def _check(config: Config) -> TaskFinding:
    """Calls the public check as the built-in agent does."""
    with tempfile.TemporaryDirectory(prefix="coral-validate-", ignore_cleanup_errors=True) as folder:
        check = PublicCheck(config.seed, config.task.check, Path(folder) / "seed", CHECK_SECONDS)
        try:
            measured = check.measure([{}])[0]
        except CheckBroken as error:
            return TaskFinding("check", False, "the public check cannot be used", (str(error),))
        finally:
            check.close()
    if measured.error:
        return TaskFinding("check", False, "the public check cannot measure the seed", (measured.error,))
    return TaskFinding("check", True, f"{config.task.check} gives the seed {measured.score:.10g}")


def _heartbeats(config: Config) -> TaskFinding:
    wrong = [f"{beat.name}: {what}" for beat in config.heartbeats if beat.prompt for what in problems(beat.prompt)]
    if wrong:
        return TaskFinding("heartbeats", False, "a prompt cannot be rendered", tuple(wrong))
    return TaskFinding("heartbeats", True, "; ".join(f"{beat.name} {beat.when}" for beat in config.heartbeats))


def _runtime(config: Config, assignment: Assignment) -> tuple[TaskFinding, Runtime | None]:
    """Whether the runtime can be used; and the runtime, if it exists."""
    name = assignment.runtime
    try:
        runtime = registry.find(name, assignment.options)
    except CoralError as error:
        return TaskFinding("runtime", False, f"{name} cannot be used", (f"{error}: {error.hint}",)), None
    if wrong := registry.problems(runtime, assignment.model):
        return TaskFinding("runtime", False, f"{name} cannot be used", tuple(wrong)), runtime
    if lost := unenforceable_budgets(config, assignment, runtime):
        return TaskFinding("runtime", False, f"{name} cannot enforce its budget", tuple(lost)), runtime
    unverified = runtime.verified_version == ""
    more = ("unverified: Coral follows its documentation, and was never tried with it",) if unverified else ()
    return TaskFinding("runtime", True, f"{name}, {plural(assignment.count, 'agent')}", more), runtime


def _grade(config: Config) -> GradeResult:
    with tempfile.TemporaryDirectory(prefix="coral-validate-", ignore_cleanup_errors=True) as folder:
        return grade_once(config, Path(folder))


def _graded(result: GradeResult) -> TaskFinding:
    if result.outcome is Outcome.SCORED and result.score is not None:
        return TaskFinding("grader", True, f"the seed scores {result.score:.10g}")
    printed = [line for line in result.output.splitlines()[-OUTPUT_LINES:] if not result.reason.endswith(f": {line}")]
    return TaskFinding("grader", False, "the seed cannot be graded", (result.reason, *printed))


def _repeated(first: float, again: GradeResult, noise: float) -> TaskFinding:
    if again.score is None:
        return TaskFinding("again", False, "graded once more, it has no score", (again.reason,))
    apart = abs(first - again.score)
    if apart <= noise:
        return TaskFinding("again", True, "graded once more, it scores the same" if apart == 0 else f"{apart:g} apart")
    text = f"graded once more, it scores {again.score:.10g}: {apart:g} apart, and grader.noise is {noise:g}"
    return TaskFinding("again", False, text, (f"make the grader deterministic, or set grader.noise above {apart:g}",))
