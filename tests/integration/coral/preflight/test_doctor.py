"""`coral doctor` says what is here and what to do about what is not, and is wrong about neither."""

import json
import platform
import sys
from pathlib import Path

import pytest
from agent_programs import PROGRAMS
from files import write_files
from real_runs import is_alive, wait_until

from coral import __version__
from coral.cli import main
from coral.preflight import doctor, nodes
from coral.runtimes import registry
from coral.runtimes.agent import AgentProgram

NAMES = [name for name in registry.RUNTIMES if isinstance(registry.find(name, {}), AgentProgram)]
TASK = "task: {name: t, description: d}\ngrader: {command: 'true'}\nagents: {runtime: %s}\n"
Checks = dict[str, dict[str, str]]


@pytest.fixture(autouse=True)
def no_login(here: Path, monkeypatch) -> None:
    for name in NAMES:
        for key in programs(name).keys:
            monkeypatch.delenv(key, raising=False)
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "GEMINI_CLI_HOME", "QWEN_HOME"):
        monkeypatch.delenv(variable, raising=False)


def programs(name: str) -> AgentProgram:
    found = registry.find(name, {})
    assert isinstance(found, AgentProgram)
    return found


UNVERIFIED = [name for name in NAMES if not programs(name).verified_version]


def install(here: Path, name: str, says: str) -> None:
    write_files(here / "bin", {name: f"#!/bin/sh\n{says}\n"})


def look(capsys: pytest.CaptureFixture[str], code: int = 0) -> Checks:
    assert main(("doctor", "--json")) == code
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] is (code == 0)
    return {check["name"]: check for check in said["checks"]}


def test_a_machine_without_any_agent_program_can_start_native_ones(here: Path, capsys) -> None:
    found = look(capsys)
    assert found["git"]["state"] == "well"
    assert found["git"]["text"][0].isdigit()
    assert found["agents"]["text"].startswith(("are sealed by ", "run as you, on your disk: "))
    assert found["candidates"]["text"].startswith("graders can ")
    assert {found[name]["state"] for name in NAMES} == {"absent"}
    assert found["codex"]["text"] == "the program is not on PATH"
    assert found["codex"]["advice"] == "`npm install -g @openai/codex` installs it"
    assert "codex login" not in found


def test_a_program_is_asked_for_its_version(here: Path, capsys) -> None:
    install(here, "codex", f"echo codex-cli {PROGRAMS['codex'].version}")
    install(here, "claude", "echo; echo '2.0.1 (Claude Code)'")
    install(here, "pi", "echo 0.73.1 >&2")
    install(here, "copilot", "exit 3")
    found = look(capsys)
    assert found["codex"]["text"] == f"codex-cli {PROGRAMS['codex'].version}"
    assert found["claude"]["text"] == f"2.0.1 (Claude Code); Coral was tried with {PROGRAMS['claude'].version}"
    assert found["pi"]["text"] == "0.73.1"
    assert found["copilot"]["text"].startswith("it does not say its version; ")
    assert {found[name]["state"] for name in ("codex", "claude", "pi", "copilot")} == {"well"}


def test_what_a_program_prints_before_its_version_is_not_taken_for_it(here: Path, capsys) -> None:
    install(
        here, "codex", f"echo 'WARNING: could not update 1.0 aliases' >&2; echo codex-cli {PROGRAMS['codex'].version}"
    )
    install(here, "copilot", f"echo 'Package extraction took 7800ms'; echo {PROGRAMS['copilot'].version}")
    found = look(capsys)
    assert found["codex"]["text"] == f"codex-cli {PROGRAMS['codex'].version}"
    assert found["copilot"]["text"] == PROGRAMS["copilot"].version


