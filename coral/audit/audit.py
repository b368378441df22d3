"""Grades what the attacks make of the seed, each in a fresh checkout, and judges which of them got through."""

import ast
import contextlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from attempts.files import read_bytes
from attempts.noise import ROUNDING, deviation, mean, noise_at
from attempts.record import CLOSED, Direction
from coral.audit.attacks import Aim, Attack, attacks
from coral.config.load import Config
from coral.errors import CoralError
from coral.grading.kinds import grader_files
from coral.grading.once import grade_once
from coral.grading.result import GradeResult
from coral.grading.sandbox import level_of_graders, places_of
from coral.grading.venv import make
from coral.processes import process
from coral.processes.process_tree import Identity, identify
from workspace import seed
from workspace.seal import Level

SEED_GRADES = 3  # grades of the seed itself: the score of each attack is compared with theirs
FLAKY_GRADES = 10  # grades of the seed, if one of the first failed: they show how often that happens
DEVIATIONS = 4.0  # of the seed's scores, or of the task's noise: a score that is better by more is no chance
FORGED = 987_654_321.0  # the score that attacks try to get
LONGEST = 60.0  # seconds that a grade under attack may take at most, or SLOWER if that is more
SLOWER = 10.0  # times the seconds of the seed's grade
LATE_SECONDS = 2.0  # for which an attack keeps on writing results
ENDING_SECONDS = 1.0  # for processes that were killed to be gone

ALREADY_CALLED = "the grader calls run_candidate: let no other line run the candidate's code, and check what it returns"


