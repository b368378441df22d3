"""A heartbeat: a trigger and a prompt; and the rules for changing one, as functions from tuple to tuple.

A protected heartbeat cannot be removed or renamed, and not be made rare or empty: its trigger's figure stays between 1
and ten times the built-in's (not ten times the current one, which could be raised step by step), and only an operator
or the task may give it another prompt.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum

from heartbeats.trigger import Elapsed, Every, Stagnant, Trigger

NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
RESERVED = (
    "message",
    "land",
    "begin",
    "stalled",
    "changed",
    "conclude",
)  # messages of the operator and of the supervisor have these names
MAX_HEARTBEATS = 20
PROMPT_BYTES = 20_000
MAX_ATTEMPTS = 1_000_000
MAX_SECONDS = 30 * 86_400.0
LEAST_SECONDS = 1.0
LEAST_SECONDS_FOR_AGENTS = 60.0
PROTECTED_SLACK = 10
CHANGEABLE = (  # of a protected heartbeat
    f"its figure can be changed, from 1 to {PROTECTED_SLACK} times the built-in one, and its prompt, but not by agents"
)
NOT_AGENTS = frozenset({"built-in", "task", "operator"})

_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_TAG = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
# Unicode counts these as letters, but they are invisible.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0")


class Scope(StrEnum):
    OWN = "own"
    FLEET = "fleet"


class Delivery(StrEnum):
    INTERRUPT = "interrupt"
    INLINE = "inline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A trigger and a prompt. `prompt`: a template; "" for the built-in one of that name. `by`: who set it last."""

    name: str
    trigger: Trigger
    scope: Scope = Scope.OWN
    delivery: Delivery = Delivery.INTERRUPT
    prompt: str = ""
    protected: bool = False
    by: str = "built-in"

    @property
    def when(self) -> str:
        """The trigger in words, such as `every 10 attempts of the fleet`."""
        whose = " of the fleet" if self.scope is Scope.FLEET else ""
        match self.trigger:
            case Every(n):
                return f"every {'attempt' if n == 1 else f'{n} attempts'}{whose}"
            case Stagnant(n):
                return f"every {n} attempts{whose} in a row without improvement"
            case Elapsed(seconds):
                return f"every {_duration(seconds)}"


BUILT_IN: tuple[Heartbeat, ...] = (
    Heartbeat(name="reflect", trigger=Every(1), protected=True),
    Heartbeat(name="consolidate", trigger=Every(10), scope=Scope.FLEET, protected=True),
    Heartbeat(name="redirect", trigger=Stagnant(5)),
    Heartbeat(name="checkpoint", trigger=Elapsed(1800.0)),
)


