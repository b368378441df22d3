"""Decides when the next message may go to a target. Pure: the time of day and the clock are arguments."""

from dataclasses import dataclass, replace

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0  # seconds between two tries of a target that fails; doubled each time


@dataclass(frozen=True, slots=True)
class Quiet:
    """The time in which nothing is sent, in minutes of the day, local time: from `begin` to before `end`; over midnight
    if `end` is smaller."""

    begin: int
    end: int

    def holds(self, minute: int) -> bool:
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


def quiet_of(text: str) -> Quiet | None:
    """Parse `alerts.quiet_hours`, `22:00-07:30`; None for an empty text."""
    if not text:
        return None
    begin, end = (int(hour) * 60 + int(minute) for hour, minute in (part.split(":") for part in text.split("-")))
    return Quiet(begin, end)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a message may be sent. `digest`: seconds between two messages. `not_before`: the earliest time of the clock
    for any message; `news_not_before`: the same for a message without an alert, so that no alert waits because news
    were sent. `pause`: seconds waited after the last failure."""

    digest: float
    quiet: Quiet | None = None
    not_before: float = float("-inf")
    news_not_before: float = float("-inf")
    pause: float = 0.0

    def may_send(self, clock: float, minute: int, *, has_alert: bool, is_last: bool) -> bool:
        """Return whether a message may be sent at this time. `minute`: of the day, local time. `is_last`: the run is
        over; then the message is sent in any case, since nothing would send it later."""
        if is_last:
            return True
        earliest = self.not_before if has_alert else max(self.not_before, self.news_not_before)
        return clock >= earliest and not (self.quiet is not None and self.quiet.holds(minute))

    def sent(self, clock: float, *, has_alert: bool) -> "Schedule":
        later = clock + self.digest
        return replace(self, not_before=later if has_alert else clock, news_not_before=later, pause=0.0)

    def failed(self, clock: float, at_least: float = 0.0) -> "Schedule":
        """Return the schedule after a failure at `clock`. `at_least`: for how many seconds the target asked us to
        wait."""
        pause = min(max(self.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        return replace(self, not_before=clock + max(pause, at_least), pause=pause)
