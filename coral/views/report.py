"""Writes the files by which people and programs follow a run: `status.json`, the timeline and the archived beats.

All of these files are views that may be deleted: the supervisor decides nothing by them.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from attempts.files import append_bytes, make_way, parse_object, read_bytes, read_end, write_bytes, write_json
from coral.fleet.actions import Finish, LogEvent, LoggedMessage, Notify, ShowJob, Spawn
from coral.fleet.agent_state import LIVE, JobEnd, Phase
from coral.fleet.agents.stalls import silent_for, ttl_now
from coral.fleet.events import Moment
from coral.fleet.policy import slots_of
from coral.fleet.reasons import JobOutcome
from coral.fleet.rules import in_force
from coral.fleet.run_state import Fleet, Job, Run
from coral.supervisor.context import RunContext
from coral.views.beats import BeatArchive, ObservedLaunch, SupervisorBeats
from coral.views.fleet_view import agents_of, budgets_of, grading_of, scores_of, seed_score, state_of, used_by
from coral.views.health import health_data
from coral.views.prompt_context import budget
from coral.views.reasons import log_text, outcome_text, reason_data, reason_text, run_end_text, with_reason
from coral.views.work_beats import WorkArchive, grade_beats, running_pulses
from heartbeats.beat import SILENT_SECONDS, Beat
from heartbeats.interval import WATCHED, WatchedLook
from workspace.layout import Layout
from workspace.seal import Level

STATUS_SECONDS, MAX_STATUS_SECONDS = 0.5, 5.0
QUIET_STATUS_SECONDS = 10.0  # while nothing happens, only its times grow older
ALERTS_SHOWN = 20
ALERT_BYTES = 4_000_000  # of the end of the timeline, from which alerts are read
DELIVERED_BYTES = 65_536  # of the end of the timeline, in which a delivered alert is looked for
RUNNING = "running"  # the state of a job

GradeBeat = tuple[int, str, Beat]  # as grade_beats has it


class Monitor(ObservedLaunch, Protocol):
    """What `Report` needs to know of an agent's launch. `printed_at`: when the program printed last, in seconds of the
    run's clock."""

    printed_at: float


