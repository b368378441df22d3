"""The supervisor's own files and notices: what could not be written, what somebody else altered, and the alerts about
it.

While the disk cannot be written to, what runs goes on, nothing new starts, and no failure is anybody's fault: a failure
in that time counts as lost, and is tried again when the disk is usable.
"""

from dataclasses import replace
from typing import assert_never

from coral.fleet import actions as do, events as on, machine
from coral.fleet.agents import stalls
from coral.fleet.policy import LONGEST_WRITE_RETRY_SECONDS, WRITE_RETRY_SECONDS
from coral.fleet.process_key import grade_in, job_in
from coral.fleet.transaction import Transaction


def handle(transaction: Transaction, event: on.UpkeepEvent) -> None:
    match event:
        case on.RequestUnreadable(sender=sender, id=id, reason=reason):
            transaction.act(do.Answer(sender=sender, id=id, ok=False, message=f"cannot read the request: {reason}"))
        case on.Notified(id=id):
            undelivered = tuple(alert for alert in transaction.run.undelivered_alerts if alert.id != id)
            transaction.set_run(undelivered_alerts=undelivered)
        case on.Broken(item=item, reason=reason):
            transaction.alert(f"{item} was set aside: {reason}")
        case on.Restored(item=item, found=found, source=source):
            _report_restored(transaction, item, found, source)
        case on.RecordsDamaged(altered=altered, misindexed=misindexed):
            transaction.act(do.RestoreRecords(altered=altered, misindexed=misindexed))
        case on.HeartbeatsAltered(owner=owner):
            transaction.act(do.ShowHeartbeats(owner=owner))
            _report_restored(transaction, f"heartbeats/{owner}.yaml", "was altered", "the journal")
        case on.WriteFailed(depth=depth):
            if transaction.run.write_again_at is None:
                pause = min(WRITE_RETRY_SECONDS * 2 ** (depth - 1), LONGEST_WRITE_RETRY_SECONDS)
                transaction.set_run(write_again_at=transaction.clock + pause)
        case on.WatchFailed() | on.MachineChecked() | on.Slept() | on.ClockSet():
            machine.handle(transaction, event)
        case on.DiskChecked(problem=problem):
            _on_disk_checked(transaction, problem)
        case on.ClusterMeasured() | on.NodesExcluded() | on.AgentsClusterChecked():
            _on_cluster(transaction, event)
        case _:
            assert_never(event)


def write_again(transaction: Transaction) -> None:
    """Order the failed writes to be tried again once their pause is over: the disk may have space by now."""
    due = transaction.run.write_again_at
    if due is not None and transaction.clock >= due:
        write_again_now(transaction)


def write_again_now(transaction: Transaction) -> None:
    if transaction.run.write_again_at is not None:
        transaction.set_run(write_again_at=None)
        transaction.act(do.WriteAgain())


def _report_restored(transaction: Transaction, item: str, found: str, source: str) -> None:
    done = f"restored from {source}" if source else "that cannot be restored"
    transaction.alert(f"{item} {found}, though only the supervisor may change it; {done}")


_UNPROVEN = (on.Outcome.FAILED, on.Outcome.CRASHED)


def _on_disk_checked(transaction: Transaction, disk_problem: str) -> None:
    before = transaction.run.disk_problem
    if not disk_problem:
        exclude_time(transaction)
    transaction.set_run(disk_problem=disk_problem)
    if disk_problem and not before:
        transaction.set_run(disk_problem_since=transaction.clock)
        transaction.alert(f"nothing new is begun, until the disk can be used again: {disk_problem}")
    elif before and not disk_problem:
        write_again_now(transaction)
        transaction.alert("the disk can be used again; the run continues")


def exclude_time(transaction: Transaction) -> None:
    """Take the time in which the disk could not be written to off every agent's no-progress timer."""
    if transaction.run.disk_problem:
        for name in transaction.agents:
            stalls.exclude_time(transaction, name)


def _on_cluster(
    transaction: Transaction, event: on.ClusterMeasured | on.NodesExcluded | on.AgentsClusterChecked
) -> None:
    match event:
        case on.ClusterMeasured(capacity=capacity):
            transaction.set_run(cluster_capacity=capacity)
        case on.NodesExcluded(nodes=nodes):
            for node in sorted(nodes.keys() - transaction.run.excluded_nodes.keys()):
                transaction.alert(f"a node of the cluster gets no grade for a while: {node}: {nodes[node]}")
            transaction.set_run(excluded_nodes=nodes)
        case on.AgentsClusterChecked(problem=problem):
            _on_agents_cluster_checked(transaction, problem)
        case _:
            assert_never(event)


def _on_agents_cluster_checked(transaction: Transaction, problem: str) -> None:
    """Tell the operator why launches do not begin. They wait for the cluster by themselves."""
    before = transaction.run.agents_cluster_problem
    transaction.set_run(agents_cluster_problem=problem)
    if problem and not before:
        transaction.alert(f"launches on the cluster begin when it can be used again: {problem}")
    elif before and not problem:
        transaction.alert("the cluster that agents run on can be used again")


def without_blame(event: on.Event, disk_problem: str) -> on.Event:
    """Return the event as it is to be handled while the disk cannot be written to: a failure that the disk may have
    caused becomes a lost grade or a lost launch. With an empty `disk_problem`, the event itself."""
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
