"""What a prompt says of a budget, and how a prompt that is too long is cut."""

from dataclasses import replace
from itertools import combinations

import pytest
from sample import attempt

from attempts.record import Attempt, Verdict
from coral.codec import decode, encode
from coral.fleet.agent_state import Agent, PendingMessage, Spent
from coral.fleet.rules import Allowance, Rules
from coral.fleet.run_state import Fleet, Run, SetLimit
from coral.views.fleet_view import spent_of
from coral.views.prompt import LEAST_SHOWN, next_step, sections_of, truncate
from coral.views.prompt_context import attempt_data, budget
from coral.views.scale import Scale
from heartbeats.example import example_context
from heartbeats.render import render_file


def test_once_some_of_a_budget_is_gone_not_all_of_it_is_left() -> None:
    left = [budget(Rules(budget_seconds=180.0), Fleet(), clock)["text"] for clock in (0.0, 2.0, 70.0, 500.0)]
    assert left == [f"{text} of 3 min are left" for text in ("3 min", "2 min 58 s", "1 min 50 s", "0 s")]


def test_of_a_budget_at_most_so_much_is_left_where_some_use_is_not_known() -> None:
    names = ("ann", "ben", "cid", "dan", "eve")
    rules = Rules(budget_money=5.0, accounts=dict.fromkeys(names, "claude"), own=Allowance(money=3.0))
    quiet = {name: Agent(name=name, launch=1) for name in names[1:]}
    told = Agent(name="ann", launch=1, spent=Spent(input=10, money=1.0))
    fleet = Fleet(agents={"ann": told, **quiet}, run=Run(spent=told.spent))
    left = "at most $4.00 of $5.00 are left to the fleet (what ben, cid, dan and eve used is not known)"
    assert budget(rules, fleet, 0.0, "ann")["lines"] == [left, "$2.00 of $3.00 of your own are left"]
    assert budget(rules, fleet, 0.0, "ben")["lines"][1] == "at most $3.00 of $3.00 of your own are left"
    known = Fleet(agents={"ann": told}, run=Run(spent=told.spent))
    assert budget(rules, known, 0.0)["lines"] == ["$4.00 of $5.00 are left to the fleet"]
    unpriced = Agent(name="ann", launch=1, spent=Spent(input=10))
    lines = budget(rules, Fleet(agents={"ann": unpriced}, run=Run(spent=unpriced.spent)), 0.0, "ann")["lines"]
    assert [line.startswith("at most ") for line in lines] == [True, True], "what its tokens cost is not known"
    without = replace(rules, budget_money=None)
    assert budget(without, fleet, 0.0)["text"] == "at least 10 tokens, at least $1.00 used so far"


def test_what_the_operator_has_set_is_told_in_whole_attempts_after_a_resume_too() -> None:
    """The journal gives every limit as a float."""
    keys = ("attempts", "plateau", "per_agent.attempts")
    run = decode(Run, encode(Run(budgets={key: SetLimit(limit=100, base=None) for key in keys})))
    assert budget(Rules(), Fleet(agents={"ann": Agent(name="ann")}, run=run), 0.0, "ann")["lines"] == [
        "100 of 100 attempts are left to the fleet",
        "100 of your own 100 attempts are left",
        "the run ends after 100 attempts without a new best (0 so far)",
    ]


@pytest.mark.parametrize(("plateau", "says"), [(1, "1 attempt without"), (2, "2 attempts without")])
def test_a_plateau_of_one_attempt_is_told_in_the_singular(plateau: int, says: str) -> None:
    assert says in budget(Rules(plateau=plateau), Fleet(), 0.0)["text"]


def test_of_tokens_that_are_known_no_more_is_said_to_be_left_because_their_cost_is_not() -> None:
    rules = Rules(budget_money=5.0, budget_tokens=100, accounts={"ann": "plan"}, own=Allowance(money=3.0, tokens=50))
    ann = Agent(name="ann", launch=1, spent=Spent(input=10))
    assert budget(rules, Fleet(agents={"ann": ann}, run=Run(spent=ann.spent)), 0.0, "ann")["lines"] == [
        "at most $5.00 of $5.00 are left to the fleet (what ann used is not known)",
        "90 of 100 tokens are left to the fleet",
        "at most $3.00 of $3.00 of your own are left",
        "40 of 50 tokens of your own are left",
    ]


