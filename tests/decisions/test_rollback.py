"""After a damaged journal: what is known of the time since counts once, under its number, and is said once."""

from dataclasses import replace

from stage import QUIET_RULES, REFLECT, REFLECTING, Stage, attempt_zero, submitted

from attempts.progress import Progress
from attempts.record import Kind, Verdict
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import Meter, Order, Phase, Spent
from coral.fleet.members import Member, WantedMember
from coral.fleet.rules import Allowance
from coral.fleet.run_state import AttemptStep, SetLimit


def rolled_back(**fields: object) -> on.RolledBack:
    place = {"file": "000002.jsonl", "line": 7, "why": "it is not as it was written", "lines": 3, "kept": "kept"}
    return on.RolledBack(**{**place, **fields})  # type: ignore[arg-type]


def alerts(stage: Stage) -> list[str]:
    return [action.text for action in stage.actions if isinstance(action, do.Notify)]


def gone_on(stage: Stage, clock: float, event: on.RolledBack) -> list[str]:
    return stage.at(clock, on.Resumed(), event, stage.exited("ann", on.Ending.LOST))


def history(scores: tuple[float | None, ...], rules=REFLECTING) -> tuple[Stage, Stage, tuple]:
    """The same beginning twice: with what was published since, and without; and what was."""
    ahead, back = Stage(rules=rules), Stage(rules=rules)
    published = []
    for place, score in enumerate(scores):
        number = ahead.fleet.run.next_number
        ahead.at(2 + place, ahead.submission("ann"))
        ahead.at(2 + place, ahead.taken(number))
        ahead.at(2 + place, ahead.graded(number, score))
        published.append(ahead.published())
        ahead.at(2 + place, on.Published(number=number))
    return ahead, back, tuple(published)


def test_attempts_that_were_published_count_once_as_they_were_published() -> None:
    ahead, back, published = history((1.0, None, 0.5), QUIET_RULES)
    said = gone_on(back, 10, rolled_back(attempts=published, counts={"next_number": 4}))
    assert [line for line in said if line.startswith("publish")] == [
        "publish #1 new best 1",
        "publish #2 failed",
        "publish #3 worse 0.5",
    ]
    assert [action.launch for action in back.actions if isinstance(action, do.Publish)] == [1, 1, 1]
    for figure in ("order", "next_number", "best", "progress", "failed", "failures"):
        assert getattr(back.fleet.run, figure) == getattr(ahead.fleet.run, figure), figure
    assert back.fleet.measured == ahead.fleet.measured
    for figure in ("progress", "submitted", "recent_submissions"):
        assert getattr(back["ann"], figure) == getattr(ahead["ann"], figure), figure
    assert back.pending(1).step is AttemptStep.SETTLED
    back.at(11, *(on.Published(number=number) for number in (1, 2, 3)))
    assert back.fleet.pending == {}
    # Its file may lie in the inbox still; and told twice, it counts once.
    assert back.at(12, submitted("ann", 1)) == ["discard 1 of ann"]
    again = back.at(13, rolled_back(attempts=published, lines=0))
    assert [line.partition(" ")[0] for line in again] == ["alert"]
    assert back.fleet.run.progress == ahead.fleet.run.progress


def test_an_attempt_that_waited_for_its_grade_is_published_with_its_heartbeats() -> None:
    ahead, back, (published,) = history((1.0,))
    back.at(2, submitted("ann", 1, wait=60.0))
    back.at(2, on.TakenIn(number=1, commit="c", tree=published.tree, parent=""))
    submissions = back["ann"].submitted
    said = back.at(10, on.Resumed(), rolled_back(attempts=(published,), counts={"next_number": 2}))
    assert "publish #1 new best 1" in said
    pending = back.pending(1)
    assert (pending.step, pending.attempt, pending.deadline, pending.waited_until) == (
        AttemptStep.SETTLED, published, None, 0.0
    )  # fmt: skip
    assert (back["ann"].submitted, back.fleet.run.next_number) == (submissions, 2)
    assert [(message.name, message.depth) for message in back["ann"].pending_messages] == [(REFLECT.name, 1)]
    assert back["ann"].progress == ahead["ann"].progress == Progress(1, 0, 1)


