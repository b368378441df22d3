"""How often the loop reads what agents print, and what it reads of a cluster."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest
from strangers import owning

from coral.cluster import wire
from coral.fleet import events as on
from coral.fleet.agent_state import Agent, Phase
from coral.fleet.run_state import Fleet, Run
from coral.grading.remote import bridge_of
from coral.grading.runner import ResultWriter
from coral.processes.launches import Launch
from coral.processes.process_tree import unidentified
from coral.processes.result_channel import ResultChannel
from coral.supervisor.gather import OUTPUT_SECONDS
from coral.supervisor.output_monitor import QUIET_PAUSE, QUIET_SECONDS


def test_an_agent_that_has_long_been_silent_is_listened_to_less_often_until_it_speaks(supervisor) -> None:
    fleet = Fleet(agents={"agent-1": Agent(name="agent-1", phase=Phase.RUNNING, launch=1, has_output=True)})
    monitor = supervisor._monitors.open("agent-1", 1, None, 0.0)
    output = supervisor._layout.output("agent-1", 1)
    output.parent.mkdir(parents=True, exist_ok=True)

    def pauses(since: float, seconds: float) -> set[float]:
        """Between two looks at what it printed, while the loop comes by twice a second."""
        looks = []
        for turn in range(int(seconds / OUTPUT_SECONDS)):
            now = on.Moment(run_time=since + turn * OUTPUT_SECONDS, wall_time="")
            list(supervisor._gatherer._read_output(fleet, now))
            if monitor.read_at == now.run_time:
                looks.append(now.run_time)
        return {later - before for before, later in pairwise(looks)}

    assert pauses(0.0, QUIET_SECONDS) == {OUTPUT_SECONDS}
    assert pauses(QUIET_SECONDS, 20.0) == {QUIET_PAUSE}
    output.write_text("a word\n")
    list(supervisor._gatherer._read_output(fleet, on.Moment(run_time=QUIET_SECONDS + 30.0, wall_time="")))
    assert pauses(QUIET_SECONDS + 30.5, 20.0) == {OUTPUT_SECONDS}


def grading_on(supervisor, executor: str):
    """What gathers for a supervisor whose grades run there."""
    gatherer = supervisor._gatherer
    config = gatherer._context.config
    grader = config.grader.model_copy(update={"executor": executor})
    gatherer._context = replace(gatherer._context, config=replace(config, grader=grader))
    return gatherer


@pytest.mark.parametrize(("executor", "outcome"), [("ray", "lost"), ("slurm", "lost"), ("local", "void")])
def test_that_a_grade_is_to_be_queued_again_is_believed_of_a_cluster_alone(supervisor, executor, outcome) -> None:
    channel = ResultChannel()
    folder = supervisor._layout.grading(7)
    folder.mkdir(parents=True)
    ResultWriter(folder / "result.json", channel.given[0]).write({"void": "no room", "again": True})
    channel.close_given()
    launch = Launch("#7", 1, unidentified(), "", 0.0, channel=channel, code=0)
    (event,) = grading_on(supervisor, executor)._end(Fleet(), launch, on.Moment(run_time=1.0, wall_time=""))
    assert event.outcome == outcome


def test_what_the_bridge_says_of_the_cluster_is_an_event_once(supervisor) -> None:
    gatherer, folder = grading_on(supervisor, "ray"), bridge_of(supervisor._layout.grader)
    folder.mkdir(exist_ok=True)

    def found(**known) -> list[on.Event]:
        return list(gatherer._check_cluster(Fleet(run=Run(**known))))

    assert found() == []
    (folder / wire.CAPACITY).write_text("3\n")
    (folder / wire.TROUBLE).write_text("no head\n")
    assert found() == [on.ClusterChecked(problem="no head"), on.ClusterMeasured(capacity=3)]
    assert found(cluster_problem="no head", cluster_capacity=3) == []
    (folder / wire.EXCLUDED).write_text('{"h": "it is full"}')
    nodes = {"h": "it is full"}
    assert found(cluster_problem="no head", cluster_capacity=3) == [on.NodesExcluded(nodes=nodes)]
    assert found(cluster_problem="no head", cluster_capacity=3, excluded_nodes=nodes) == []


def test_a_launch_is_lost_by_the_word_of_its_process_here_and_not_by_an_exit_code(supervisor) -> None:
    monitor = supervisor._monitors.open("agent-1", 1, None, 0.0)
    launch = cast(Launch, SimpleNamespace(who="agent-1", number=1, code=94, killed=False))

    def ending() -> on.Ending:
        return supervisor._gatherer._judge(launch, monitor).ending

    assert ending() is on.Ending.CRASHED
    folder = supervisor._layout.private / "agents"
    folder.mkdir()
    (folder / "agent-1.lost").write_text("1")
    assert ending() is on.Ending.LOST


def test_a_run_whose_folder_is_closed_for_a_while_goes_on(supervisor) -> None:
    """As on a network disk whose ticket has expired: all that is read there fails, and that is no full disk."""
    gatherer, layout = supervisor._gatherer, supervisor._layout
    with owning(layout.root):
        layout.root.chmod(0)
        try:
            gathered = gatherer.gather(supervisor._fleet, on.Moment(run_time=1.0, wall_time=""))
        finally:
            layout.root.chmod(0o755)
    assert not any(isinstance(event, on.DiskChecked) for event in gathered)
