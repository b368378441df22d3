"""Keys that tasks of the older format have, and what to write for them now."""

_BREAKER = "crashes are limited by run.breaker_crashes, run.breaker_window and run.breaker_pause"
_GRADER = "name the grader by grader.entry (file.py:function) or grader.command"
_VIEW = "`coral start` shows the run; `coral start --detach` leaves it in the background"

MOVED = {
    "grader.entrypoint": "name a function by entry: file.py:function",
    "grader.type": _GRADER,
    "grader.module": _GRADER,
    "grader.setup": "give a grader an environment of its own by grader.command",
    "grader.parallel": "write slots: N",
    "agents.runtime_options": "write options",
    "agents.timeout": "write stall: the seconds of silence after which an agent is interrupted",
    "agents.heartbeat": "write a section heartbeats: entries with name and every, stagnant, minutes or seconds",
    "agents.reflect_every": "write heartbeats: [{name: reflect, every: N}]",
    "agents.heartbeat_every": "write heartbeats: [{name: consolidate, every: N}]",
    "agents.max_turns": "a run is limited by the section budget",
    "agents.restart_burst_threshold": _BREAKER,
    "agents.restart_burst_window": _BREAKER,
    "agents.restart_pause_seconds": _BREAKER,
    "agents.stagger_seconds": "write stagger",
    "agents.warmstart": "write research: the minutes in which agents read and think first",
    "heartbeats.global": "write scope: fleet",
    "heartbeats.trigger": "write every: N, or stagnant: N for a plateau",
    "sharing": "write workspace.share: true or false",
    "workspace.results_dir": "write runs",
    "workspace.repo_path": "write task.seed: a folder or a git repository",
    "run.ui": _VIEW,
    "run.session": _VIEW,
    "run.verbose": _VIEW,
}
