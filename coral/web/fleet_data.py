"""The data of the fleet page: the run's status with the texts that `coral status` has for it, and the events."""

from coral.views import format
from coral.web.reading import (
    LenientJson,
    RunView,
    Unknown,
    activity,
    coming,
    event_text,
    is_seed,
    is_step,
    per_hour,
    trials,
    unknown_use,
    used,
    used_by,
    uses,
    warnings,
)

ALERTS = 20

Json = dict[str, object]


def fleet(view: RunView) -> Json:
    """Return the whole page but for the curve. All texts are worded as `coral status` words them."""
    status, late = view.status, view.lateness
    agents, clock = status.objects("agents"), status.number("clock")
    bests, unknown = format.scores([agent.number("best") for agent in agents]), unknown_use(status)
    return {
        "run": view.name,
        "task": view.task,
        "state": view.state,
        "supervised": view.supervisor is not None,
        "clock": None if clock is None else clock + late,
        "warnings": [line.plain for line in warnings(view)],
        "score": _score(view),
        "attempts": view.attempts,
        "failed": view.failed,
        "trials": trials(status),
        "used": used(view),
        "per_hour": per_hour(status, late),
        "seal": status.text("seal"),
        "budgets": [
            {"key": use.key, "share": use.share, "amounts": use.amounts, "left": use.left} for use in uses(status, late)
        ],
        "limits": status.inner("budget").texts("lines"),
        "agents": [_agent(agent, unknown, best, late) for agent, best in zip(agents, bests, strict=True)],
        "grading": _grading(status),
        "alerts": [_alert(alert) for alert in status.objects("alerts") if alert.data.get("acknowledged") is not True][
            -ALERTS:
        ],
        "questions": [
            {"number": question.integer("number"), "agent": question.text("agent"), "text": question.text("text", 2000)}
            for question in status.objects("questions")
        ],
    }


def _score(view: RunView) -> Json:
    """Return the proven best, and the lead if it is another attempt. The best's number is None while the seed is the
    best."""
    best, lead = view.best_and_lead
    best_score, lead_score, seed = format.scores([best.number("median"), lead.number("median"), view.baseline])
    beaten = best.integer("number") is not None and not is_seed(best)
    return {
        "direction": view.direction,
        "best": best_score if beaten else seed,
        "number": best.integer("number") if beaten else None,
        "agent": best.text("agent", 80),
        "title": best.text("title", 200),
        "gain": format.delta(best.number("median"), view.baseline) if beaten else "",
        "seed": seed,
        "has_seed": view.baseline is not None,
        "lead": {"score": lead_score, "number": lead.integer("number"), "agent": lead.text("agent", 80)}
        if lead.data.get("proven") is False
        else None,
    }


def _agent(agent: LenientJson, unknown: Unknown, best: str, late: float) -> Json:
    beat = agent.inner("beat")
    return {
        "name": agent.text("name", 80),
        "phase": agent.text("phase", 40),
        "program": " ".join(part for part in (agent.text("runtime", 60), agent.text("model", 60)) if part),
        "launch": agent.integer("launch"),
        "beat": activity(agent, late).plain,
        "progress": beat.number("progress"),
        "attempts": agent.integer("attempts"),
        "best": best,
        "best_number": agent.integer("best_number"),
        "stagnant": agent.integer("stagnant"),
        "used": used_by(agent, unknown),
        "next": coming(agent).plain,
    }


def _grading(status: LenientJson) -> Json:
    grading = status.inner("grading")
    beats = {beat.integer("number"): beat for beat in grading.objects("beats")}
    shown = [(number, beats.get(number, LenientJson())) for number in grading.integers("running")]
    return {
        "slots": grading.integer("slots"),
        "running": [
            {"number": number, "progress": beat.number("progress"), "message": beat.text("message", 200)}
            for number, beat in shown
        ],
        "queued": grading.integers("queued"),
        "holdout": len(grading.integers("holdout")),
        "paused": grading.data.get("paused") is True,
        "held": grading.data.get("held") is True,
    }


def _alert(alert: LenientJson) -> Json:
    text = {"id": alert.text("id"), "number": alert.integer("number"), "text": alert.text("text", 2000)}
    return {**text, "at": alert.text("at", 40)}


def event(line: LenientJson) -> Json:
    """Return one event of the timeline. `step`: whether it is a step between two attempts that says nothing by
    itself."""
    clock = line.number("clock")
    return {
        "clock": clock,
        "when": "" if clock is None else format.run_clock(clock),
        "type": line.text("type", 40),
        "agent": line.text("agent", 80),
        "attempt": line.integer("attempt"),
        "text": event_text(line),
        "step": is_step(line),
    }