class Report:
    def __init__(self, run_context: RunContext, started_at: str) -> None:
        self._context = run_context
        self._started_at = started_at
        _end_cut_line(run_context.layout.events)
        self._alerts = alerts_in(run_context.layout.events)[-ALERTS_SHOWN:]  # earlier alerts may still be valid
        self._shown: Fleet | None = None
        self._shown_at = float("-inf")
        self._pause = STATUS_SECONDS
        self._look = WatchedLook(run_context.layout.supervisor_beats)
        self._archive = BeatArchive(run_context, self._look)
        self._work = WorkArchive(run_context, self._look)
        self._own = SupervisorBeats(run_context, self._look)

    def log(self, now: Moment, event: LogEvent) -> None:
        messages = [logged_data(message) for message in event.messages]
        given: dict[str, object] = {"launch": event.launch or None, "ending": event.ending, "messages": messages}
        given["reason"] = reason_data(event.reason)
        self.write_line(now, event.type, log_text(event), event.agent, **given)

    def write_line(self, now: Moment, type: str, text: str, agent: str = "", **given: object) -> bool:
        """Append a line to the timeline; returns whether that succeeded. `given`: further fields for programs; empty
        ones are left out."""
        line = {"at": now.wall_time, "clock": round(now.run_time, 3), "type": type, "agent": agent, "text": text}
        line |= {name: value for name, value in given.items() if value not in (None, "", [])}
        return _append(self._context.layout.events, line)

    def spawned(self, now: Moment, action: Spawn, warnings: Iterable[str]) -> None:
        """Write to the timeline that a launch was started. `warnings`: about the templates of its prompt, one line
        each."""
        for warning in warnings:
            self.write_line(now, "warning", warning, action.agent)
        names = list(dict.fromkeys(message.name for message in action.messages))
        text = f"launch {action.launch} ({reason_text(action.reason)}){': ' + ', '.join(names) if names else ''}"
        given = {"launch": action.launch, "reason": reason_data(action.reason), "heartbeats": names}
        self.write_line(now, "spawned", text, action.agent, **given)

    def holdouts(self, fleet: Fleet) -> None:
        """Write the scores on the hold-out to a file that agents cannot read. OSError if that fails."""
        rows = [asdict(score) for score in fleet.holdouts.values()]
        write_json(self._context.layout.holdout_scores, {"format": 1, "scores": rows}, durable=False, mode=0o600)

    def job_ended(self, now: Moment, action: ShowJob) -> None:
        """Write that a job has ended: its last beat, its record and a line of the timeline. OSError if the record
        cannot be written."""
        self._work.job_ended(action.job, action.end, now)
        show_job_end(self._context.layout, action)
        self.write_line(now, "job", f"job {action.job.number} {outcome_text(action.end)}", action.job.agent)

    def finish(self, now: Moment, action: Finish) -> None:
        self.write_line(now, "stopped", f"stopped: {run_end_text(action.end)}", reason=reason_data(action.end))

    def alert(self, now: Moment, notify: Notify) -> None:
        """Write an alert to the timeline, once even if it is delivered again. OSError if the timeline cannot be
        written, as on a full disk."""
        text, reason = with_reason(notify.text, notify.reason), reason_data(notify.reason)
        if not any(alert["id"] == notify.id for alert in self._alerts):
            alert = {"id": notify.id, "level": "alert", "text": text, "reason": reason, "at": now.wall_time}
            self._alerts.append({"number": number_of(notify.id), **alert})
            del self._alerts[:-ALERTS_SHOWN]
        delivered = notify.repeat and self._was_delivered(notify.id)
        if not delivered and not self.write_line(now, "alert", text, notify.agent, reason=reason, id=notify.id):
            raise OSError("the timeline cannot be written")

    def _was_delivered(self, id: str) -> bool:
        """Return whether the previous supervisor wrote this alert before it ended: then the alert is near the end of
        the timeline."""
        end = read_end(self._context.layout.events, DELIVERED_BYTES)
        return any(line.endswith(f'"id": "{id}"}}'.encode()) for line in end.splitlines())

    def beat(self, monitor: Monitor, fleet: Fleet, now: Moment) -> None:
        self._archive.take(monitor, fleet, now)

    def show(self, fleet: Fleet, monitors: Mapping[str, Monitor], now: Moment, force: bool = False) -> None:
        """Write `status.json`, at most twice a second, and less often for a large fleet, so that it takes at most a
        three-hundredth of the time. While nothing happens it is written every QUIET_STATUS_SECONDS, or more often while
        somebody watches. `force`: writes it in any case."""
        passed = now.run_time - self._shown_at
        if not force and (
            passed < self._pause or (passed < self._longest_pause() and self._is_as_shown(fleet, monitors))
        ):
            return
        self._shown, self._shown_at, began = fleet, now.run_time, time.monotonic()
        self._work.look(fleet, now, force=force)
        self._own.take(fleet, now)
        # On one line: JSON with indentation is encoded in Python, which was most of the cost of an idle fleet.
        text = json.dumps(self._status(fleet, monitors, now), allow_nan=False)
        with contextlib.suppress(OSError):
            self._context.layout.private.lstat()  # if the run folder was removed, the view must not create it again
            make_way(self._context.layout.status)
            # Agents with users of their own can pass through the run's folder, and must not read this file.
            mode = 0o600 if self._context.level is Level.USER else 0o644
            write_bytes(self._context.layout.status, text.encode() + b"\n", durable=False, mode=mode)
        self._pause = min(max(STATUS_SECONDS, 300 * (time.monotonic() - began)), MAX_STATUS_SECONDS)

    def _longest_pause(self) -> float:
        return WATCHED if self._look.is_watched() else QUIET_STATUS_SECONDS

    def _is_as_shown(self, fleet: Fleet, monitors: Mapping[str, Monitor]) -> bool:
        """Return whether nothing but times, which readers can compute themselves, has changed since `status.json` was
        written."""
        printed = any(monitor.printed_at > self._shown_at for monitor in monitors.values())
        return fleet is self._shown and not fleet.pending and not printed

    def _status(self, fleet: Fleet, monitors: Mapping[str, Monitor], now: Moment) -> dict[str, Any]:
        run_context, run = self._context, fleet.run
        baseline, scoring = run_context.results.baseline, run_context.rules.scoring
        grades = list(grade_beats(run_context.layout, fleet))
        return {
            "format": 1,
            "run": run_context.layout.root.name,
            "task": run_context.config.task.name,
            "direction": scoring.direction.value,
            **state_of(run),
            "pid": os.getpid(),
            "wall": now.wall_time,
            "clock": round(now.run_time, 3),
            "started_at": self._started_at,
            "epoch": run.epoch,
            "health": health_data(fleet, now.run_time),
            "baseline": seed_score(fleet, baseline),
            "baseline_number": baseline.number if baseline else None,
            **scores_of(fleet, run_context.rules),
            "attempts": run.progress.evals,
            "grading": self._grading(fleet, grades, now),
            "seal": Level.NONE if run_context.config.agents.are_remote else run_context.level,
            **used_by(fleet, run_context.rules),
            "budget": budget(run_context.rules, fleet, now.run_time),
            "budgets": budgets_of(fleet, run_context.rules, now.run_time),
            "agents": [
                self._agent(row | self._account(row["name"], run, now), fleet, monitors.get(row["name"]), grades, now)
                for row in agents_of(fleet, now.run_time, scoring)
            ],
            "alerts": [alert | {"acknowledged": is_acknowledged(alert, run)} for alert in self._alerts],
            "alerts_acknowledged": run.alerts_acknowledged,
            "alerts_settled": list(run.alerts_settled),
            "questions": [
                {
                    "number": question.number,
                    "agent": question.agent,
                    "text": question.text,
                    "clock": round(question.asked_at, 1),
                }
                for question in run.questions
            ],
        }

    def _grading(self, fleet: Fleet, grades: list[GradeBeat], now: Moment) -> dict[str, Any]:
        beats = [
            {"number": number, "agent": agent, "progress": beat.progress, "message": beat.message}
            for number, agent, beat in grades
        ]
        return {"slots": slots_of(fleet.run, self._context.rules), **grading_of(fleet, now.run_time), "beats": beats}

    def _account(self, name: str, run: Run, now: Moment) -> dict[str, Any]:
        """Return the account that keeps the agent from starting, if any: it is at its usage limit, or its starts are
        paused after many crashes. `left`: for how many more seconds, None if that is not known."""
        account = in_force(self._context.rules, run).accounts.get(name, "")
        limit, breaker = run.limits.get(account), run.breakers.get(account)
        if limit is not None and limit.probe != name and not limit.closed:
            return {"held": {"account": account, "by": "limit", "left": _left(limit.until, now)}}
        if breaker is not None and breaker.paused_until > now.run_time:
            return {"held": {"account": account, "by": "crashes", "left": _left(breaker.paused_until, now)}}
        return {"held": None}

    def _agent(
        self, view: dict[str, Any], fleet: Fleet, monitor: Monitor | None, grades: list[GradeBeat], now: Moment
    ) -> dict[str, Any]:
        beat, agent = None, fleet.agents[view["name"]]
        if monitor is not None and monitor.has_output and view["phase"] != Phase.RETIRED.value:
            age = round(now.run_time - monitor.printed_at, 1)
            beat = {"phase": monitor.phase, "message": monitor.message, "age": age}
            if agent.phase is Phase.RUNNING and agent.has_output:
                rules, clock = self._context.rules, now.run_time
                ttl = round(ttl_now(fleet, agent.name, agent.activity, clock, rules), 1)
                beat |= {"ttl": ttl, "silent": round(silent_for(fleet, agent, clock, rules), 1)}
        elif monitor is not None and agent.phase in LIVE and now.run_time - agent.spawned_at >= SILENT_SECONDS:
            beat = {"phase": "starting", "message": "", "age": round(now.run_time - agent.spawned_at, 1)}
        assignment = self._context.roster.assignment(view["name"])
        graded = [(f"#{number}", beat_of_grade) for number, author, beat_of_grade in grades if author == view["name"]]
        running = [(pulse.task, pulse) for pulse in running_pulses(self._context.layout, view["name"])]
        pulses = [
            {"task": task, "phase": pulse.phase, "progress": pulse.progress, "message": pulse.message}
            for task, pulse in (*graded, *running)
        ]
        member = fleet.run.members.get(view["name"])
        former = [asdict(former_member) for former_member in member.former] if member is not None else []
        driven = {"runtime": assignment.runtime, "model": assignment.model, "former": former}
        return {**view, **driven, "beat": beat, "pulses": pulses}


