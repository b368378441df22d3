"""What searches show of a problem, as sentences."""

import pytest
from native_problems import problem

from coral.native.search.insight import findings
from coral.native.search.numeric.problem import TimeUp


def test_tight_constraints_and_values_that_matter_are_named():
    def cost(data):
        return 50 * data["a"] ** 2 + data["b"] + data["c"], [data["a"] - 1, data["b"], data["c"] - 5, 3 - data["c"]]

    task = problem(cost, {"a": 1.0, "b": 2.0, "c": 3.0, "idle": 4.0, "n": 2})
    found = findings(task, task.space.start, None, [])
    assert found == [
        "of the check's constraints 3 of 4 limit the score: slack[0], slack[2], slack[3]",
        "a small step changes over 3 times as much as elsewhere in a",
        "a small step changes nothing in idle, n",
    ]


def test_constraints_that_are_not_tight_do_not_limit():
    task = problem(lambda x: (x[0] + x[1], [1 + x[0], 2 + x[0]]), [1.0, 1.0])
    assert findings(task, [1.0, 1.0], None, []) == ["of the check's constraints 0 of 2 limit the score"]


def test_what_all_new_bests_have_in_common():
    task = problem(lambda x: sum(x), [1.0, 1.0, 1.0, 1.0])
    bests = [[2.0, 0.5, 1.0, 0.0], [3.0, 0.4, 1.0, 2.0], [4.0, 0.9, 1.0, 0.5]]
    found = findings(task, bests[-1], [1.0] * 4, bests)
    assert found[-2:] == [
        "all 3 new bests move these the same way: [0] up, [1] down",
        "no new best changes [2]",
    ]
    assert not [text for text in findings(task, bests[-1], [1.0] * 4, bests[:2]) if "new best" in text]


def test_a_slow_check_is_given_up():
    task = problem(lambda x: x[0], [1.0])
    task.deadline = 0.0
    with pytest.raises(TimeUp):
        findings(task, [1.0], None, [])
    assert findings(problem(lambda x: 1 / 0, [1.0]), [1.0], None, []) == []
