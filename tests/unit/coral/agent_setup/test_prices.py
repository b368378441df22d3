"""What tokens cost: as the task says, else as a package knows that may not be installed."""

import sys
from pathlib import Path

import pytest

from coral.agent_setup.prices import look_up, prices_of
from coral.agent_setup.roster import Roster
from coral.config.load import load
from coral.fleet.members import Prices
from coral.runs.rules import rules_of

TASK = "task: {name: t, description: d}\ngrader: {command: 'true'}\nagents:\n  model: claude-sonnet-4-5\n"


def prices(folder: Path, *lines: str) -> Prices | None:
    (folder / "seed").mkdir(exist_ok=True)
    (folder / "task.yaml").write_text(TASK + "".join(f"  {line}\n" for line in lines))
    config = load(folder)
    found = prices_of(config.agents)
    assert rules_of(config, Roster(config), "").prices == ({} if found is None else {"agent-1": found})
    return found


def test_prices_of_the_task_are_used_first(tmp_path: Path) -> None:
    assert prices(tmp_path, "prices: {input: 3, cached: 0.25, output: 15}") == Prices(input=3, cached=0.25, output=15)
    assert prices(tmp_path, "prices: {input: 3, output: 15}") == Prices(input=3, cached=3, output=15)


def test_without_the_package_a_price_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert prices(tmp_path) is None


def test_the_package_gives_the_price_of_a_model_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    found = prices(tmp_path)
    assert found is not None
    assert 0 < found.cached < found.input < found.output < 1000
    assert look_up("anthropic/claude-sonnet-4-5") == found
    for name in ("", "no-such-model-at-all", "nobody/claude-sonnet-4-5"):
        assert look_up(name) is None
