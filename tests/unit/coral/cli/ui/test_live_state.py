"""What each key of the live view does."""

import pytest

from coral.cli.ui.live_keys import Key, KeyDecoder
from coral.cli.ui.live_state import KEYS, MessageLine, Request, Showing, ViewState

AGENTS = ["agent-1", "agent-2", "agent-3"]


@pytest.fixture
def state() -> ViewState:
    made = ViewState()
    made.know(AGENTS, ["agent-3"])
    return made


def press(state: ViewState, *keys: str) -> list[Request]:
    """By their names; words are typed."""
    found = []
    for name in keys:
        typed = [Key(name)] if name in NAMED else [Key(letter, letter) for letter in name]
        found += [request for key in typed if (request := state.press(key)) is not None]
    return found


NAMED = {"up", "down", "tab", "back tab", "enter", "escape", "left", "right", "home", "end", "page up", "backspace"}
NAMED |= {"delete", "clear", "clear word", "unknown"}


def test_an_agent_is_chosen_by_keys(state: ViewState) -> None:
    assert state.target == ""
    seen = []
    for key in ("j", "down", "j", "j", "tab", "back tab", "k", "up", "k"):
        press(state, key)
        seen.append(state.chosen[-1])
    assert "".join(seen) == "123313211"
    press(state, "escape", "k")
    assert state.chosen == "agent-3"


def test_of_an_agent_that_is_no_more_the_choice_is_gone(state: ViewState) -> None:
    press(state, "j", "t")
    assert state.showing is Showing.TRANSCRIPT
    state.know(["agent-2", "agent-3"], [])
    assert (state.chosen, state.showing) == ("", Showing.EVENTS)


def test_a_fleet_of_one_needs_no_choice(state: ViewState) -> None:
    state.know(["agent-1"], [])
    assert press(state, "p") == [{"type": "pause", "agent": "agent-1"}]
    press(state, "enter")
    assert state.showing is Showing.TRANSCRIPT


def test_a_transcript_is_opened_and_left(state: ViewState) -> None:
    press(state, "t")
    assert state.showing is Showing.EVENTS
    assert "no agent is chosen" in state.notice
    press(state, "j", "t")
    assert state.showing is Showing.TRANSCRIPT
    assert state.notice == ""
    press(state, "j")
    assert (state.showing, state.target) == (Showing.TRANSCRIPT, "agent-2")
    press(state, "escape")
    assert (state.showing, state.target) == (Showing.EVENTS, "agent-2")
    press(state, "escape")
    assert state.target == ""


def test_a_message_goes_to_the_chosen_agent_or_to_all(state: ViewState) -> None:
    assert press(state, "m", "try p?", "enter") == [{"type": "tell", "to": "*", "text": "try p?"}]
    assert state.notice == "requested: tell all agents try p?"
    assert press(state, "j", "m", " jk ", "enter") == [{"type": "tell", "to": "agent-1", "text": "jk"}]
    assert state.chosen == "agent-1"
    for keys in (("m", "enter"), ("m", "  ", "enter"), ("m", "nonsense", "escape")):
        assert press(state, *keys) == []
        assert (state.line, state.notice) == (None, "nothing was sent")


def test_a_message_is_kept_for_whom_it_was_begun(state: ViewState) -> None:
    press(state, "j", "m", "x")
    state.know(["agent-2"], [])
    assert press(state, "enter") == [{"type": "tell", "to": "agent-1", "text": "x"}]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("abd", "left", "c"), "abc|d"),
        (("bc", "home", "a", "end", "d"), "abcd|"),
        (("abxc", "left", "backspace"), "ab|c"),
        (("axb", "home", "right", "delete"), "a|b"),
        (("abc", "left", "clear"), "|c"),
        (("ab cd  ", "clear word"), "ab |"),
        (("ab", "clear word", "backspace", "left", "right", "unknown"), "|"),
    ],
)
def test_the_line_is_edited(keys: tuple[str, ...], text: str) -> None:
    line = MessageLine("*")
    for name in keys:
        for key in [Key(name)] if name in NAMED else [Key(letter, letter) for letter in name]:
            line.press(key)
    assert f"{line.text[: line.cursor]}|{line.text[line.cursor :]}" == text


def test_what_is_pasted_is_no_key(state: ViewState) -> None:
    pasted = KeyDecoder().feed(b"\x1b[200~p m\np\x1b[201~")
    assert [state.press(key) for key in pasted] == [None]
    assert "press m" in state.notice
    press(state, "m")
    state.press(pasted[0])
    assert press(state, "enter") == [{"type": "tell", "to": "*", "text": "p m p"}]


def test_pause_is_undone_by_the_same_key(state: ViewState) -> None:
    assert press(state, "p") == []
    assert "no agent is chosen" in state.notice
    assert press(state, "k", "p", "k", "p") == [
        {"type": "unpause", "agent": "agent-3"},
        {"type": "pause", "agent": "agent-2"},
    ]
    assert state.notice == "requested: pause agent-2"


def test_events_and_transcript_are_scrolled_each_by_itself(state: ViewState) -> None:
    rows = [(number, 0) for number in range(50)]
    state.events.window(rows, 10)
    state.transcript.window(rows, 10)
    press(state, "page up", "j", "t", "home")
    assert state.events.window(rows, 10) == (33, 42)
    assert state.transcript.window(rows, 10) == (0, 9)
    press(state, "j")  # another conversation begins at its end
    assert state.transcript.keep is None
    press(state, "escape", "escape")
    assert (state.events.keep, state.chosen) == (None, "agent-2")


def test_every_key_is_listed_and_any_ends_the_list(state: ViewState) -> None:
    press(state, "j", "t", "?")
    assert state.lists_keys
    assert press(state, "p") == []
    assert (state.lists_keys, state.showing) == (False, Showing.TRANSCRIPT)
    listed = " ".join(keys for keys, _ in KEYS).split()
    assert {"j", "k", "t", "m", "p", "v", "?", "Esc", "Enter", "Tab", "PgUp"} <= set(listed)


def test_every_key_is_answered(state: ViewState) -> None:
    press(state, "v")
    assert (state.verbose, state.notice) == (True, "every step is shown")
    press(state, "q")
    assert state.notice == "q does nothing; ? shows the keys"
    press(state, "unknown")
    assert state.notice == "this key does nothing; ? shows the keys"
    state.know([], [])
    press(state, "j")
    assert state.notice == "there are no agents yet"
