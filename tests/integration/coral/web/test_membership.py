"""An agent added from the page to a fleet at work, and one moved: what `coral agent` does, and the page tells of it."""

from collections.abc import Callable
from typing import Any

from dashboard import change_headers, visitor
from real_runs import Run, wait_until


def test_an_agent_is_added_from_the_page_and_another_is_moved(start: Callable[..., Run]) -> None:
    run = start(["hang"] * 9, overrides=("agents.count=1", "run.max_defer=0.1"))
    client, base = visitor(run.layout), f"/api/runs/{run.layout.root.name}"
    wait_until(lambda: [agent["session"] for agent in run.status().get("agents", [])], what="the first at work")

    def sent(**given: object) -> tuple[int, dict[str, Any]]:
        answer = client.post(f"{base}/requests", json=given, headers=change_headers())
        return answer.status_code, answer.json()

    status, granted = sent(type="add_agent", name="zoe", role="Review.")
    assert (status, granted["answered"]) == (200, True)
    assert granted["message"] == "zoe is being prepared; it begins when its workspace is ready"
    phases = lambda: {agent["name"]: agent["phase"] for agent in client.get(f"{base}/fleet").json()["agents"]}  # noqa: E731
    wait_until(lambda: phases().get("zoe") == "running", what="the launch of zoe")
    assert sent(type="add_agent", name="zoe")[1]["error"] == "cannot add zoe: there is such an agent"
    status, refused = sent(type="add_agent", name="Zoe!")
    assert (status, refused["error"]) == (404, "cannot add 'Zoe!': that is no name for an agent")
    assert refused["hint"].startswith("small letters, digits and -")
    role = lambda: client.get(f"{base}/membership").json()["agents"]["agent-1"]["role"]  # noqa: E731
    assert role() == ""
    status, granted = sent(type="move_agent", agent="agent-1", role="Draft.")
    assert granted["message"].startswith("agent-1 is being prepared for the move")
    wait_until(lambda: run.events("moved"), what="the move")
    assert role() == "Draft."
