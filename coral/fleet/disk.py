"""A disk that nothing can be written to: what is under way goes on, nothing new is begun, nobody is blamed.

Whatever fails meanwhile counts as lost, and is done once more when the disk can be used again.
"""

from dataclasses import replace

from coral.fleet import events as on
from coral.fleet.agents import stalls
from coral.fleet.process_key import grade_in, job_in
from coral.fleet.transaction import Transaction

_UNPROVEN = (on.Outcome.FAILED, on.Outcome.CRASHED)


def on_disk_checked(transaction: Transaction, disk_problem: str) -> None:
    before = transaction.run.disk_problem
    if not disk_problem:
        forgive(transaction)
    transaction.set_run(disk_problem=disk_problem)
    if disk_problem and not before:
        transaction.set_run(disk_problem_since=transaction.clock)
        transaction.alert(f"nothing new is begun, until the disk can be used again: {disk_problem}")
    elif before and not disk_problem:
        transaction.alert("the disk can be used again; the run goes on")


def forgive(transaction: Transaction) -> None:
    """The time in which nothing could be written is over, or somebody else looks after it."""
    if transaction.run.disk_problem:
        for name in transaction.agents:
            stalls.exclude_time(transaction, name)


def excused(event: on.Event, disk_problem: str) -> on.Event:
    """What counts instead of this event while something is lacking."""
    if not disk_problem:
        return event
    match event:
        case on.SpawnFailed(who=who, launch=launch) if (number := grade_in(who)) is not None:
            return on.Graded(number=number, launch=launch, outcome=on.Outcome.LOST)
        case on.SpawnFailed(who=who, launch=launch) if job_in(who) is None:
            return on.Exited(agent=who, launch=launch, ending=on.Ending.LOST)
        case on.Graded(outcome=outcome) if outcome in _UNPROVEN:
            return replace(event, outcome=on.Outcome.LOST)
        case on.Exited(ending=on.Ending.CRASHED):
            return replace(event, ending=on.Ending.LOST)
    return event
