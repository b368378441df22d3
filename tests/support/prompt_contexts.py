"""Contexts of prompts at special moments."""

from heartbeats.example import example_context


def empty_context() -> dict[str, object]:
    """Return the context at the very start, before anything was tried."""
    return {
        **example_context(),
        "attempt": None,
        "results": [],
        "own": {"attempts": 0, "best": None, "best_number": None, "stagnant": 0, "tied": "", "recent": []},
        "fleet": {
            "agents": 1,
            "attempts": 0,
            "best": None,
            "best_number": None,
            "best_agent": "",
            "best_title": "",
            "lead": None,
            "lead_number": None,
            "lead_agent": "",
            "lead_title": "",
            "proven": True,
            "confirms": True,
            "failed": 0,
            "failures": [],
            "noise": None,
            "leaderboard": [],
            "rank": None,
            "others": [],
        },
        "baseline": {"number": 0, "score": None},
        "budget": {"text": "", "lines": []},
        "heartbeats": [],
        "jobs": [],
        "notes": [],
        "claims": [],
        "skills": [],
        "stall": {"times": 0, "silent": False, "lasted": "0 s"},
        "synthesis": None,
        "earlier": [],
        "reason": "",
    }
