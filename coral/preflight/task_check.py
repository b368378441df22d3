"""Checks a task before money is spent on it, by trying what a run would do. Each finding is data."""

import math
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from attempts.noise import ROUNDING, deviation, mean
from attempts.record import CLOSED, Kind
from coral.agent_setup.prices import LIMIT_ADVICE, budget_concerns, unenforceable_budgets, unlimited
from coral.agent_setup.roster import assignments_of, seed_conflict
from coral.config.load import CHECKLIST, Config, checklist
from coral.config.model import Assignment
from coral.errors import CoralError
from coral.fleet.events import Outcome
from coral.grading.once import grade_once
from coral.grading.result import GradeResult
from coral.grading.sandbox import level_of_graders, places_of
from coral.grading.venv import make
from coral.notify.notifier import targets_of
from coral.preflight.forecast import forecast
from coral.preflight.task_changes import seed_change, uncommitted_text
from coral.public_check.check import CheckBroken, check_once
from coral.runtimes import registry
from coral.runtimes.model import Runtime
from coral.views.format import plural, some_of
from heartbeats.render import problems
from workspace.errors import GitError
from workspace.seal import Level
from workspace.seed import last_commit, taken_from, uncommitted

OUTPUT_LINES = 20  # the last ones of a grader that failed
CHECK_SECONDS = 60.0
MAX_FILES = 100_000
MOST_PERCENT = 100.0  # a larger noise is not given as a share of the score: the score is near zero
SEED_GRADES = 5  # of the seed, to learn how noisy scores are ...
SEED_SECONDS = 60.0  # ... if they take no longer; else two
MISJUDGED = 3.0  # a larger factor between the given and the measured noise means that the given one is wrong
LOGARITHM = 0.005  # share of the score from which the noise of a time or a ratio is likely to grow with the score
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")
LOG_ADVICE = (
    "if the score is a time or a ratio, score its logarithm, or the ratio to the seed's time: "
    "its noise is then the same at every level"
)


@dataclass(frozen=True, slots=True)
class TaskFinding:
    """The result of one check. `name`: what was checked; `text`: what was found, on one line; `details`: further lines,
    such as advice."""

    name: str
    ok: bool
    text: str
    details: tuple[str, ...] = ()


def quick_findings(config: Config, runs: Path) -> list[TaskFinding]:
    """Make the checks that take no time: of the seed, its public check, the heartbeats, the runtimes, and the expected
    cost. `runs`: the folder of all runs."""
    inspected: list[TaskFinding] = []
    runtimes = list[Runtime | None]()
    with tempfile.TemporaryDirectory(prefix="coral-validate-", ignore_cleanup_errors=True) as folder:
        try:
            files = taken_from(config.seed, Path(folder))
            left = uncommitted(config.seed)
            notes = (*([uncommitted_text(left)] if left else []), *filter(None, [seed_change(config, runs)]))
        except GitError as error:
            return [TaskFinding("seed", False, str(error), (error.hint,))]
        found = [
            _seed(config, files, notes),
            *([_check(config, files)] if config.task.check else []),
            _heartbeats(config),
            *(_alerts(config) if any(route.destinations for route in config.alerts.all_routes) else []),
        ]
        for assignment in assignments_of(config):
            finding, runtime = _runtime(config, assignment)
            found.append(finding)
            runtimes.append(runtime)
            if runtime is not None:
                if finding.ok:  # else its options may be what it cannot read
                    inspected += _inspected(config, files, runtime)
                if conflict := seed_conflict(files, runtime):
                    inspected.append(TaskFinding("seed", False, "agents cannot work on it", (conflict,)))
    if None not in runtimes and (endless := unlimited(config)):
        found.append(TaskFinding("budget", False, endless, (LIMIT_ADVICE,)))
    if None not in runtimes and (expected := forecast(config, runs)) is not None:
        found.append(TaskFinding("cost", True, expected.text))
    return [*found, *dict.fromkeys(inspected)]


