"""When the next message may go to a target. Pure: the time of day and the clock are arguments."""

from dataclasses import dataclass, replace

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0  # seconds between tries of a target that fails; they double


@dataclass(frozen=True, slots=True)
class Quiet:
    """Minutes of the day, local time, in which nothing is sent: from `begin` to before `end`, over midnight too."""

    begin: int
    end: int

    def holds(self, minute: int) -> bool:
        if self.begin <= self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


def quiet_of(text: str) -> Quiet | None:
    """The hours of `alerts.quiet_hours`; None for an empty text."""
    if not text:
        return None
    begin, end = (int(hour) * 60 + int(minute) for hour, minute in (part.split(":") for part in text.split("-")))
    return Quiet(begin, end)


@dataclass(frozen=True, slots=True)
class Schedule:
    """`digest`: seconds between two messages; `not_before`: on the clock; `news_not_before`: the same for a message of
    news alone, so that no alert waits because of news; `pause`: the last one after a failure."""

    digest: float
    quiet: Quiet | None = None
    not_before: float = float("-inf")
    news_not_before: float = float("-inf")
    pause: float = 0.0

    def may_send(self, clock: float, minute: int, *, has_alert: bool, is_last: bool) -> bool:
        """`is_last`: the run is over, and there is no later. Then nothing waits for its hour."""
        if is_last:
            return True
        earliest = self.not_before if has_alert else max(self.not_before, self.news_not_before)
        return clock >= earliest and not (self.quiet is not None and self.quiet.holds(minute))

    def sent(self, clock: float, *, has_alert: bool) -> "Schedule":
        later = clock + self.digest
        return replace(self, not_before=later if has_alert else clock, news_not_before=later, pause=0.0)

    def failed(self, clock: float, at_least: float = 0.0) -> "Schedule":
        """`at_least`: seconds that the target asked us to wait."""
        pause = min(max(self.pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
        return replace(self, not_before=clock + max(pause, at_least), pause=pause)
