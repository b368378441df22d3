"""The table of attempts: filters, order and pages; one attempt with all that is known of it."""

import pytest
from dashboard import visitor
from sample import attempt, make_run, write_status

from attempts.record import Kind, Verdict
from attempts.store import Store
from workspace.layout import Layout

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e"


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made)
    return made


def table(layout: Layout, **asked: object) -> dict:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/attempts", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def numbers(found: dict) -> list[int]:
    return [row["number"] for row in found["rows"]]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, [4, 3, 2, 1, 0]),
        ({"way": "up"}, [0, 1, 2, 3, 4]),
        ({"order": "score"}, [4, 1, 3, 0, 2]),
        ({"order": "score", "way": "up"}, [0, 3, 1, 4, 2]),
        ({"agent": "agent-1"}, [4, 2]),
        ({"verdict": "failed"}, [2]),
        ({"kind": "baseline"}, [0]),
        ({"text": "CIRCLES overlap"}, [2]),
        ({"text": "%' OR 1=1 --"}, []),
        ({"most": 2, "offset": 1}, [3, 2]),
        ({"offset": 99}, []),
    ],
)
def test_the_table_is_narrowed_sorted_and_paged(layout: Layout, asked: dict, expected: list[int]) -> None:
    assert numbers(table(layout, **asked)) == expected


MEASURED = [
    ({"metric": "speed"}, [8, 7, 5]),
    ({"metric": "speed", "least": "2"}, [8, 7]),
    ({"metric": "speed", "least": "2", "greatest": "3e0"}, [7]),
    ({"metric": "speed", "greatest": "-1"}, []),
    ({"metric": "speed", "order": "metric"}, [8, 7, 5]),
    ({"metric": "speed", "order": "metric", "way": "up"}, [5, 7, 8]),
    ({"metric": "rows", "order": "metric"}, [6]),
    ({"metric": "speed", "agent": "agent-2"}, [7, 5]),
    ({"metric": "speed", "text": "quick", "order": "metric"}, [8]),
    ({"metric": "speed' OR 1=1 --"}, []),
    ({"metric": "name"}, []),  # a text is no number
]


def test_the_gain_of_an_attempt_is_that_of_all_its_grades_as_the_terminal_says(layout: Layout) -> None:
    store, client = Store(layout.attempts), visitor(layout)
    for number in (5, 6):
        store.publish(attempt(number, 1.25, kind=Kind.CONFIRM, of=4, tree=f"{4:040x}", verdict=Verdict.WORSE))
    store.publish(attempt(7, 9.0, kind=Kind.TUNE))
    gains = {n: client.get(f"/api/runs/{layout.root.name}/attempts/{n}").json()["gain"] for n in (0, 3, 4, 7)}
    assert gains == {0: "", 3: "+0.25", 4: "+0.25", 7: ""}, "a trial of numbers may be graded by another rule"


@pytest.mark.parametrize(("asked", "expected"), MEASURED)
def test_the_table_is_narrowed_and_sorted_by_a_metric(layout: Layout, asked: dict, expected: list[int]) -> None:
    store = Store(layout.attempts)
    store.publish(attempt(5, 1.5, metrics={"speed": 1, "name": "x"}))
    store.publish(attempt(6, 1.5, metrics={"rows": 2**62}))
    store.publish(attempt(7, 1.5, metrics={"speed": 3.0}))
    store.publish(attempt(8, None, metrics={"speed": 7.25}, title="quick"))
    found = table(layout, **asked)
    assert numbers(found) == expected
    assert found["total"] == len(expected)
    assert [row["metric"] for row in found["rows"]] == [
        {5: "1", 6: str(2**62), 7: "3", 8: "7.25"}[number] for number in expected
    ]


def test_the_total_counts_what_matches_on_all_pages(layout: Layout) -> None:
    assert table(layout, most=1)["total"] == 5
    assert table(layout, most=1, agent="agent-1")["total"] == 2