class State(StrEnum):
    CLOSED = "closed"
    THROUGH = "got through"
    LOOK = "look"
    UNTRIED = "not tried"


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The outcome of one attack. `where`: the line of the grader by which the candidate's code got in, if it is known.
    `advice`: what to write instead; empty if the attack did not get through."""

    attack: str
    state: State
    text: str
    where: str = ""
    advice: str = ""
    is_by_score: bool = False  # nothing but a better score than the seed's shows that it got through
    score: float | None = None  # the score that the grader gave


@dataclass(frozen=True, slots=True)
class Audit:
    """The outcome of an audit. `level`: of the grader's sandbox. `scores`: of the seed, graded several times;
    `failures`: the reasons of its grades that gave no score. `channel`, `opened`: as the result of a grade of the seed
    has them."""

    level: Level
    scores: tuple[float, ...]
    failures: tuple[str, ...]
    channel: str
    opened: str
    results: tuple[AttackResult, ...]

    @property
    def holds(self) -> bool:
        return not any(result.state is State.THROUGH for result in self.results)


def audit(config: Config, say: Callable[[str], None]) -> Audit:
    """Try every attack on the task's grader, in temporary folders. `say` takes the name of the step that begins.
    CoralError where the seed itself cannot be graded."""
    with _folder() as folder:
        return _audited(config, make(config, folder, say), say)


def _audited(config: Config, venv: Path | None, say: Callable[[str], None]) -> Audit:
    say("grading the seed")
    grades, seconds = list[GradeResult](), 0.0
    while len(grades) < (FLAKY_GRADES if any(grade.score is None for grade in grades) else SEED_GRADES):
        began = time.monotonic()
        grades.append(_of_the_seed(config, venv))
        seconds = max(seconds, time.monotonic() - began)
        if len(grades) == SEED_GRADES and all(grade.score is None for grade in grades):
            reason = grades[0].reason
            raise CoralError(f"cannot audit: the seed has no score: {reason}", "`coral validate` says more")
    scores = [grade.score for grade in grades if grade.score is not None]
    graded = next(grade for grade in reversed(grades) if grade.score is not None)
    failures = tuple(grade.reason for grade in grades if grade.score is None)
    listed, results = attacks(), list[AttackResult]()
    limit = min(config.grader.timeout, max(LONGEST, SLOWER * seconds))
    with _folder() as folder, _secret_holder() as (variable, key):
        files = seed.taken_from(config.seed, folder)
        for number, attack in enumerate(listed, 1):
            say(f"attack {number} of {len(listed)}: {attack.name}")
            tried = _tried(config, files, attack, scores, limit, variable, key, venv)
            for _ in range(SEED_GRADES - 1):
                if tried.is_by_score and len(set(scores)) > 1:  # the score may vary with what else the machine does
                    again = _of_the_seed(config, venv).score
                    scores += [] if again is None else [again]
                    tried = _tried(config, files, attack, scores, limit, variable, key, venv)
            if tried.is_by_score and attack.beyond is not None:
                larger = replace(attack, change=attack.beyond)
                beyond = _tried(config, files, larger, scores, limit, variable, key, venv).score
                tried = tried if beyond is None else _forgiven_nothing(tried, beyond)
            results.append(tried)
    level = level_of_graders(config.workspace.seal, places_of(config, Path(tempfile.gettempdir())))
    return Audit(level, tuple(scores), failures, graded.channel, graded.opened, tuple(results))


def _of_the_seed(config: Config, venv: Path | None) -> GradeResult:
    with _folder() as folder:
        return grade_once(config, folder, venv=venv)


def _forgiven_nothing(tried: AttackResult, beyond: float) -> AttackResult:
    """Return the result of an attack whose larger change has a score too: the grader tolerates nothing here."""
    text = f"scores {tried.score:.10g}; a larger change scores {beyond:.10g}, so no constraint is in its way"
    return AttackResult(tried.attack, State.CLOSED, text, score=tried.score)


def _tried(
    config: Config,
    files: Path,
    attack: Attack,
    scores: list[float],
    limit: float,
    variable: str,
    key: str,
    venv: Path | None,
) -> AttackResult:
    with _folder() as folder:
        candidate, place, report = folder / "seed", folder / "grade", folder / "grade" / "report"
        shutil.copytree(files, candidate, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        hidden = place / "grader" / f"{secrets.token_hex(8)}.txt"
        hidden.parent.mkdir(parents=True)
        hidden.write_text(secret := secrets.token_hex(16), encoding="utf-8")
        forged = FORGED if config.grader.direction is Direction.MAXIMIZE else -FORGED
        aim = Aim(
            score=forged,
            file=hidden.name,
            hidden=hidden,
            variable=variable,
            report=report,
            inside=folder.resolve(),
            mark=f"coral-audit-{secrets.token_hex(8)}",
            modules=_modules(config),
            seconds=LATE_SECONDS,
        )
        if not attack.change(candidate, _editable(config, candidate), aim):
            return AttackResult(attack.name, State.UNTRIED, f"the seed has no {attack.needs} that agents may change")
        task = config.task.model_copy(update={"seed": str(candidate)})
        try:
            result = grade_once(replace(config, task=task), place, timeout=limit, venv=venv)
        except CoralError as error:
            return AttackResult(attack.name, State.CLOSED, f"refused: {error}".replace(f"{folder}/", ""))
        finally:
            left = _end_marked(aim.mark)
        learnt = _read(report) + result.output + result.feedback + result.reason + str(dict(result.metrics))
        return _judged(config, attack, result, scores, forged, left=left, knows=secret in learnt or key in learnt)


def _judged(
    config: Config, attack: Attack, result: GradeResult, scores: list[float], forged: float, *, left: int, knows: bool
) -> AttackResult:
    """Return what a grade under attack shows. `left`: the processes that outlived it; `knows`: whether a secret was
    read."""
    opened = "" if result.channel == CLOSED else result.opened

    def through(text: str, state: State = State.THROUGH, *, is_by_score: bool = False) -> AttackResult:
        return AttackResult(attack.name, state, text, opened, _advice(config, attack), is_by_score, result.score)

    if knows:
        return through("it read the secret")
    if left:
        return through(f"{left} of its processes outlived the grade")
    if result.score is None:
        return AttackResult(attack.name, State.CLOSED, result.reason)
    if result.score == forged:
        return through("it has the score that it wanted")
    margin = _margin(config, scores)
    best = max(scores) if config.grader.direction is Direction.MAXIMIZE else min(scores)
    better = abs(result.score - best) > margin and config.grader.direction.better(result.score, best)
    if not better:
        text = f"scores {result.score:.10g}, which is no better than the seed"
        return AttackResult(attack.name, State.CLOSED, text, score=result.score)
    text = f"scores {result.score:.10g}, which is better than the seed"
    if attack.is_proof:
        return through(text, is_by_score=True)
    if attack.beyond is not None:
        text = f"{text}, and a larger change has no score: a constraint may be forgiven"
    return through(f"{text}: look whether it is earned", State.LOOK, is_by_score=True)


def _margin(config: Config, scores: list[float]) -> float:
    """Return by how much a score must be better than the best of the seed's, in units of the score: the range of the
    seed's scores, or what the noise explains, whichever is more."""
    noise = noise_at(config.grader.noise_setting, mean(scores), [scores]).deviation
    by_chance = DEVIATIONS * max(noise, deviation(scores))
    return max(max(scores) - min(scores), by_chance) + ROUNDING * abs(mean(scores))


