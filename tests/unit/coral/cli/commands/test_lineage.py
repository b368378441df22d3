"""`coral lineage`: who built on whom."""

import json
import re
from collections.abc import Callable

from sample import attempt, write_status

from attempts.record import Kind, Verdict
from attempts.store import Store
from workspace.layout import Layout

Shown = Callable[..., str]


def test_a_run_as_a_tree(layout: Layout, shown: Shown) -> None:
    """0 - 1 - 2 - 3 - 4, and 5 built on 1."""
    Store(layout.attempts).publish(attempt(5, 1.75, parent=f"{1:040x}"))
    write_status(layout, agents=[{"name": "agent-2", "best": 1.75, "best_number": 5}])
    lines = shown("lineage").splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["#0", "#1"]
    assert lines[2].startswith("├─ #5")
    assert re.match(r"#2 .* failed .* try 2$", lines[3])
    assert re.match(r"#4 .* the best .* try 4$", lines[5])
    assert len(lines) == 6


def test_one_attempt_and_what_is_left_out(layout: Layout, shown: Shown) -> None:
    lines = shown("lineage", "3").splitlines()
    assert [line.split()[0] for line in lines] == ["#0", "#1", "#2", "#3", "#4"]
    lines = shown("lineage", "-n", "2").splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["#0", "#4"]
    assert "(3 between)" in lines[1]
    assert lines[2].startswith("3 more attempts: ")


def test_a_confirmation_means_the_attempt_that_it_measured(layout: Layout, shown: Shown) -> None:
    Store(layout.attempts).publish(attempt(5, 2.0, kind=Kind.CONFIRM, of=4))
    assert shown("lineage", "5").splitlines()[-1].startswith("#4")


def test_scores_are_medians(layout: Layout, shown: Shown) -> None:
    Store(layout.attempts).publish(attempt(5, 3.0, kind=Kind.CONFIRM, of=4, verdict=Verdict.TIED))
    assert shown("lineage", "4").splitlines()[-1].split()[:2] == ["#4", "2.5"]
    assert json.loads(shown("lineage", "--json"))[4]["score"] == 2.5


def test_for_programs(layout: Layout, shown: Shown) -> None:
    rows = json.loads(shown("lineage", "--json"))
    assert rows[4] == {
        "number": 4, "parent": 3, "agent": "agent-1", "verdict": "new best", "score": 2.0,
        "on_the_line_of_the_best": True,
    }  # fmt: skip
    assert [row["number"] for row in json.loads(shown("lineage", "4", "-n", "1", "--json"))] == [4]


def test_what_cannot_be_shown(layout: Layout, shown: Shown) -> None:
    assert shown("lineage", "99", code=1) == (
        "coral: cannot show the lineage of #99: there is no such attempt\n  the last one is #4"
    )
    Store(layout.attempts).publish(attempt(5, 0.5, kind=Kind.BASELINE, agent="", epoch=2))
    write_status(layout, epoch=2)
    assert shown("lineage", "3", code=1) == (
        "coral: cannot show the lineage of #3: it is of epoch 1, and this is epoch 2\n"
        "  `coral show 3` shows what it was built on"
    )
    for path in layout.attempts.glob("*.json"):
        path.unlink()
    assert shown("lineage") == "no attempt yet"
