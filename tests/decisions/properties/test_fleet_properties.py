"""What must hold whatever happens: random histories in a simulated world, each property by a test of its own.

To look longer: `TIMES=50 pytest -o timeout=0 tests/decisions/properties/test_fleet_properties.py`.
"""

import json
from collections import Counter
from dataclasses import replace

from cases import TIMES
from hypothesis import HealthCheck, example, given, settings, strategies as st
from moves import DEATH, JOBS, RELOAD, RULES, STALLS, STEER, TIME, TROUBLE, WORK, History, ask, calm, over, play
from stage import QUIET_RULES, Stage, on_request
from world import NAMES, Turn
from world_log import (
    assert_counted_once,
    assert_owed_once,
    assert_received_once,
    assert_repeated_only_unheard,
    counts,
    created,
    owed_by_id,
    performed,
    resumes,
)

from attempts.record import Kind, Verdict
from coral.codec import decode
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import LIVE, Agent, Order, Phase
from coral.fleet.agents.stalls import reason_of
from coral.fleet.attempts import grading
from coral.fleet.attempts.confirmations import is_under_way
from coral.fleet.decide import decide
from coral.fleet.events import Event, Moment
from coral.fleet.messages import JOB_ENDED
from coral.fleet.policy import KILL_AGAIN_SECONDS, MAX_JOBS, MAX_KILLS, is_due, may_interrupt, runs_job, ttl_of
from coral.fleet.process_key import of_grade
from coral.fleet.reasons import Finding, ReasonKind, RunEndKind
from coral.fleet.run_state import FLEET, AttemptStep, Breaker, Fleet
from coral.journal import difference, fold_lines
from heartbeats.heartbeat import Scope, find

STOP = ["stop"]
CHANGE = ["change"] * 3


# --- attempts -----------------------------------------------------------------------------------------------------


@over(WORK, TIME, TROUBLE, DEATH, STOP, RELOAD, STEER)
def test_each_attempt_counts_exactly_once_in_the_order_of_publication(history: History) -> None:
    assert_counted_once(calm(play(history)))