@pytest.mark.parametrize(
    "asked",
    [
        {"verdict": "x"},
        {"order": "1; DROP"},
        {"offset": "-1"},
        {"most": "9" * 30},
        {"order": "metric"},
        {"metric": "a", "least": "nan"},
        {"metric": "a", "greatest": "1e999"},
        {"metric": "a", "least": "two"},
    ],
)
def test_what_cannot_be_asked_is_refused_and_says_why(layout: Layout, asked: dict) -> None:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/attempts", params=asked)
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("cannot ")


def test_one_attempt_has_its_family_and_its_figures(layout: Layout) -> None:
    Store(layout.attempts).publish(attempt(5, 1.75, metrics={"speed": 3}, feedback=f"slow {HOSTILE}"))
    client = visitor(layout)
    one = client.get(f"/api/runs/{layout.root.name}/attempts/5").json()
    assert (one["score"], one["agent"], one["metrics"]) == ("1.75", "agent-2", [["speed", "3"]])
    assert [held["number"] for held in one["ancestors"]] == [0, 1, 2, 3, 4]
    assert one["feedback"].startswith("slow <img")
    assert "\x1b" not in one["feedback"]
    assert client.get(f"/api/runs/{layout.root.name}/attempts/4").json()["children"] == [5]


def test_of_what_was_measured_again_the_median_is_shown_and_sorted_by(layout: Layout) -> None:
    """#4 with 2, 1.1 and 1.2 falls behind #1 with 1.5; a confirmation is shown with its own score."""
    for number, score in ((5, 1.1), (6, 1.2)):
        Store(layout.attempts).publish(attempt(number, score, kind=Kind.CONFIRM, of=4, verdict="tied"))
    client, run = visitor(layout), f"/api/runs/{layout.root.name}/attempts"
    found = table(layout, order="score")
    assert [(row["number"], row["score"]) for row in found["rows"]] == [
        (1, "1.5"),
        (3, "1.25"),
        (6, "1.2"),
        (4, "1.2"),
        (5, "1.1"),
        (0, "1"),
        (2, "–"),
    ]
    assert numbers(table(layout, order="score", most=2, offset=2)) == [6, 4]
    one = client.get(f"{run}/4").json()
    assert (one["score"], one["gain"]) == ("1.2", "+0.2")
    assert one["measured"] == "3 times: median 1.2, mean 1.433333333, standard deviation 0.49"
    assert client.get(f"{run}/4/hint").json()["score"] == "1.2"
    Store(layout.attempts).publish(attempt(7, 1.75, parent=f"{4:040x}"))
    above = client.get(f"{run}/7").json()["ancestors"]
    assert [(held["number"], held["score"]) for held in above][-2:] == [(3, "1.25"), (4, "1.2")]


def test_an_attempt_that_is_not_there_is_named(layout: Layout) -> None:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/attempts/77")
    assert (answer.status_code, answer.json()["error"]) == (404, "cannot show #77: there is no such attempt")


def test_a_hint_is_short(layout: Layout) -> None:
    hint = visitor(layout).get(f"/api/runs/{layout.root.name}/attempts/4/hint").json()
    assert (hint["score"], hint["best"], hint["title"]) == ("2", True, "try 4")
    assert "feedback" not in hint


def test_the_seed_is_called_the_seed(layout: Layout) -> None:
    client = visitor(layout)
    for path in ("0", "0/hint"):
        assert client.get(f"/api/runs/{layout.root.name}/attempts/{path}").json()["verdict"] == "the seed"
    assert table(layout, way="up")["rows"][0]["verdict"] == "the seed"


def test_a_record_that_is_damaged_is_told_in_words(layout: Layout) -> None:
    (layout.attempts / "000004.json").write_text("{torn")
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/attempts/4")
    assert answer.status_code == 404
    assert "cannot read attempt #4" in answer.json()["error"]
