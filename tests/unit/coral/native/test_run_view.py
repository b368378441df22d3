"""What the agent reads of a run, and what it does not read where it shares nothing."""

from native_agent import LocalAgent
from sample import attempt

from coral.native.memory import KnownAttempts
from coral.native.shared_skills import HandOver
from workspace.knowledge import create, write_note, write_skill


def test_an_agent_that_does_not_share_reads_no_attempts_of_others(agent: LocalAgent):
    for number in (1, 2):
        agent.store.publish(attempt(number, float(number)))
    assert set(agent.run_view().update(KnownAttempts()).best) == {"", "agent-1", "agent-2"}
    alone = agent.clone.parent / "alone"
    create(alone)
    (agent.clone / ".shared").unlink()
    (agent.clone / ".shared").symlink_to(alone)
    assert set(agent.run_view().update(KnownAttempts()).best) == {"", "agent-1"}


def test_a_hand_over_is_open_until_the_agents_own_note_gives_it_back(agent: LocalAgent):
    view, handed = agent.run_view(), HandOver("agent-2", 3)
    assert view.skills() == (None, ())
    write_skill(agent.shared, "tune-agent-2", handed.front("a is a guess"), "a is a guess")
    write_note(agent.shared, handed.note_of("agent-9"), {"title": "x", "author": "agent-9"}, "x")
    assert view.skills() == (None, (handed,))
    write_note(agent.shared, handed.note_of(view.agent), {"title": "x", "author": view.agent}, "x")
    assert view.skills() == (None, (HandOver("agent-2", 3, given_back=True),))