def grade_findings(config: Config, say: Callable[[str], None]) -> Iterator[TaskFinding]:
    """Grade the seed several times: it must have a score, and its scores must differ no more than the task's noise
    says. `say` is called before each step that takes long."""
    with tempfile.TemporaryDirectory(prefix="coral-validate-", ignore_cleanup_errors=True) as folder:
        try:
            venv = make(config, Path(folder), say)
        except CoralError as error:
            yield TaskFinding("grader", False, str(error), tuple(error.hint.splitlines()[-OUTPUT_LINES:]))
            return
        yield from _grade_findings(config, venv, say)


def _grade_findings(config: Config, venv: Path | None, say: Callable[[str], None]) -> Iterator[TaskFinding]:
    say("grading the seed")
    try:
        began = time.monotonic()
        first = _grade(config, venv)
        seconds = time.monotonic() - began
    except CoralError as error:
        yield TaskFinding("grader", False, str(error), (error.hint,))
        return
    if config.grader.seed_may_fail and first.outcome is Outcome.FAILED:
        yield TaskFinding("grader", True, f"the seed fails, as it may: {first.reason}", _channel_advice(config, first))
        return
    yield _graded(config, venv, first, say)
    if first.score is None:
        return
    if config.holdout_grader is not None:
        yield _held_out(replace(config, grader=config.holdout_grader), venv, say)
    if (target := config.budget.target) is not None and not config.grader.direction.better(target, first.score):
        text = f"the seed reaches the target {target:.10g} already"
        yield TaskFinding("target", False, text, ("set budget.target further",))
    if found_concerns := tuple(budget_concerns(config, seconds)):
        yield TaskFinding("budget", True, "it may be too small; nothing is refused for that", found_concerns)
    say("grading the seed again")
    yield _noise(config, venv, first.score, seconds)


def _seed(config: Config, seed: Path, notes: tuple[str, ...]) -> TaskFinding:
    """Check the seed. `seed`: the folder with the files that a run would take; `notes`: sentences about them for the
    user."""
    globs = config.task.editable
    below = (path for path in islice(seed.rglob("*"), MAX_FILES) if ".git" not in path.relative_to(seed).parts)
    names = [path.relative_to(seed).as_posix() for path in below if path.is_file()]
    is_folder = seed == config.seed
    kind = "a folder" if is_folder else f"the last commit of a git repository, {last_commit(config.seed)[:12]},"
    text = f"{config.task.seed}: {kind} of {plural(len(names), 'file')}"
    if not globs:
        return TaskFinding("seed", True, text, notes)
    matched = {glob: {path for path in seed.glob(glob.lstrip("/")) if path.is_file()} for glob in globs}
    text += f", {len(set().union(*matched.values()))} of them editable"
    empty = tuple(_no_match(glob, names) for glob in globs if not matched[glob])
    return TaskFinding("seed", not empty, text, (*empty, *notes))


def _no_match(glob: str, names: list[str]) -> str:
    close = get_close_matches(glob, names, n=3)
    return f"task.editable: no file matches {glob}" + (f"; did you mean {' or '.join(close)}?" if close else "")


def _inspected(config: Config, seed: Path, runtime: Runtime) -> list[TaskFinding]:
    found = runtime.inspect(seed, config.task.editable)
    if found is None:
        return []
    return [TaskFinding(found.name, not found.hint, found.text, (found.hint,) if found.hint else ())]


def _check(config: Config, seed: Path) -> TaskFinding:
    """Call the public check as `coral check` and the built-in agent do."""
    try:
        measured = check_once(seed, config.task.check, CHECK_SECONDS)
    except CheckBroken as error:
        details = (str(error), *_module_advice(config, str(error)))
        return TaskFinding("check", False, "the public check cannot be used", details)
    if measured.error:
        details = (measured.error, *_module_advice(config, measured.error))
        return TaskFinding("check", False, "the public check cannot measure the seed", details)
    return TaskFinding("check", True, f"{config.task.check} gives the seed {measured.score:.10g}")


