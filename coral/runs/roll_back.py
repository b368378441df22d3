"""Saves a run whose journal is damaged: it goes on from the last good state, and what came after is applied again as
far as it is known for sure.

A damaged journal must not be a way to forge records. What later lines of the journal say is trusted as the journal is.
Records that only the ledger has are taken if agents could not write to it, else only with the operator's agreement;
files in `attempts/`, where agents may write, are never taken.

A journal may also end too early: a disk lost its last lines, or the folder was copied while the run went on. No line of
it is wrong then, but the run has done things that it does not know of.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from attempts.record import Attempt
from coral.agent_setup.own_user import sealed_for
from coral.agent_setup.roster import Roster
from coral.config.load import load_frozen
from coral.fleet.events import Moment, RolledBack
from coral.journal.damage import KEPT, Damage, examine, roll_back, without_end
from coral.journal.fold import RecoveredState, fold
from coral.journal.lost_lines import LostLines, read_lost
from coral.processes import process
from coral.processes.launch_tags import tags_of
from coral.processes.process_tree import Identity, ProcessTable, members, unidentified
from coral.records.ledger_file import published_since
from coral.views.report import alerts_in
from workspace.layout import Layout, folder_of_runs
from workspace.seal import Level

MOST_ALERTS = 1000  # by which the timeline can be ahead of the journal; more are forged: agents may write there
_LAUNCH = re.compile("[0-9]{4,9}")  # its number, in the names of its files
LATEST = 8  # launches of an agent whose processes are looked for by their tag alone


@dataclass(frozen=True, slots=True)
class Rollback:
    """The plan to save a run. `unsure`: the numbers of the records that only the ledger has, where agents could write
    to it."""

    damage: Damage
    lost: LostLines
    note: RolledBack
    unsure: tuple[int, ...]


def planned(layout: Layout) -> Rollback | None:
    """Make the plan to save a run; None if its journal can be read to its end. CoralError if nothing of the journal can
    be trusted."""
    damage = examine(layout.journal) or _missing_end(layout)
    if damage is None:
        return None
    lost = read_lost(damage.lost)
    run = damage.state.fleet.run
    ledger = {attempt.number: attempt for attempt in published_since(layout.ledger, run.order)}
    by_order = {attempt.order: attempt for attempt in {**ledger, **lost.attempts}.values() if attempt.order > run.order}
    attempts = tuple(by_order[order] for order in sorted(by_order))
    only_in_ledger = tuple(attempt.number for attempt in attempts if attempt.number not in lost.attempts)
    unsure = only_in_ledger if only_in_ledger and not _are_sealed(layout) else ()
    return Rollback(damage, lost, _note(layout, damage, lost, attempts), unsure)


def carry_out(layout: Layout, plan: Rollback) -> None:
    """Carry out a plan. For the holder of the run's lock. OSError if the disk does not allow it: then nothing has
    changed, except that processes that the saved state does not know have ended."""
    _end_unknown(layout, plan)
    state = plan.damage.state
    now = Moment(run_time=max(state.clock, plan.lost.at), wall_time=plan.lost.wall or state.wall)
    roll_back(layout.journal, plan.damage, plan.note, now)
    _release_pins(layout, plan.note.counts["next_number"])


def end_processes(layout: Layout) -> int:
    """End all processes that are known to have been started in a run whose journal is damaged. For the holder of the
    run's lock. Returns how many launches had processes. CoralError if nothing of the journal can be trusted."""
    plan = planned(layout)
    found = layout.root.stat()
    if plan is None or plan.damage.state.folder != (found.st_dev, found.st_ino):
        return 0
    tags, ended = tags_of(layout), 0
    for who, (number, identity) in plan.damage.state.identities.items():
        tag = tags.of(who, number)
        ended += bool(members(identity, tag))
        process.kill_and_wait(identity, tag)
    return ended + _end_unknown(layout, plan)


def _missing_end(layout: Layout) -> Damage | None:
    """Return the damage of a journal that ends before what the run has done; None if it knows everything. Whatever is
    done was written to the journal before."""
    state = fold(layout.journal)
    why = next(_unknown_to(layout, state), "") if state.fleet.run.opened else ""
    return without_end(layout.journal, why) if why else None


