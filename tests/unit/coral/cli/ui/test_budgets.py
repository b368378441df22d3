"""Budgets as bars, and when they will be used up."""

from pathlib import Path

import pytest
from sample import write_status

from coral.cli.ui.budgets import bars
from coral.config.load import frozen
from coral.config.model import TaskFile
from coral.reading.budgets import forecast, per_hour, trials, unknown_use, used, used_by
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from workspace.layout import Layout


def shown(budget: dict[str, object], clock: float = 3600.0, late: float = 0.0, **status: object) -> str:
    return "\n".join(bar.plain for bar in bars(LenientJson({"clock": clock, "budgets": [budget], **status}), late))


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        ({"key": "attempts", "limit": 400, "used": 100}, "attempts ███░░░░░░░░░ 100 of 400, ~3 h left"),
        ({"key": "money", "limit": 50, "used": 25.0}, "money ██████░░░░░░ $25.00 of $50.00, ~1 h left"),
        ({"key": "tokens", "limit": 20_000_000, "used": 20_000_000}, "tokens ████████████ 20.00M of 20.00M"),
        ({"key": "hours", "limit": 2.0, "used": 1.0}, "hours ██████░░░░░░ 1 h of 2 h, 1 h left"),
        ({"key": "attempts", "limit": 400, "used": 1}, "attempts ░░░░░░░░░░░░ 1 of 400"),  # too early to tell
        ({"key": "attempts", "limit": 0, "used": 1}, ""),
        ({"key": "patience", "limit": 9, "used": 1}, ""),
        ({"key": "hours", "limit": "x", "used": 1}, ""),
    ],
)
def test_a_budget_is_a_bar_with_a_forecast(budget: dict[str, object], says: str) -> None:
    assert shown(budget) == says


def test_what_is_not_known_of_the_use_makes_a_forecast_an_upper_bound() -> None:
    money, tokens = {"money_unknown_of": ["agent-1"]}, {"tokens_unknown_of": ["agent-1"]}
    text = shown({"key": "money", "limit": 50, "used": 25.0}, **money)
    assert text.endswith(" at least $25.00 of $50.00, at most ~1 h left")
    assert " 25 of 50, " in shown({"key": "attempts", "limit": 50, "used": 25}, **money, **tokens)
    assert shown({"key": "money", "limit": 50, "used": 25.0}, **tokens).endswith(" $25.00 of $50.00, ~1 h left")
    assert shown({"key": "tokens", "limit": 50, "used": 25}, **money).endswith(" 25 of 50, ~1 h left")
    assert " at least 25 of 50, at most" in shown({"key": "tokens", "limit": 50, "used": 25}, **tokens)


@pytest.mark.parametrize("used", [None, 0, 0.0])
def test_a_budget_of_which_nothing_is_known_has_no_empty_bar(used: float | None) -> None:
    unknown = {"tokens_unknown_of": ["agent-1"], "money_unknown_of": ["agent-1"]}
    assert shown({"key": "money", "limit": 50, "used": used}, **unknown) == "money use not known, limit $50.00"
    assert shown({"key": "tokens", "limit": 5000, "used": used}, **unknown) == "tokens use not known, limit 5.0k"
    assert shown({"key": "money", "limit": 50, "used": 0.0}) == "money ░░░░░░░░░░░░ $0.00 of $50.00", "nobody began"


