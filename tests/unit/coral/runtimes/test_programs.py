"""How well-known agent programs are started: with the command lines that were measured, and the user's own login."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import transcripts
from files import write_files
from launch_specs import launch_spec
from real_runs import READ_NUMBER

from coral.agent_setup.launch import fill_state_folder, launch_environment
from coral.cli import main
from coral.config.load import load
from coral.errors import CoralError
from coral.runs.create import create_run
from coral.runtimes import registry
from coral.runtimes.agent import FOREIGN, AgentProgram
from coral.runtimes.model import Command, Ending, LaunchSummary
from coral.runtimes.opencode import Opencode

PROGRAMS = [name for name in registry.RUNTIMES if isinstance(registry.find(name, {}), AgentProgram)]
MEASURED = [name for name in PROGRAMS if getattr(registry.find(name, {}), "verified_version")]  # noqa: B009 - not of every one
PRESET = ("claude", "gemini", "qwen", "copilot")  # these take an id that we choose


def install(folder: Path, *names: str) -> Path:
    """Write programs at these paths in the folder, which is returned."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return folder


def behind_program(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A command line without what starts the program: the options begin with the first dash or subcommand."""
    first = next(index for index, word in enumerate(argv) if word in ("exec", "run") or word.startswith("-"))
    return argv[first:] if argv[first] != "--expose-gc" else argv[first + 2 :]


OPTIONS: Mapping[str, Mapping[str, object]] = {"qwen": {"auth": "openai"}, "pi": {"provider": "mock"}}
MODELS = {"codex": "mock-model", "gemini": "gemini-2.5-pro", "pi": "mock-model"}


@pytest.mark.parametrize("program", MEASURED)
@pytest.mark.parametrize("case", ["ok", "resume"])
def test_the_command_line_is_the_one_that_was_measured(program: str, case: str, tmp_path: Path) -> None:
    measured = transcripts.meta(f"{program}-{case}")["argv"]
    session = transcripts.read(f"{program}-{case}", tmp_path)["end"]["session"]
    runtime = registry.find(program, OPTIONS.get(program, {}))
    spec = launch_spec(session if case == "resume" else None, tmp_path, model=MODELS.get(program, ""))
    command = runtime.command(spec)
    ours = [command.session if word == session else word for word in command.argv]
    theirs = [command.session if word == session else word.replace(session, command.session) for word in measured]
    if program == "codex":  # with settings that say where the scripted model was, and before ours of the shell
        shell = ours.index("allow_login_shell=false")
        del ours[shell - 1 : shell + 1]
        for setting in [word for word in theirs if word.startswith(("model_provider=", "model_providers."))]:
            del theirs[theirs.index(setting) - 1 : theirs.index(setting) + 1]
    assert list(behind_program(tuple(ours))) == list(behind_program(tuple(theirs)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_session_is_new_or_resumed_and_model_and_arguments_reach_the_program(program: str, tmp_path: Path) -> None:
    runtime = registry.find(program, {"args": ["--of-mine", "7"]})
    new, other = runtime.command(launch_spec(root=tmp_path)), runtime.command(launch_spec(root=tmp_path, model="m-1"))
    assert bool(new.session) == (program in PRESET)
    assert new.session == "" or any(new.session in word for word in new.argv)
    assert any("m-1" in word for word in other.argv)
    assert not any("m-1" in word for word in new.argv)
    resumed = runtime.command(launch_spec("s-1", tmp_path))
    assert resumed.session == "s-1"
    assert any("s-1" in word for word in resumed.argv)
    assert "--of-mine" in resumed.argv
    assert resumed.argv.index("7") == resumed.argv.index("--of-mine") + 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_effort_that_the_program_does_not_have_is_refused(program: str, tmp_path: Path) -> None:
    efforts = getattr(registry.find(program, {}), "efforts")  # noqa: B009 - not of every runtime
    for effort in efforts:
        runtime = registry.find(program, {"effort": effort})
        assert any(effort in word for word in runtime.command(launch_spec(root=tmp_path)).argv)
    [problem] = registry.find(program, {"effort": "of a titan"}).check()
    assert problem.startswith("effort must be one of" if efforts else "there is no option 'effort'")


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_is_missing_is_named_with_the_command_that_installs_it(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    runtime = registry.find(program, {})
    assert isinstance(runtime, AgentProgram)
    [problem] = registry.check(program, {})
    how = "npm install -g " if runtime.package else runtime.install_command
    assert problem.startswith(f"{runtime.program}: the program is not on PATH; `{how}")
    [problem] = registry.check(program, {"program": "/no/such/thing"})
    assert "/no/such/thing: there is no such program" in problem
    monkeypatch.setenv("PATH", str(install(tmp_path, runtime.program)))
    assert registry.check(program, {}) == []


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"modle": "x"}, "there is no option 'modle'"),
        ({"args": "--x"}, "args must be a list of texts"),
        ({"args": [3]}, "args must be a list of texts"),
        ({"keep": {"A": 1}}, "keep must be a list of texts"),
        ({"program": ["x"]}, "program must be a text"),
        ({"limits": {"limit": ["("]}}, "limits limit: '(' is no regular expression"),
    ],
)
def test_wrong_options_are_found_before_anything_is_started(
    program: str, options: Mapping[str, object], problem: str
) -> None:
    assert any(problem in found for found in registry.find(program, options).check())


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_environment_holds_no_variables_of_other_agents(program: str, tmp_path: Path) -> None:
    command = registry.find(program, {"keep": ["OPENAI_API_KEY", "CLAUDECODE"]}).command(launch_spec(root=tmp_path))
    base = {"PATH": "/bin", "HOME": "/h", "TERM": "xterm", "CLAUDE_CODE_ENTRYPOINT": "cli", "CODEX_SANDBOX": "x"}
    base |= {"OPENAI_API_KEY": "k", "CLAUDECODE": "1", "GEMINI_CLI": "1", "OPENCODE": "1", "QWEN_CODE": "1"}
    made = launch_environment(base, command)
    ours = {"PATH": "/bin", "HOME": "/h", "TERM": "dumb", "TZ": "UTC", "NO_COLOR": "1"}
    assert {name: made[name] for name in ours} == ours
    assert (made["OPENAI_API_KEY"], made["CLAUDECODE"]) == ("k", "1")
    assert made.keys() & {"CLAUDE_CODE_ENTRYPOINT", "CODEX_SANDBOX", "GEMINI_CLI", "OPENCODE", "QWEN_CODE"} == set()
    stays = program not in MEASURED  # how to move it without the login is not documented
    assert stays or any(str(launch_spec(root=tmp_path).state) in value for value in made.values()), (
        "its state lies in the run"
    )


KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "qwen": "OPENAI_API_KEY"}


@pytest.mark.parametrize("program", KEYS)
def test_an_api_key_reaches_only_its_own_program(program: str, tmp_path: Path) -> None:
    command = registry.find(program, {}).command(launch_spec(root=tmp_path))
    made = launch_environment(dict.fromkeys(KEYS.values(), "secret"), command)
    assert {name for name in made if made[name] == "secret"} == {KEYS[program]}


def test_a_login_is_linked_and_never_copied(tmp_path: Path) -> None:
    login, state = tmp_path / "home/auth.json", tmp_path / "state"
    command = Command(argv=("x",), links={"auth.json": login, "sub/key": login}, files={"settings.json": "{}"})
    fill_state_folder(command, state)
    assert sorted(path.name for path in state.iterdir()) == ["settings.json"], "nobody is logged in"
    login.parent.mkdir()
    login.write_text("secret")
    (state / "settings.json").write_text('{"of": "the program"}')
    for _ in range(2):
        fill_state_folder(command, state)
        assert (state / "auth.json").readlink() == login
        assert (state / "sub/key").readlink() == login
    assert (state / "settings.json").read_text() == '{"of": "the program"}'
    login.write_text("newer")
    assert (state / "auth.json").read_text() == "newer"


def test_a_lock_that_a_killed_launch_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    lock, full = tmp_path / "store/lock.lock", tmp_path / "full"
    for folder in (lock, full / "of files"):
        folder.mkdir(parents=True)
    (tmp_path / "file").touch()
    for _ in range(2):
        fill_state_folder(Command(argv=("x",), locks=("store/lock.lock", "full", "file", "nothing")), tmp_path)
    assert not lock.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "store"]


@pytest.mark.parametrize(
    ("program", "folder", "login"),
    [("claude", ".claude", [".credentials.json"]), ("codex", ".codex", ["auth.json", "config.toml"])],
)
def test_the_login_is_linked_from_where_the_program_keeps_it(
    program: str, folder: str, login: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for home in (tmp_path / folder, Path("/elsewhere")):
        command = registry.find(program, {}).command(launch_spec(root=tmp_path))
        assert command.links == {name: home / name for name in login}
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/elsewhere")
        monkeypatch.setenv("CODEX_HOME", "/elsewhere")


def write_task(folder: Path, options: Mapping[str, object], seed: Mapping[str, str]) -> Path:
    for name, text in {"x.txt": "1", **seed}.items():
        (folder / "seed").mkdir(parents=True, exist_ok=True)
        (folder / "seed" / name).write_text(text)
    (folder / "grade.py").write_text(READ_NUMBER)
    agents = f"agents: {{runtime: claude, options: {json.dumps(options)}}}\n"
    (folder / "task.yaml").write_text("task: {name: t, description: d}\ngrader: {entry: grade.py:grade}\n" + agents)
    return folder


def test_validate_and_start_say_how_to_install_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_task(tmp_path / "t", {"program": "no-such-claude"}, {})
    told = "no-such-claude: the program is not on PATH; `npm install -g @anthropic-ai/claude-code` installs it"
    assert main(["validate", str(folder)]) == 1
    assert told in capsys.readouterr().out
    with pytest.raises(CoralError, match="cannot start claude") as caught:
        create_run(load(folder), tmp_path / "runs", lambda _: None)
    assert told in str(caught.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(("money", "ceiling"), [(12.5, "12.5000"), (0.25, "0.2500"), (0.0, "0.0001")])
def test_claude_gets_what_is_left_of_the_budget_as_its_ceiling(money: float, ceiling: str, tmp_path: Path) -> None:
    argv = registry.find("claude", {}).command(launch_spec(root=tmp_path, money=money)).argv
    assert argv[argv.index("--max-budget-usd") + 1] == ceiling


def test_claude_has_no_ceiling_without_a_budget_and_keeps_the_tasks_own(tmp_path: Path) -> None:
    assert "--max-budget-usd" not in registry.find("claude", {}).command(launch_spec(root=tmp_path)).argv
    for own in (["--max-budget-usd", "3"], ["--max-budget-usd=3"]):
        argv = registry.find("claude", {"args": own}).command(launch_spec(root=tmp_path, money=9.0)).argv
        assert [word for word in argv if "9" in word and "budget" in word] == []
        assert "".join(argv).count("--max-budget-usd") == 1
        assert argv[-len(own) :] == tuple(own)


@pytest.mark.parametrize("printed", [Ending.CLEAN, Ending.UNKNOWN_SESSION])  # the latter: its context is full
@pytest.mark.parametrize(
    ("code", "ending"),
    [(0, None), (1, None), (-2, Ending.INTERRUPTED), (-15, Ending.INTERRUPTED), (-9, Ending.CRASHED)],
)
def test_what_opencode_printed_before_a_signal_is_not_the_end_of_its_turn(
    code: int, ending: Ending | None, printed: Ending
) -> None:
    summary = LaunchSummary(output=True, session="ses_1", ending=printed)
    opencode = Opencode({})
    assert opencode.judge(code, summary) is (ending or printed)
    assert opencode.judge(code, replace(summary, ending=Ending.LIMIT)) is Ending.LIMIT


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has logged in nowhere, on Linux."""
    for name in [name for name in os.environ if name.startswith(FOREIGN) or name.startswith(("XDG_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


LOGIN_NEEDED = ["claude", "codex", "gemini", "qwen"]  # the others have free models, or take keys of anybody


@pytest.mark.usefixtures("nobody")
def test_a_missing_login_is_found_where_one_is_needed() -> None:
    missing = {name: registry.find(name, {}).missing_login() for name in registry.RUNTIMES if name not in ("command",)}
    assert [name for name, text in missing.items() if text] == LOGIN_NEEDED
    assert missing["codex"].startswith("no login of codex was found; looked for: CODEX_API_KEY, OPENAI_API_KEY, ")


@pytest.mark.parametrize("name", LOGIN_NEEDED)
def test_a_key_a_login_or_what_may_name_one_is_enough(name: str, nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = registry.find(name, {})
    assert isinstance(program, AgentProgram)
    for login in program.logins():
        write_files(nobody, {str(login.relative_to(nobody)): "{}"})
        assert program.missing_login() == ""
        login.unlink()
    for variable in (program.keys[0], f"{program.kept_variables[0]}X"):
        monkeypatch.setenv(variable, "x")
        assert program.missing_login() == ""
        monkeypatch.delenv(variable)
    assert program.missing_login()
    assert registry.find(name, {"program": "/a/wrapper"}).missing_login() == ""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert program.missing_login() == ""


def test_nothing_is_written_through_a_folder_of_the_state_that_became_a_link(tmp_path: Path) -> None:
    state, outside, login = tmp_path / "state", tmp_path / "outside", tmp_path / "auth.json"
    for folder in (state, outside / "lock"):
        folder.mkdir(parents=True)
    login.touch()
    (state / "sub").symlink_to(outside)
    with pytest.raises(OSError, match="sub"):
        fill_state_folder(Command(argv=("x",), locks=("sub/lock",), links={"sub/key": login}), state)
    assert [path.name for path in outside.iterdir()] == ["lock"]


def test_a_login_is_linked_or_copied(tmp_path: Path) -> None:
    login = tmp_path / "login.json"
    login.write_text("key")
    command = Command(argv=("agent",), links={"login.json": login})
    fill_state_folder(command, tmp_path / "linked")
    fill_state_folder(command, tmp_path / "copied", copies=True)
    assert (tmp_path / "linked" / "login.json").is_symlink()
    assert not (tmp_path / "copied" / "login.json").is_symlink()
    assert (tmp_path / "copied" / "login.json").read_text() == "key"
