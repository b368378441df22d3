"""The live view of real runs, in a real terminal, by its keys."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from real_runs import Run, tries, wait_until, write_task
from terminal import Screen, Terminal

from coral.supervisor.lock import holder
from workspace.layout import runs_under

CORAL = [sys.executable, "-P", "-m", "coral"]
SCRIPT = [*tries(1, 2, 3), "hang"]
Start = Callable[..., Run]


@pytest.fixture
def run(start: Start) -> Run:
    """Two agents that have tried three numbers each, and do nothing any more."""
    made = start(SCRIPT, overrides=("agents.count=2",))
    made.wait_for_attempts(6)
    return made


def attach(run: Run, folder: Path, width: int = 100, height: int = 30) -> Terminal:
    return Terminal([*CORAL, "attach", "--run", str(run.layout.root)], folder, width=width, height=height)


def last(screen: Screen) -> str:
    return screen.lines()[-1]


def row(screen: Screen, agent: str) -> str:
    return next((line for line in screen.lines() if line.lstrip("> ").startswith(f"{agent} ")), "")


def is_whole(screen: Screen) -> bool:
    """Whether the last line has come, too."""
    return "keys" in last(screen)


def is_put_back(terminal: Terminal) -> bool:
    return not terminal.screen.is_other and terminal.screen.has_cursor and terminal.reads_lines()


def asked(run: Run) -> list[str]:
    return [event["text"] for event in run.events("asked")]


@pytest.mark.parametrize(("width", "height"), [(100, 30), (40, 20)])
def test_an_agent_is_chosen_read_told_and_paused(run: Run, tmp_path: Path, width: int, height: int) -> None:
    with attach(run, tmp_path, width, height) as terminal:
        terminal.wait_for(lambda screen: last(screen).startswith("? keys") and row(screen, "agent-2"))
        terminal.press("t")
        terminal.wait_for("no agent is chosen")
        terminal.press("j\x1b[B")
        terminal.wait_for(lambda screen: row(screen, "agent-2").startswith("> "))
        assert row(terminal.screen, "agent-1").startswith("  ")
        terminal.press("\r")
        terminal.wait_for("the conversation of agent-2")
        terminal.wait_for(lambda screen: screen.lines()[-2].startswith("step") and last(screen).startswith("Esc back"))
        terminal.press("mbe bolder\x7f\x7f")
        terminal.wait_for("tell agent-2: be bold")
        assert asked(run) == []
        terminal.press("\r")
        wait_until(lambda: asked(run))
        terminal.wait_for(lambda screen: "queued: it is delivered" in screen.text.replace("\n", " "))
        assert 'tell agent-2 "be bold"' in asked(run)[0]
        terminal.press("\x1b")
        terminal.wait_for(lambda screen: "the conversation" not in screen.text)
        terminal.press("p")
        terminal.wait_for("agent-2 is paused")
        wait_until(lambda: [agent["phase"] for agent in run.status()["agents"]][1] == "parked")
        terminal.wait_for(lambda screen: "parked" in row(screen, "agent-2"))
        terminal.press("p")
        terminal.wait_for("agent-2 goes on")
        terminal.press("\x03")
        assert terminal.wait() == 0
        assert is_put_back(terminal)
        assert "continues" in terminal.screen.text
    assert holder(run.layout.lock) is not None


def test_a_conversation_goes_on_while_one_reads_it(run: Run, tmp_path: Path) -> None:
    with attach(run, tmp_path) as terminal:
        terminal.press("\t\r")
        terminal.wait_for("the conversation of agent-1")
        before = run.status()["agents"][0]["launch"]
        run.request({"type": "restart", "agent": "agent-1"})
        terminal.wait_for(lambda screen: last_launch(screen) > before)


def last_launch(screen: Screen) -> int:
    """Of those in the conversation that is shown."""
    return max((int(number) for number in re.findall(r"^── launch (\d+)", screen.text, re.MULTILINE)), default=0)


def events(screen: Screen) -> list[str]:
    """The rows of events, each of which begins with a time of the run."""
    return [line for line in screen.lines() if re.match(r" *\d+:\d\d  ", line)]


def test_who_reads_older_events_is_not_moved_by_new_ones(run: Run, tmp_path: Path) -> None:
    with attach(run, tmp_path, 80, 18) as terminal:
        terminal.wait_for("reflects on #6")
        terminal.press("\x1b[H")
        terminal.wait_for(lambda screen: newer(screen) and "#0 the seed" in screen.text and is_whole(screen))
        before = events(terminal.screen)
        assert before
        count = newer(terminal.screen)
        for text in ("one", "two"):
            run.ask({"type": "tell", "to": "agent-1", "text": text})
        terminal.wait_for(lambda screen: newer(screen) == count + 2 and is_whole(screen))
        assert events(terminal.screen) == before
        terminal.press("\x1b[F")
        terminal.wait_for(lambda screen: 'tell agent-1 "two"' in screen.text and "newer" not in screen.text)


def newer(screen: Screen) -> int:
    """How many events are newer than those that are shown, as its line says."""
    return next((int(line.split()[1]) for line in screen.lines() if line.startswith("↓")), 0)


def test_a_mistake_is_answered_in_the_view(run: Run, tmp_path: Path) -> None:
    assert run.ask({"type": "retire", "agent": "agent-1"})["ok"]
    with attach(run, tmp_path) as terminal:
        terminal.wait_for(lambda screen: "retired" in row(screen, "agent-1"))
        terminal.press("jp")
        terminal.wait_for("cannot pause agent-1: ")
        terminal.press("?")
        terminal.wait_for("any key: back")
        terminal.press("?")
        terminal.wait_for(lambda screen: row(screen, "agent-1"))


def test_a_run_is_steered_where_it_was_started(tmp_path: Path) -> None:
    """The view is a thread beside the supervisor there; Ctrl-Z suspends both."""
    write_task(tmp_path / "task", ["hang"])
    with Terminal(["/bin/sh", "-i"], tmp_path, PS1="ready> ") as terminal:
        terminal.wait_for("ready>")
        terminal.press(f"{' '.join(CORAL)} start task\n")
        terminal.wait_for(lambda screen: screen.is_other and "running" in row(screen, "agent-1"))
        terminal.press("p")
        terminal.wait_for("agent-1 is paused")
        terminal.press("\x1a")
        terminal.wait_for(lambda screen: not screen.is_other and "topped" in screen.text)
        terminal.press("fg\n")
        terminal.wait_for(lambda screen: screen.is_other and "parked" in row(screen, "agent-1"))
        terminal.press("p")
        terminal.wait_for("agent-1 goes on")
        terminal.press("\x03")
        terminal.wait_for(lambda screen: not screen.is_other and "To look further" in screen.text)
        terminal.press("exit\n")
        assert terminal.wait() == 0
    (layout,) = runs_under(tmp_path / "runs")
    assert holder(layout.lock) is None


def test_without_a_keyboard_the_view_is_only_looked_at(run: Run, tmp_path: Path) -> None:
    words = ["/bin/sh", "-c", 'exec "$@" </dev/null', "sh", *CORAL, "attach", "--run", str(run.layout.root)]
    with Terminal(words, tmp_path) as terminal:
        terminal.wait_for(lambda screen: screen.is_other and last(screen) == "Ctrl-C leaves; the run continues")
        assert terminal.reads_lines()
        terminal.press("\x03")
        assert terminal.wait() == 0
        assert is_put_back(terminal)


def test_a_terminal_that_cannot_be_filled_gets_lines(run: Run, tmp_path: Path) -> None:
    with Terminal([*CORAL, "attach", "--run", str(run.layout.root)], tmp_path, TERM="dumb") as terminal:
        terminal.wait_for("reflects on #6")
        assert not terminal.screen.is_other
        terminal.press("\x03")
        terminal.wait_for("continues")
        assert terminal.wait() == 0