def logged_data(message: LoggedMessage) -> dict[str, object]:
    """Return the fields of a heartbeat's message for the timeline, without empty ones."""
    since = None if message.since is None else round(message.since, 3)
    data = {"name": message.name, "id": message.id, "attempt": message.attempt, "since": since}
    return {name: value for name, value in data.items() if value not in (None, "")}


def _left(until: float | None, now: Moment) -> float | None:
    return None if until is None else round(max(until - now.run_time, 0.0), 1)


def _append(path: Path, line: Mapping[str, Any]) -> bool:
    with contextlib.suppress(OSError):
        make_way(path)
        append_bytes(path, json.dumps(line).encode() + b"\n")
        return True
    return False


def _end_cut_line(path: Path) -> None:
    """End a last line that a crash has cut off: the next one would be lost with it."""
    if read_end(path, 1) not in (b"", b"\n"):
        with contextlib.suppress(OSError):
            append_bytes(path, b"\n")


def show_job(layout: Layout, job: Job, state: Mapping[str, object] = MappingProxyType({"state": RUNNING})) -> None:
    """Write the record of a job, for agents and people to read: what it runs, and whether it runs or how it ended."""
    record = {"number": job.number, "agent": job.agent, "what": job.what, "command": list(job.argv)}
    record |= {"folder": job.folder, "began": job.began}
    write_json(layout.job(job.agent, job.number), {**record, **state}, durable=False)