class HeartbeatError(Exception):
    """A heartbeat, or a change of one, is not allowed. The hint says what is possible."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def set_heartbeat(current: tuple[Heartbeat, ...], wanted: Heartbeat, by: str) -> tuple[Heartbeat, ...]:
    """Add a heartbeat, or change the one of that name. `by`: `operator`, `task` or the name of an agent. HeartbeatError
    if it is not allowed."""
    _check_name(wanted.name)
    present = find(current, wanted.name)
    shipped = find(BUILT_IN, wanted.name)
    if present is None and shipped is not None and shipped.protected:
        # Otherwise an agent could hide the fleet's heartbeat behind a harmless one of the same name.
        owner = "the fleet" if shipped.scope is Scope.FLEET else "each agent"
        raise HeartbeatError(f"cannot set {wanted.name} here: it belongs to {owner}", "change it where it is")
    if present is not None and present.protected:
        _check_protected(present, shipped or present, wanted, by)
    else:
        _check_free(present, wanted, by, current)
    _check_trigger(wanted.trigger, by)
    settled = replace(wanted, protected=present is not None and present.protected, by=by)
    if present is not None:
        return tuple(settled if heartbeat.name == wanted.name else heartbeat for heartbeat in current)
    if len(current) >= MAX_HEARTBEATS:
        raise HeartbeatError(f"cannot add {wanted.name}: there are {MAX_HEARTBEATS} already", "remove one first")
    return (*current, settled)


def remove_heartbeat(current: tuple[Heartbeat, ...], name: str, by: str) -> tuple[Heartbeat, ...]:
    present = find(current, name)
    if present is None:
        names = ", ".join(heartbeat.name for heartbeat in current)
        raise HeartbeatError(f"cannot remove {name[:60]!r}: there is no such heartbeat", f"there are: {names}")
    if present.protected:
        raise HeartbeatError(f"cannot remove {name}: it is protected", CHANGEABLE)
    if _is_agent(by) and present.scope is Scope.FLEET:
        raise HeartbeatError(f"cannot remove {name}: it belongs to the fleet", "only the operator can")
    return tuple(heartbeat for heartbeat in current if heartbeat is not present)


def reset_heartbeats(defaults: tuple[Heartbeat, ...], current: tuple[Heartbeat, ...] = ()) -> tuple[Heartbeat, ...]:
    """Return the heartbeats that the run started with, and the protected ones in `current` that are not among them."""
    return (
        *defaults,
        *(heartbeat for heartbeat in current if heartbeat.protected and find(defaults, heartbeat.name) is None),
    )


def find(heartbeats: Iterable[Heartbeat], name: str) -> Heartbeat | None:
    return next((heartbeat for heartbeat in heartbeats if heartbeat.name == name), None)


def is_blank(text: str) -> bool:
    """Return whether a text has no visible letter and no visible digit."""
    return not any(char.isalnum() and char not in _BLANK_LETTERS for char in text)


def _check_protected(present: Heartbeat, shipped: Heartbeat, wanted: Heartbeat, by: str) -> None:
    cannot = f"cannot change {wanted.name}: it is protected; "
    if wanted.scope is not present.scope or wanted.delivery is not present.delivery:
        raise HeartbeatError(cannot + "its scope and its delivery are fixed", CHANGEABLE)
    if type(wanted.trigger) is not type(present.trigger):
        raise HeartbeatError(cannot + "its kind of trigger is fixed", f"now: {present.when}; {CHANGEABLE}")
    most = PROTECTED_SLACK * _amount(shipped.trigger)
    if not 1 <= _amount(wanted.trigger) <= most:
        raise HeartbeatError(cannot + f"its figure must be between 1 and {most:g}", f"now: {present.when}")
    if wanted.prompt == present.prompt:
        return
    if _is_agent(by):
        raise HeartbeatError(cannot + "its prompt is fixed", "add a heartbeat of your own for words of your own")
    _check_prompt(wanted)
    if wanted.prompt and is_blank(_TAG.sub("", wanted.prompt)):
        raise HeartbeatError(cannot + "its prompt must say something", "write words outside the template's tags")


def _check_free(present: Heartbeat | None, wanted: Heartbeat, by: str, known: Iterable[Heartbeat]) -> None:
    if _is_agent(by) and Scope.FLEET in (wanted.scope, present.scope if present else Scope.OWN):
        raise HeartbeatError(f"cannot set {wanted.name}: it would be the fleet's", "set one with the scope own")
    _check_prompt(wanted, known)


def _meant(name: str, known: Iterable[Heartbeat]) -> str:
    """Return the end of a hint that suggests a known name similar to `name`; "" if there is none, or the name is
    known."""
    names = {heartbeat.name for heartbeat in (*BUILT_IN, *known)}
    if name in names:
        return ""
    near = get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _check_prompt(wanted: Heartbeat, known: Iterable[Heartbeat] = ()) -> None:
    if len(wanted.prompt.encode("utf-8", "replace")) > PROMPT_BYTES:
        raise HeartbeatError(f"cannot set {wanted.name}: its prompt is over {PROMPT_BYTES // 1000} kB", "shorten it")
    if wanted.prompt == "" and find(BUILT_IN, wanted.name) is not None:
        return
    # Up to the last end of a comment: behind it, the end would be looked for anew from each beginning, for seconds.
    end = wanted.prompt.rfind("#}") + len("#}")
    if is_blank(_COMMENT.sub("", wanted.prompt[:end]) + wanted.prompt[end:]):
        hint = f"give it a prompt with words in it{_meant(wanted.name, known)}"
        raise HeartbeatError(f"cannot set {wanted.name}: its prompt says nothing", hint)


def _check_trigger(trigger: Trigger, by: str) -> None:
    match trigger:
        case Every(n) | Stagnant(n):
            if n > MAX_ATTEMPTS:
                count = str(n) if n < 10**12 else "that many"
                raise HeartbeatError(f"cannot wait for {count} attempts", f"at most {MAX_ATTEMPTS}")
        case Elapsed(seconds):
            least = LEAST_SECONDS_FOR_AGENTS if _is_agent(by) else LEAST_SECONDS
            if not least <= seconds <= MAX_SECONDS:
                raise HeartbeatError(
                    f"cannot fire every {seconds:g} seconds", f"choose from {least:g} seconds to 30 days"
                )


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        folded = unicodedata.normalize("NFKC", name[:60]).strip().lower()
        meant = f"; did you mean {folded}?" if NAME.fullmatch(folded) else ""
        raise HeartbeatError(
            f"cannot name a heartbeat {name[:60]!r}{meant}",
            "a name is a small letter, then up to 39 small letters, digits and dashes",
        )
    if name in RESERVED:
        sends = "the operator sends" if name == RESERVED[0] else "Coral sends itself"
        raise HeartbeatError(f"cannot name a heartbeat {name}: that is what {sends}", "choose another name")


def _is_agent(by: str) -> bool:
    return by not in NOT_AGENTS


def _amount(trigger: Trigger) -> float:
    return trigger.seconds if isinstance(trigger, Elapsed) else trigger.n


def _duration(seconds: float) -> str:
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return unit if count == 1 else f"{count} {unit}s"
    return "second" if seconds == 1 else f"{seconds:g} seconds"
