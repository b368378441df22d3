"""Finds out what the text of an error means: a usage limit, a fatal error, a conversation that cannot go on.

The patterns are data, in `limits.yaml`. If the text of a limit does not say when it ends, no time is made up.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from attempts.files import expanded
from coral.runtimes.model import Ending

KINDS = {"terminal": Ending.TERMINAL, "fresh": Ending.UNKNOWN_SESSION, "limit": Ending.LIMIT}
GROUPS = frozenset({"epoch", "secs", "dur", "at", "tz"})
LONGEST = 4_000  # characters of a text that the patterns read
LARGEST = 100_000  # bytes of a file of patterns
FARTHEST = 10 * 366 * 86_400.0  # seconds from now; a later time is a misreading
_OURS = Path(__file__).with_name("limits.yaml")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(r"\b(" + "|".join(_MONTHS) + r")[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?\b(?:,? (20\d\d)\b)?", re.I)
_CLOCK = re.compile(r"\b(\d{1,2})(?::(\d\d))?\s*([ap])\.?m\b|\b(\d{1,2}):(\d\d)\b", re.I)
_WORDS = re.compile(r"(?!\b(?:on|at)\b)\b\w+", re.I)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms\b|[a-z])", re.I)
_ISO = re.compile(r"\b(20\d\d-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?", re.I)
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of an error. `until`: when a limit ends, in seconds since the epoch; None if the text does not
    say."""

    ending: Ending
    until: float | None = None


class Patterns:
    """The patterns of a task, which are tried first, and ours."""

    def __init__(self, own: Mapping[str, Sequence[str]]) -> None:
        self._all = (*_compiled(own), *ours())

    def meaning(self, text: str, now: float) -> Meaning | None:
        """Return what the text of an error means, by the first pattern that matches; None if none does. `now`: seconds
        since the epoch."""
        seen = text[:LONGEST].replace("\u2019", "'")
        for ending, pattern in self._all:
            if found := pattern.search(seen):
                return Meaning(ending, _until(found.groupdict(), now) if ending is Ending.LIMIT else None)
        return None


@cache
def ours() -> tuple[tuple[Ending, re.Pattern[str]], ...]:
    return tuple(_compiled(_sections(_read(_OURS))))


def own(given: object) -> Mapping[str, Sequence[str]]:
    """Read the option `limits`: a mapping of lists of patterns, or the path of a YAML file that holds one.

    ValueError says what is wrong with it.
    """
    if isinstance(given, str):
        path = expanded(given)
        if not path.is_absolute():
            raise ValueError("must be an absolute path, or hold the patterns itself: a run outlives its terminal")
        given = _read(path)
    found = _sections(given)
    for _, pattern in _compiled(found):
        if strange := sorted(pattern.groupindex.keys() - GROUPS):
            raise ValueError(f"has a group {strange[0]!r}; it knows {', '.join(sorted(GROUPS))}")
    return found


def _read(path: Path) -> object:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read: {error}") from error
    if len(raw) > LARGEST:
        raise ValueError(f"cannot be read: {path} is larger than {LARGEST // 1000} kB")
    try:
        found: object = YAML(typ="safe", pure=True).load(raw.decode())
    except (YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be read: {path} is not YAML in UTF-8") from error
    return found


def _sections(given: object) -> Mapping[str, Sequence[str]]:
    if not isinstance(given, Mapping) or not given.keys() <= KINDS.keys():
        raise ValueError(f"must hold lists of patterns under {', '.join(KINDS)}")
    for name, patterns in given.items():
        is_list = isinstance(patterns, Sequence) and not isinstance(patterns, str)
        if not is_list or not all(isinstance(pattern, str) and pattern for pattern in patterns):
            raise ValueError(f"{name} must be a list of patterns")
    return given


def _compiled(sections: Mapping[str, Sequence[str]]) -> Iterator[tuple[Ending, re.Pattern[str]]]:
    for kind, ending in KINDS.items():
        for text in sections.get(kind, ()):
            try:
                yield ending, re.compile(text, re.IGNORECASE | re.MULTILINE)
            except re.error as error:
                raise ValueError(f"{kind}: {text!r} is no regular expression: {error}") from error


def _until(found: Mapping[str, str | None], now: float) -> float | None:
    if text := found.get("epoch"):
        moment: float | None = float(text) / (1000 if len(text) > 11 else 1)
    elif text := found.get("secs"):
        moment = now + float(text[:12])
    elif text := found.get("dur"):
        moment = now + sum(float(count[:9]) * _UNITS.get(unit.lower(), 0) for count, unit in _SPAN.findall(text))
    else:
        moment = _clock(found.get("at") or "", found.get("tz") or "UTC", now)
    return moment if moment is not None and moment <= now + FARTHEST else None


def _clock(text: str, zone: str, now: float) -> float | None:
    """Return the moment, in seconds since the epoch, of an ISO 8601 date and time; of any other date or time of day,
    the next such moment in the zone. None if the text holds more."""
    if iso := _ISO.fullmatch(text.strip()):
        offset = iso[3] if iso[3] and iso[3][0] in "+-" else "+00:00"
        try:
            return datetime.fromisoformat(f"{iso[1]}T{iso[2]}{offset}").timestamp()
        except ValueError:
            return None
    clock, date = _CLOCK.search(text), _DATE.search(text)
    if _WORDS.search(_DATE.sub(" ", _CLOCK.sub(" ", text))):
        return None
    try:
        here = datetime.fromtimestamp(now, UTC if zone.upper() in ("UTC", "GMT", "Z") else ZoneInfo(zone))
        if clock is None:
            return None
        hour, minute = _time(clock)
        moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if date is None:
            return (moment if moment > here else moment + timedelta(days=1)).timestamp()
        month, year = _MONTHS.index(date[1].lower()) + 1, int(date[3] or here.year)
        moment = moment.replace(year=year, month=month, day=int(date[2]))
        return (moment if date[3] or moment > here else moment.replace(year=year + 1)).timestamp()
    except (ValueError, OverflowError, KeyError, OSError):
        return None


def _time(found: re.Match[str]) -> tuple[int, int]:
    if found[4]:
        return int(found[4]), int(found[5])
    return int(found[1]) % 12 + (12 if found[3].lower() == "p" else 0), int(found[2] or 0)
