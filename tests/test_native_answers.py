"""Heartbeats are answered by doing what they ask: notes that people can read, a skill that programs can load."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from sample import attempt

from attempts.record import Direction, Verdict
from coral.native.answers.answer import answer, checkpoint
from coral.native.answers.evidence import by_family, table
from coral.native.answers.skill import NAME, Lesson, lesson_of
from coral.native.calls import Await, Call, Remember, Say, Search, Steering, Submit, WriteNote, WriteSkill
from coral.native.known_attempts import Board
from coral.native.memory import Memory, Steer, Trial, Work
from coral.native.prompt import Section, sections
from coral.native.search.bandit import Credit
from coral.native.search_brain import SearchBrain
from coral.native.situation import Explored, Graded, Idle, Prompted, Situation, Trouble, World
from heartbeats.example import example_context
from heartbeats.heartbeat import BUILT_IN
from heartbeats.render import render_file
from heartbeats.reply import Alert, Ok, parse_reply
from workspace import frontmatter
from workspace.knowledge import Skill, list_notes, list_skills, write_note, write_skill

FAMILIES = ("descent", "rows", "shake", "cross", "scatter")
WORLD = World(agent="agent-1", direction=Direction.MAXIMIZE, families=FAMILIES, checked=True)


def trial(number: int, family: str, before: float | None, score: float | None, **fields: object) -> Trial:
    data: dict[str, object] = {
        "title": f"{family} from #{number - 1}: ...",
        "family": family,
        "start": number - 1,
        "before": before,
        "expected": score,
        "moves": 12,
        "evaluations": 3456,
        "seconds": 4.5,
        "change": "2 of 8 values differ; most of all a.x 1 -> 2; b.y 3 -> 4",
        "number": number,
        "score": score,
        "verdict": "failed" if score is None else "improved" if score > (before or 0.0) else "regressed",
    }
    return Trial(**{**data, **fields})  # type: ignore[arg-type]


def history() -> Board:
    """Twelve attempts of two agents: rows pays for one of them only, shake for nobody, cross once."""
    records = [attempt(0, 1.0)]
    titles = {1: "rows", 3: "rows", 5: "rows", 2: "rows", 4: "rows", 6: "shake", 7: "shake", 8: "shake", 9: "cross"}
    best = 1.0
    for number, family in titles.items():
        won = family == "cross" or (family == "rows" and number % 2)
        score = best + 0.1 if won else best - 0.2
        best = max(best, score)
        records.append(
            attempt(
                number,
                score,
                title=f"{family} from #{max(0, number - 2)}: 1 -> 2",
                verdict=Verdict.IMPROVED if won else Verdict.REGRESSED,
            )
        )
    return Board().take(records, Direction.MAXIMIZE)


def situation(*trials: Trial, world: World = WORLD, board: Board | None = None, **fields: object) -> Situation:
    memory = Memory(session="s", trials=trials, board=history() if board is None else board)
    return Situation(replace(memory, **fields), world)  # type: ignore[arg-type]


def said(calls: tuple[Call, ...]) -> str:
    return "\n".join(call.text for call in calls if isinstance(call, Say))


def notes(calls: tuple[Call, ...]) -> list[WriteNote]:
    return [call for call in calls if isinstance(call, WriteNote)]


def test_the_prompts_that_are_sent_are_understood():
    """The real templates, as an agent receives them."""
    context = example_context()
    texts = [
        {"name": each.name, "id": f"h{k}", "text": render_file(each.name, context)} for k, each in enumerate(BUILT_IN)
    ]
    found = sections(render_file("resume", {**context, "sections": texts}))
    assert [(section.name, section.id) for section in found] == [(t["name"], t["id"]) for t in texts]
    assert all(len(section.text) > 100 for section in found)
    assert sections("## Heartbeat: two-in-one (id h7, h9)\n\nDo it.\n\n## Now\n\nGo.") == [
        Section("two-in-one", "h7, h9", "Do it.")
    ]
    assert sections("Heartbeat: no (id h1)\n## Heartbeat: none\n") == []


def test_reflect_ties_the_change_to_the_score():
    calls = answer(situation(trial(9, "rows", 1.25, 1.3)), Section("reflect", "h1", "..."))
    (note,) = notes(calls)
    assert note.attempts == (8, 9)
    assert note.about == (9,)
    assert note.kind == "note"
    assert "+0.0500" in note.title
    for words in (
        "#8",
        "#9",
        "1.2500",
        "1.3000",
        "a.x 1 -> 2",
        "3,456 evaluations",
        "12 moves",
        "`rows` has improved 1 of",
    ):
        assert words in note.body, words
    assert any(isinstance(call, Remember) and call.block == "learned" for call in calls)
    assert said(calls)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (trial(9, "shake", 1.25, 1.1), "found nothing better in 12 moves"),
        (trial(9, "shake", 1.25, 1.25, verdict="tied"), "The same score again"),
        (trial(9, "shake", 1.25, None, reason="two overlap", expected=1.5), "two overlap"),
        (trial(9, "shake", 1.25, 1.3, expected=1.6), "the check is not the whole truth"),
        (trial(9, "shake", 1.25, 1.3, expected=None, evaluations=0), "There is no public check"),
        (trial(9, "shake", None, 1.3, start=None, verdict="improved"), "#?"),
    ],
)
def test_each_note_says_what_its_own_facts_say(told, words):
    (note,) = notes(answer(situation(told), Section("reflect", "h1", "")))
    assert words in note.title + note.body
    assert all(number is not None for number in note.attempts)


def test_nothing_is_noted_twice():
    done = trial(9, "rows", 1.25, 1.3, noted=True)
    assert notes(answer(situation(done), Section("reflect", "h2", ""))) == []
    memory = Memory(session="s", trials=(trial(9, "rows", 1.25, 1.3),)).noted((9,))
    assert memory.trials[0].noted


def test_consolidate_draws_conclusions_and_a_skill(tmp_path):
    calls = answer(situation(), Section("consolidate", "h1", ""))
    (note,) = notes(calls)
    assert note.kind == "synthesis"
    assert note.name == "synthesis-after-9"
    assert set(note.attempts) == set(range(1, 10))
    parts = ("Conclusions", "Evidence", "Contradictions", "Gaps", "Next", "Read")
    assert [line[3:] for line in note.body.splitlines() if line.startswith("## ")] == list(parts)
    for words in (
        "`rows` pays: 3 of 5 improved (#1, #3 and #5)",
        "`cross` pays: 1 of 1 improved (#9), the largest by",
        "`shake` has not paid in 3 attempts (#6, #7 and #8)",
        "`rows` gained for agent-2 but never for agent-1",
        "Nobody has tried `descent`",
        "Nobody has tried `scatter`",
    ):
        assert words in note.body, words
    (skill,) = [call for call in calls if isinstance(call, WriteSkill)]
    write_skill(tmp_path, skill.name, skill.front, skill.body)
    (written,) = list_skills(tmp_path)
    lesson = lesson_of(written)
    assert lesson is not None
    assert lesson.start == 9
    assert lesson.credit["rows"] == Credit(5.0, 3.0, lesson.credit["rows"].gain)
    assert lesson.credit["shake"].wins == 0
    assert "coral checkout 9" in written.body


def test_where_nothing_is_proven_there_is_no_skill():
    board = Board().take(
        [attempt(0, 1.0), attempt(1, 0.5, title="rows from #0: x", verdict="regressed")], Direction("maximize")
    )
    calls = answer(situation(board=board), Section("consolidate", "h1", ""))
    assert [call for call in calls if isinstance(call, WriteSkill)] == []
    assert "no skill" in said(calls)
    assert notes(answer(situation(board=Board()), Section("consolidate", "h2", "")))


def test_a_plateau_is_named():
    records = [attempt(0, 1.0)]
    records += [attempt(n, 2.5, title=f"rows from #{n - 1}: x", verdict=Verdict.TIED) for n in range(1, 5)]
    board = Board().take(records, Direction.MAXIMIZE)
    (note,) = notes(answer(situation(board=board), Section("consolidate", "h1", "")))
    assert "4 attempts of 2 agents ended at 2.5" in note.body


def test_notes_of_others_are_read(tmp_path):
    write_note(tmp_path, "x", {"title": "Warm starts help", "author": "agent-7", "attempts": [3], "kind": "note"}, "b")
    world = replace(WORLD, notes=tuple(list_notes(tmp_path)))
    (note,) = notes(answer(situation(world=world), Section("consolidate", "h1", "")))
    assert "Warm starts help (agent-7)" in note.body


def test_redirect_leaves_the_family_and_starts_from_the_best():
    tried = [trial(n, "rows", 1.4, 1.3) for n in (4, 6, 8)]
    calls = answer(situation(*tried), Section("redirect", "h1", ""))
    (steer,) = [call.steer for call in calls if isinstance(call, Steering)]
    assert steer.start == 9
    assert steer.avoid == "rows"
    assert steer.family in FAMILIES
    assert steer.family != "rows"
    (note,) = notes(calls)
    assert note.attempts == (4, 6, 8)
    assert "#9" in note.body
    next_call = SearchBrain().reason(situation(*tried, steer=steer), Idle())[0]
    assert isinstance(next_call, Search)
    assert (next_call.family, next_call.start) == (steer.family, 9)
    assert notes(answer(situation(), Section("redirect", "h2", ""))) == []


def test_redirect_never_goes_back_to_what_it_leaves():
    """Not even where that is what was tried least."""
    tried = [trial(n, family, 1.4, 1.3) for n, family in ((2, "shake"), (4, "shake"), (6, "shake"), (8, "rows"))]
    calls = answer(situation(*tried, world=replace(WORLD, families=("rows", "shake"))), Section("redirect", "h1", ""))
    assert [call.steer.family for call in calls if isinstance(call, Steering)] == ["shake"]


@pytest.mark.parametrize(
    ("trials", "room", "kind"),
    [
        ((), 0.5, Ok),
        ((trial(1, "rows", 1.0, 1.2),), 0.5, Ok),
        (tuple(trial(n, "rows", 1.0, None, reason="it crashed") for n in (1, 2, 3)), 0.5, Alert),
        ((), 0.001, Alert),
    ],
)
def test_a_checkpoint_ends_with_one_line_that_decides(trials, room, kind):
    text = checkpoint(situation(*trials, world=replace(WORLD, room=room, checklist="- native: look at the clock")))
    assert isinstance(parse_reply(text), kind)
    assert "look at the clock" in text


def test_any_other_heartbeat_is_answered_and_kept():
    calls = answer(situation(trial(9, "rows", 1.2, 1.3)), Section("simplify", "h3", "Make it simpler.\n" * 99))
    assert "simplify" in said(calls)
    (kept,) = [call for call in calls if isinstance(call, Remember)]
    assert "Make it simpler" in kept.text
    assert len(kept.text) < 400


def test_a_heartbeat_that_is_repeated_is_answered_once():
    asked = Prompted((Section("checkpoint", "h5", ""),))
    assert SearchBrain().reason(situation(), asked)
    assert SearchBrain().reason(situation(answered=("h5",)), asked) == ()


def test_what_is_unfinished_comes_first():
    brain, half = SearchBrain(), trial(9, "rows", 1.0, None)
    assert brain.reason(situation(pending=half), Idle()) == (Await(trial=half),)
    work = Work(trial=half, texts={"a": "b"})
    assert brain.reason(situation(work=work), Idle()) == (Submit(trial=half, texts={"a": "b"}),)
    assert brain.reason(situation(), Explored(half, {"a": "b"})) == (Submit(trial=half, texts={"a": "b"}),)
    assert said(brain.reason(situation(), Graded(half)))


def test_the_first_attempt_goes_down_the_slopes_of_the_seed():
    board = Board().take([attempt(0, 1.0)], Direction.MAXIMIZE)
    (call,) = SearchBrain().reason(situation(board=board), Idle())
    assert isinstance(call, Search)
    assert (call.family, call.start) == ("descent", 0)


def test_an_error_is_read_and_put_right():
    brain, search = SearchBrain(), Search(family="rows", start=1, why="")
    assert brain.reason(situation(), Trouble(search, "the disk was busy", again=True)) == (search,)
    calls = brain.reason(situation(), Trouble(search, "no table", again=False))
    assert "no table" in said(calls)
    assert isinstance(calls[-1], Search)
    assert calls[-1].family != "rows"


def test_a_skill_is_loaded_and_used():
    """An agent that is behind starts from the best that the skill names, and prefers what has paid for others."""
    lesson = Lesson("where-the-search-pays", "agent-2", {"shake": Credit(30.0, 30.0, 1.0)}, 9, 30)
    world = replace(WORLD, lessons=(lesson,))
    done = trial(4, "rows", 1.0, 1.1)
    chosen = [SearchBrain().reason(situation(done, world=world, episodes=k), Idle())[0] for k in range(60)]
    alone = [SearchBrain().reason(situation(done, episodes=k), Idle())[0] for k in range(60)]
    searches = [call for call in chosen if isinstance(call, Search)]
    assert sum(call.start == 9 for call in searches) > 15
    assert sum(call.start == 9 for call in alone if isinstance(call, Search)) == 0
    assert all("where-the-search-pays by agent-2" in call.why for call in searches)
    without = sum(isinstance(call, Search) and call.family == "shake" for call in alone)
    assert sum(call.family == "shake" for call in searches) > without + 10


def test_skills_of_other_forms_are_left_alone(tmp_path):
    for name, front in {
        "other": {"description": "x", "credit": "{}"},
        "torn": {"form": "coral-search/1", "credit": "{"},
        "list": {"form": "coral-search/1", "credit": "[1]"},
        "nested": {"form": "coral-search/1", "credit": "[" * 9999},
    }.items():
        write_skill(tmp_path, name, front, "body")
    assert [lesson_of(skill) for skill in list_skills(tmp_path)] == [None] * 4
    gone = Skill("gone", "", tmp_path / "gone.md", "", "")
    assert lesson_of(gone) is None
    write_skill(
        tmp_path, "odd", {"form": "coral-search/1", "credit": '{"rows": 3, "x": {"tries": "a"}}', "start": "-"}, ""
    )
    lesson = lesson_of(next(skill for skill in list_skills(tmp_path) if skill.name == "odd"))
    assert lesson is not None
    assert lesson.credit == {"x": Credit()}
    assert lesson.start is None


def test_a_skill_is_named_alike_by_all(tmp_path):
    path = write_skill(tmp_path, NAME, {"author": "agent-2", "form": "coral-search/1", "credit": "{}", "after": 7}, "x")
    assert path == tmp_path / "skills" / NAME / "SKILL.md"
    assert frontmatter.split(Path(path).read_text())[0]["after"] == "7"


def test_evidence_is_read_from_titles():
    evidence = by_family(history().recent, Direction.MAXIMIZE)
    assert list(evidence) == ["rows", "cross", "shake"]
    assert "| rows | 5 | 3 |" in table(evidence)
    assert by_family([], Direction.MAXIMIZE) == {}


def test_ending_where_another_agent_had_begun_is_no_evidence():
    """It improves the agent's own best, and says nothing for the family."""
    records = [attempt(0, 1.0), attempt(1, 2.0, title="descent from #0: 1 -> 2", verdict=Verdict.IMPROVED)]
    records.append(attempt(2, 2.0 + 6e-15, title="jump from #1: 2 -> 2", verdict=Verdict.IMPROVED))
    evidence = by_family(Board().take(records, Direction.MAXIMIZE).recent, Direction.MAXIMIZE)
    assert {name: len(each.wins) for name, each in evidence.items()} == {"descent": 1, "jump": 0}


def test_the_agent_knows_nothing_of_the_example():
    words = ("circle", "radii", "packing", "overlap", "2.63")
    for path in (Path(__file__).parent.parent / "coral" / "native").rglob("*.py"):
        text = path.read_text().lower()
        assert [word for word in words if re.search(rf"\b{word}s?\b", text)] == [], path


def test_a_course_ends_after_its_episodes():
    steer = Steer(start=9, avoid="rows", family="cross", episodes=0)
    drawn = [
        SearchBrain().reason(situation(trial(4, "rows", 1, 2), steer=steer, episodes=k), Idle())[0] for k in range(40)
    ]
    assert any(isinstance(call, Search) and call.family == "rows" for call in drawn)
