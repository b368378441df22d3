"""What an agent is told of its jobs that have ended: one word of a bounded length, however many they are.

Whoever has seen the end of one itself is not told of it.
"""

from collections.abc import Collection
from dataclasses import replace

from coral.fleet.draft import Draft
from coral.fleet.interventions import ENDED
from coral.fleet.policy import MOST_ENDS, MOST_LAST
from coral.fleet.state import Agent, JobEnd, Owed


def owe(draft: Draft, agent: Agent, end: JobEnd) -> None:
    """Tell of it at a good moment, together with those that nobody was told of yet. What a launch was handed already
    stays as it is."""
    waiting = [each for each in agent.owed if each.ends and each.id not in agent.carried]
    if waiting:
        more = _with(waiting[-1], end)
        draft.set_agent(agent.name, owed=tuple(more if each.id == more.id else each for each in agent.owed))
        return
    due = draft.clock + draft.rules.max_defer
    owed = Owed(id=draft.next_owed_id(), name=ENDED, since=draft.clock, due=due, defers=True)
    draft.owe(agent.name, _with(owed, end))


def seen(draft: Draft, name: str, numbers: Collection[int]) -> None:
    """The agent has seen the ends of these jobs itself."""
    stays = []
    for owed in draft.agents[name].owed:
        ends = tuple(each for each in owed.ends if each.number not in numbers)
        if ends == owed.ends or owed.id in draft.agents[name].carried:
            stays.append(owed)
        elif ends:
            stays.append(replace(owed, ends=ends))
        else:
            draft.note("withdrawn", f"{owed.name} ({owed.id}) was seen", name)
    if stays != list(draft.agents[name].owed):
        draft.set_agent(name, owed=tuple(stays))


def words_of(owed: Owed) -> str:
    """All that it tells, the last that ended at the end."""
    before = f"{owed.earlier} jobs of yours ended before these; `coral job list` shows them." if owed.earlier else ""
    return "\n\n".join([*([before] if before else []), *(_words(each) for each in owed.ends)])


def _with(owed: Owed, end: JobEnd) -> Owed:
    ends = (*owed.ends, end)
    named, last = ends[-MOST_ENDS:], ends[-MOST_LAST:]
    short = tuple(each if each in last else replace(each, last=()) for each in named)
    return replace(owed, ends=short, earlier=owed.earlier + len(ends) - len(named))


def _words(end: JobEnd) -> str:
    lines = ["", "Its last lines:", "", *(f"    {line}" for line in end.last)] if end.last else []
    return "\n".join([end.said, *lines])