def test_tokens_are_not_known_where_a_program_reports_its_cost_alone() -> None:
    rules = Rules(budget_money=5.0, budget_tokens=100, accounts={"ann": "plan"})
    ann = Agent(name="ann", launch=1, spent=Spent(money=1.0))
    fleet = Fleet(agents={"ann": ann}, run=Run(spent=ann.spent))
    assert budget(rules, fleet, 0.0)["lines"] == [
        "$4.00 of $5.00 are left to the fleet",
        "at most 100 of 100 tokens are left to the fleet (what ann used is not known)",
    ]
    assert spent_of(ann.spent) == {"tokens": None, "input": None, "cached": None, "output": None, "money": 1.0}


FIRST_DECIDES = ("land", "redirect", "consolidate", "reflect", "checkpoint")


def sections(*lengths: int) -> list[dict[str, str]]:
    return [{"name": f"s{place}", "id": "", "text": "x" * length} for place, length in enumerate(lengths)]


def test_what_fits_stays_as_it_is_and_each_keeps_its_beginning_however_many_there_are() -> None:
    assert truncate(sections(1000, 2000), 3000) == sections(1000, 2000)
    assert truncate([], 0) == []
    found = truncate(sections(*[3000] * 40), 100)
    assert [section["text"][: LEAST_SHOWN + 2] for section in found] == ["x" * LEAST_SHOWN + "\n\n"] * 40


def test_only_the_longest_lose_anything_and_they_say_how_much() -> None:
    short, one, other = truncate(sections(900, 50_000, 90_000), 20_900)
    assert short == sections(900)[0]
    kept = one["text"].count("x")
    assert other["text"].count("x") == kept
    assert 8_000 < kept <= 10_000
    assert other["text"].endswith(f"{90_000 - kept} more characters of this section are left out.]")
    assert other["name"] == "s2"


def message(id: str, name: str = "reflect", **given: object) -> PendingMessage:
    return PendingMessage(id=id, name=name, since=0.0, due=0.0, **given)  # type: ignore[arg-type]


def test_a_message_that_had_no_answer_is_repeated_in_short_and_says_where_its_text_is() -> None:
    messages = (message("h1", handed_at=3), message("h2"), message("h3", "message", prompt="try rings", handed_at=3))
    sections, warnings = sections_of(messages, example_context())
    assert warnings == []
    assert [(section["name"], section["id"]) for section in sections] == [
        ("reflect", "h1"),
        ("reflect", "h2"),
        ("message", "h3"),
    ]
    again, whole, told = (section["text"] for section in sections)
    assert "../../../logs/agent-1/0003.prompt.md" in again
    assert "launch 3 was given it" in again
    assert len(again) < len(whole) / 3
    assert "try rings" not in told


TIED = attempt(9, 1.5, verdict=Verdict.TIED, against=4, delta=None)


@pytest.mark.parametrize(
    ("tried", "epoch", "copy_of"),
    [
        (TIED, 1, 4),
        (TIED, 2, None),
        (replace(TIED, delta=0.0), 1, None),
        (replace(TIED, verdict=Verdict.WORSE), 1, None),
    ],
)
def test_an_attempt_with_the_files_of_another_is_told_as_one_more_grade_of_that(
    tried: Attempt, epoch: int, copy_of: int | None
) -> None:
    data = attempt_data(tried, Scale(), epoch)
    assert data["copy_of"] == copy_of
    text = render_file("reflect", {**example_context(), "attempt": data, "results": [data]})
    assert ("#9 has the same files as #4: it is one more grade of that one" in text) == (copy_of is not None)


TOGETHER = [names for count in (1, 2, 3, 4, 5) for names in combinations(FIRST_DECIDES, count)]


@pytest.mark.parametrize("names", TOGETHER, ids="-".join)
def test_of_several_heartbeats_one_says_what_the_next_attempt_is(names: tuple[str, ...]) -> None:
    messages = tuple(message(f"h{place}", name) for place, name in enumerate(reversed(names)))
    context = {**example_context(), "next_step": next_step(messages)}
    sections, _ = sections_of(messages, context)
    assert [section["name"] for section in sections if "coral eval -m" in section["text"]] == []
    following = render_file("_next", {**context, "step": names[0]})
    for frame in ("resume", "fresh", "start"):
        text = render_file(frame, {**context, "sections": sections})
        assert text.count(following) == text.count("**Next attempt.**") == text.count("coral eval -m") == 1


def test_a_prompt_of_the_user_decides_no_next_step() -> None:
    assert next_step((message("h1", "redirect", prompt="Think of rings."), message("h2"))) == "reflect"
    assert next_step((message("h1", "mine", prompt="Think of rings."),)) == ""