def test_what_was_accepted_is_graded_under_its_number_and_no_number_is_given_twice() -> None:
    back = Stage()
    accepted = tuple(
        on.NumberedSubmission(number=number, submission=submitted("ann", number).submission) for number in (1, 2, 4)
    )
    back.at(2, submitted("ann", 1))
    said = gone_on(back, 10, rolled_back(accepted=accepted, counts={"next_number": 9, "alert_count": 5}))
    assert [line for line in said if line.startswith("accept")] == [
        "accept 1 of ann as #1",  # as at each resume
        "accept 2 of ann as #2",
        "accept 4 of ann as #4",
    ]
    assert set(back.fleet.pending) == {1, 2, 4}
    assert back.fleet.run.next_number == 9
    assert any(line.startswith("alert run-alert-6: ") for line in said)
    assert "accept 10 of ann as #9" in back.at(11, submitted("ann", 10))


def test_what_was_published_is_not_graded_again() -> None:
    _, back, published = history((1.0, 2.0), QUIET_RULES)
    accepted = tuple(
        on.NumberedSubmission(number=number, submission=submitted("ann", number).submission) for number in (1, 2, 3)
    )
    said = gone_on(back, 10, rolled_back(attempts=published, accepted=accepted, counts={"next_number": 4}))
    assert [line for line in said if line.startswith(("take", "accept", "discard"))] == [
        f"take in #3: commit {3} of ann",
        "accept 3 of ann as #3",
    ]
    assert back.fleet.run.next_number == 4


def test_nobody_runs_twice_and_each_goes_on_after_its_last_launch() -> None:
    back = Stage(2)
    found = rolled_back(launches={"ann": 4, "ben": 1, "cid": 9}, sessions={"ann": "the last"})
    said = gone_on(back, 10, found)
    assert (back["ann"].launch, back["ann"].phase) == (5, Phase.RUNNING)
    assert [line for line in said if line.startswith(("spawn", "exited"))] == [
        "exited ann: launch 1 ended: lost",
        "spawn ann/5: resumed, the last, told 0",
    ]
    # The other one's launch is the one that is known: its supervisor takes it over.
    assert (back["ben"].launch, back["ben"].phase, back["ben"].session) == (1, Phase.RUNNING, "session of ben")


def test_an_agent_that_waits_goes_on_after_its_last_launch_too() -> None:
    back = Stage()
    back.at(2, back.exited("ann", on.Ending.CRASHED))
    assert back["ann"].phase is Phase.WAITING
    back.at(3, on.Resumed(), rolled_back(launches={"ann": 4}))
    assert (back["ann"].launch, back["ann"].phase) == (4, Phase.WAITING)
    back = Stage(started=False)
    back.at(0, on.Resumed(), rolled_back())
    assert back["ann"].launch == Stage(started=False)["ann"].launch


def test_what_was_used_stays_used() -> None:
    back = Stage()
    back.at(2, on.Used(agent="ann", launch=1, figure=Spent(input=10, money=0.5)))
    meter = Meter(launch=1, figure=Spent(input=90, money=3.0))
    spent = {"fleet": Spent(input=100, money=4.0), "ann": Spent(input=90, money=3.0), "cid": Spent(input=1)}
    back.at(3, on.Resumed(), rolled_back(spent=spent, meters={"ann": meter, "cid": meter}))
    assert (back.fleet.run.spent, back["ann"].spent) == (spent["fleet"], spent["ann"])
    # What its program reports again counts from there.
    back.at(4, on.Used(agent="ann", launch=1, figure=Spent(input=95, money=3.5)))
    assert back.fleet.run.spent == Spent(input=105, money=4.5)
    back.at(5, rolled_back(spent={"fleet": Spent(input=1), "ann": Spent()}, counts={"message_count": 0}))
    assert back.fleet.run.spent == Spent(input=105, money=4.5)


