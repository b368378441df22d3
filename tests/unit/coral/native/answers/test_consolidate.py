"""The answer to `consolidate`: conclusions with evidence, and a skill that a search can load."""

from dataclasses import replace

from native_situations import OBSERVATION, history, known, notes, said, situation
from sample import attempt

from attempts.record import Direction, Verdict
from coral.native.answers.consolidate import consolidate, evidence_by_family
from coral.native.calls import WriteSkill
from coral.native.memory import KnownAttempts
from coral.native.shared_skills import SearchSkill, read_skill
from workspace.knowledge import list_skills, write_note, write_skill
from workspace.notes import find_notes


def test_a_synthesis_draws_conclusions_and_a_skill_carries_them(tmp_path):
    calls = consolidate(situation())
    (note,) = notes(calls)
    assert note.kind == "synthesis"
    assert note.name == "synthesis"  # the next one rewrites it
    assert note.title.startswith("Synthesis up to #9: ")  # numbers count confirmations, too
    assert set(note.attempts) == set(range(1, 10))
    parts = ("Conclusions", "Gaps", "Next")
    assert [line[3:] for line in note.body.splitlines() if line.startswith("## ")] == list(parts)
    for words in (
        "- Beyond the seed, these gain over their start: `rows` (2 of 3, last #3 and #5), `cross` (1 of 1, last #9).",
        "- These do not, or no more: `shake` (0 of 3, tried last in #7 and #8).",
        "- Beyond the seed, nobody has tried `descent`, `scatter`.",
        "2. `descent` from #9: tried least.",
    ):
        assert words in note.body, words
    (skill,) = [call for call in calls if isinstance(call, WriteSkill)]
    write_skill(tmp_path, skill.name, skill.front, skill.body)
    (written,) = list_skills(tmp_path)
    stats = {"rows": (3.0, 2.0), "cross": (1.0, 1.0), "shake": (3.0, 0.0)}
    assert read_skill(written) == SearchSkill("agent-1", 9, stats)
    assert "coral checkout 9" in written.body
    assert "`rows` (2 of 3, last #3 and #5)" in written.body


def test_where_nothing_is_proven_there_is_no_skill():
    unproven = known(attempt(0, 1.0), attempt(1, 0.5, title="rows from #0: x", verdict="worse"))
    calls = consolidate(situation(attempts=unproven))
    assert [call for call in calls if isinstance(call, WriteSkill)] == []
    assert "no skill" in said(calls)
    assert notes(consolidate(situation(attempts=KnownAttempts())))


def test_a_reason_that_fails_many_attempts_is_the_first_conclusion():
    failed = [attempt(n, None, title=f"rows from #0: {n}", reason=f"circles {n} and 3 overlap") for n in range(1, 8)]
    (note,) = notes(consolidate(situation(attempts=known(attempt(0, 1.0), *failed, attempt(8, 2.0)))))
    first = note.body.split("## Conclusions\n\n")[1].splitlines()[0]
    assert first == (
        "- 7 of the last 8 attempts failed for one reason: circles 7 and 3 overlap (the last: #4, #5, #6 and #7)."
    )


def test_a_plateau_is_named():
    records = [attempt(0, 1.0)]
    records += [attempt(n, 2.5, title=f"rows from #{n - 1}: x", verdict=Verdict.TIED) for n in range(1, 5)]
    (note,) = notes(consolidate(situation(attempts=known(*records))))
    assert "none of the 3 attempts since #1 is better (`rows` 3); 4 attempts of 2 agents end near 2.5" in note.body


def test_notes_of_others_are_read(tmp_path):
    write_note(tmp_path, "x", {"title": "Warm starts help", "author": "agent-7", "attempts": [3], "kind": "note"}, "b")
    observation = replace(OBSERVATION, notes=tuple(find_notes([tmp_path])))
    (note,) = notes(consolidate(situation(observation=observation)))
    assert "Warm starts help (agent-7)" in note.body