def _unknown_to(layout: Layout, state: RecoveredState) -> Iterator[str]:
    """Yield in words what was done that a state does not know of. What an earlier rollback noted is known: its
    supervisor may have died before it decided."""
    run, noted = state.fleet.run, state.rolled_back
    order = max((run.order, *(attempt.order for attempt in noted.attempts)) if noted else (run.order,))
    next_number = max(run.next_number, noted.counts.get("next_number", 0) if noted else 0)
    for name, agent in state.fleet.agents.items():
        last = max(_launches(layout, LostLines(), name), default=0)
        if last > max(agent.launch, noted.launches.get(name, 0) if noted else 0):
            yield f"it ends before launch {last} of {name}"
    for attempt in published_since(layout.ledger, order):
        yield f"it ends before #{attempt.number} was published"
    for path in _pins_from(layout, next_number):
        yield f"it ends before #{path.name} was submitted"


def _note(layout: Layout, damage: Damage, lost: LostLines, attempts: tuple[Attempt, ...]) -> RolledBack:
    fleet = damage.state.fleet
    published = {attempt.number for attempt in attempts}
    accepted = tuple(lost.accepted[number] for number in sorted(lost.accepted))
    numbers = [fleet.run.next_number, *(number + 1 for number in (*published, *lost.accepted))]
    alerts = max((alert["number"] for alert in alerts_in(layout.events)), default=0)
    counts = {**lost.counts, "next_number": max(*numbers, lost.counts.get("next_number", 0))}
    if alerts <= max(fleet.run.alert_count, counts.get("alert_count", 0)) + MOST_ALERTS:
        counts["alert_count"] = max(alerts, counts.get("alert_count", 0))
    return RolledBack(
        file=damage.path.name, line=damage.line, why=damage.why, lines=len(damage.lost) + damage.unreadable,
        kept=f"private/journal/{KEPT}*", back_to=damage.state.wall, attempts=attempts, accepted=accepted,
        launches={name: max(_launches(layout, lost, name), default=0) for name in {**fleet.agents, **lost.members}},
        sessions=lost.sessions, spent=lost.spent, meters=lost.meters, members=lost.members, counts=counts,
        orders=lost.orders, budgets=lost.budgets, is_held=lost.is_held,
    )  # fmt: skip


def _launches(layout: Layout, lost: LostLines, agent: str) -> Iterator[int]:
    """Yield the numbers of the launches of an agent that the journal's later lines or its logs name."""
    yield from lost.started.get(agent, {})
    for path in layout.logs(agent).glob("[0-9]*.*"):
        if _LAUNCH.fullmatch(number := path.name.partition(".")[0]):
            yield int(number)


def _are_sealed(layout: Layout) -> bool:
    """Return whether agents cannot write to the ledger."""
    config = load_frozen(layout.task_file)
    return sealed_for(config, Roster(config), folder_of_runs(layout))[0] is not Level.NONE


def _end_unknown(layout: Layout, plan: Rollback) -> int:
    """End the processes of launches that the saved state does not know: the fleet would start others beside them.
    Returns how many launches had some."""
    found = layout.root.stat()
    if plan.damage.state.folder != (found.st_dev, found.st_ino):
        return 0  # a copy: its processes are the original's
    tags = tags_of(layout)
    known, table, ended = plan.damage.state.identities, ProcessTable(), 0
    for who, number, identity in _unknown(plan):
        if known.get(who, (0, None))[0] != number:
            tag = tags.of(who, number)
            ended += bool(members(identity, tag, table))
            process.kill_and_wait(identity, tag, table)
    return ended


def _unknown(plan: Rollback) -> Iterator[tuple[str, int, Identity]]:
    """Yield the launches that later lines name, with their identities, and the last ones of each agent, which can be
    found by their tag alone."""
    for who, launches in plan.lost.started.items():
        yield from ((who, number, identity) for number, identity in launches.items())
    for name, last in plan.note.launches.items():
        agent = plan.damage.state.fleet.agents.get(name)
        for number in range(max(agent.launch if agent else 0, last - LATEST), last + 1):
            yield name, number, unidentified()


def _release_pins(layout: Layout, next_number: int) -> None:
    """Rename the references of commits whose attempts the run does not know any more, because their numbers are given
    again."""
    kept = layout.hub / "refs" / "lost"
    for path in _pins_from(layout, next_number):
        kept.mkdir(exist_ok=True)
        path.rename(_free(kept, path.name))


def _pins_from(layout: Layout, number: int) -> list[Path]:
    """Return the references of commits that were taken in under this number, or a higher one."""
    pins = layout.hub / "refs" / "attempts"
    found = list(pins.iterdir()) if pins.is_dir() else []
    return [path for path in found if path.name.isdecimal() and int(path.name) >= number]


def _free(folder: Path, name: str) -> Path:
    place = 1
    while (path := folder / f"{name}-{place}").exists():
        place += 1
    return path
