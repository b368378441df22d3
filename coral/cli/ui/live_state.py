"""What the live view shows at the moment, and how each key changes that. Nothing is read or sent here: a key that asks
something of the supervisor returns the request."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from coral.cli.ui.live_keys import Key
from coral.cli.ui.scroll import Scroll

Request = Mapping[str, object]
EVERYBODY = "*"
KEYS = (
    ("j k ↓ ↑ Tab", "choose an agent"),
    ("t Enter", "its conversation, live"),
    ("m", "tell it something; all agents, if none is chosen"),
    ("p", "pause it, or let it go on"),
    ("PgUp PgDn", "scroll; Home the oldest, End the newest"),
    ("v", "every step of each launch, or what matters"),
    ("Esc", "back"),
    ("?", "these keys"),
)
NOBODY = "no agent is chosen: j and k, or the arrow keys, choose one"


class Showing(StrEnum):
    EVENTS = "events"
    TRANSCRIPT = "transcript"


@dataclass(slots=True)
class MessageLine:
    """The line in which a message is typed. `to`: the recipient, an agent or EVERYBODY."""

    to: str
    text: str = ""
    cursor: int = 0

    def press(self, key: Key) -> None:
        before, after = self.text[: self.cursor], self.text[self.cursor :]
        match key.name:
            case "left" | "right":
                before = self.text[: max(0, self.cursor + (1 if key.name == "right" else -1))]
                after = self.text[len(before) :]
            case "home":
                before, after = "", self.text
            case "end":
                before, after = self.text, ""
            case "backspace":
                before = before[:-1]
            case "delete":
                after = after[1:]
            case "clear":
                before = ""
            case "clear word":
                before = before.rstrip().rpartition(" ")[0]
                before += " " if before else ""
            case _:
                before += key.text
        self.text, self.cursor = before + after, len(before)


@dataclass(slots=True)
class ViewState:
    """What is shown. `chosen`: an agent, or empty. `notice`: the answer to the last key; `refused`: whether that answer
    refuses a request."""

    verbose: bool = False
    has_keyboard: bool = True
    agents: Sequence[str] = ()
    paused: Collection[str] = ()
    chosen: str = ""
    showing: Showing = Showing.EVENTS
    lists_keys: bool = False  # whether the list of keys is shown in place of all else
    line: MessageLine | None = None
    notice: str = ""
    refused: bool = False
    events: Scroll = field(default_factory=Scroll)
    transcript: Scroll = field(default_factory=Scroll)

    @property
    def target(self) -> str:
        """The agent that a key acts on: the chosen one, or the only one; empty if there are several and none is
        chosen."""
        return self.chosen or (self.agents[0] if len(self.agents) == 1 else "")

    @property
    def scroll(self) -> Scroll:
        return self.transcript if self.showing is Showing.TRANSCRIPT else self.events

    def know(self, agents: Sequence[str], paused: Collection[str]) -> None:
        """Take in which agents the run has now, and which of them are paused."""
        self.agents, self.paused = agents, paused
        if self.chosen not in agents:
            self.chosen = ""
        if not self.target and self.showing is Showing.TRANSCRIPT:
            self.showing = Showing.EVENTS

    def say(self, text: str, *, refused: bool = False) -> None:
        self.notice, self.refused = text, refused

    def press(self, key: Key) -> Request | None:
        """Handle a key. Return the request to send, if the key asks for one."""
        self.say("")
        if self.line is not None:
            return self._write(self.line, key)
        if self.lists_keys:  # any key closes the list
            self.lists_keys = False
            return None
        match key.name:
            case "p":
                return self._pause()
            case "m":
                self.line = MessageLine(self.target or EVERYBODY)
            case "t" | "enter":
                self._open()
            case "escape":
                self._back()
            case _:
                self._look(key)
        return None

    def _look(self, key: Key) -> None:
        """Handle a key that changes only what is shown."""
        match key.name:
            case "j" | "down" | "tab":
                self._choose(1, around=key.name == "tab")
            case "k" | "up" | "back tab":
                self._choose(-1, around=key.name == "back tab")
            case "page up" | "page down":
                self.scroll.page(-1 if key.name == "page up" else 1)
            case "home":
                self.scroll.to_oldest()
            case "end":
                self.scroll.to_newest()
            case "v":
                self.verbose = not self.verbose
                self.say("every step is shown" if self.verbose else "only what matters is shown")
            case "?":
                self.lists_keys = True
            case "paste":
                self.say("press m before you paste a message")
            case name:
                self.say(f"{name if key.text else 'this key'} does nothing; ? shows the keys")

    def _choose(self, step: int, *, around: bool) -> None:
        if not self.agents:
            self.say("there are no agents yet")
            return
        last = len(self.agents) - 1
        place = self.agents.index(self.chosen) + step if self.chosen else (0 if step > 0 else last)
        self.chosen = self.agents[place % len(self.agents) if around else min(max(place, 0), last)]
        self.transcript.to_newest()

    def _open(self) -> None:
        if self.target:
            self.showing = Showing.TRANSCRIPT
        else:
            self.say(NOBODY)

    def _back(self) -> None:
        """Go back one step: from the transcript to the events, from older events to the newest, from the chosen agent
        to none."""
        if self.showing is Showing.TRANSCRIPT:
            self.showing = Showing.EVENTS
            self.transcript.to_newest()
        elif self.events.keep is not None:
            self.events.to_newest()
        else:
            self.chosen = ""

    def _pause(self) -> Request | None:
        if not self.target:
            self.say(NOBODY)
            return None
        verb = "unpause" if self.target in self.paused else "pause"
        self.say(f"requested: {verb} {self.target}")
        return {"type": verb, "agent": self.target}

    def _write(self, line: MessageLine, key: Key) -> Request | None:
        if key.name not in ("enter", "escape"):
            line.press(key)
            return None
        self.line, text = None, line.text.strip()
        if key.name == "escape" or not text:
            self.say("nothing was sent")
            return None
        self.say(f"requested: tell {named(line.to)} {text}")
        return {"type": "tell", "to": line.to, "text": text}


def named(to: str) -> str:
    """Return the recipient of a message as it is shown: an agent's name, or "all agents"."""
    return "all agents" if to == EVERYBODY else to
