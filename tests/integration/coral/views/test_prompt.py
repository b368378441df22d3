"""A whole prompt of a real run."""

from real_runs import context_of

from coral.fleet.actions import Spawn
from coral.fleet.agent_state import Agent, PendingMessage
from coral.fleet.messages import MESSAGE
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.run_state import Fleet
from coral.views.prompt import MAX_CHARACTERS, launch_prompt

RESUMED = Reason(ReasonKind.RESUMED)


def test_a_prompt_is_no_longer_than_a_program_can_take(start) -> None:
    run_context = context_of(start(["hang"], supervise=False).layout)
    fleet = Fleet(agents={"agent-1": Agent(name="agent-1")})
    owed = tuple(
        PendingMessage(id=f"h{number}", name=MESSAGE, since=0.0, due=0.0, prompt=f"word {number} " + "x" * 19_900)
        for number in range(25)
    )
    few, many = (
        Spawn(agent="agent-1", launch=2, session="s", messages=part, last_result_seen=0, reason=RESUMED)
        for part in (owed[:10], owed)
    )
    text, warnings = launch_prompt(run_context, fleet, "agent-1", few, 0.0)
    assert (len(text) > 190_000, text.count("left out"), warnings) == (True, 0, [])
    text, warnings = launch_prompt(run_context, fleet, "agent-1", many, 0.0)
    assert MAX_CHARACTERS * 0.8 < len(text) < MAX_CHARACTERS + 25 * 200
    assert text.count("more characters of this section are left out.]") == 25
    assert warnings == ["the prompt would be too long: the longest of its sections are cut"]
