"""`coral health`: the level and its reasons, and the exit code of each, from status.json and who supervises."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sample import write_status

from coral.fleet.health import HealthLevel, Trouble
from coral.reading import run_view
from coral.supervisor.lock import hold_lock
from coral.views.health import TEXTS, reason_of, summed
from workspace.layout import Layout

Run = Callable[..., tuple[int, str, str]]


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


def told(level: HealthLevel, *reasons: dict[str, Any]) -> dict[str, Any]:
    return summed(level, list(reasons))


HEALTHY = told(HealthLevel.HEALTHY)
DEGRADED = told(HealthLevel.DEGRADED, reason_of(Trouble.AGENT_STALLED, "agent-2", 754.0))
SLEPT = told(HealthLevel.DEGRADED, reason_of(Trouble.SLEPT, "", 840.0))
UNHEALTHY = told(HealthLevel.UNHEALTHY, reason_of(Trouble.DISK, "", 60.0), reason_of(Trouble.AT_LIMIT, "acme", 90.0))


@pytest.mark.parametrize(
    ("health", "strict", "code", "lines"),
    [
        (HEALTHY, True, 0, []),
        (DEGRADED, False, 0, ["  agent-2 makes no progress (for 12 min)"]),
        (DEGRADED, True, 4, ["  agent-2 makes no progress (for 12 min)"]),
        (SLEPT, False, 0, [f"  {TEXTS[Trouble.SLEPT]} (14 min ago)"]),  # it did not last so long
        (
            UNHEALTHY,
            False,
            5,
            [
                "  nothing can be written to the disk (for 1 min)",
                "  account acme is at its usage limit (for 1 min 30 s)",
            ],
        ),
    ],
)
def test_a_run_that_is_supervised_is_as_its_supervisor_says(
    layout: Layout, coral: Run, health: dict[str, Any], strict: bool, code: int, lines: list[str]
) -> None:
    write_status(layout, wall=ago(5), health=health)
    with hold_lock(layout.lock):
        found, out, _ = coral("health", *["--strict"] * strict)
        as_json = json.loads(coral("health", "--json")[1])
        status = json.loads(coral("status", "--json")[1])["health"]
        page = coral("status")[1]
    assert (found, out.splitlines()) == (code, [f"{layout.root.name} is {health['level']}", *lines])
    assert as_json == {"run": layout.root.name, **health}
    assert status == health
    for line in lines:
        assert f"{health['level']}: {line.strip()}" in page


@pytest.mark.parametrize(
    "given", [{"wall": ago(4000), "health": HEALTHY}, {"wall": "?", "health": HEALTHY}, {"health": {}}]
)
def test_a_supervisor_that_says_nothing_is_unknown(layout: Layout, coral: Run, given: dict[str, Any]) -> None:
    write_status(layout, **{"wall": ago(5), **given})
    with hold_lock(layout.lock):
        code, out, _ = coral("health")
    assert (code, out.splitlines()[0]) == (6, f"{layout.root.name} is unknown")


@pytest.mark.parametrize(
    ("state", "code", "kind"),
    [("running", 5, "supervisor_gone"), ("left", 5, "supervisor_gone"), ("stopped", 6, "not_running")],
)
def test_without_a_supervisor_it_is_not_what_that_said_last(
    layout: Layout, coral: Run, state: str, code: int, kind: str
) -> None:
    write_status(layout, state=state, wall=ago(100), health=HEALTHY)
    found, out, _ = coral("health", "--json")
    (reason,) = json.loads(out)["reasons"]
    assert (found, reason["kind"]) == (code, kind)
    assert 100 <= reason["seconds"] < 400


def test_every_trouble_has_a_text_that_names_whom_it_is_about() -> None:
    for trouble in Trouble:
        text = reason_of(trouble, "agent-7")["text"]
        assert ("agent-7" in text) is (trouble.value.startswith(("agent_", "checkpoints", "account", "starts", "at_")))


def test_a_sealed_agent_is_not_told_that_the_supervisor_hangs(layout: Layout, coral: Run, monkeypatch) -> None:
    """It can read neither status.json nor the private folder."""
    layout.status.unlink()
    monkeypatch.setattr(run_view, "can_see_private", lambda _: False)
    with hold_lock(layout.lock):
        code, out, _ = coral("health")
    assert (code, out) == (6, f"{layout.root.name} is unknown\n")