def test_a_confirmation_counts_as_one_and_a_new_epoch_begins_again() -> None:
    _, back, (published,) = history((1.0,), QUIET_RULES)
    confirm = replace(
        published, number=2, order=2, kind=Kind.CONFIRM, verdict=Verdict.TIED, of=1, submission="", seconds=5.0
    )
    baseline = replace(attempt_zero(7.0), number=3, order=3, epoch=2)
    gone_on(back, 10, rolled_back(attempts=(published, confirm, baseline), counts={"next_number": 5}))
    told = {action.attempt.number: action.launch for action in back.actions if isinstance(action, do.Publish)}
    assert told == {1: 1, 2: 0, 3: 0}
    run = back.fleet.run
    assert (run.confirmations, run.confirm_seconds) == (1, 5.0)
    assert (run.epoch, run.order, run.next_number, run.best) == (2, 3, 5, 3)
    assert run.progress.evals == 1
    assert back["ann"].submitted == 1
    assert back.pending(2).submission.agent == "ann"


def test_of_an_agent_that_the_run_has_no_more_only_the_record_is_left() -> None:
    _, back, (published,) = history((1.0,), QUIET_RULES)
    stranger = replace(published, agent="zoe")
    accepted = (on.NumberedSubmission(number=2, submission=submitted("zoe", 2).submission),)
    said = gone_on(back, 10, rolled_back(attempts=(stranger,), accepted=accepted))
    assert "publish #1 new best 1" in said
    assert back.fleet.run.best == 1
    assert set(back.fleet.pending) == {1}


def test_it_is_said_once_what_was_lost_and_what_was_taken_again() -> None:
    _, back, published = history((1.0, 2.0), QUIET_RULES)
    gone_on(back, 10, rolled_back(attempts=published, back_to="2030-01-01T00:00:05.000Z"))
    assert alerts(back) == [
        "the journal was damaged at line 7 of 000002.jsonl (it is not as it was written): the run goes on from the "
        "last good state; 3 of its lines are lost, since 2030-01-01T00:00:05.000Z; taken again: #1, #2; "
        "the file is kept as kept"
    ]
    many = tuple(replace(published[0], number=number, order=number) for number in range(1, 12))
    back = Stage()
    gone_on(back, 10, rolled_back(attempts=many))
    assert "taken again: #1, #2, #3, #4, #5, #6, #7, #8 and 3 more; " in alerts(back)[0]
    back = Stage()
    gone_on(back, 10, rolled_back(attempts=many[:8]))
    assert "taken again: #1, #2, #3, #4, #5, #6, #7, #8; " in alerts(back)[0]
    back = Stage()
    gone_on(back, 10, rolled_back(lines=0))
    assert alerts(back)[0].endswith("the last good state; nothing is lost; the file is kept as kept")
    assert back.fleet.run.alert_count == 1


def test_an_agent_that_was_added_is_in_the_fleet_again_and_a_moved_one_stays_moved() -> None:
    ahead, back, _ = history((), QUIET_RULES)
    dot, ann = Member(runtime="other", account="acme", added=True), Member(runtime="second")
    for stage in (ahead, back):
        stage.ask("operator", on.AddAgent(name="dot", wanted=WantedMember(runtime="other")))
    ahead.at(3, on.AgentPrepared(agent="dot", member=replace(dot, added=False)))
    ahead.at(4, ahead.submission("dot"))
    ahead.at(4, ahead.taken(1))
    ahead.at(4, ahead.graded(1, 1.0))
    found = rolled_back(attempts=(ahead.published(),), counts={"next_number": 2}, members={"dot": dot, "ann": ann})
    gone_on(back, 10, found)
    assert back.fleet.run.members == {"dot": dot, "ann": ann}
    assert back["dot"].progress == ahead["dot"].progress == Progress(1, 0, 1)
    assert back["dot"].submitted == 1
    assert back.fleet.run.preparing == {}
    members = [
        (action.agent, action.member, action.aside) for action in back.actions if isinstance(action, do.SetMember)
    ]
    assert members == [("dot", dot, None), ("ann", ann, None)]
    # The workspace is ready once more: it is nobody new.
    assert back.at(11, on.AgentPrepared(agent="dot", member=replace(dot, added=False))) == []


