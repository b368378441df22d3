"""What is kept while the journal cannot be written does not grow with the time that takes, and says the same."""

from coral.fleet import events as on
from coral.fleet.agent_state import Spent
from coral.supervisor.degraded import kept


def heard(reply: str = "", agent: str = "ann", launch: int = 1, busy: str = "") -> on.OutputSeen:
    return on.OutputSeen(agent=agent, launch=launch, session="s", activity=busy, reply=reply)


def used(tokens: int, session: str = "s") -> on.Used:
    return on.Used(agent="ann", launch=1, figure=Spent(input=tokens), session=session)


def test_of_what_is_said_again_and_again_the_last_word_is_kept() -> None:
    events: list[on.Event] = []
    for number in range(1000):
        events = kept([*events, heard(f"step {number}"), used(number), heard(agent="ben", busy="tool")])
    assert events == [heard("step 999"), used(999), heard(agent="ben", busy="tool")]


def test_answers_launches_and_conversations_are_told_apart() -> None:
    events = [
        heard("All is well.\nHEARTBEAT_OK"),
        heard("ALERT: the disk is full"),
        heard("ALERT: and it stays so"),
        heard("going on"),
        heard("going on", launch=2),
        used(7),
        used(3, session="another"),
    ]
    assert kept(events) == events


def test_everything_else_is_kept_in_its_order() -> None:
    exited = on.Exited(agent="ann", launch=1, ending=on.Ending.CLEAN)
    failed = on.SpawnFailed(who="ben", launch=4, reason="no such program")
    assert kept([heard("a"), exited, heard("b", launch=2), failed, failed, heard("c", launch=2)]) == [
        heard("a"),
        exited,
        failed,
        failed,
        heard("c", launch=2),
    ]
