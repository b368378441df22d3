"""The answer to `redirect`: another family, from the best attempt of the fleet."""

from dataclasses import replace
from pathlib import Path

from native_situations import FAMILIES, OBSERVATION, notes, situation, trial

from coral.native.answers.redirect import redirect
from coral.native.brain import SearchBrain
from coral.native.calls import Remember, Search
from coral.native.situation import Idle
from workspace.dead_ends import met_by
from workspace.notes import Note


def test_the_family_is_left_and_the_next_search_starts_from_the_best():
    tried = [trial(number, "rows", 1.4, 1.3) for number in (4, 6, 8)]
    calls = redirect(situation(*tried))
    (redirection,) = [call.redirection for call in calls if isinstance(call, Remember)]
    assert redirection.start == 9
    assert redirection.family in FAMILIES
    assert redirection.family != "rows"
    assert notes(calls) == []  # from three starts, one attempt each
    next_call = SearchBrain().reason(situation(*tried, redirection=redirection), Idle())[0]
    assert isinstance(next_call, Search)
    assert (next_call.family, next_call.start) == (redirection.family, 9)


def test_a_family_that_gains_nothing_from_a_start_is_a_dead_end_there():
    tried = [trial(number, "rows", 1.4, 1.3, start=3) for number in (4, 6, 8)]
    (note,) = notes(redirect(situation(trial(2, "rows", 1.4, 1.3), *tried)))
    assert (note.kind, note.topics, note.attempts) == ("dead-end", ("rows", "#3"), (4, 6, 8))
    assert note.claims in FAMILIES
    assert note.claims != "rows"
    assert met_by(note.topics, "rows from #3: 2 of 8 values differ", lambda: ([], ""))
    assert not met_by(note.topics, "rows from #9: 2 of 8 values differ", lambda: ([], ""))
    assert "#9" in note.body
    gained = trial(9, "rows", 1.4, 1.5, start=3)
    assert notes(redirect(situation(*tried, gained, trial(10, "rows", 1.4, 1.3, start=3)))) == []


def test_where_the_lead_was_found_is_no_dead_end():
    """Its gain is within the noise, so its verdict is no improvement."""
    tried = [trial(number, "rows", 1.4, 1.3, start=3) for number in (4, 6)]
    lead = trial(9, "rows", 1.4, 1.41, start=3, verdict="tied")
    assert notes(redirect(situation(*tried, lead))) == []


def test_who_finds_the_dead_end_of_another_adds_to_its_note():
    tried = [trial(number, "rows", 1.4, 1.3, start=3) for number in (4, 6, 8)]
    (first,) = notes(redirect(situation(*tried)))
    other = Note(Path("x"), first.name, first.title, "agent-2", "2030-01-01T12:00:00.000Z", "dead-end", (5, 7), "b")
    (note,) = notes(redirect(situation(*tried, observation=replace(OBSERVATION, notes=(other,)))))
    assert (note.name, note.attempts) == (first.name, (4, 5, 6, 7, 8))
    assert "#4, #5, #6, #7 and #8" in note.title


def test_without_a_graded_attempt_there_is_nothing_to_note():
    assert notes(redirect(situation())) == []


def test_the_family_that_is_left_is_not_chosen_even_where_it_was_tried_least():
    families = ((2, "shake"), (4, "shake"), (6, "shake"), (8, "rows"))
    tried = [trial(number, family, 1.4, 1.3) for number, family in families]
    calls = redirect(situation(*tried, observation=replace(OBSERVATION, families=("rows", "shake"))))
    assert [call.redirection.family for call in calls if isinstance(call, Remember)] == ["shake"]


def claim(agent: str, family: str) -> Note:
    name = f"of-{agent}"
    return Note(Path(name), name, "t", agent, "2030-01-01T12:00:00.000Z", "note", (), "b", claims=family)


def test_a_family_that_another_agent_has_taken_up_is_chosen_only_if_there_is_no_other():
    def chosen(*notes: Note) -> str:
        there = replace(OBSERVATION, families=("rows", "shake", "cross"), notes=notes)
        calls = redirect(situation(*[trial(number, "rows", 1.4, 1.3) for number in (4, 6)], observation=there))
        (redirection,) = [call.redirection for call in calls if isinstance(call, Remember)]
        return redirection.family

    first = chosen()
    (other,) = {"shake", "cross"} - {first}
    assert chosen(claim("agent-2", first)) == other
    assert chosen(claim("agent-1", first)) == first
    assert chosen(claim("agent-2", first), claim("agent-3", other)) == first
