"""While the disk cannot be written to, what runs goes on, nothing new starts, and no failure is anybody's fault.

A failure in that time counts as lost, and is tried again when the disk is usable.
"""

from dataclasses import replace

from coral.fleet import events as on
from coral.fleet import upkeep
from coral.fleet.agents import stalls
from coral.fleet.process_key import grade_in, job_in
from coral.fleet.transaction import Transaction

_UNPROVEN = (on.Outcome.FAILED, on.Outcome.CRASHED)


def on_disk_checked(transaction: Transaction, disk_problem: str) -> None:
    before = transaction.run.disk_problem
    if not disk_problem:
        exclude_time(transaction)
    transaction.set_run(disk_problem=disk_problem)
    if disk_problem and not before:
        transaction.set_run(disk_problem_since=transaction.clock)
        transaction.alert(f"nothing new is begun, until the disk can be used again: {disk_problem}")
    elif before and not disk_problem:
        upkeep.write_again_now(transaction)
        transaction.alert("the disk can be used again; the run continues")


def exclude_time(transaction: Transaction) -> None:
    """Take the time in which nothing could be written off every agent's no-progress timer."""
    if transaction.run.disk_problem:
        for name in transaction.agents:
            stalls.exclude_time(transaction, name)


def without_blame(event: on.Event, disk_problem: str) -> on.Event:
    """The event to handle instead of this one while the disk cannot be written to."""
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
