"""Finds out before a resume whether somebody changed the run while nobody supervised it; and whether a run that has
ended would end again at once, and which budgets would have to be larger.

Only `decide` knows what ends a run: it is called as for a resume, and its actions are not performed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from attempts.store import Store
from coral import __version__
from coral.agent_setup.roster import Roster
from coral.config.budget import BudgetSection
from coral.config.load import Config
from coral.fleet.agent_state import Phase
from coral.fleet.decide import decide
from coral.fleet.events import Event, Moment, Resumed, TaskChanged
from coral.fleet.reasons import Reason, RunEnd
from coral.fleet.run_state import AttemptStep, Fleet
from coral.journal import RecoveredState, fold, segments
from coral.journal.replay import replay
from coral.runs import reload
from coral.runs.rules import rules_of
from coral.runs.task_files import changed
from coral.supervisor.clock import since
from coral.views import format
from workspace.layout import Layout

OWN = "per_agent"

Limits = dict[str, float | None]  # by their keys: `hours`, `per_agent.money`


@dataclass(frozen=True, slots=True)
class EndsAtOnce:
    """Why a resumed run would end again at once. `agents`: why its agents have retired, if that is the cause.
    `overrides`: the settings with which it would go on; empty if no budget is in the way."""

    end: RunEnd
    agents: tuple[Reason, ...]
    overrides: tuple[str, ...]


def changes_since_supervised(layout: Layout) -> list[str]:
    """Return in words what somebody changed while nobody supervised the run: files of the task, found by their digests
    in the journal, and the journal itself, found by deciding its events again. An empty list proves nothing: whoever
    can write there can also change the digests. CoralError if the journal cannot be read."""
    if not segments(layout.journal):
        return []
    memory = fold(layout.journal)
    files = changed(layout.private, memory.files, memory.expected)
    if reload.pending(layout) is not None:
        # A supervisor may have died while it installed the staged task. The next one installs all of these files again.
        files = [name for name in files if name not in memory.expected]
    files += [f"{layout.staged_task.name}/{name}" for name in reload.unknown_files(layout, memory)]
    found = [f"{format.some_of([f'private/{name}' for name in files])} changed"] if files else []
    again = {attempt.number for attempt in memory.rolled_back.attempts} if memory.rolled_back else set()
    if (last := max({*Store(layout.attempts).numbers()} - again, default=0)) >= memory.fleet.run.next_number:
        found.append(f"the journal ends before #{last}, of which there is a record")
    decided = replay(layout.journal, last=True)
    if decided.first is not None:
        place = f"{decided.first.file}, line {decided.first.line}"
        versions = ", ".join(version for version in decided.versions if version != __version__)
        other = f" (it was written by version {versions}, which may decide otherwise)" if versions else ""
        found.append(f"the journal does not follow from its own events at {place}{other}")
    return found


def ends_at_once(layout: Layout, config: Config, change: TaskChanged | None = None) -> EndsAtOnce | None:
    """Return why the run would end again at once with this task. None if it would go on; also if it has not ended or
    lacks a record, because then a supervisor is needed to end it or to write the record. `change`: how the task differs
    from the run's, if it does."""
    memory = fold(layout.journal)
    if not memory.fleet.run.finished or _lacks_a_record(memory, layout):
        return None
    resumed = (Resumed(away=since(memory.wall)), *((change,) if change else ()))
    after = _after(memory, config, _given(config.budget), resumed)
    if after.run.finished is None:
        return None
    raised = {
        key: "null" if limit is None else f"{limit:.15g}" for key, limit in _raised(memory, config, resumed).items()
    }
    overrides = tuple(f"budget.{key}={limit}" for key, limit in raised.items())
    return EndsAtOnce(after.run.finished, _retired(after), overrides)


def _lacks_a_record(memory: RecoveredState, layout: Layout) -> bool:
    """Return whether a settled attempt has no record, because the disk was full until the run had ended."""
    store = Store(layout.attempts)
    settled = (number for number, pending in memory.fleet.pending.items() if pending.step is AttemptStep.SETTLED)
    return any(store.witness(number) is None for number in settled)


def _after(memory: RecoveredState, config: Config, limits: Limits, resumed: tuple[Event, ...]) -> Fleet:
    """Return the fleet right after a resume within these limits. Starts are not staggered, since an agent without
    budget retires only when it would start. The hold-out is left out: a grade on it that only the resume would ask for
    is no reason to go on."""
    rules = replace(rules_of(replace(config, budget=_section(limits)), Roster(config), ""), holdout_timeout=None)
    now = Moment(run_time=memory.clock, wall_time=memory.wall)
    after, _ = decide(memory.fleet, resumed, now, replace(rules, stagger=0.0))
    return after


def _ends(memory: RecoveredState, config: Config, limits: Limits, resumed: tuple[Event, ...]) -> bool:
    """Return whether the run ends with only these limits in force. Budgets that the operator has set during the run
    count only if they are among the limits."""
    run = memory.fleet.run
    run = replace(run, budgets={key: change for key, change in run.budgets.items() if key in limits})
    within = replace(memory, fleet=replace(memory.fleet, run=run))
    return _after(within, config, limits, resumed).run.finished is not None


def _retired(fleet: Fleet) -> tuple[Reason, ...]:
    agents = fleet.agents.values()
    return tuple(agent.reason for agent in agents) if all(agent.phase is Phase.RETIRED for agent in agents) else ()


def _raised(memory: RecoveredState, config: Config, resumed: tuple[Event, ...]) -> Limits:
    """Return the limits that end the run, each doubled until it no longer does. They are put in force one after the
    other, so that every one is found that has to be raised. A target cannot be doubled, so it is removed."""
    within: Limits = {}
    raised: Limits = {}
    if _ends(memory, config, within, resumed):
        return raised
    budgets = memory.fleet.run.budgets
    set_since = {key: change.limit for key, change in budgets.items() if change.limit is not None}
    for key, limit in {**_given(config.budget), **set_since}.items():
        within[key] = limit
        while _ends(memory, config, within, resumed):
            limit = None if limit is None or key == "target" else limit * 2
            within[key] = raised[key] = limit
    return raised


def _given(budget: BudgetSection) -> Limits:
    given: Mapping[str, float | None] = budget.model_dump(exclude={OWN, "none", "ask_above"}, exclude_none=True)
    own = budget.per_agent.model_dump(exclude_none=True)
    return {**given, **{f"{OWN}.{key}": limit for key, limit in own.items()}}


def _section(limits: Limits) -> BudgetSection:
    own = {key.partition(".")[2]: limit for key, limit in limits.items() if key.startswith(OWN)}
    whole = {key: limit for key, limit in limits.items() if not key.startswith(OWN)}
    return BudgetSection.model_validate({**whole, OWN: own})
