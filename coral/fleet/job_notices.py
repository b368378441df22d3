"""What an agent is told of its jobs that have ended: one word of a bounded length, however many they are.

Whoever has seen the end of one itself is not told of it.
"""

from collections.abc import Collection
from dataclasses import replace

from coral.fleet.agent_state import Agent, JobEnd, PendingMessage
from coral.fleet.messages import ENDED
from coral.fleet.policy import MAX_ENDS, MAX_LAST
from coral.fleet.transaction import Transaction


def queue_notice(transaction: Transaction, agent: Agent, end: JobEnd) -> None:
    """Tell of it at a good moment, together with those that nobody was told of yet. What a launch was handed already
    stays as it is."""
    waiting = [message for message in agent.pending_messages if message.job_ends and message.id not in agent.in_flight]
    if waiting:
        more = _with(waiting[-1], end)
        transaction.set_agent(
            agent.name,
            pending_messages=tuple(more if message.id == more.id else message for message in agent.pending_messages),
        )
        return
    due = transaction.clock + transaction.rules.max_defer
    owed = PendingMessage(id=transaction.next_message_id(), name=ENDED, since=transaction.clock, due=due, defers=True)
    transaction.queue_message(agent.name, _with(owed, end))


def mark_delivered(transaction: Transaction, name: str, numbers: Collection[int]) -> None:
    """The agent has seen the ends of these jobs itself."""
    stays = []
    for owed in transaction.agents[name].pending_messages:
        ends = tuple(end for end in owed.job_ends if end.number not in numbers)
        if ends == owed.job_ends or owed.id in transaction.agents[name].in_flight:
            stays.append(owed)
        elif ends:
            stays.append(replace(owed, job_ends=ends))
        else:
            transaction.log("withdrawn", f"{owed.name} ({owed.id}) was seen", name)
    if stays != list(transaction.agents[name].pending_messages):
        transaction.set_agent(name, pending_messages=tuple(stays))


def words_of(owed: PendingMessage) -> str:
    """All that it tells, the last that ended at the end."""
    before = (
        f"{owed.earlier_job_ends} jobs of yours ended before these; `coral job list` shows them."
        if owed.earlier_job_ends
        else ""
    )
    return "\n\n".join([*([before] if before else []), *(_words(end) for end in owed.job_ends)])


def _with(owed: PendingMessage, end: JobEnd) -> PendingMessage:
    ends = (*owed.job_ends, end)
    named, last = ends[-MAX_ENDS:], ends[-MAX_LAST:]
    short = tuple(end if end in last else replace(end, last_lines=()) for end in named)
    return replace(owed, job_ends=short, earlier_job_ends=owed.earlier_job_ends + len(ends) - len(named))


def _words(end: JobEnd) -> str:
    lines = ["", "Its last lines:", "", *(f"    {line}" for line in end.last_lines)] if end.last_lines else []
    return "\n".join([end.outcome, *lines])