def test_an_untried_program_is_reported_as_unverified(here: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("CURSOR_API_KEY", "k")
    for name in UNVERIFIED:
        install(here, programs(name).program, "echo 1.2.3")
    found = look(capsys)
    for name in UNVERIFIED:
        assert found[name] == {
            "name": name,
            "state": "note",
            "text": "1.2.3; unverified: Coral follows its documentation, and was never tried with it",
            "advice": f"`coral doctor --ping {name}` tries one prompt",
        }
    assert found["cursor login"]["text"] == "CURSOR_API_KEY is set"
    assert found["kiro login"]["advice"] == "log in once with `kiro-cli`, or set KIRO_API_KEY"


def test_a_silent_program_is_ended_with_all_it_started(here: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(doctor, "ANSWER_SECONDS", 0.2)
    install(here, "claude", f"sleep 600 & echo $! > {here}/part && mv {here}/part {here}/pid; wait")
    assert look(capsys)["claude"]["text"].startswith("it does not say its version")
    if (here / "pid").exists():  # it came to that before its time was over
        wait_until(lambda: not is_alive(int((here / "pid").read_text())), what="its end")


def test_a_login_or_a_key_is_found(here: Path, capsys, monkeypatch) -> None:
    for name in ("claude", "codex", "gemini"):
        install(here, name, "echo 1")
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    (here / "home" / ".codex").mkdir(parents=True)
    (here / "home" / ".codex" / "auth.json").write_text("{}")
    found = look(capsys)
    assert found["gemini login"] == {
        "name": "gemini login",
        "state": "well",
        "text": "GEMINI_API_KEY is set",
        "advice": "",
    }
    assert found["codex login"]["text"] == f"there is one in {here}/home/.codex/auth.json"
    claude = found["claude login"]
    assert claude["state"] == "note"
    assert "ANTHROPIC_API_KEY" in claude["text"]
    assert claude["advice"] == "log in once with `claude`, or set ANTHROPIC_API_KEY"


def test_the_program_of_the_task_must_be_here(here: Path, capsys, monkeypatch) -> None:
    (here / "task" / "task.yaml").write_text(TASK % "codex")
    assert look(capsys, 1)["codex"]["state"] == "wrong"
    install(here, "codex", "echo 1")
    login = look(capsys, 1)["codex login"]
    assert (login["state"], login["advice"]) == ("wrong", "log in once with `codex`, or set CODEX_API_KEY")
    monkeypatch.setenv("CODEX_API_KEY", "k")
    assert [look(capsys)[name]["state"] for name in ("codex", "codex login")] == ["well", "well"]
    mixed = "{assignments: [{runtime: codex}, {runtime: claude, count: 2}, {runtime: native}]}"
    (here / "task" / "task.yaml").write_text(TASK.replace("{runtime: %s}", mixed))
    found = look(capsys, 1)
    assert [found[name]["state"] for name in ("codex", "claude", "pi", "native")] == ["well", "wrong", "absent", "well"]
    (here / "task" / "task.yaml").write_text(TASK % "native")
    assert look(capsys)["native"]["text"] == "can be started"
    (here / "task" / "task.yaml").write_text(TASK % "no_such:Thing")
    assert "no_such" in look(capsys, 1)["no_such:Thing"]["text"]
    (here / "task" / "task.yaml").write_text("task: 3\n")
    found = look(capsys, 1)
    assert found["task"]["state"] == "wrong"
    assert found["git"]["state"] == "well"


KEPT = {"folder": "/tmp/k", "bytes": 4e8, "unused": 0, "unread": [], "partial": False}
NODE = {
    "python": platform.python_version(), "ray": "1", "folder": "/tmp", "disk": 5e9, "asks_token": True,
    "open_token": "", "closed": [], "closed_here": [], "kept": [KEPT],
}  # fmt: skip


@pytest.fixture
def found(monkeypatch) -> dict[str, object]:
    """What the nodes of a cluster say, which a test fills in."""
    answer: dict[str, object] = {"problem": "", "refused": ""}
    monkeypatch.setattr(nodes, "described_agents", lambda *_: answer)
    monkeypatch.setattr(nodes, "describe_cluster", lambda *_: answer)
    monkeypatch.setattr(nodes, "version", lambda _: "1")
    return answer


def checks_of(capsys: pytest.CaptureFixture[str], name: str, code: int) -> list[tuple[str, str]]:
    assert main(("doctor", "--json")) == code
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert all(one["advice"] for one in checks if one["name"] == name and one["state"] != "well")
    return [(one["state"], one["text"]) for one in checks if one["name"] == name]


def test_each_node_that_could_run_agents_is_asked_what_it_has_for_them(here: Path, capsys, found) -> None:
    able = {**NODE, "coral": __version__, "runs_agents": True, "missing": []}
    found["nodes"] = [
        {"address": "n1", **able},
        {"address": "n2", **able, "coral": "", "missing": ["codex"]},
        {"address": "n3", **able, "coral": "0.1", "disk": 1e9},
        {"address": "n4", **able, "coral": "", "runs_agents": False},
        {"address": "n5", "problem": "it is slow", "closed_here": []},
    ]
    found["refused"] = ["no node has the labels kind=large"]
    placed = "{runtime: native, executor: ray, ray: {address: 'h:1'}}"
    (here / "task" / "task.yaml").write_text(TASK.replace("{runtime: %s}", placed))
    assert checks_of(capsys, "agent nodes", 1) == [
        (
            "well",
            f"4 nodes for agents, Ray 1, Python {platform.python_version()}, 1.2 GB kept for later, 1 GB free or more",
        ),
        ("wrong", "none runs native: no node has the labels kind=large"),
        ("wrong", "n2 has no Coral"),
        ("wrong", "n2 has no codex"),
        ("wrong", f"n3 has Coral 0.1, and this machine has {__version__}"),
        ("note", "n3 has 1 GB free in /tmp"),
        ("note", "n5: it is slow"),
    ]
    found["problem"] = "the head cannot be reached"
    assert look(capsys, 1)["agent nodes"]["text"] == "the head cannot be reached"


def test_what_is_wrong_with_each_node_that_runs_grades_is_said(here: Path, capsys, found) -> None:
    left = {**KEPT, "unused": 3e9, "unread": ["/tmp/k/abc"], "partial": True}
    token = {"asks_token": False, "open_token": "/home/c/token"}
    found["nodes"] = [
        {"address": "n1", **NODE, "ray": "2", "python": "3.0.1"},
        {"address": "n2", **NODE, **token},
        {"address": "n3", **NODE, "closed": ["the raylet at h:7 (timed out)"], "closed_here": ["the raylet at n3:8"]},
        {"address": "n4", **NODE, "kept": [KEPT, left], "disk": 1e9},
        {"address": "n5", "problem": "it did not answer within 30 s", "unknown": True, "closed_here": ["it at n5:9"]},
    ]
    grader = "{command: 'true', executor: ray, ray: {address: 'h:1'}}"
    (here / "task" / "task.yaml").write_text((TASK % "native").replace("{command: 'true'}", grader))
    python = platform.python_version()
    assert checks_of(capsys, "cluster", 0) == [
        ("well", f"5 nodes, Ray 1 and 2, Python 3.0.1 and {python}, 2 GB kept for later, 1 GB free or more"),
        ("note", f"n1 has Python 3.0.1, and this machine has {python}"),
        ("note", "n1 has Ray 2, and this machine has 1"),
        ("note", "n2 asks for no token: who reaches its ports runs any code there"),
        ("note", "n2: others can read the token in /home/c/token"),
        ("note", "n3: this machine cannot reach the raylet at n3:8"),
        ("note", "n3 cannot reach the raylet at h:7 (timed out) of this machine"),
        ("note", "n4 has 1 GB free in /tmp"),
        ("note", "n4 cannot read /tmp/k/abc"),
        ("note", "n4 keeps 3 GB or more in /tmp/k that no run uses now"),
        ("note", "n5: this machine cannot reach it at n5:9"),
        ("note", "n5 is unknown: it did not answer within 30 s"),
    ]


def test_without_git_nothing_starts(here: Path, capsys) -> None:
    (here / "bin" / "git").unlink()
    assert look(capsys, 1)["git"]["advice"] == "install git"


def test_scarce_resources_are_reported_with_advice(here: Path, capsys, monkeypatch) -> None:
    for name, value in (("max_user_watches", "8192"), ("max_user_instances", "x")):
        (here / name).write_text(value)
    monkeypatch.setattr(doctor, "INOTIFY", here)
    monkeypatch.setattr(doctor, "FREE_BYTES", 1 << 62)
    monkeypatch.setattr(doctor, "FILES", 1 << 40)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main(("doctor",)) == 0
    said = capsys.readouterr().out
    assert "max_user_watches is 8192\n" in said
    assert "`sudo sysctl fs.inotify.max_user_watches=524288`" in said
    assert "max_user_instances cannot be read" in said
    assert "free some space" in said
    assert "`ulimit -n " in said


def test_what_cannot_be_checked_is_said_and_stops_nothing(here: Path, capsys, monkeypatch) -> None:
    def fail(folder: Path) -> None:
        raise OSError(5, "Input/output error")

    def break_down(*_: object) -> None:
        raise RuntimeError("the table of processes is full")

    monkeypatch.setattr(doctor, "disk_problem_of", fail)
    for part in (
        "_git",
        "_memory",
        "_open_files",
        "_prices",
        "_search",
        "_leftovers",
        "_candidates",
        "_agents",
    ):
        monkeypatch.setattr(doctor, part, break_down)
    monkeypatch.setattr(doctor, "_program", break_down)
    found = look(capsys)
    for name in ("git", "memory", "files", "prices", "search", "leftovers", "candidates", "agents", "claude"):
        assert (found[name]["state"], found[name]["text"]) == (
            "note",
            "cannot be checked: the table of processes is full",
        ), name
    assert (found["disk"]["state"], found["disk"]["text"]) == (
        "note",
        "cannot be checked: [Errno 5] Input/output error",
    )
    assert "files" in found


def test_the_verified_versions_are_those_of_our_tests() -> None:
    tried = {name: programs(name).verified_version for name in NAMES if programs(name).package}
    assert tried == {name: program.version for name, program in PROGRAMS.items()}


def test_a_program_without_known_keys_and_logins_is_reported(here: Path, capsys, monkeypatch) -> None:
    install(here, "kiro-cli", "echo 1.2.3")
    monkeypatch.setattr(type(programs("kiro")), "keys", ())
    monkeypatch.setattr(type(programs("kiro")), "logins", lambda _: ())
    found = look(capsys)["kiro login"]
    assert found["text"] == "unknown: Coral does not know where it is"
    assert found["advice"] == "log in once with `kiro-cli`"


@pytest.mark.parametrize(
    ("works", "text", "state"),
    [
        (("bubblewrap", "landlock"), "graders can run them sealed by bubblewrap", "well"),
        (("landlock",), "graders can run them sealed by landlock", "note"),
        ((), "graders can limit what they use, and cannot seal them", "note"),
    ],
)
def test_the_seal_of_candidates_is_tried(
    here: Path, capsys, monkeypatch, works: tuple[str, ...], text: str, state: str
) -> None:
    def run(*_: object, seal: list[str]) -> None:
        if seal[0] not in works:
            raise OSError("no sandbox works here")

    monkeypatch.setattr(doctor, "run_candidate", run)
    found = look(capsys)
    assert (found["candidates"]["text"], found["candidates"]["state"]) == (text, state)
    assert bool(found["candidates"]["advice"]) == (state == "note")