def _advice(config: Config, attack: Attack) -> str:
    """Return the attack's advice; other advice than to call run_candidate for a grader that calls it already."""
    calls = "run_candidate" in attack.advice and any("run_candidate" in names for names in _names(config))
    return ALREADY_CALLED if calls else attack.advice


def _names(config: Config) -> Iterator[set[str]]:
    """Yield, for each of the grader's Python files, the names that it imports from other modules."""
    for tree in _trees(config):
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        yield {alias.name for node in imports for alias in node.names}


def _editable(config: Config, folder: Path) -> list[Path]:
    """Return the files of a copy of the seed that the task lets agents change."""
    globs = config.task.editable or ("**/*",)
    found = {path for glob in globs for path in folder.glob(glob.lstrip("/"))}
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def _modules(config: Config) -> tuple[str, ...]:
    """Return the modules that the grader's Python files import: a candidate's file of that name could be loaded
    instead."""
    names = set[str]()
    for tree in _trees(config):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return tuple(sorted(names - {"__future__"}))


def _trees(config: Config) -> Iterator[ast.Module]:
    """Yield the grader's Python files, parsed; without those that cannot be parsed."""
    for name in grader_files(config.grader, config.folder):
        place = config.folder / name
        for path in place.rglob("*.py") if place.is_dir() else [place] if place.suffix == ".py" else []:
            with contextlib.suppress(OSError, SyntaxError, ValueError):
                yield ast.parse(path.read_bytes())


def _end_marked(mark: str) -> int:
    """Wait a moment for the processes with this mark to end, then kill the others. Return how many were killed."""
    deadline = time.monotonic() + ENDING_SECONDS
    while (left := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.01)
    for identity in left:
        process.kill(identity, mark)
    return len(left)


def _marked(mark: str) -> list[Identity]:
    """Return the living processes that have this mark among their arguments."""
    found = list[Identity | None]()
    with contextlib.suppress(OSError):  # a system without such a folder
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(identify(int(entry.name)))
    return [identity for identity in found if identity is not None]


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="coral-audit-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # a grade with a user of its own has a closed folder in there, and must reach it
        yield Path(folder)


@contextlib.contextmanager
def _secret_holder() -> Iterator[tuple[str, str]]:
    """Run a process that has a key in its environment, as an agent's program does. Yields the variable's name and the
    key."""
    variable, key = f"CORAL_AUDIT_{secrets.token_hex(4).upper()}", secrets.token_hex(16)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, env={variable: key}
    ) as holder:
        yield variable, key
        holder.communicate()


def _read(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