def test_a_move_that_waits_is_forgotten_once_it_is_known_to_have_been_in_force() -> None:
    back = Stage(2, rules=QUIET_RULES)
    first, second = Member(runtime="first"), Member(runtime="second")
    back.ask("operator", on.MoveAgent(agent="ann", wanted=WantedMember(runtime="second")))
    back.at(3, on.AgentPrepared(agent="ann", member=second, was=first))
    assert set(back.fleet.run.moves) == {"ann"}
    gone_on(back, 10, rolled_back(members={"ann": second}, launches={"ann": 2}))
    assert back.fleet.run.moves == {}
    assert back.fleet.run.members == {"ann": second}
    gone_on(back, 11, rolled_back(members={"ann": second}))
    assert [action.agent for action in back.actions if isinstance(action, do.SetMember)] == []


def test_what_the_operator_has_ordered_stays_ordered() -> None:
    back = Stage(3, rules=QUIET_RULES)
    back.ask("operator", on.Pause(agent="cid"))
    set_to = {"attempts": SetLimit(limit=9, base=None)}
    found = {"ann": Order.PAUSE, "ben": Order.RETIRE, "cid": Order.WORK, "zoe": Order.PAUSE}
    event = rolled_back(orders=found, budgets=set_to, is_held=True)
    said = back.at(10, on.Resumed(), event, *(back.exited(name, on.Ending.LOST) for name in ("ann", "ben", "cid")))
    assert [(back[name].phase, back[name].order) for name in ("ann", "ben")] == [
        (Phase.PARKED, Order.PAUSE),
        (Phase.RETIRED, Order.RETIRE),
    ]
    assert back["cid"].order is Order.WORK
    assert [line.partition(":")[0] for line in said if line.startswith("spawn")] == ["spawn cid/2"]
    assert (back.fleet.run.budgets, back.fleet.run.is_grading_held) == (set_to, True)
    # What nothing was said of stays as it is known; and told twice, it changes nothing.
    back.at(11, rolled_back(orders=found))
    assert (back.fleet.run.budgets, back.fleet.run.is_grading_held) == (set_to, True)
    back.at(12, rolled_back(orders={"ann": Order.RETIRE, "ben": Order.PAUSE}, budgets={}, is_held=False))
    assert (back["ann"].phase, back["ben"].phase) == (Phase.RETIRED, Phase.PARKED)
    assert not back["ben"].begins_session  # in its conversation
    assert (back.fleet.run.budgets, back.fleet.run.is_grading_held) == ({}, False)


def test_an_order_that_cannot_be_given_any_more_is_left() -> None:
    back = Stage(2, rules=replace(QUIET_RULES, own=Allowance(tokens=5)))
    back.at(2, on.Used(agent="ann", launch=1, figure=Spent(input=9)))
    back.at(3, back.exited("ann", on.Ending.INTERRUPTED))
    assert back["ann"].phase is Phase.RETIRED
    back.at(4, rolled_back(orders={"ann": Order.PAUSE}))
    assert (back["ann"].phase, back["ann"].order) == (Phase.RETIRED, Order.WORK)


def test_a_budget_that_was_raised_is_in_force_before_anything_is_judged_by_it() -> None:
    rules = replace(QUIET_RULES, budget_attempts=1)
    _, back, published = history((1.0,), rules)
    raised = {"attempts": SetLimit(limit=20, base=1)}
    gone_on(back, 10, rolled_back(attempts=published, counts={"next_number": 2}, budgets=raised))
    assert back.fleet.run.stopping is None
    _, back, published = history((1.0,), rules)
    gone_on(back, 10, rolled_back(attempts=published, counts={"next_number": 2}))
    assert back.fleet.run.stopping is not None
    # The task says something else about it since: what was set says nothing any more.
    _, back, published = history((1.0,), rules)
    gone_on(back, 10, rolled_back(attempts=published, budgets={"attempts": SetLimit(limit=20, base=7)}))
    assert back.fleet.run.budgets == {}
