"""Finds out before a resume whether somebody changed the run while nobody supervised it, and whether an ended run would
go on, and which of its budgets would have to be larger.

Rule: only `decide` knows what ends a run. It is called with the resumed run, and its actions are not performed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from attempts.store import Store
from coral import __version__
from coral.agent_setup.roster import Roster
from coral.config.load import Config
from coral.config.model import BudgetSection
from coral.fleet.agent_state import Phase
from coral.fleet.agents.live_budgets import exact
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
    """Why a run would end again at once, the reasons of its agents if they are the cause, and the overrides with which
    it would go on; none if no budget is in the way."""

    end: RunEnd
    agents: tuple[Reason, ...]
    overrides: tuple[str, ...]


def changes_since_supervised(layout: Layout) -> list[str]:
    """What somebody changed, in words: files of the task, by their digests in the journal, and the journal itself,
    which comes out otherwise when it is decided again. Empty where nothing was found: who can write there can write
    digests, too. CoralError if the journal cannot be read."""
    if not segments(layout.journal):
        return []
    memory = fold(layout.journal)
    files = changed(layout.private, memory.files, memory.expected)
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
    """None if the run would go on with this task, or has not ended: a supervisor is needed then, if only to end it, or
    to write a record for which the disk had no room. `change`: what is different in the task, if anything is."""
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
    """Whether a settled attempt has no record: the disk was full until the run had ended."""
    store = Store(layout.attempts)
    settled = (number for number, pending in memory.fleet.pending.items() if pending.step is AttemptStep.SETTLED)
    return any(store.witness(number) is None for number in settled)


def _after(memory: RecoveredState, config: Config, limits: Limits, resumed: tuple[Event, ...]) -> Fleet:
    """The fleet right after a resume within these limits. Starts are not staggered: an agent without a budget retires
    only when it would start. A grade on the hold-out that only the resume would ask for is no reason to go on."""
    rules = replace(rules_of(replace(config, budget=_section(limits)), Roster(config), ""), holdout_timeout=None)
    now = Moment(run_time=memory.clock, wall_time=memory.wall)
    after, _ = decide(memory.fleet, resumed, now, replace(rules, stagger=0.0))
    return after


def _ends(memory: RecoveredState, config: Config, limits: Limits, resumed: tuple[Event, ...]) -> bool:
    """Whether the run ends within these limits alone: what the operator has set stands only of budgets among them."""
    run = memory.fleet.run
    run = replace(run, budgets={key: found for key, found in run.budgets.items() if key in limits})
    within = replace(memory, fleet=replace(memory.fleet, run=run))
    return _after(within, config, limits, resumed).run.finished is not None


def _retired(fleet: Fleet) -> tuple[Reason, ...]:
    agents = fleet.agents.values()
    return tuple(agent.reason for agent in agents) if all(agent.phase is Phase.RETIRED for agent in agents) else ()


def _raised(memory: RecoveredState, config: Config, resumed: tuple[Event, ...]) -> Limits:
    """The limits that are in the way, each doubled until it is not. They are added one after the other, so that all are
    found that have to be raised. A target cannot be doubled: it is removed."""
    within: Limits = {}
    raised: Limits = {}
    if _ends(memory, config, within, resumed):
        return raised
    budgets = memory.fleet.run.budgets
    # The journal holds them as 15.0, and task.yaml has 15.
    set_since = {key: exact(key, found.limit) for key, found in budgets.items() if found.limit is not None}
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
