"""How often `status.json` is written: soon after something happened, and rarely while nothing does; a whole prompt."""

import json
from dataclasses import replace

import pytest
from real_runs import context_of
from sample import submission

from attempts.store import Store
from coral.cli.ui.agents_table import activity
from coral.fleet import events as on
from coral.fleet.actions import Spawn
from coral.fleet.agent_state import Agent, PendingMessage, Phase
from coral.fleet.messages import MESSAGE
from coral.fleet.reasons import Reason, ReasonKind, RunEnd, RunEndKind
from coral.fleet.run_state import AttemptStep, Breaker, Fleet, Limit, PendingAttempt, Run
from coral.reading.lenient_json import LenientJson
from coral.supervisor.loop import Supervisor
from coral.views.health import SUPERVISOR_TTL
from coral.views.prompt import MAX_CHARACTERS, launch_prompt
from coral.views.report import MAX_STATUS_SECONDS, QUIET_STATUS_SECONDS, Report
from heartbeats.archive import beats_in
from heartbeats.beat import SILENT_SECONDS, Beat, Status, to_dict
from heartbeats.interval import WATCHED, WatchedLook, Watcher
from workspace.seal import Level

SILENT = 2 * QUIET_STATUS_SECONDS


class Shown:
    def __init__(self, manager: Supervisor) -> None:
        self.manager = manager
        self.report, self.monitors = manager._report, manager._monitors.by_agent
        self.fleet = Fleet(agents={"agent-1": Agent(name="agent-1", phase=Phase.RUNNING, launch=1, has_output=True)})
        manager._monitors.open("agent-1", 1, None, 0.0)

    def at(self, clock: float) -> float:
        """When the view was written that is there then, on the run's clock."""
        self.report.show(self.fleet, self.monitors, on.Moment(run_time=clock, wall_time=""))
        shown: float = json.loads(self.manager._layout.status.read_text())["clock"]
        return shown


@pytest.fixture
def shown(supervisor: Supervisor) -> Shown:
    return Shown(supervisor)


def test_while_nothing_happens_it_is_written_now_and_then(shown: Shown) -> None:
    assert shown.at(SILENT) == SILENT
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT
    assert shown.at(SILENT + QUIET_STATUS_SECONDS) == SILENT + QUIET_STATUS_SECONDS


def test_a_line_of_the_timeline_that_a_crash_has_cut_off_takes_no_other_with_it(supervisor: Supervisor) -> None:
    layout, lines = supervisor._layout, list[bytes]()
    with layout.events.open("ab") as file:
        file.write(b'{"type": "alert", "te')
    for text in ("one", "two"):
        Report(context_of(layout), "").write_line(on.Moment(run_time=1.0, wall_time=""), "warning", text)
        lines = layout.events.read_bytes().splitlines()
        assert json.loads(lines[-1])["text"] == text
    assert lines[-3:-2] == [b'{"type": "alert", "te']


def test_what_is_decided_is_shown_soon(shown: Shown) -> None:
    shown.at(SILENT)
    shown.fleet = replace(shown.fleet)
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT + MAX_STATUS_SECONDS


def test_what_an_agent_says_is_shown_soon(shown: Shown) -> None:
    shown.at(SILENT)
    shown.monitors["agent-1"].printed_at = SILENT + 1
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT + MAX_STATUS_SECONDS


def test_how_far_a_grade_is_is_shown_soon(shown: Shown) -> None:
    shown.fleet = replace(shown.fleet, pending={1: PendingAttempt(number=1, submission=submission())})
    shown.at(SILENT)
    assert shown.at(SILENT + MAX_STATUS_SECONDS) == SILENT + MAX_STATUS_SECONDS


def test_how_far_a_grade_is_stands_beside_its_agent(shown: Shown) -> None:
    graded = PendingAttempt(number=1, submission=submission(), step=AttemptStep.GRADING)
    shown.fleet = replace(shown.fleet, pending={1: graded})
    folder = shown.manager._layout.grading(1)
    folder.mkdir(parents=True)
    beat = Beat("r", "#1", 1, Status.RUNNING, "grading", 0.4, "fold 3 of 5", "2030-01-01T00:00:00+00:00", 120.0)
    folder.joinpath("beats.jsonl").write_text(json.dumps(to_dict(beat)) + "\n")
    shown.at(SILENT)
    status = LenientJson(json.loads(shown.manager._layout.status.read_text()))
    (agent,) = (agent for agent in status.objects("agents") if agent.text("name") == "agent-1")
    assert activity(agent, 0.0).plain.endswith(" · #1 (40%, fold 3 of 5)")
    assert status.inner("grading").objects("beats")[0].text("agent") == "agent-1"
    archived = beats_in(shown.manager._layout.beats("agent-1"))
    assert [(found.task, found.progress, found.message) for found in archived] == [("grade #1", 0.4, "")]


def test_a_launch_of_which_nothing_is_heard_for_long_is_shown_as_starting(shown: Shown) -> None:
    def beat(clock: float) -> object:
        shown.at(clock)
        return json.loads(shown.manager._layout.status.read_text())["agents"][0]["beat"]

    assert beat(SILENT_SECONDS - 1) is None
    assert beat(SILENT_SECONDS + 30) == {"phase": "starting", "message": "", "age": SILENT_SECONDS + 30}