@pytest.mark.parametrize(
    ("spent", "unknown", "words"),
    [
        ({"tokens": 1200, "money": 0.5}, [], "1.2k tokens, $0.50"),
        ({"tokens": 1200, "money": 0.5}, ["tokens", "money"], "at least 1.2k tokens, at least $0.50"),
        ({"tokens": 1200, "money": 0.5}, ["money"], "1.2k tokens, at least $0.50"),
        ({"tokens": 1200, "money": 0.5}, ["tokens"], "at least 1.2k tokens, $0.50"),
        ({"tokens": 1200, "money": None}, ["money"], "1.2k tokens"),
        ({"tokens": None, "money": None}, ["tokens", "money"], "use not known"),
        ({"tokens": None, "money": None}, [], ""),
    ],
)
def test_what_was_used_is_a_lower_bound_where_not_all_is_known(
    spent: dict[str, object], unknown: list[str], words: str, layout: Layout
) -> None:
    write_status(layout, spent=spent, **{f"{what}_unknown_of": ["agent-1"] for what in unknown})
    assert used(RunView(layout)) == words


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ({"count": 2}, ""),
        ({"count": 1}, "use not known"),  # another was added, and nobody knows what drives it
        ({"count": 2, "options": {"brain": "llm"}, "model": "m"}, "use not known"),
        ({"count": 2, "runtime": "claude"}, "use not known"),
        ({"count": 2, "runtime": "no_such_module:thing"}, "use not known"),
    ],
)
def test_without_its_status_a_run_whose_agents_need_no_model_has_no_unknown_use(
    agents: dict[str, object], words: str, layout: Layout
) -> None:
    grader = {"entry": "g.py:grade"}
    task = {"task": {"name": "toy", "description": "x"}, "grader": grader, "agents": {"runtime": "native", **agents}}
    layout.task_file.write_text(frozen(layout.root / "task.yaml", TaskFile.model_validate(task)))
    layout.status.unlink()
    assert used(RunView(layout)) == words


def test_an_empty_run_folder_has_no_unknown_use(tmp_path: Path) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    assert used(RunView(Layout(root))) == ""


def test_the_use_of_an_agent_that_reports_nothing_is_not_known() -> None:
    silent, told = ({"name": name, "spent": {"money": money}} for name, money in (("agent-1", None), ("agent-2", 1.5)))
    unknown = unknown_use(LenientJson({"money_unknown_of": ["agent-1", "agent-3"]}))
    assert used_by(LenientJson(silent), unknown) == "use not known"
    assert used_by(LenientJson(told), unknown) == "$1.50"
    assert used_by(LenientJson(silent), unknown_use(LenientJson())) == "", "it uses no model"
    partly = LenientJson({"name": "agent-3", "spent": {"tokens": 5000, "money": 1.5}})
    assert used_by(partly, unknown) == "5.0k tokens, at least $1.50"
    assert used_by(partly, unknown, briefly=True) == "at least $1.50"


@pytest.mark.parametrize(
    ("attempts", "said"),
    [(27, "3 trials of numbers"), (29, "1 trial of numbers"), (30, ""), (None, "")],
)
def test_the_trials_that_a_budget_counts_are_told(attempts: int | None, said: str) -> None:
    budgets = [{"key": "money", "limit": 5, "used": 99}, {"key": "attempts", "limit": 30, "used": 30}]
    assert trials(LenientJson({"attempts": attempts, "budgets": budgets})) == said
    assert trials(LenientJson({"attempts": attempts, "budgets": budgets[:1]})) == ""


def test_time_goes_on_while_the_status_grows_old() -> None:
    assert shown({"key": "hours", "limit": 2.0, "used": 1.0}, late=1800.0).endswith("1 h 30 min of 2 h, 30 min left")


def test_a_forecast_goes_on_as_it_went() -> None:
    assert forecast(25.0, 100.0, 60.0) == 180.0
    assert forecast(100.0, 100.0, 60.0) is None
    assert forecast(0.0, 100.0, 60.0) is None
    assert forecast(25.0, 100.0, 0.0) is None


def test_the_cost_of_an_hour() -> None:
    assert per_hour(LenientJson({"clock": 1800.0, "spent": {"money": 2.0}}), 0.0) == "$4.00 an hour"
    assert per_hour(LenientJson({"clock": 30.0, "spent": {"money": 2.0}}), 0.0) == ""
    assert per_hour(LenientJson({"clock": 1800.0, "spent": {"money": None}}), 0.0) == ""
    partly = {"clock": 1800.0, "spent": {"money": 2.0}, "money_unknown_of": ["agent-1"]}
    assert per_hour(LenientJson(partly), 0.0) == "at least $4.00 an hour"
    tokens = {"clock": 1800.0, "spent": {"money": 2.0}, "tokens_unknown_of": ["agent-1"]}
    assert per_hour(LenientJson(tokens), 0.0) == "$4.00 an hour"
