"""The requests that the operator can send from the page. They are the same requests that the commands send, and no
others are accepted."""

from collections.abc import Callable, Mapping
from typing import Any

from coral.errors import CoralError
from coral.web import membership
from coral.web.reading import RunView, send_request, set_request
from heartbeats.render import problems
from workspace.layout import OPERATOR

Given = Mapping[str, Any]
EVERYBODY = "*"
TRIGGERS = ("every", "stagnant", "minutes")


def request(view: RunView, given: Any) -> dict[str, object]:
    """Send a request and return the supervisor's answer. CoralError if it is no request of this page, or is refused."""
    kind = given.get("type") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in REQUESTS:
        raise CoralError("cannot do that: it is no request of this page", "see `coral --help`")
    asked = {"type": kind, **REQUESTS[kind](view, given)}
    if asked["type"] == "stop" and view.supervisor is None:
        raise CoralError(f"cannot stop {view.name}: nobody supervises it", "`coral stop` ends what it left")
    return send_request.answer_to(view.layout, OPERATOR, asked)


def _text(given: Given, name: str, what: str) -> str:
    text = given.get(name)
    if not isinstance(text, str) or not text.strip():
        raise CoralError(f"cannot send that: there is no {what}", "write it, then send it")
    return text.strip()


def _agent(view: RunView, given: Given) -> dict[str, object]:
    name, names = given.get("agent"), view.agents()
    if name not in names:
        raise CoralError(f"cannot find the agent {str(name)[:80]!r}", f"its agents: {', '.join(names[:20])}")
    return {"agent": name}


def _number(given: Given) -> dict[str, object]:
    number = given.get("number")
    if type(number) is not int:
        raise CoralError("cannot send that: there is no number", "give the number that the page shows")
    return {"number": number}


def _tell(view: RunView, given: Given) -> dict[str, object]:
    name = given.get("to", EVERYBODY)
    to = name if name == EVERYBODY else _agent(view, {"agent": name})["agent"]
    return {"to": to, "text": _text(given, "text", "text")}


def _restart(view: RunView, given: Given) -> dict[str, object]:
    return {**_agent(view, given), **({"fresh": True} if given.get("fresh") is True else {})}


def _budget(_: RunView, given: Given) -> dict[str, object]:
    """Return a request as of `coral set`: a number, `none` for no limit, or `task` for the value in the task."""
    key, value = _text(given, "key", "budget"), _text(given, "value", "value")
    return set_request(f"budget.{key}={value}")


def _stop(_: RunView, given: Given) -> dict[str, object]:
    after = {"after_grades": True} if given.get("after_grades") is True else {}
    return {"reason": str(given.get("reason") or "")[:500], **after}


def _heartbeat(_: RunView, given: Given) -> dict[str, object]:
    """Return a request that changes what it names of a heartbeat and nothing else. A prompt that cannot be rendered is
    refused, as by the command."""
    held = given.get("heartbeat")
    entry = held if isinstance(held, dict) else {}
    name = _text(entry, "name", "heartbeat's name")
    changes = {key: entry[key] for key in (*TRIGGERS, "prompt", "delivery", "scope") if entry.get(key) is not None}
    if not changes:
        raise CoralError(f"cannot set {name}: nothing to change was named", "give an interval or a prompt")
    prompt = changes.get("prompt")
    if isinstance(prompt, str) and prompt.strip() and (wrong := problems(prompt)):
        raise CoralError(f"cannot set {name}: its prompt cannot be rendered: {wrong[0]}", "correct it")
    return {"owner": _text(given, "owner", "owner"), "heartbeat": {"name": name, **changes}}


REQUESTS: Mapping[str, Callable[[RunView, Given], dict[str, object]]] = {
    "tell": _tell,
    "answer": lambda _, given: {**_number(given), "text": _text(given, "text", "answer")},
    "acknowledge_alerts": lambda _, given: {"through": _number(given)["number"]},
    "pause": _agent,
    "unpause": _agent,
    "restart": _restart,
    "retire": _agent,
    "add_agent": membership.add,
    "move_agent": lambda view, given: membership.move(view, str(_agent(view, given)["agent"]), given),
    "hold_grading": lambda _, __: {},
    "release_grading": lambda _, __: {},
    "cancel_grade": lambda _, given: _number(given),
    "set_heartbeat": _heartbeat,
    "remove_heartbeat": lambda _, given: {
        "owner": _text(given, "owner", "owner"),
        "name": _text(given, "name", "heartbeat's name"),
    },
    "reset_heartbeats": lambda _, given: {"owner": _text(given, "owner", "owner")},
    "set_budget": _budget,
    "stop": _stop,
}
