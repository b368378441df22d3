"""The list of runs, and several of them side by side."""

import pytest
from dashboard import visitor
from sample import attempt, make_run, write_events, write_status

from attempts.record import LARGEST, Kind, Verdict
from attempts.store import Store


def test_the_runs_beside_it_are_listed_and_compared(tmp_path) -> None:
    first, second = (make_run(tmp_path / "runs", scores=scores) for scores in ((1.0, 2.0), (1.0, 1.5, 1.75)))
    for run in (first, second):
        write_status(run)
        write_events(run, {"type": "published", "attempt": 1, "clock": 30.0})
    client = visitor(first)
    listed = client.get("/api/runs").json()["runs"]
    assert [run["run"] for run in listed] == sorted((first.root.name, second.root.name), reverse=True)
    assert {run["best"] for run in listed} == {"2", "1.75"}
    found = client.get("/api/compare", params={"run": [first.root.name, second.root.name]}).json()
    assert [run["best"] for run in found["runs"]] == [2.0, 1.75]
    assert found["runs"][0]["time"][:2] == [[0.0, 1.0], [30.0, 2.0]]
    gains = [[(one["number"], one["gain"]) for one in run["changes"]] for run in found["runs"]]
    assert gains == [[(1, 1.0)], [(1, 0.5), (2, 0.25)]]
    assert found["runs"][0]["changes"][0]["title"] == "try 1"


def test_the_use_of_a_run_is_a_lower_bound_where_not_all_is_known(tmp_path) -> None:
    known, partly, unknown = (make_run(tmp_path / "runs") for _ in range(3))
    write_status(known, spent={"tokens": 5000, "money": 2.0})
    write_status(
        partly, spent={"tokens": 5000, "money": 2.0}, tokens_unknown_of=["agent-1"], money_unknown_of=["agent-1"]
    )
    write_status(
        unknown, spent={"tokens": None, "money": None}, tokens_unknown_of=["agent-1"], money_unknown_of=["agent-1"]
    )
    client, names = visitor(known), [layout.root.name for layout in (known, partly, unknown)]
    words = ["5.0k tokens, $2.00", "at least 5.0k tokens, at least $2.00", "use not known"]
    listed = {run["run"]: run["used"] for run in client.get("/api/runs").json()["runs"]}
    assert [listed[name] for name in names] == words
    compared = client.get("/api/compare", params={"run": names}).json()["runs"]
    assert [run["used"] for run in compared] == words


def test_a_step_to_a_worse_best_is_no_gain(tmp_path) -> None:
    first, second = make_run(tmp_path / "runs", scores=(1.0, 2.0, 3.0)), make_run(tmp_path / "runs")
    for number in (3, 4):
        again = attempt(number, 1.5, kind=Kind.CONFIRM, of=2, tree=f"{2:040x}", verdict=Verdict.WORSE)
        Store(first.attempts).publish(again)
    for layout in (first, second):
        write_status(layout)
    names = [layout.root.name for layout in (first, second)]
    found = visitor(first).get("/api/compare", params={"run": names}).json()["runs"][0]
    assert found["best"] == 1.5, "#2 was worse, measured again"
    assert [(one["number"], one["gain"]) for one in found["changes"]] == [(1, 1.0)]


def test_a_step_back_to_the_seed_is_no_gain(tmp_path) -> None:
    first, second = make_run(tmp_path / "runs", scores=(1.0, 1.5)), make_run(tmp_path / "runs")
    for number in (2, 3):
        again = attempt(number, 0.25, kind=Kind.CONFIRM, of=1, tree=f"{1:040x}", verdict=Verdict.WORSE)
        Store(first.attempts).publish(again)
    seed = {"agent": "", "kind": Kind.CONFIRM, "of": 0, "tree": f"{0:040x}", "verdict": Verdict.NEW_BEST}
    Store(first.attempts).publish(attempt(4, 1.0, **seed))
    for layout in (first, second):
        write_status(layout)
    names = [layout.root.name for layout in (first, second)]
    found = visitor(first).get("/api/compare", params={"run": names}).json()["runs"][0]
    assert (found["best"], found["to_best"], found["changes"]) == (1.0, "", [])


def test_gains_beyond_the_largest_number_are_compared(tmp_path) -> None:
    layouts = [make_run(tmp_path / "runs", scores=(-1.7e308, 1.7e308)) for _ in range(2)]
    names = [layout.root.name for layout in layouts]
    answer = visitor(layouts[0]).get("/api/compare", params={"run": names})
    assert answer.status_code == 200, "JSON has no infinite number"
    found = answer.json()["runs"][0]
    assert found["gain"] == found["changes"][0]["gain"] == LARGEST


def test_the_list_says_so_where_nobody_has_beaten_the_seed(tmp_path) -> None:
    layout = make_run(tmp_path / "runs", scores=(1.0, 0.5))
    write_status(layout)  # its best is the attempt with the highest score, which is the seed
    assert [run["best"] for run in visitor(layout).get("/api/runs").json()["runs"]] == ["the seed"]


def test_a_run_without_its_status_is_listed_with_what_is_known(tmp_path) -> None:
    layout = make_run(tmp_path / "runs")
    (found,) = visitor(layout).get("/api/runs").json()["runs"]
    assert (found["clock"], found["attempts"], found["agents"], found["used"]) == ("", 4, 2, "use not known")
    assert found["best"] == "2"


def test_a_far_seed_does_not_hide_the_steps_of_the_runs_compared(tmp_path) -> None:
    layouts = [make_run(tmp_path / "runs", scores=scores) for scores in ((0.0, 2.6, 2.7, 2.8), (0.0, 2.5, 2.6))]
    for layout in layouts:
        write_status(layout)
    found = visitor(layouts[0]).get("/api/compare", params={"run": [layout.root.name for layout in layouts]}).json()
    assert found["edge"] == pytest.approx(2.485), "from the first step of the worse run"


def test_what_cannot_be_compared_is_refused(tmp_path) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    client = visitor(layout)
    for names in ([], [layout.root.name], [layout.root.name] * 2, [layout.root.name, "../.."]):
        answer = client.get("/api/compare", params={"run": names})
        assert (answer.status_code, answer.json()["error"].startswith("cannot ")) == (404, True)


def test_another_run_is_found_by_its_name_alone(tmp_path) -> None:
    first, second = make_run(tmp_path / "runs"), make_run(tmp_path / "runs")
    client = visitor(first)
    write_status(second, attempts=55)
    assert client.get(f"/api/runs/{second.root.name}/fleet").json()["attempts"] == 55
    for name in ("..", "%2e%2e", "toy", "x"):
        assert client.get(f"/api/runs/{name}/fleet").status_code == 404
