"""An example of the context that every prompt is given: the one place that lists its names and their values."""


def example_context() -> dict[str, object]:
    """Return the context in the middle of a run. Scores are floats; a text that is not there is an empty text."""
    first, second = _attempt(14, 2.5189, ""), _attempt(17, 2.5312, "+0.0123 against #14")
    return {
        "agent": {"name": "agent-1", "placed": False},
        "run": {"id": "20300101-120000-a1b2", "task": "rings", "elapsed": "1 h 12 min"},
        "task": {
            "name": "rings",
            "description": "Pack 26 circles into the unit square so that the sum of their radii is largest.",
            "tips": "The score counts only if no two circles overlap.",
            "direction": "maximize",
            "editable": ["pack.py"],
            "check": "check.py:check",
        },
        "checkpoint": _checkpoint(),
        "attempt": second,
        "results": [first, second],
        "own": {"attempts": 6, "best": 2.5312, "best_number": 17, "stagnant": 0, "tied": "", "recent": [second, first]},
        "fleet": _fleet(),
        "baseline": {"number": 0, "score": 1.9},
        "grading": {"usual": "12 s", "timeout": "5 min", "python": "Python 3.12.3 (/usr/bin/python3)", "cores": 8},
        "budget": {"text": "40 of 60 attempts are left to the fleet", "lines": ["40 of 60 attempts are left"]},
        "paths": {
            "shared": "../../shared",
            "notes": ".shared/notes",
            "skills": ".shared/skills",
            "checklist": ".shared/HEARTBEAT.md",
            "prompts": "../../../logs/agent-1",
        },
        "heartbeats": [
            {"name": "reflect", "when": "every attempt", "scope": "own", "protected": True},
            {"name": "consolidate", "when": "every 10 attempts of the fleet", "scope": "fleet", "protected": True},
            {"name": "checkpoint", "when": "every 30 minutes", "scope": "own", "protected": False},
        ],
        "jobs": [{"number": 3, "what": "wide search over the rings", "time": "42 min"}],
        **_knowledge(),
        "stall": {"times": 2, "silent": False, "lasted": "2 h"},
        "message": "",
        "reason": "a heartbeat is due",
        "next_step": "",
        "asked": [],
    }


def _checkpoint() -> dict[str, object]:
    return {
        "lines": ["- Does anything hang?", "- Is there room? `df -h .`"],
        "cut": 0,
        "queue": 2,
        "success": {"number": 17, "score": 2.5312, "title": "a wider second ring"},
        "error": "#15: two circles overlap",
        "failures": 0,
        "questions": ["May I use the network?"],
        "items": {"done": 3, "total": 7},
        "latest": {
            "count": 6,
            "gains": 2,
            "gain": "+0.0123 against #14",
            "time": "48 min",
            "money": "about $1.20",
        },
    }


def _knowledge() -> dict[str, object]:
    return {
        "notes": [
            {"name": "wider-ring", "title": "A wider second ring gains 0.012", "author": "agent-1", "disputed": []}
        ],
        "claims": [
            {
                "agent": "agent-2",
                "gap": "rows of unequal height",
                "note": "rows-end-near-2.55",
                "created": "2030-01-01T12:31:05.000Z",
            }
        ],
        "skills": [{"name": "polish-radii", "description": "Solve for the radii once the centres are fixed."}],
        "earlier": [{"name": "earlier/rings-20291231-120000-b2c3/001-rows", "title": "Rows end near 2.4 (there#9)"}],
        "synthesis": {
            "name": "synthesis-after-20",
            "conclusions": "- A wider second ring gains 0.012 (#14 to #17), while the corners stay free.",
            "next": "1. Alternate rows of five and six.",
        },
    }


def _fleet() -> dict[str, object]:
    return {
        "agents": 4,
        "attempts": 23,
        "best": 2.5312,
        "best_number": 17,
        "best_agent": "agent-1",
        "best_title": "A wider second ring",
        "lead": 2.5412,
        "lead_number": 21,
        "lead_agent": "agent-2",
        "lead_title": "Alternate rows of five and six",
        "proven": False,
        "confirms": True,
        "failed": 7,
        "failures": [{"reason": "two circles overlap", "count": 6}, {"reason": "a circle is outside", "count": 1}],
        "noise": 0.004,
        "leaderboard": [_row(21, "agent-2", 2.5412), _row(17, "agent-1", 2.5312), _row(19, "agent-3", 2.4990)],
        "rank": 2,
        "others": [{**_row(21, "agent-2", 2.5412), "now": "Rows of six"}, {**_row(19, "agent-3", 2.4990), "now": ""}],
    }


def _attempt(number: int, score: float, delta: str) -> dict[str, object]:
    return {
        "number": number,
        "agent": "agent-1",
        "title": "A wider second ring" if number == 17 else "Two rings",
        "score": score,
        "verdict": "own best",
        "reason": "",
        "feedback": "Every circle is inside, no overlap.",
        "metrics": {"circles": 26, "smallest_radius": 0.0712},
        "delta": delta,
        "earlier": False,
        "copy_of": None,
        "commit": f"{number:040x}",
    }


def _row(number: int, agent: str, score: float) -> dict[str, object]:
    title = {21: "Alternate rows of five and six", 17: "A wider second ring"}.get(number, "Corners first")
    return {"number": number, "agent": agent, "score": score, "count": 1, "title": title}


CONTEXT_NAMES: frozenset[str] = frozenset(example_context())