def _heartbeats(config: Config) -> TaskFinding:
    wrong = [f"{beat.name}: {what}" for beat in config.heartbeats if beat.prompt for what in problems(beat.prompt)]
    if wrong:
        return TaskFinding("heartbeats", False, "a prompt cannot be rendered", tuple(wrong))
    text = "; ".join(f"{beat.name} {beat.when}" for beat in config.heartbeats)
    try:
        own = checklist(config) is not None
    except CoralError as error:
        return TaskFinding("heartbeats", False, str(error), (error.hint,))
    return TaskFinding("heartbeats", True, text, (f"the checklist of checkpoints is your {CHECKLIST}",) if own else ())


def _alerts(config: Config) -> list[TaskFinding]:
    """Check the targets of alerts. Nothing is sent: `coral notify test` does that."""
    targets, problems = targets_of(config.alerts)
    names = ", ".join(target.name for target in targets)
    found = [TaskFinding("alerts", True, f"they go to {names}", ("`coral notify test` sends one",))] if names else []
    return [*found, *(TaskFinding("alerts", False, str(problem), (problem.hint,)) for problem in problems)]


def _runtime(config: Config, assignment: Assignment) -> tuple[TaskFinding, Runtime | None]:
    """Check whether the runtime can be used; returns the finding, and the runtime if it exists."""
    name = assignment.runtime
    try:
        runtime = registry.find(name, assignment.options)
    except CoralError as error:
        return TaskFinding("runtime", False, f"{name} cannot be used", (f"{error}: {error.hint}",)), None
    if wrong := registry.problems(runtime, assignment.model):
        return TaskFinding("runtime", False, f"{name} cannot be used", tuple(wrong)), runtime
    if missing := runtime.missing_login():
        return TaskFinding("runtime", False, f"{name} cannot be used", (missing, runtime.how_to_log_in)), runtime
    if lost := unenforceable_budgets(config, assignment, runtime):
        return TaskFinding("runtime", False, f"{name} cannot enforce its budget", tuple(lost)), runtime
    unverified = runtime.verified_version == ""
    more = ("unverified: Coral follows its documentation, and was never tried with it",) if unverified else ()
    return TaskFinding("runtime", True, f"{name}, {plural(assignment.count, 'agent')}", more), runtime


def _grade(config: Config, venv: Path | None, kind: Kind = Kind.BASELINE) -> GradeResult:
    with tempfile.TemporaryDirectory(prefix="coral-validate-", ignore_cleanup_errors=True) as folder:
        return grade_once(config, Path(folder), kind=kind, venv=venv)


def _graded(config: Config, venv: Path | None, result: GradeResult, say: Callable[[str], None]) -> TaskFinding:
    if result.outcome is Outcome.SCORED and result.score is not None:
        advice = (*_channel_advice(config, result), *_unread_advice(result))
        return TaskFinding("grader", True, f"the seed scores {result.score:.10g}", advice)
    printed = [line for line in result.output.splitlines()[-OUTPUT_LINES:] if not result.reason.endswith(f": {line}")]
    advice = _seal_advice(config, venv, say) or _module_advice(config, f"{result.reason}\n{result.output}")
    return TaskFinding("grader", False, "the seed cannot be graded", (result.reason, *printed, *advice))


def _seal_advice(config: Config, venv: Path | None, say: Callable[[str], None]) -> tuple[str, ...]:
    """Return advice if the grader fails only because it is sealed, which is found out by grading the seed without a
    seal; else nothing."""
    if level_of_graders(config.workspace.seal, places_of(config, Path(tempfile.gettempdir()))) is Level.NONE:
        return ()
    say("grading the seed without a seal")  # which may take grader.timeout once more
    unsealed = replace(config, workspace=config.workspace.model_copy(update={"seal": "none"}))
    if _grade(unsealed, venv).score is None:
        return ()
    return (
        "it can be graded if the grader is not sealed: name what it reads of your home or /tmp in grader.readable, and "
        "what it changes there in grader.writable; grader.network: true gives it the network",
    )


