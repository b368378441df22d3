"""The frame of the command line: one handler, two-line errors, exit codes, our own packages and nobody else's."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from files import write_files
from real_runs import coral_interpreter
from sample import make_run

from attempts.store import StoreError
from coral import __version__
from coral.cli import COMMANDS, EXIT_CODES, GROUPS, main
from coral.cli.commands import runs, start
from coral.cli.parser import Parser
from coral.errors import CoralError
from heartbeats.heartbeat import HeartbeatError
from workspace.errors import WorkspaceError

PYTHON = (sys.executable, "-m", "coral")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORAL_DEBUG", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def test_the_overview_names_every_command(capsys) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in COMMANDS)
    assert all(f"\n  {code} " in said for code in EXIT_CODES)
    assert max(map(len, said.splitlines())) < 80
    assert {group for group, _, _ in COMMANDS.values()} == set(GROUPS)


def test_an_interrupt_that_python_drops_comes_again() -> None:
    """A signal that arrives in a finalizer, as many a library has them; the first wait must not last."""
    code = """
import os, signal, sys, time
from coral import cli

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

def work(arguments):
    cli._let_all_signals_interrupt()
    Finalized()
    time.sleep(600)

try:
    work([])
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_control_characters_are_left_out_of_messages(capsys) -> None:
    assert main(["start", "no\x1b[2J\x00 such\x9b1m\ttask\r"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("coral: cannot start: there is no folder or task file no[2J such1m\ttask\n  ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys) -> None:
    assert main([name, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: coral {name}")
    example = f"coral {name} {COMMANDS[name][2]}".rstrip()
    assert said.endswith(f"\nexample:\n  {example}\n")
    assert max(map(len, said.splitlines())) <= 120


def test_every_command_that_tells_something_has_json() -> None:
    for name in COMMANDS:
        parser = Parser(prog=f"coral {name}")
        import_module(f"coral.cli.commands.{name}").add_arguments(parser)
        verbs = parser._verbs.choices.values() if parser._verbs else ()
        for known in (parser, *verbs):
            assert ("--json" in known._option_string_actions) == (name not in ("attach", "completion")), known.prog


def test_the_version(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"coral {__version__}\n"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("evla", "did you mean `coral eval`?"),
        ("stat", "did you mean `coral status`?"),
        ("zebra", "`coral --help` lists the commands"),
    ],
)
def test_a_misspelt_command_gets_a_hint(word: str, hint: str, capsys) -> None:
    assert main([word]) == 1
    assert capsys.readouterr().err == f"coral: cannot run {word!r}: no such command\n  {hint}\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["eval"], "the following arguments are required: -m/--message"),
        (["eval", "-m", "x", "--wat"], "unrecognized arguments: --wat"),
        (["show", "seven"], "argument N: 'seven' is not the number of an attempt"),
        (["wait", "--timeout", "x"], "argument --timeout: 'x' is not a number"),
        (
            ["heartbeat", "set", "mine", "--every", "ten"],
            "argument --every: 'ten' is neither a number of attempts nor a time such as 30m",
        ),
    ],
)
def test_wrong_arguments_are_exit_1_because_2_means_pending(words: list[str], problem: str, capsys) -> None:
    assert main(words) == 1
    said = capsys.readouterr()
    command = " ".join(words[: 2 if words[0] == "heartbeat" else 1])
    assert (said.out, said.err) == (
        "",
        f"coral: cannot run coral {command}: {problem}\n  `coral {command} --help` explains it\n",
    )


def test_options_may_stand_between_positional_words(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(start, "run", lambda args: seen.append(args) or 0)
    assert main(["start", "task", "--detach", "agents.count=4", "grader.slots=2"]) == 0
    assert (seen[0].task, seen[0].overrides, seen[0].detach) == ("task", ["agents.count=4", "grader.slots=2"], True)


@pytest.mark.parametrize("error", [CoralError, StoreError, HeartbeatError, WorkspaceError])
def test_a_users_mistake_is_two_lines(error: Callable[[str, str], Exception], capsys, monkeypatch) -> None:
    def fail(args: object) -> int:
        raise error("cannot do it: it is Monday", "try tomorrow")

    monkeypatch.setattr(runs, "run", fail)
    assert main(["runs"]) == 1
    assert capsys.readouterr().err == "coral: cannot do it: it is Monday\n  try tomorrow\n"


def test_our_own_error_is_one_line_and_a_file(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(runs, "run", lambda args: {}["missing"])
    assert main(["runs"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("coral: internal error: KeyError: 'missing'\n  the traceback is in ")
    (kept,) = tmp_path.glob("coral-traceback-*.txt")
    assert "Traceback (most recent call last)" in kept.read_text()
    monkeypatch.setenv("CORAL_DEBUG", "1")
    assert main(["runs"]) == 3
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "run", interrupted)
    assert main(["runs"]) == 130


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("words", [["--version"], ["init", "task"]])
def test_closed_output_does_not_break_a_command(words: list[str], closed: str) -> None:
    """As a service manager or a careless script starts a command: Python then has None where the stream would be."""
    done = subprocess.run(["/bin/sh", "-c", f'"$@" {closed}', "sh", *PYTHON, *words], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.fixture
def buffered(monkeypatch) -> None:
    """What is printed is written at the end, as it is outside of tests and containers."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


SAYING = [["--help"], ["eval", "--help"], ["init", "task"]]


@pytest.mark.usefixtures("buffered")
@pytest.mark.parametrize("words", SAYING)
def test_a_closed_pipe_is_no_failure(words: list[str]) -> None:
    left, pipe = os.pipe()
    os.close(left)
    done = subprocess.run([*PYTHON, *words], stdout=pipe, stderr=subprocess.PIPE, check=False)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.usefixtures("buffered")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", SAYING)
def test_a_full_device_is_reported_once(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PYTHON, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("coral: cannot continue: [Errno 28] No space left on device\n  ")
    assert len(done.stderr.splitlines()) == 2


def test_git_variables_of_the_caller_are_dropped(monkeypatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_WORK_TREE", "/nowhere")
    main(["--version"])
    assert not [name for name in os.environ if name.startswith("GIT_")]


@pytest.mark.parametrize("room", ["attempts", "heartbeats", "workspace"])
def test_a_package_in_place_of_ours_is_named_and_never_run(room: str, tmp_path) -> None:
    (tmp_path / room).mkdir()
    (tmp_path / room / "__init__.py").write_text("open('ran', 'w')")
    done = subprocess.run([*PYTHON, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the package {room!r} is not Coral's own, but {tmp_path / room / '__init__.py'}" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_folders_without_code_are_no_packages(tmp_path) -> None:
    for room in ("attempts", "heartbeats", "workspace", "coral"):
        (tmp_path / room).mkdir()
    done = subprocess.run([*PYTHON, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"coral {__version__}\n")


def test_a_reader_that_leaves_early_is_no_error(tmp_path) -> None:
    script = f"{sys.executable} -P -m coral --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout == "0\n"


@pytest.mark.parametrize(
    "spoken", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
def test_letters_that_a_terminal_lacks_are_question_marks(spoken: dict[str, str], tmp_path) -> None:
    run = make_run(tmp_path / "runs", task="tüq")
    words = ["log", "--run", str(run.root)]
    done = subprocess.run([*PYTHON, *words], env={**os.environ, **spoken}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "?seed" in done.stdout


def test_stop_imports_little(tmp_path) -> None:
    done = coral_interpreter("stop", "--run", str(make_run(tmp_path / "runs").root), PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "coral.journal.fold" in loaded
    assert not loaded & {"pydantic", "jinja2", "rich", "ruamel.yaml", "coral.runs.create", "coral.supervisor.loop"}


def test_a_grader_that_crashes_is_known_where_the_end_of_children_is_ignored(tmp_path: Path) -> None:
    """Programs inherit that from whatever started them; then the system forgets with which code a child ended."""
    command = 'echo 5 > "$CORAL_RESULT"; exit 3'
    task = f"task: {{name: t, description: d}}\ngrader: {{command: {json.dumps(command)}}}\n"
    write_files(tmp_path / "task", {"task.yaml": task, "seed/a.txt": "1"})
    ignore = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [sys.executable, "-c", ignore, sys.executable, "-P", "-m", "coral", "validate", str(tmp_path / "task")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, "it ended with exit code 3" in done.stdout) == (1, True), done.stdout + done.stderr
