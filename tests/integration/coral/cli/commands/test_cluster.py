"""`coral cluster` on real runs: grades that are jobs of this machine, a cluster that is gone, and none at all."""

import json

import pytest
from real_runs import tries, wait_until
from remote_grades import GRADE, place_of

from coral.cli.commands.cluster import _print_agents

LOCAL = ("grader.executor=slurm", "grader.slurm.cluster=local", "grader.timeout=60")


def test_it_shows_where_grades_run_and_says_when_nobody_answers(start, coral):
    run = start([*tries("slow"), "hang"], overrides=LOCAL, grade=GRADE)
    node, _ = place_of(run, 1)
    words = ("cluster", "--run", str(run.layout.root))
    code, told, _ = coral(*words)
    assert (code, told.startswith(f"#1 on {node} for "), told.count("\n")) == (0, True, 1)
    found = json.loads(coral(*words, "--json")[1])
    assert {name: found[name] for name in ("executor", "problem", "nodes", "runs")} == {
        "executor": "slurm", "problem": "", "nodes": [], "runs": []
    }  # fmt: skip
    (grade,) = found["grades"]
    assert (grade["attempt"], grade["node"], grade["waits"]) == (1, node, "")
    assert 0 <= grade["seconds"] < 60
    (run.layout.private / "cluster" / "capacity").write_text("1\n")
    assert coral(*words)[1].startswith("the nodes have room for 1 grade at once\n#1 on ")
    assert json.loads(coral(*words, "--json")[1])["capacity"] == 1
    run.stop()
    code, _, error = coral(*words)
    assert (code, "cannot ask the cluster: the process of the run that speaks to it does not answer" in error) == (
        1,
        True,
    )


def test_a_cluster_that_cannot_be_used_is_named(start, coral):
    run = start([*tries(1), "hang"], overrides=LOCAL, grade=GRADE)
    run.wait_for_attempts(1)
    (run.layout.private / "cluster" / "trouble").write_text("Slurm does not answer: no controller\n")
    assert wait_until(lambda: run.status()["grading"]["paused"])
    code, told, _ = coral("cluster", "--run", str(run.layout.root))
    assert (code, told) == (
        0,
        "the cluster cannot be used: Slurm does not answer: no controller\nno grade of this run is there\n",
    )


def test_a_run_on_this_machine_alone_has_none(start, coral):
    run = start([*tries(1), "hang"])
    code, _, error = coral("cluster", "--run", str(run.layout.root))
    assert (code, f"{run.layout.root.name} has no cluster: its grades and agents run on this machine" in error) == (
        1,
        True,
    )


@pytest.mark.parametrize("with_nodes", [True, False])
def test_the_trouble_of_the_agents_cluster_is_printed_wherever_its_nodes_are(capsys, with_nodes):
    trouble = "the cluster at h:1 has no node that runs agents"
    _print_agents({"problem": trouble, "nodes": [], "launches": []}, with_nodes=with_nodes)
    assert capsys.readouterr().out == f"the cluster cannot be used: {trouble}\nno agent of this run is there\n"