LIMIT, PAUSED = Limit(until=SILENT + 60.0), Breaker(paused_until=SILENT + 30.0)
CLOSED = replace(LIMIT, closed=Reason(ReasonKind.REQUEST))


@pytest.mark.parametrize(
    ("limit", "breaker", "held"),
    [
        (LIMIT, PAUSED, ("limit", 60.0)),
        (replace(LIMIT, until=None), None, ("limit", None)),
        (replace(LIMIT, probe="agent-1"), None, None),
        (CLOSED, PAUSED, ("crashes", 30.0)),
        (None, replace(PAUSED, paused_until=SILENT - 1.0), None),
    ],
)
def test_the_account_that_holds_an_agent_up_is_shown(
    shown: Shown, limit: Limit | None, breaker: Breaker | None, held: tuple[str, float | None] | None
) -> None:
    run = Run(limits={"": limit} if limit else {}, breakers={"": breaker} if breaker else {})
    shown.fleet = replace(shown.fleet, run=run)
    shown.at(SILENT)
    found = json.loads(shown.manager._layout.status.read_text())["agents"][0]["held"]
    assert found == (None if held is None else {"account": "", "by": held[0], "left": held[1]})


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (ReasonKind.PAUSED, "paused by the operator"),
        (ReasonKind.DISMISSED, "the operator retired it"),
        (ReasonKind.UNPAUSED, "the operator lets it go on · 4 s left"),
    ],
)
def test_who_is_held_back_by_the_operator_is_not_said_to_start_soon(shown: Shown, kind: ReasonKind, said: str) -> None:
    """Its launch was interrupted before its first output: it waits as after a crash, and is parked after that."""
    waits = Agent(name="agent-1", phase=Phase.WAITING, launch=1, reason=Reason(kind), deadline=SILENT + 4)
    shown.fleet = Fleet(agents={"agent-1": waits})
    shown.at(SILENT)
    (agent,) = LenientJson(json.loads(shown.manager._layout.status.read_text())).objects("agents")
    assert activity(agent, 0.0).plain == said


def test_a_run_has_started_when_its_seed_was_graded(shown: Shown) -> None:
    """After a resume, too: else its report would say that it started then."""
    shown.at(SILENT)
    layout = shown.manager._layout
    assert json.loads(layout.status.read_text())["started_at"] == Store(layout.attempts).read(0).published_at


@pytest.mark.parametrize(("executor", "seal"), [("local", Level.LANDLOCK), ("ray", Level.NONE)])
def test_a_run_with_agents_on_a_cluster_is_not_shown_as_sealed(start, executor: str, seal: Level) -> None:
    """Nothing seals them there."""
    agents = (f"agents.executor={executor}", "agents.ray.address=127.0.0.1:1")
    context = replace(context_of(start(["hang"], overrides=agents, supervise=False).layout), level=Level.LANDLOCK)
    Report(context, "").show(Fleet(), {}, on.Moment(run_time=SILENT, wall_time=""))
    assert json.loads(context.layout.status.read_text())["seal"] == seal


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


def test_the_supervisor_beats_at_each_change_and_at_each_third_of_its_ttl(shown: Shown) -> None:
    def beats() -> list[tuple[str, str, str]]:
        found = list(beats_in(shown.manager._layout.supervisor_beats))
        assert all((beat.task, beat.session, beat.ttl) == ("supervisor", "supervisor", 180.0) for beat in found)
        return [(beat.status.value, beat.phase, beat.message) for beat in found]

    running = ("running", "running", "1 agent at work")
    shown.at(SILENT)
    shown.at(SILENT + SUPERVISOR_TTL / 3 - 1)
    assert beats() == [running]
    shown.at(SILENT + SUPERVISOR_TTL / 3 + QUIET_STATUS_SECONDS)
    assert beats() == [running] * 2
    shown.fleet = replace(shown.fleet, run=replace(shown.fleet.run, finished=RunEnd(RunEndKind.SIGNAL)))
    shown.at(SILENT + SUPERVISOR_TTL)
    assert beats()[2:] == [("success", "stopped", "1 agent at work")]


def test_the_supervisor_beats_often_while_somebody_watches(shown: Shown) -> None:
    shown.at(SILENT)
    Watcher(shown.manager._layout.supervisor_beats).touch()
    shown.report._look = shown.report._own._look = WatchedLook(shown.manager._layout.supervisor_beats)
    again = SILENT + max(WATCHED, MAX_STATUS_SECONDS)  # on a busy machine the view is written more rarely
    assert again < SILENT + QUIET_STATUS_SECONDS
    assert shown.at(again) == again
    shown.at(again + 0.5 * WATCHED)
    assert len(list(beats_in(shown.manager._layout.supervisor_beats))) == 2


def test_one_that_leaves_its_agents_at_work_is_over_and_no_success(shown: Shown) -> None:
    shown.fleet = replace(shown.fleet, run=replace(shown.fleet.run, detached_reason=RunEnd(RunEndKind.SIGNAL)))
    shown.at(SILENT)
    (beat,) = beats_in(shown.manager._layout.supervisor_beats)
    assert (beat.status, beat.phase) == (Status.CANCELLED, "left")
