"""What lines after the damaged one say by themselves, and that what says nothing, or is nonsense, is passed over."""

from dataclasses import replace

from journal_recorder import FOLDER, RULES, JournalRecorder, moment
from stage import attempt_zero, submitted

from coral.fleet import events as on
from coral.fleet.agent_state import Order, Spent
from coral.fleet.members import Member, WantedMember
from coral.journal import read_lines
from coral.journal.lost_lines import read_lost
from coral.processes.process_tree import Identity


def written(tmp_path) -> JournalRecorder:
    recorder = JournalRecorder(tmp_path / "journal")
    recorder.journal.open_supervision(RULES, moment(0), FOLDER)
    recorder.decide(0, on.Opened(run="run", agents=("ann", "ben"), baseline=attempt_zero()))
    recorder.journal.record_started({"ann": (1, Identity(7, 70, "boot"))})
    recorder.decide(1, on.OutputSeen(agent="ann", launch=1, has_prompt=True, session="s"))
    recorder.decide(2, submitted("ann", 1))
    recorder.decide(3, on.TakenIn(number=1, commit="c", tree="t", parent=""))
    recorder.decide(4, on.Graded(number=1, launch=1, outcome=on.Outcome.SCORED, score=1.5))
    recorder.decide(5, on.Used(agent="ann", launch=1, figure=Spent(input=3, money=0.5)), submitted("ann", 2))
    return recorder


def test_it_knows_what_was_published_accepted_started_and_used(tmp_path) -> None:
    recorder = written(tmp_path)
    found = read_lost(list(read_lines(recorder.journal.path))[2:])
    assert {number: attempt.score for number, attempt in found.attempts.items()} == {1: 1.5}
    assert {number: one.submission for number, one in found.accepted.items()} == {
        number: submitted("ann", number).submission for number in (1, 2)
    }
    assert found.started == {"ann": {1: Identity(7, 70, "boot")}}
    assert found.sessions == {"ann": "s"}
    assert found.spent == {"fleet": Spent(input=3, money=0.5), "ann": Spent(input=3, money=0.5)}
    assert found.meters == {"ann": recorder.fleet.agents["ann"].meter}
    assert found.members == {}
    assert found.counts["next_number"] == recorder.fleet.run.next_number == 3
    assert (found.at, found.wall) == (5, "2030-01-01T00:00:05.000Z")


def test_nonsense_hides_nothing_of_the_rest(tmp_path) -> None:
    recorder = written(tmp_path)
    nonsense = [
        {"at": 1.0, "events": [7]},
        {"at": 1.0, "actions": [{"is": "Publish", "attempt": {"number": "x"}}]},
        {"at": 1.0, "set": {"agents": {"ann": {"spent": []}, "ben": None}}},
        {"at": 1.0, "started": {"ann": 7}},
        {"at": 1.0, "set": {"agents": {"cid": None}, "run": {"spent": 3}}},
        {"at": 1.0},
    ]
    lines = list(read_lines(recorder.journal.path))
    assert read_lost([*nonsense, *lines, *nonsense]) == read_lost([*lines, {"wall": recorder.taken[-1].now.wall_time}])


def test_it_knows_the_agents_that_were_added_as_they_were_driven_last(tmp_path) -> None:
    recorder = written(tmp_path)
    dot = Member(runtime="other", rest={"options": {"seed": 1}})
    wanted = on.AddAgent(name="dot", wanted=WantedMember(runtime="other"))
    recorder.decide(6, on.Requested(sender="operator", id="1", request=wanted))
    recorder.decide(7, on.AgentPrepared(agent="dot", member=dot))
    found = read_lost(list(read_lines(recorder.journal.path))[2:])
    assert found.members == {"dot": replace(dot, added=True)}


def test_it_knows_what_the_operator_ordered_last(tmp_path) -> None:
    recorder = written(tmp_path)
    quiet = read_lost(list(read_lines(recorder.journal.path)))
    assert (quiet.orders, quiet.budgets, quiet.is_held) == ({}, None, None)
    wanted = (
        on.Pause(agent="ann"),
        on.Unpause(agent="ann"),
        on.Pause(agent="ben"),
        on.SetBudget(key="attempts", limit=9),
        on.HoldGrading(),
    )
    for number, request in enumerate(wanted):
        recorder.decide(6 + number, on.Requested(sender="operator", id=str(number), request=request))
    found = read_lost(list(read_lines(recorder.journal.path))[2:])
    assert found.orders == {"ann": Order.WORK, "ben": Order.PAUSE}
    assert found.budgets == recorder.fleet.run.budgets != {}
    assert found.is_held is True
