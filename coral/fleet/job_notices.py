"""Notices of ended jobs: an agent gets one message of bounded length, however many of its jobs have ended.

A job whose end the agent has seen itself is left out.
"""

from collections.abc import Collection
from dataclasses import replace

from coral.fleet.agent_state import Agent, JobEnd, PendingMessage
from coral.fleet.messages import ENDED
from coral.fleet.policy import MAX_NOTICE_JOBS, MAX_NOTICE_OUTPUTS
from coral.fleet.transaction import Transaction


def queue_notice(transaction: Transaction, agent: Agent, end: JobEnd) -> None:
    """Add a job's end to the notice that waits for its agent, or queue a new one. A notice that the current launch was
    given already stays as it is."""
    waiting = [message for message in agent.pending_messages if message.job_ends and message.id not in agent.in_flight]
    if waiting:
        longer = _with(waiting[-1], end)
        transaction.set_agent(
            agent.name,
            pending_messages=tuple(
                longer if message.id == longer.id else message for message in agent.pending_messages
            ),
        )
        return
    due = transaction.clock + transaction.rules.max_defer
    message = PendingMessage(
        id=transaction.next_message_id(), name=ENDED, since=transaction.clock, due=due, defers=True
    )
    transaction.queue_message(agent.name, _with(message, end))


def mark_delivered(transaction: Transaction, name: str, numbers: Collection[int]) -> None:
    """Leave the ends of these jobs out of what waits for the agent: it has seen them itself."""
    stays = []
    for message in transaction.agents[name].pending_messages:
        ends = tuple(end for end in message.job_ends if end.number not in numbers)
        if ends == message.job_ends or message.id in transaction.agents[name].in_flight:
            stays.append(message)
        elif ends:
            stays.append(replace(message, job_ends=ends))
        else:
            transaction.log("withdrawn", f"{message.name} ({message.id}) was seen", name)
    if stays != list(transaction.agents[name].pending_messages):
        transaction.set_agent(name, pending_messages=tuple(stays))


def _with(message: PendingMessage, end: JobEnd) -> PendingMessage:
    ends = (*message.job_ends, end)
    named, last = ends[-MAX_NOTICE_JOBS:], ends[-MAX_NOTICE_OUTPUTS:]
    short = tuple(end if end in last else replace(end, last_lines=()) for end in named)
    return replace(message, job_ends=short, earlier_job_ends=message.earlier_job_ends + len(ends) - len(named))