@given(st.lists(st.tuples(st.integers(0, 2), st.none() | st.integers(0, 4)), min_size=1, max_size=12), st.data())
@settings(max_examples=60 * TIMES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_it_makes_no_difference_how_grades_are_batched(
    tries: list[tuple[int, int | None]], data: st.DataObject
) -> None:
    heartbeats = data.draw(RULES).heartbeats
    rules = replace(QUIET_RULES, heartbeats=heartbeats, slots=99)
    at_once, one_by_one = (Stage(3, rules, started=False) for _ in range(2))
    for stage in (at_once, one_by_one):
        stage.until(1)
        numbers = stage.in_grading(2, *[stage.names[who] for who, _ in tries])
        grades = [stage.graded(number, score) for number, (_, score) in zip(numbers, tries, strict=True)]
        for batch in [grades] if stage is at_once else [[grade] for grade in grades]:
            stage.at(3, *batch)
            stage.at(3, *batch)  # an echo
    assert at_once.fleet == one_by_one.fleet


@over(WORK, WORK, TIME, TROUBLE, DEATH, STOP, RELOAD)
def test_scores_of_two_epochs_are_never_compared(history: History) -> None:
    world = calm(play(history))
    for record in world.records.values():
        others = [world.records[number] for number in (record.against, record.of) if number is not None]
        earlier = [other for other in others if other.epoch != record.epoch]
        assert not earlier or record.verdict is Verdict.VOID


@over(WORK, WORK, TIME, TROUBLE, DEATH, STOP, RELOAD)
def test_each_best_of_the_present_epoch_is_graded_on_the_hold_out_and_nothing_else_is(history: History) -> None:
    rules, moves = history
    world = calm(play((replace(rules, holdout_timeout=20.0), moves)))
    proofs = [record for record in world.records.values() if record.verdict is Verdict.NEW_BEST]
    bests = {record.number if record.of is None else record.of: record.epoch for record in proofs}
    now = {number for number, epoch in bests.items() if epoch == world.fleet.run.epoch}
    leads = {number for number, held in world.records.items() if held.kind is Kind.REAL}
    assert now <= world.fleet.holdouts.keys() <= bests.keys() | leads
    assert all(number >= 0 for number in world.records)


# --- crossings ----------------------------------------------------------------------------------------------------


@over(WORK, WORK, TIME, TROUBLE, DEATH, STOP, RELOAD, STEER, examples=60)
def test_each_crossing_is_owed_once_as_counted_one_by_one(history: History) -> None:
    assert_owed_once(calm(play(history)))


@over(WORK, WORK, TIME, TROUBLE, DEATH)
def test_what_the_fleet_crossed_falls_to_the_author_or_to_the_next_who_submits(history: History) -> None:
    world = play(history)
    records = world.records
    for turn in world.log:
        before, after = owed_by_id(turn.before), owed_by_id(turn.after)
        authors = [
            action.attempt.agent for action in turn.actions if isinstance(action, do.Publish) and counts(action.attempt)
        ]
        for id, (agent, owed) in after.items():
            was = before.get(id, (None, owed))[0]
            if owed.scope is not Scope.FLEET or agent == was:
                continue
            if agent == "":
                # Nobody owes it: the clock set it off, or whom it fell to has retired.
                author = was or (records[owed.attempt].agent if owed.attempt is not None else None)
                assert author is None or turn.after.agents[author].phase is Phase.RETIRED
            else:
                assert agent in authors
                assert was in (None, "")
                if was is None and owed.attempt is not None and records[owed.attempt].agent != agent:
                    assert turn.after.agents[records[owed.attempt].agent].phase is Phase.RETIRED


# --- what is owed -------------------------------------------------------------------------------------------------


@over(WORK, TIME, TROUBLE, DEATH, STOP, CHANGE, RELOAD, examples=60)
def test_what_is_owed_is_received_once_or_withdrawn_and_never_lost(history: History) -> None:
    assert_received_once(calm(play(history)))


@over(WORK, TIME, TROUBLE, DEATH, STOP, CHANGE, RELOAD, examples=60)
def test_every_launch_carries_what_is_owed_and_repeats_only_what_died_unheard(history: History) -> None:
    assert_repeated_only_unheard(calm(play(history)))


@over(WORK, TIME, TROUBLE, DEATH, STOP)
def test_nothing_shortens_a_pause(history: History) -> None:
    world = calm(play(history))
    for turn, spawn in performed(world, do.Spawn):
        agent = turn.before.agents.get(spawn.agent)
        breaker = turn.after.run.breakers.get(world.rules.accounts.get(spawn.agent, ""), Breaker())
        assert turn.clock >= breaker.paused_until or spawn.reason.kind is ReasonKind.HEARTBEAT
        limit = turn.after.run.limits.get(world.rules.accounts.get(spawn.agent, ""))
        assert limit is None or (limit.probe == spawn.agent and not limit.closed)
        if agent is not None and agent.phase in (Phase.WAITING, Phase.PARKED) and not resumes(turn):
            if agent.deadline is None:
                # It was parked with its account, and is the one who tries when that has come.
                until = turn.before.run.limits[world.rules.accounts[spawn.agent]].until
                assert until is not None
                assert turn.clock >= until
            else:
                assert turn.clock >= agent.deadline
    for turn in world.log:
        for name, agent in turn.before.agents.items():
            after = turn.after.agents[name]
            if agent.phase is after.phase is Phase.PARKED and agent.deadline is not None:
                assert agent.deadline == after.deadline


@over(WORK, TIME, TROUBLE, DEATH, STOP, CHANGE)
def test_nobody_is_interrupted_without_a_reason_before_its_first_words_or_at_a_tool(history: History) -> None:
    world = play(history)
    for turn, action in performed(world, do.Interrupt):
        if not resumes(turn):
            agent = turn.after.agents[action.who]
            if agent.reason.kind is ReasonKind.HEARTBEAT:
                assert may_interrupt(agent, turn.clock, world.rules)
                assert any(
                    is_due(message, agent, turn.clock)
                    for message in agent.pending_messages
                    if message.id not in agent.in_flight
                )
            elif agent.reason.kind is ReasonKind.AT_LIMIT:
                assert turn.after.run.limits[world.rules.accounts[agent.name]].probe != agent.name
            elif agent.reason.kind is ReasonKind.OUTAGE:
                assert agent.retrying_since is not None
            elif agent.reason == reason_of(agent.stall) and agent.stall.finding is Finding.NO_PROGRESS:
                assert world.rules.no_progress is not None  # when that may be, is said by the properties of the ladder
            elif agent.reason == reason_of(agent.stall):
                assert turn.clock >= max(agent.last_output_at, agent.spawned_at) + ttl_of(agent, world.rules)
                assert not any(
                    turn.clock < pending.waited_until
                    for pending in turn.before.pending.values()
                    if pending.submission.agent == agent.name and pending.step is not AttemptStep.SETTLED
                )
            else:
                assert agent.reason.kind is ReasonKind.STOP
                assert turn.after.run.stopping


@over(WORK, TIME, TROUBLE, DEATH)
def test_an_interrupt_waits_for_nobody_else(history: History) -> None:
    # Whoever else is deaf, parked or broken: who can be interrupted for what is due, is - in that very turn.
    for turn in play(history).log:
        for agent in turn.after.agents.values():
            if (
                agent.phase is Phase.RUNNING
                and agent.has_output
                and not (turn.after.run.stopping or turn.after.run.detached_reason)
            ):
                assert not [
                    message
                    for message in agent.pending_messages
                    if message.id not in agent.in_flight and message.due <= turn.clock and not message.defers
                ]


@over(WORK, TIME, DEATH, CHANGE, CHANGE)
def test_retiming_never_lengthens_the_interval_that_runs(history: History) -> None:
    for turn in play(history).log:
        requests = [event.request for event in turn.events if isinstance(event, on.Requested)]
        if any(isinstance(event, on.Graded | on.TakenIn) for event in turn.events) or len(requests) > 1:
            continue  # it may have fired, or been removed and added again
        told = {message.name for _, message in owed_by_id(turn.after).values() if message.since == turn.clock}
        told |= {action.text.split(":")[0] for action in turn.actions if isinstance(action, do.LogEvent)}
        for owner, heartbeats in turn.before.heartbeats.items():
            for heartbeat in heartbeats:
                now = find(turn.after.heartbeats[owner], heartbeat.name)
                if now is None or type(now.trigger) is not type(heartbeat.trigger) or heartbeat.name in told:
                    continue
                assert _target(turn.after, owner, heartbeat.name) <= _target(turn.before, owner, heartbeat.name)


def _target(fleet: Fleet, owner: str, name: str) -> float:
    return (fleet.run if owner == FLEET else fleet.agents[owner]).targets[name]


# --- launches -----------------------------------------------------------------------------------------------------


@over(WORK, TIME, TROUBLE, TROUBLE, DEATH, STOP)
def test_there_are_never_two_launches_of_one_agent_nor_a_signal_to_another(history: History) -> None:
    world = play(history)  # which refuses to start a second, and to pass a signal on to another
    calm(world)
    launches: Counter[str] = Counter()
    for turn in world.log:
        for action in turn.actions:
            if isinstance(action, do.Spawn):
                launches[action.agent] += 1
                assert action.launch == launches[action.agent]
            elif isinstance(action, do.Interrupt | do.Terminate | do.Kill) and action.who[0] not in "#%":
                assert action.launch == launches[action.who]


@over(WORK, TIME, TROUBLE, JOBS, DEATH, STOP, STOP, budgets=True)
def test_nothing_starts_after_stop(history: History) -> None:
    for turn in play(history).log:
        if turn.after.run.stopping:
            assert not [action for action in turn.actions if isinstance(action, do.Spawn | do.CheckOut | do.StartJob)]
            # A grader that starts in the turn of the stop is ended in that turn.
            for start in (action for action in turn.actions if isinstance(action, do.StartGrader)):
                assert not turn.before.run.stopping
                assert do.Terminate(who=of_grade(start.number), launch=start.launch) in turn.actions
        stopped = any(isinstance(action, do.Finish) for action in turn.actions)
        assert stopped == bool(turn.after.run.finished and not (turn.before.run.finished and not resumes(turn)))
        if stopped:
            assert turn.after.run.finished == turn.after.run.stopping is not None
            assert not any(agent.phase not in (Phase.WAITING, Phase.PARKED, Phase.RETIRED) for agent in _agents(turn))


def _agents(turn: Turn) -> list[Agent]:
    return list(turn.after.agents.values())


@over(WORK, TIME, TROUBLE, STOP, ["leave"] * 4)
def test_where_a_supervisor_leaves_nothing_begins_and_nobody_is_disturbed(history: History) -> None:
    world = calm(play(history))
    for turn in world.log:
        begun = [action for action in turn.actions if isinstance(action, do.Spawn | do.CheckOut | do.Interrupt)]
        assert not (turn.after.run.detached_reason and begun)
        if turn.before.run.detached_reason:
            assert isinstance(turn.events[0], on.Resumed)
            ended = {event.agent for event in turn.events if isinstance(event, on.Exited)}
            at_work = {name for name, agent in turn.before.agents.items() if agent.phase in LIVE} - ended
            assert at_work.isdisjoint(action.agent for action in begun if isinstance(action, do.Spawn))
            for name in at_work:
                assert turn.after.agents[name].launch == turn.before.agents[name].launch


@over(WORK, TIME, TROUBLE, TROUBLE, JOBS, DEATH, STEER, examples=60)
def test_left_alone_after_stop_everything_is_gone_in_time_or_named(history: History) -> None:
    world = play(history)
    world.resume()
    world.blind, begun = False, world.clock
    ask(world, "operator", on.Stop(end=on_request("enough")))
    world.look()
    rules = world.rules
    graces = rules.interrupt_grace + rules.terminate_grace + 2**MAX_KILLS * KILL_AGAIN_SECONDS
    world.wait(graces)
    # A budget that the operator has set may have begun to end it.
    assert world.finished is not None
    assert world.finished.kind in (RunEndKind.REQUEST, RunEndKind.ALL_RETIRED, RunEndKind.BUDGET)
    assert world.clock <= begun + graces
    alerts = [action.text for _, action in performed(world, do.Notify)]
    for process in world.processes.values():
        on_holdout = f"#{process.who[2:]} on the hold-out"
        graded = on_holdout if process.who.startswith("#-") else process.who
        named = {"#": f"grader of {graded} cannot be killed", "%": f"job {process.who[1:]} of "}
        told = named.get(process.who[0], f"{process.who} has retired")
        assert any(told in text for text in alerts), f"{process} is still there"


@over(WORK, TIME, TROUBLE, DEATH, budgets=True)
def test_budgets_end_the_run_and_are_never_overdrawn(history: History) -> None:
    world = play(history)
    rules = world.rules
    for turn in world.log:
        run = turn.after.run
        best, proving = turn.after.standing.best_measured, is_under_way(turn.after.pending.values())
        spent = [
            not proving and rules.budget_attempts is not None and run.progress.graded >= rules.budget_attempts,
            rules.budget_seconds is not None and turn.clock >= rules.budget_seconds,
            rules.target is not None and best is not None and rules.scoring.gain(best.value, rules.target) >= 0,
        ]
        assert not any(spent) or run.stopping or run.detached_reason
        if rules.budget_attempts is not None:
            coming = sum(
                pending.step is not AttemptStep.SETTLED and pending.is_submitted
                for pending in turn.after.pending.values()
            )
            assert run.progress.graded + coming <= rules.budget_attempts


# --- orders of the operator ----------------------------------------------------------------------------------------


@over(WORK, WORK, TIME, TROUBLE, STALLS, DEATH, STEER, STEER, examples=60)
def test_an_order_holds_until_the_next_one(history: History) -> None:
    """Nobody who is paused or dismissed starts, no grade begins while grading is held, and nobody else is disturbed."""
    world = calm(play(history))
    for turn in world.log:
        orders = {name: agent.order for name, agent in turn.after.agents.items()}
        for action in turn.actions:
            assert not isinstance(action, do.Spawn) or orders[action.agent] is Order.WORK
            assert not isinstance(action, do.CheckOut) or not turn.after.run.is_grading_held or turn.after.run.stopping
            if isinstance(action, do.Interrupt) and (agent := turn.after.agents.get(action.who)):
                ordered = {ReasonKind.PAUSED: Order.PAUSE, ReasonKind.DISMISSED: Order.RETIRE}
                assert agent.order is ordered.get(agent.reason.kind, agent.order)
    asked = [event.request for turn in world.log for event in turn.events if isinstance(event, on.Requested)]
    cancelled = {request.number for request in asked if isinstance(request, on.CancelGrade)}
    for number, record in world.records.items():
        assert record.reason != grading.CANCELLED or number in cancelled


@over(WORK, TIME, TROUBLE, DEATH, STEER, STEER)
def test_who_is_added_or_moved_is_so_once_and_between_two_launches(history: History) -> None:
    world = calm(play(history))
    for turn in world.log:
        run, agents = turn.after.run, turn.after.agents
        for name, member in run.members.items():
            was = turn.before.agents.get(name)
            if was is not None and turn.before.run.members.get(name) != member and was.phase in LIVE:
                assert agents[name].phase not in LIVE or agents[name].launch > was.launch
        assert set(agents) - set(NAMES) == {name for name, member in run.members.items() if member.added}
        assert run.moves.keys() <= agents.keys()
    last = world.fleet.run
    if not world.finished:
        assert not last.preparing
        assert not [name for name in last.moves if world.fleet.agents[name].kills < MAX_KILLS]
    ready = "when its workspace is ready"
    added = sum(action.ok and action.message.endswith(ready) for _, action in performed(world, do.Answer))
    refused = sum(" is not added: " in action.text for _, action in performed(world, do.Notify) if not action.repeat)
    waiting = len(last.preparing.keys() - world.fleet.agents.keys())
    assert added == len(world.fleet.agents) - len(NAMES) + refused + waiting


# --- jobs ---------------------------------------------------------------------------------------------------------


@over(JOBS, JOBS, WORK, TIME, TROUBLE, DEATH, STOP, budgets=True)
@example((replace(QUIET_RULES, stagger=0.05), (("job", 1, 0), ("wait", 0, 0), ("end", 1, 34))))
def test_a_job_is_started_once_and_its_end_is_told_once_to_who_did_not_end_it(history: History) -> None:
    world = calm(play(history))
    started = [action.job.number for _, action in performed(world, do.StartJob)]
    shown = [(turn, action.job) for turn, action in performed(world, do.ShowJob)]
    numbers = list(range(1, world.fleet.run.job_count + 1))
    assert started == sorted(set(started) & set(numbers))
    assert sorted([*(job.number for _, job in shown), *world.fleet.jobs]) == numbers
    owed = Counter(
        agent for agent, message in created(world).values() if message.name == JOB_ENDED and not message.job_ends
    )
    told = {
        (agent.name, owed.id, end.number)
        for turn in world.log
        for agent in turn.after.agents.values()
        for owed in agent.pending_messages
        for end in owed.job_ends
    }
    owed += Counter(agent for agent, _, _ in told)
    # Who has retired is told nothing, also where a resume brings it back; who retires in that turn may be told.
    least, most = Counter[str](), Counter[str]()
    for turn, job in shown:
        works = [fleet.agents[job.agent].phase is not Phase.RETIRED for fleet in (turn.before, turn.after)]
        least[job.agent] += all(works) and not job.stopped_by_owner
        most[job.agent] += any(works) and not job.stopped_by_owner
    for agent in world.names:
        assert owed[agent] >= least[agent] or world.fleet.agents[agent].phase is Phase.RETIRED
        assert owed[agent] <= most[agent]


@over(JOBS, JOBS, WORK, TIME, TROUBLE, DEATH, STOP)
def test_no_agent_has_more_jobs_than_it_may_and_who_has_retired_has_none_that_goes_on(history: History) -> None:
    world = play(history)
    for turn in world.log:
        running = Counter(job.agent for job in turn.after.jobs.values())
        assert all(count <= MAX_JOBS for count in running.values())
        left_alone = [job for job in turn.after.jobs.values() if job.phase is Phase.RUNNING]
        if not turn.after.run.detached_reason:
            assert not (turn.after.run.stopping and left_alone)
            assert not [job for job in left_alone if turn.after.agents[job.agent].phase is Phase.RETIRED]


@over(JOBS, JOBS, WORK, TIME, TROUBLE, DEATH)
def test_who_waits_for_a_job_waits_no_longer_than_any_back_off(history: History) -> None:
    world = play(history)
    for turn in world.log:
        for agent in turn.after.agents.values():
            if agent.phase is Phase.WAITING and agent.reason.kind is ReasonKind.WAITS_FOR_JOB:
                assert agent.deadline is not None
                assert agent.deadline <= turn.clock + world.rules.backoff_max
                assert runs_job(agent.name, turn.after.jobs) or turn.after.run.detached_reason


# --- time ---------------------------------------------------------------------------------------------------------


@over(WORK, TIME, TROUBLE, JOBS, DEATH, STOP, examples=20)
def test_deciding_at_every_deadline_is_deciding_all_the_time(history: History) -> None:
    rules, moves = history
    # Every figure is a multiple of the tick, but for the jitter of a back-off.
    short = tuple((kind, x % 7 if kind == "wait" else x, y) for kind, x, y in moves)
    sparse, dense = play((rules, short)), play((rules, short), tick=0.5)
    assert [(turn.clock, turn.actions) for turn in dense.log] == [(turn.clock, turn.actions) for turn in sparse.log]
    assert dense.fleet == sparse.fleet


@over(WORK, TIME, TROUBLE, DEATH, STOP, budgets=True)
def test_a_wall_clock_that_is_set_changes_nothing_but_what_people_read(history: History) -> None:
    rules, moves = history
    steady = play((rules, tuple(move for move in moves if move[0] != "wall")))
    other = play((rules, tuple(("wall", x, y) if kind == "wall" else (kind, x, y) for kind, x, y in moves)))
    assert [_without_wall(turn) for turn in other.log] == [_without_wall(turn) for turn in steady.log]


def _without_wall(turn: Turn) -> tuple[float, tuple[do.Action, ...]]:
    return turn.clock, tuple(
        replace(action, attempt=replace(action.attempt, submitted_at="", published_at=""))
        if isinstance(action, do.Publish)
        else action
        for action in turn.actions
    )


# --- memory -------------------------------------------------------------------------------------------------------


@over(WORK, TIME, TROUBLE, JOBS, DEATH, STOP, CHANGE, budgets=True)
def test_deciding_the_journal_again_gives_what_was_recorded(history: History) -> None:
    world = play(history)
    lines = [json.loads(line) for line in world.lines if line.endswith(b"\n")]
    fleet = Fleet()
    for line in lines:
        events = decode(tuple[Event, ...], line["events"])
        after, actions = decide(fleet, events, Moment(run_time=line["at"], wall_time=line["wall"]), world.rules)
        assert actions == decode(tuple[do.Action, ...], line["actions"])
        assert json.loads(json.dumps(difference(fleet, after))) == line["set"]
        fleet = after
    assert fold_lines(lines).fleet == fleet == world.log[-1].after
    for part in ("agents", "pending", "heartbeats"):
        assert list(getattr(fold_lines(lines).fleet, part)) == list(getattr(fleet, part))


@over(WORK, TIME, TROUBLE, TROUBLE, DEATH)
def test_each_alert_is_said_and_again_only_by_another_supervisor(history: History) -> None:
    world = calm(play(history))
    assert world.fleet.run.undelivered_alerts == ()
    assert list(dict.fromkeys(world.notified)) == [f"run-alert-{n + 1}" for n in range(world.fleet.run.alert_count)]
    for turn, action in performed(world, do.Notify):
        assert action.repeat == (action.id in {known.id for known in turn.before.run.undelivered_alerts})
        assert resumes(turn) or not action.repeat


@over(WORK, TIME, TROUBLE, DEATH, CHANGE, ["ask"] * 4)
def test_each_request_is_done_once_and_answered(history: History) -> None:
    world = calm(play(history))
    assert world.requests == {}
    messages = Counter((who, message.prompt) for who, message in created(world).values() if message.name == "message")
    assert set(messages.values()) <= {1}
    answered = {answer.id: answer.ok for answer in world.answers}
    asked = {event.id: event for turn in world.log for event in turn.events if isinstance(event, on.Requested)}
    assert set(asked) == set(answered)
    for id, request in asked.items():
        if isinstance(request.request, on.Tell):
            assert answered[id] == any(prompt == id for _, prompt in messages)