def show_job_end(layout: Layout, action: ShowJob) -> None:
    end = action.end
    outcome = {"ended": action.ended, "seconds": round(end.seconds, 3), "code": end.code}
    show_job(layout, action.job, {**outcome, **_ended(end)})


def end_lost_jobs(layout: Layout, agent: str, jobs: Mapping[int, Job]) -> None:
    """Write into the records of jobs that they have ended, if a record says `running` and the fleet does not have the
    job: its end could not be written when it ended."""
    for path in layout.logs(agent).glob(layout.job(agent, 0).name.replace("0", "*")):
        with contextlib.suppress(OSError, ValueError):
            record = parse_object(read_bytes(path))
            number = record.get("number")
            if record.get("state") == RUNNING and not (isinstance(number, int) and number in jobs):
                end = JobEnd(number=0, title="", outcome=JobOutcome.UNKNOWN)
                write_json(path, {**record, **_ended(end)}, durable=False)


def _ended(end: JobEnd) -> dict[str, object]:
    return {"state": "ended", "outcome": end.outcome, "reason": reason_data(end.reason), "how": outcome_text(end)}


def number_of(id: str) -> int:
    """Return the number of an alert in its run, from 1; 0 if `id` is not that of an alert."""
    last = id.rpartition("-")[2]
    return int(last) if last.isdecimal() and last.isascii() else 0


def is_acknowledged(alert: Mapping[str, Any], run: Run) -> bool:
    return 0 < int(alert["number"]) <= run.alerts_acknowledged or alert["number"] in run.alerts_settled


def alerts_in(timeline: Path) -> list[dict[str, Any]]:
    """Read the alerts in the last ALERT_BYTES of a timeline, oldest first."""
    found = []
    for line in read_end(timeline, ALERT_BYTES).splitlines():
        try:
            event = parse_object(line) if b'"type": "alert"' in line else {}
        except ValueError:
            continue  # cut off, or not written by Coral
        if event.get("type") == "alert" and all(isinstance(event.get(part), str) for part in ("id", "text", "at")):
            shown = {part: event.get(part) for part in ("id", "agent", "text", "reason", "at")}
            found.append({"number": number_of(str(event["id"])), **shown, "level": "alert"})
    return found