def test_evidence_is_read_from_titles():
    evidence = evidence_by_family(history(), Direction.MAXIMIZE)
    assert list(evidence) == ["rows", "cross", "shake"]
    assert {family: (len(shown.tries), len(shown.wins)) for family, shown in evidence.items()} == {
        "rows": (3, 2),
        "cross": (1, 1),
        "shake": (3, 0),
    }
    assert evidence_by_family(KnownAttempts(), Direction.MAXIMIZE) == {}


def test_ending_where_another_agent_had_begun_is_no_evidence():
    """It improves the agent's own best, and says nothing for the family."""
    records = [attempt(0, 1.0), attempt(1, 2.0, title="descent from #0: 1 -> 2", verdict=Verdict.OWN_BEST)]
    records.append(attempt(2, 2.0 + 6e-15, title="jump from #1: 2 -> 2", verdict=Verdict.OWN_BEST))
    evidence = evidence_by_family(known(*records), Direction.MAXIMIZE)
    assert {family: len(shown.wins) for family, shown in evidence.items()} == {"jump": 0}


def tries(*gains: float) -> list[object]:
    """The seed, a step away from it, and then attempts of two agents in turn, each from the one before."""
    records, score = [attempt(0, 1.0), attempt(1, 2.0, title="rows from #0: x", verdict=Verdict.OWN_BEST)], 2.0
    for number, gained in enumerate(gains, 2):
        score += gained
        verdict = Verdict.OWN_BEST if gained > 0 else Verdict.WORSE
        title = f"rows from #{number - 1}: x"
        records.append(attempt(number, score, title=title, verdict=verdict, agent=f"agent-{number % 2}"))
    return list(records)


def test_what_paid_for_one_agent_alone_is_a_contradiction():
    (note,) = notes(consolidate(situation(attempts=known(*tries(0.1, -0.1, 0.2, -0.2)))))
    assert "`rows` gained for agent-0 but never for agent-1" in note.body


def test_a_family_that_has_stopped_gaining_is_not_recommended():
    (note,) = notes(consolidate(situation(attempts=known(*tries(0.1, 0.1)))))
    assert "these gain over their start: `rows` (2 of 2, last #2 and #3)" in note.body
    assert "`rows` from #3: what pays" in note.body
    (note,) = notes(consolidate(situation(attempts=known(*tries(0.1, 0.1, -0.1, -0.1, -0.1)))))
    assert "These do not, or no more: `rows` (2 of 5, tried last in #5 and #6)" in note.body
    assert "what pays" not in note.body


def test_the_skill_names_what_gains_still_before_what_has_stopped_gaining():
    """`rows` has gained twice and stopped, `cross` has gained once, of late."""
    records = [*tries(0.1, 0.1, -0.1, -0.1, -0.1), attempt(7, 3.0, title="cross from #6: x", verdict=Verdict.OWN_BEST)]
    (skill,) = [call for call in consolidate(situation(attempts=known(*records))) if isinstance(call, WriteSkill)]
    assert "from #7, `cross`" in str(skill.front["description"])


def test_what_the_best_changes_and_has_withstood_is_a_conclusion(tmp_path):
    records = tries(0.5, -0.1, -0.1, -0.1)
    observation = replace(OBSERVATION, change_of_best="1 of 8 values differ; most of all a.x 1 -> 2")
    (note,) = notes(consolidate(situation(attempts=known(*records), observation=observation)))
    assert "- What gains: #0 to #2, +1.5, by these: 1 of 8 values differ; most of all a.x 1 -> 2." in note.body
    assert "- What limits the score: none of the 3 attempts since #2 is better (`rows` 3)" in note.body


def test_a_synthesis_is_short():
    (note,) = notes(consolidate(situation()))
    assert len(note.body.split()) < 90


def test_a_synthesis_says_what_the_best_shows_of_the_problem():
    observation = replace(OBSERVATION, findings=("3 of the 8 constraints of the check are tight",))
    (note,) = notes(consolidate(situation(observation=observation)))
    assert "- Around #9, 3 of the 8 constraints of the check are tight." in note.body
