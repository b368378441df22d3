"""Catches up after a damaged journal: the fleet is as it was before the damage, and what is known of the lost time is
applied again, so that nothing counts twice, no number is given twice, and no agent runs twice.

An attempt that was published counts as it was published, with its heartbeats; a submission that was accepted is graded
again under its number. An agent that was added or moved is driven as it was last. What the operator has decided stays:
orders to agents, budgets, held grading. A launch that the fleet's state does not know was ended by the resume.
"""

from attempts.record import Attempt, Kind
from coral.fleet import events as on
from coral.fleet.agent_state import LIVE
from coral.fleet.agents import launch_exit, live_budgets, membership, orders, spending
from coral.fleet.attempts import epochs, intake, settlement
from coral.fleet.policy import remember
from coral.fleet.run_state import FLEET
from coral.fleet.transaction import Transaction

NAMED = 8  # attempts in an alert


def on_rolled_back(transaction: Transaction, event: on.RolledBack) -> None:
    first = transaction.run.next_number
    for name, count in event.counts.items():
        transaction.set_run(**{name: max(count, getattr(transaction.run, name))})
    last = transaction.run.next_number
    for name, member in event.members.items():
        membership.restore(transaction, name, member)
    _raise_use(transaction, event)
    live_budgets.restore(transaction, event.budgets)
    if event.is_held is not None:
        transaction.set_run(is_grading_held=event.is_held)
    for name in list(transaction.agents):
        _end_forgotten_launch(transaction, name, event)
        if name in event.orders:
            orders.restore(transaction, name, event.orders[name])
    for attempt in event.attempts:
        if attempt.order > transaction.run.order:
            _restore_attempt(transaction, attempt, is_new=attempt.number >= first)
    published = {attempt.number for attempt in event.attempts}
    for accepted in event.accepted:
        if accepted.number >= first and accepted.number not in published:
            transaction.set_run(next_number=accepted.number)
            intake.on_submitted(transaction, accepted.submission)
    transaction.set_run(next_number=last)
    transaction.alert(_text(event))


def _restore_attempt(transaction: Transaction, attempt: Attempt, *, is_new: bool) -> None:
    if attempt.kind is Kind.BASELINE:
        transaction.set_run(next_number=attempt.number)
        epochs.on_task_changed(transaction, on.TaskChanged(baseline=attempt))
        return
    agent = transaction.agents.get(attempt.agent)
    if is_new and attempt.submission and agent is not None:
        recent = remember(agent.recent_submissions, attempt.submission)
        transaction.set_agent(agent.name, submitted=agent.submitted + 1, recent_submissions=recent)
    settlement.restore(transaction, attempt)


def _raise_use(transaction: Transaction, event: on.RolledBack) -> None:
    for name, spent in event.spent.items():
        if name == FLEET:
            transaction.set_run(spent=spending.highest(transaction.run.spent, spent))
        elif name in transaction.agents:
            transaction.set_agent(name, spent=spending.highest(transaction.agents[name].spent, spent))
    for name, meter in event.meters.items():
        if name in transaction.agents:
            transaction.set_agent(name, meter=meter)


def _end_forgotten_launch(transaction: Transaction, name: str, event: on.RolledBack) -> None:
    """Set an agent's launch and session to the last ones that it had in the lost time, so that its next launch follows
    them."""
    agent = transaction.agents[name]
    last = event.launches.get(name, agent.launch)
    if last > agent.launch:
        if agent.phase in LIVE:
            lost = on.Exited(agent=name, launch=agent.launch, ending=on.Ending.LOST)
            launch_exit.on_exited(transaction, lost)
        transaction.set_agent(name, launch=last)
    if name in event.sessions:
        transaction.set_agent(name, session=event.sessions[name])


def _text(event: on.RolledBack) -> str:
    numbers = sorted(
        {*(attempt.number for attempt in event.attempts), *(accepted.number for accepted in event.accepted)}
    )
    more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
    again = f"; taken again: {', '.join(f'#{number}' for number in numbers[:NAMED])}{more}" if numbers else ""
    where = f"the journal was damaged at line {event.line} of {event.file} ({event.why})"
    lost = f"{event.lines} of its lines are lost, since {event.back_to}" if event.lines else "nothing is lost"
    return f"{where}: the run goes on from the last good state; {lost}{again}; the file is kept as {event.kept}"