def _channel_advice(config: Config, result: GradeResult) -> tuple[str, ...]:
    """Return a warning if code of the candidate could write its own score."""
    if result.channel == CLOSED:
        return ()
    if config.grader.command:
        return ("channel: open. A command's result can be written by whatever runs in it: see docs/trust.md",)
    return (f"channel: open, since {result.opened}: docs/trust.md says how to close it",)


def _unread_advice(result: GradeResult) -> tuple[str, ...]:
    """Return a warning if the grader returns something that no record keeps."""
    if not result.unread:
        return ()
    names = some_of(result.unread)
    return (f"the result has {names}, which no record keeps: numbers, texts and booleans go into `metrics`",)


def _held_out(config: Config, venv: Path | None, say: Callable[[str], None]) -> TaskFinding:
    """Grade the seed on the hold-out. `config.grader` must be the grader of the hold-out."""
    try:
        result = _grade(config, venv, Kind.HOLDOUT)
    except CoralError as error:
        return TaskFinding("hold-out", False, str(error), (error.hint,))
    if result.score is not None:
        return TaskFinding("hold-out", True, f"the seed scores {result.score:.10g} on it")
    return replace(_graded(config, venv, result, say), name="hold-out", text="the seed cannot be graded on it")


def _module_advice(config: Config, text: str) -> tuple[str, ...]:
    """Return what to do about a module that the grader did not find. It may be in the task's folder, which is not
    copied as a whole, or in the seed, of which only the folder of the called file is on the import path."""
    found = _NO_MODULE.search(text)
    if found is None:
        return ()
    name = found[1].partition(".")[0]
    for path in (f"{name}.py", name):
        if (config.folder / path).exists():
            return (f"{path} is in the task's folder: name it in grader.private, and it is copied with the grader",)
        if (config.seed / path).exists():
            where = f"{path} is in the seed, of which only the folder of the called file is on the import path:"
            return (f"{where} call a file beside {path}, in a grader by run_candidate",)
    return (f"the Python that grades is {sys.executable}: `{sys.executable} -m pip install {name}` installs it",)


def _noise(config: Config, venv: Path | None, first: float, seconds: float) -> TaskFinding:
    """Grade the seed several times, and compare how far its scores differ with `grader.noise`."""
    scores = [first]
    while len(scores) < (SEED_GRADES if seconds * SEED_GRADES <= SEED_SECONDS else 2):
        again = _grade(config, venv)
        if again.score is None:
            return TaskFinding("again", False, "graded once more, it has no score", (again.reason,))
        scores.append(again.score)
    spread, setting = deviation(scores), config.grader.noise_setting
    if spread <= ROUNDING * abs(mean(scores)):
        given = setting.deviation or 0.0
        advice = (f"grader.noise is {config.grader.noise}: 0 or auto, if it always does",) if given else ()
        return TaskFinding("again", True, f"graded {len(scores)} times, it scores the same", advice)
    percent = 100 * spread / abs(mean(scores)) if mean(scores) else math.inf
    is_share = percent < MOST_PERCENT
    share = f", {percent:.2g} % of the score" if is_share else ""
    text = f"graded {len(scores)} times, its scores have a standard deviation of {spread:.2g}{share}"
    grows = min(scores) > 0 and spread >= LOGARITHM * abs(mean(scores))
    advice = (LOG_ADVICE,) if grows else ()
    measured = f"{spread:.2g}" + (f" or {percent:.2g}%" if is_share else "")
    if setting.deviation is None:
        text = f"{text}; grader.noise: auto takes it into account, grader.noise: {measured} would give it"
        return TaskFinding("again", True, text, advice)
    given = setting.deviation * (abs(mean(scores)) if setting.relative else 1.0)
    if given > MISJUDGED * spread and len(scores) == SEED_GRADES:
        large = f"grader.noise is {config.grader.noise}, which hides gains: {measured} was measured, or auto"
        return TaskFinding("again", True, text, (large, *advice))
    if spread <= MISJUDGED * given:
        return TaskFinding("again", True, text, advice)
    return TaskFinding(
        "again", False, f"{text}, and grader.noise is {config.grader.noise}", ("set grader.noise: auto", *advice)
    )
