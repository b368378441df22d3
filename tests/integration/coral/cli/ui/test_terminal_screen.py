"""A view that fills a real terminal: keys at once, and the terminal as it was when it ends or is suspended."""

import sys
from pathlib import Path

import pytest
from terminal import Screen, Terminal

PROGRAM = """
import sys, threading
from rich.text import Text
from coral.cli.ui.table import console
from coral.cli.ui.terminal_screen import full_screen, suspendable

def show():
    out, seen = console(), []
    with full_screen(out) as screen:
        while seen[-1:] != ["q"]:
            screen.draw(Text("keys: " + " ".join(seen)))
            seen += [key.name for key in screen.pressed(0.1)]

if sys.argv[1:] == ["thread"]:  # as beside a supervisor
    with suspendable():
        thread = threading.Thread(target=show)
        thread.start()
        thread.join()
else:
    show()
print("it is over")
"""
SHELL = ["/bin/sh", "-i"]
PROMPT = "ready> "


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return [sys.executable, str(path)]


def is_put_back(terminal: Terminal) -> bool:
    return not terminal.screen.is_other and terminal.screen.has_cursor and terminal.reads_lines()


def shows(screen: Screen) -> bool:
    return screen.is_other and not screen.has_cursor and screen.text.startswith("keys:")


def test_keys_are_read_at_once_and_the_terminal_is_put_back(program: list[str], tmp_path: Path) -> None:
    with Terminal(program, tmp_path) as terminal:
        terminal.wait_for(shows)
        assert not terminal.reads_lines()
        terminal.press("j\x1b[A")
        terminal.wait_for("keys: j up")
        terminal.press("\x1b")
        terminal.wait_for("keys: j up escape")
        terminal.press("\x1b[200~two\nlines\x1b[201~é")
        terminal.wait_for("keys: j up escape paste é")
        terminal.press("q")
        assert terminal.wait() == 0
        assert is_put_back(terminal)
        assert "it is over" in terminal.screen.text
        assert "keys" not in terminal.screen.text


def test_it_is_put_back_after_ctrl_c(program: list[str], tmp_path: Path) -> None:
    with Terminal(program, tmp_path) as terminal:
        terminal.wait_for(shows)
        terminal.press("\x03")
        assert terminal.wait() != 0
        assert is_put_back(terminal)
        assert "KeyboardInterrupt" in terminal.screen.text


def test_without_a_keyboard_it_only_shows(program: list[str], tmp_path: Path) -> None:
    with Terminal(["/bin/sh", "-c", 'exec "$@" </dev/null', "sh", *program], tmp_path) as terminal:
        terminal.wait_for(shows)
        assert terminal.reads_lines()
        terminal.press("q")
        terminal.press("\x03")
        assert terminal.wait() != 0
        assert is_put_back(terminal)


@pytest.mark.parametrize("where", ["", " thread"])
def test_ctrl_z_puts_it_back_and_fg_shows_it_again(program: list[str], tmp_path: Path, where: str) -> None:
    with Terminal(SHELL, tmp_path, PS1=PROMPT) as terminal:
        terminal.wait_for(PROMPT.strip())
        terminal.press(" ".join(program) + where + "\n")
        terminal.wait_for(shows)
        terminal.press("j")
        terminal.wait_for("keys: j")
        for count in (1, 2):
            terminal.press("\x1a")
            terminal.wait_for(lambda screen, count=count: has_stopped(screen, count))
            assert terminal.screen.has_cursor
            assert "keys:" not in terminal.screen.text
            terminal.press(f"echo still a shell: $(({count} * 100))\n")
            terminal.wait_for(f"still a shell: {count}00")
            terminal.press("fg\n")
            terminal.wait_for(shows)
            terminal.press("k")
            terminal.wait_for("keys: j" + " k" * count)
        terminal.press("q")
        terminal.wait_for(lambda screen: not screen.is_other and "it is over" in screen.text)
        terminal.press("exit\n")
        assert terminal.wait() == 0


def has_stopped(screen: Screen, count: int = 1) -> bool:
    """As shells tell it of a job, for the time of this number."""
    return not screen.is_other and screen.text.count("topped") == count


def test_in_the_background_it_keeps_away_from_the_terminal(program: list[str], tmp_path: Path) -> None:
    with Terminal(SHELL, tmp_path, PS1=PROMPT) as terminal:
        terminal.wait_for(PROMPT.strip())
        terminal.press(" ".join(program) + " thread\n")
        terminal.wait_for(shows)
        terminal.press("\x1a")
        terminal.wait_for(has_stopped)
        terminal.press("bg\n")
        for number in range(1, 6):  # the program would have drawn by then, and a stopped one would be told
            terminal.press(f"sleep 0.2; echo $(({number} * 100)) times\n")
            terminal.wait_for(f"{number}00 times")
        assert not terminal.screen.is_other
        terminal.press("jobs\n")
        terminal.wait_for("unning")
        terminal.press("fg\n")
        terminal.wait_for(shows)
        terminal.press("q")
        terminal.wait_for(lambda screen: not screen.is_other and "it is over" in screen.text)
