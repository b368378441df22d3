"""Sends messages to people, by one thread for each target: a target that hangs holds up neither the others nor the
supervisor's loop."""

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from attempts.files import parse_object, read_bytes
from coral.config.alerts import AlertsSection
from coral.errors import CoralError
from coral.notify.message import AlertLevel, OpenQuestion, compose, questions_in
from coral.notify.outbox import DeliveryState, Outbox, read_delivery
from coral.notify.schedule import Schedule, quiet_of
from coral.notify.target import SendError, Target
from workspace.layout import Layout

LOOK_SECONDS = 1.0  # between two looks at the timeline
STATUS_LIMIT = 16 << 20  # bytes
LAST_SECONDS = 5.0  # for how long the end of a run waits for messages that are not sent yet


class Notifier:
    def __init__(self, layout: Layout, task: str, alerts: AlertsSection) -> None:
        """`task`: the task's name, which is in each message. Nothing is sent before `start`."""
        self._layout, self._task, self._alerts = layout, task, alerts
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads. Every line that is written to the timeline from now on is considered."""
        for target in targets_of(self._alerts)[0]:
            file, level = delivery_file(self._layout, target), AlertLevel(target.route.level)
            outbox = Outbox(self._layout.events, file, level)
            self._threads.append(threading.Thread(target=self._serve, args=(target, outbox), daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        """Send what is left, and wait at most LAST_SECONDS for that. The next supervisor sends what could not be
        sent."""
        self._ending.set()
        deadline = time.monotonic() + LAST_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _serve(self, target: Target, outbox: Outbox) -> None:
        schedule = Schedule(target.route.digest, quiet_of(target.route.quiet_hours))
        while True:
            is_last = self._ending.wait(LOOK_SECONDS)
            if _may_send(schedule, has_alert=True, is_last=is_last):  # else nothing may be sent, so nothing is read
                schedule = self._send_waiting(outbox, target, schedule, is_last=is_last)
            if is_last:
                return

    def _send_waiting(self, outbox: Outbox, target: Target, schedule: Schedule, *, is_last: bool) -> Schedule:
        """Send the waiting notices as one message, if the schedule allows it. Return the new schedule."""
        notices, after = outbox.waiting()
        if not notices:
            outbox.skip(after)
            return schedule
        has_alert = any(notice.level is AlertLevel.ALERT for notice in notices)
        if not _may_send(schedule, has_alert=has_alert, is_last=is_last):
            return schedule
        try:
            target.send(compose(self._layout.root.name, self._task, notices, self._questions()))
        except SendError as error:
            outbox.has_failed(str(error), datetime.now(UTC).isoformat(timespec="seconds"))
            return schedule.failed(time.monotonic(), error.wait)
        outbox.has_sent(after)
        return schedule.sent(time.monotonic(), has_alert=has_alert)

    def _questions(self) -> tuple[OpenQuestion, ...]:
        """Read the open questions from status.json; none if it cannot be read."""
        try:
            return questions_in(parse_object(read_bytes(self._layout.status, STATUS_LIMIT)))
        except (OSError, ValueError):
            return ()


def _may_send(schedule: Schedule, *, has_alert: bool, is_last: bool) -> bool:
    local = datetime.now()
    return schedule.may_send(time.monotonic(), local.hour * 60 + local.minute, has_alert=has_alert, is_last=is_last)


def delivery_file(layout: Layout, target: Target) -> Path:
    return layout.notified / f"{target.key}.json"


def targets_of(alerts: AlertsSection) -> tuple[list[Target], list[CoralError]]:
    """Return the targets that work on this machine, and for each other one why it does not. A run starts without
    those."""
    found: list[Target] = []
    problems: list[CoralError] = []
    for route in alerts.all_routes:
        for destination in route.destinations:
            try:
                found.append(Target(route, destination))
            except CoralError as error:
                problems.append(error)
    return found, problems


def delivery_to(layout: Layout, target: Target) -> DeliveryState | None:
    """Return the state of delivery of a run to a target; None if none is kept."""
    return read_delivery(delivery_file(layout, target))
