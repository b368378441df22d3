"""`coral validate` looks at everything, grades the seed for real, says what it found, and leaves nothing behind."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from clones import git
from files import write_files

from coral.agent_setup.prices import unenforceable_budgets
from coral.cli import main
from coral.config.load import load, write
from coral.errors import CoralError
from coral.fleet.events import Outcome
from coral.grading.result import GradeResult
from coral.grading.sandbox import level_of_graders
from coral.processes import environment
from coral.runs import prepare
from coral.runs.create import create_run
from coral.runtimes.registry import find
from workspace.seal import Level


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    """Where the command keeps what it needs for a moment."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def task(folder: Path, body: str, **sections: object) -> Path:
    """A task whose grader has that body, a line of Python, and may write `count` beside the task; more sections as
    given."""
    grader = sections.pop("grader", {"entry": "grade.py:grade"})
    assert isinstance(grader, dict)
    grader["writable"] = [str(folder.parent / "count")]
    made = {"task": {"name": "t", "description": "d"}, "grader": grader, **sections}
    grade = f"def grade(workspace):\n    {body}\n"
    return write_files(folder, {"seed/main.txt": "42", "grade.py": grade, "task.yaml": write(made)})


def validate(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, dict[str, object]]]:
    """The exit code and the checks by name."""
    code = main(["validate", *words, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] == (code == 0)
    return code, {check["name"]: check for check in said["checks"]}


def test_the_skeleton_is_valid(tmp_path, temporary: Path, capsys) -> None:
    main(["init", str(tmp_path / "fit")])
    before = sorted(path.relative_to(tmp_path) for path in (tmp_path / "fit").rglob("*"))
    children = psutil.Process().children(recursive=True)
    capsys.readouterr()
    assert main(["validate", str(tmp_path / "fit")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in said[:-1]] == [
        "task",
        "seed",
        "check",
        "heartbeats",
        "runtime",
        "variables",
        "grader",
        "again",
    ]
    assert {line[0] for line in said[:-1]} <= {"✓", "+"}
    assert "5 numbers or choices to vary" in said[5]
    assert "the seed scores 0.777" in said[6]
    assert "1 of them editable" in said[1]
    assert sorted(path.relative_to(tmp_path) for path in (tmp_path / "fit").rglob("*")) == before
    assert list(temporary.iterdir()) == []
    assert [child for child in psutil.Process().children(recursive=True) if child not in children] == []


@pytest.mark.parametrize(
    ("grader", "advice"),
    [
        ({"entry": "grade.py:grade"}, "channel: open, since it runs main.py, grade.py line 2: docs/trust.md says how"),
        (
            {"command": "echo 1 >$CORAL_RESULT"},
            "channel: open. A command's result can be written by whatever runs in it",
        ),
        ({"entry": "grade.py:grade", "args": {"closed": True}}, ""),
    ],
)
def test_where_a_grader_runs_the_candidate_is_said(tmp_path, capsys, grader: dict[str, object], advice: str) -> None:
    body = "import runpy; return 1.0 if args.get('closed') else len(runpy.run_path(str(workspace / 'main.py')))"
    folder = task(tmp_path / "t", body, grader=grader)
    (folder / "grade.py").write_text((folder / "grade.py").read_text().replace("(workspace)", "(workspace, args)"))
    (folder / "seed" / "main.py").write_text("x = 1\n")
    code, checks = validate(capsys, str(folder))
    found = [line for line in checks["grader"]["details"] if line.startswith("channel")]  # type: ignore[attr-defined]
    assert (code, [line[: len(advice)] for line in found]) == (0, [advice] if advice else [])


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (
            {"score": 1, "size": 7, "metrics": {"n": 2, "all": [1]}, "feedback": "", "time": 3.5},
            "size, time and metrics.all",
        ),
        ({"score": 1, "metrics": {"n": 2}}, ""),
    ],
)
@pytest.mark.parametrize("by_command", [False, True])
def test_what_no_record_keeps_of_a_result_is_named(tmp_path, capsys, result, names: str, by_command: bool) -> None:
    command = {"command": f"echo {shlex.quote(json.dumps(result))} >$CORAL_RESULT"}
    grader = command if by_command else {"entry": "grade.py:grade"}
    folder = task(tmp_path / "t", f"return {result!r}", grader=grader)
    code, checks = validate(capsys, str(folder))
    found = [line for line in checks["grader"]["details"] if "no record keeps" in line]  # type: ignore[attr-defined]
    text = f"the result has {names}, which no record keeps: numbers, texts and booleans go into `metrics`"
    assert (code, found) == (0, [text] if names else [])


def test_a_grader_that_crashes_shows_its_own_output(tmp_path, capsys) -> None:
    folder = task(tmp_path / "t", "print('loading weights'); return 1 / 0")
    assert main(["validate", str(folder)]) == 1
    said, progress = capsys.readouterr()
    assert ("grading the seed without a seal" in progress) == (level_of_graders("best") is not Level.NONE)
    assert "the seed cannot be graded" in said
    assert "\n    loading weights\n    Traceback" in said
    assert "ZeroDivisionError" in said
    assert "runner.py" not in said
    assert said.endswith("Fix what is marked before `coral start`.\n")


@pytest.mark.parametrize("end", ["return 1 / 0", "from coral.grader import Fail; raise Fail('too short')"])
def test_a_run_that_cannot_begin_shows_what_the_grader_printed(tmp_path, end: str) -> None:
    folder = task(tmp_path / "t", f"print('loading weights'); {end}")
    with pytest.raises(CoralError, match="cannot grade the seed") as caught:
        create_run(load(folder), tmp_path / "runs", lambda _: None)
    assert "\nloading weights\n" in f"{caught.value.hint}\n"
    assert not list((tmp_path / "runs").glob("*/*"))


def test_a_run_that_its_cluster_does_not_grade_says_what_to_do(tmp_path, monkeypatch) -> None:
    grader = {"entry": "grade.py:grade", "executor": "ray", "ray": {"address": "127.0.0.1:9"}}
    result = GradeResult(outcome=Outcome.VOID, reason="cannot grade on the cluster: no head")
    monkeypatch.setattr(prepare, "run_grader", lambda *_: result)
    with pytest.raises(CoralError, match="cannot grade the seed: cannot grade on the cluster: no head") as caught:
        create_run(load(task(tmp_path / "t", "return 1", grader=grader)), tmp_path / "runs", lambda _: None)
    assert caught.value.hint.endswith("`coral doctor` asks its cluster what is wrong there")


def test_a_grader_that_is_too_slow_is_killed(tmp_path, capsys) -> None:
    pids = tmp_path / "pids"
    body = f"import os, time; open({str(pids)!r}, 'w').write(f'{{os.getpid()}} '); time.sleep(600)"
    for seconds in (1.5, 10, 60):  # on a slow machine it does not come so far at once
        folder = task(tmp_path / f"within {seconds}", body, grader={"entry": "grade.py:grade", "timeout": seconds})
        code, checks = validate(capsys, str(folder))
        assert code == 1
        assert "did not finish within its timeout: raise grader.timeout" in str(checks["grader"]["details"])
        if pids.exists() and pids.read_text().endswith(" "):
            break
    assert not psutil.pid_exists(int(pids.read_text()))


@pytest.mark.parametrize(("noise", "code"), [(0, 1), (0.5, 1), (2, 0)])
def test_noise_that_the_task_does_not_admit_is_found(tmp_path, capsys, noise: float, code: int) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    body = f"p = {str(count)!r}; n = int(open(p).read()) + 1; open(p, 'w').write(str(n)); return n"
    folder = task(tmp_path / "t", body, grader={"entry": "grade.py:grade", "noise": noise})
    found, checks = validate(capsys, str(folder))
    assert found == code
    assert checks["again"]["ok"] == (code == 0)


@pytest.mark.parametrize(
    ("noise", "step", "advice"),
    [
        (200, 1, "grader.noise is 200.0, which hides gains: 1.6 or 53% was measured, or auto"),
        (2, 0, "grader.noise is 2.0: 0 or auto, if it always does"),
        (2, 1, ""),
        (0, 0, ""),
    ],
)
def test_advice_on_a_noise_that_is_too_large_names_what_was_measured(
    tmp_path, capsys, noise: float, step: int, advice: str
) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    body = f"p = {str(count)!r}; n = int(open(p).read()) + 1; open(p, 'w').write(str(n)); return 1 + {step} * (n - 1)"
    code, checks = validate(capsys, str(task(tmp_path / "t", body, grader={"entry": "grade.py:grade", "noise": noise})))
    found = [line for line in checks["again"]["details"] if "grader.noise is" in line]  # type: ignore[attr-defined]
    assert (code, found) == (0, [advice] if advice else [])


@pytest.mark.parametrize(("target", "direction", "ok"), [(42, "maximize", 0), (41, "maximize", 0), (41, "minimize", 1)])
def test_a_target_that_is_reached_already_is_found(tmp_path, capsys, target: float, direction: str, ok: int) -> None:
    grader = {"entry": "grade.py:grade", "direction": direction}
    body = "return float((workspace / 'main.txt').read_text())"
    folder = task(tmp_path / "t", body, grader=grader, budget={"target": target})
    code, checks = validate(capsys, str(folder))
    assert code == 1 - ok
    assert ("target" in checks) == (not ok)


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("def check(folder): return 3", ""),
        ("def check(folder): raise OSError('no such wave')", "no such wave"),
        ("def chek(folder): return 3", "check"),
        ("import os; os._exit(3)", "check.py:check"),
    ],
)
def test_the_public_check_is_tried(tmp_path, temporary: Path, capsys, check: str, told: str) -> None:
    folder = task(tmp_path / "t", "return 1", **named(check="check.py:check"))
    (folder / "seed" / "check.py").write_text(check)
    code, checks = validate(capsys, str(folder))
    assert code == (1 if told else 0)
    assert told in str(checks["check"]["details"])
    assert list(temporary.iterdir()) == []


WRONG_PROMPT = {"name": "mine", "every": 3, "prompt": "Hello {{ nobody }}\n{% for %}"}


def named(**keys: object) -> dict[str, object]:
    return {"task": {"name": "t", "description": "d", **keys}}


@pytest.mark.parametrize(
    ("sections", "word", "name", "told"),
    [
        ({"heartbeats": [WRONG_PROMPT]}, "", "heartbeats", "mine: line 2: "),
        (named(editable=["main.txt", "mian.txt"]), "", "seed", "no file matches mian.txt; did you mean main.txt?"),
        (named(editable=["src/**/*.py"]), "", "seed", "task.editable: no file matches src/**/*.py"),
        ({}, "agents.runtime=nativ", "runtime", "did you mean native?"),
    ],
)
def test_what_would_stop_a_run_is_named_and_nothing_is_graded(tmp_path, capsys, sections, word, name, told) -> None:
    folder = task(tmp_path / "t", "raise SystemExit", **sections)
    code, checks = validate(capsys, str(folder), *([word] if word else []))
    assert code == 1
    (said,) = checks[name]["details"]
    assert told in said
    assert "grader" not in checks


@pytest.mark.parametrize(("text", "told"), [("only words", "no number and no choice"), ("1 " * 3001, "hold 3001 ")])
def test_files_that_the_built_in_agent_cannot_vary_are_found(tmp_path, capsys, text: str, told: str) -> None:
    folder = task(tmp_path / "t", "raise SystemExit")
    (folder / "seed" / "main.txt").write_text(text)
    code, checks = validate(capsys, str(folder))
    assert code == 1
    assert told in str(checks["variables"]["text"])
    _, checks = validate(capsys, str(folder), "agents.runtime=scripted")
    assert "variables" not in checks


def test_of_a_file_that_is_neither_python_nor_json_declared_choices_alone_are_varied(tmp_path, capsys) -> None:
    folder = task(tmp_path / "t", "return 1.0")
    (folder / "seed" / "main.txt").write_text("clamp: true")
    _, checks = validate(capsys, str(folder))
    assert "true and false in Python and JSON" in str(checks["variables"]["details"])
    (folder / "seed" / "main.txt").write_text("clamp: true  # choices: true, false")
    _, checks = validate(capsys, str(folder))
    assert checks["variables"]["text"] == "1 number or choice to vary"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"second": 2}, "there is no option 'second'; did you mean seconds?"),
        ({"seconds": "fast"}, "seconds must be a number from 0.05 to 86400; got 'fast'"),
        ({"variables": {"kp": "3"}}, "the variable kp must be "),
    ],
)
def test_wrong_options_of_the_built_in_agent_are_told(tmp_path, capsys, options: dict[str, object], told: str) -> None:
    folder = task(tmp_path / "t", "return 1.0", agents={"options": options})
    code, checks = validate(capsys, str(folder))
    assert code == 1
    assert told in str(checks["runtime"]["details"])
    assert "variables" not in checks


def test_of_a_repository_the_last_commit_is_checked_and_what_stays_behind_is_told(tmp_path, capsys) -> None:
    folder = task(tmp_path / "t", "return float(open(workspace / 'main.txt').read())")
    seed = folder / "seed"
    (seed / "main.txt").write_text("4")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@y.z", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(seed), *words], check=True, env=environment.base())
    write_files(seed, {"main.txt": "only words", "more.txt": "5"})
    code, checks = validate(capsys, str(folder))
    assert code == 0
    commit = git(seed, "rev-parse", "HEAD")[:12]
    assert checks["seed"]["text"] == f"seed: the last commit of a git repository, {commit}, of 1 file"
    told = "of the seed only the last commit is used, without 2 changed files: main.txt and more.txt"
    assert checks["seed"]["details"] == [told]
    assert checks["grader"]["text"] == "the seed scores 4"


@pytest.mark.parametrize(
    ("beside", "told"),
    [
        ({}, f"the Python that grades is {sys.executable}: `{sys.executable} -m pip install helper` installs it"),
        ({"helper.py": ""}, "helper.py is in the task's folder: name it in grader.private"),
        ({"helper/__init__.py": ""}, "helper is in the task's folder: name it in grader.private"),
        ({"seed/helper/__init__.py": ""}, "call a file beside helper, in a grader by run_candidate"),
    ],
)
def test_what_to_do_about_a_missing_module_is_said(tmp_path, capsys, beside: dict[str, str], told: str) -> None:
    folder = write_files(task(tmp_path / "t", "import helper.deep"), beside)
    code, checks = validate(capsys, str(folder))
    assert code == 1
    assert any(told in line for line in checks["grader"]["details"])


@pytest.mark.parametrize("name", [".shared", "AGENTS.md"])
def test_a_seed_with_a_folder_in_the_place_of_ours_is_refused(tmp_path, capsys, name: str) -> None:
    folder = task(tmp_path / "t", "return 1")
    write_files(folder / "seed" / name, {"x": "1"})
    code, checks = validate(capsys, str(folder), "agents.count=2")
    assert code == 1
    (told,) = checks["seed"]["details"]
    assert name in told
    with pytest.raises(CoralError, match=re.escape(f"cannot use the seed: {told}")):
        create_run(load(folder), tmp_path / "runs", lambda _: None)
    assert not (tmp_path / "runs").exists()


def test_a_model_that_nobody_would_read_is_found(tmp_path, capsys) -> None:
    folder = task(tmp_path / "t", "return 1")
    code, checks = validate(capsys, str(folder), "agents.model=large")
    assert code == 1
    assert "native uses no model; agents.model is 'large'" in str(checks["runtime"]["details"])
    with pytest.raises(CoralError, match="cannot start native: native uses no model"):
        create_run(load(folder, ["agents.model=large"]), tmp_path / "runs", lambda _: None)
    assert not (tmp_path / "runs").exists()


def test_a_missing_login_is_found_before_anything_starts(tmp_path, capsys, monkeypatch) -> None:
    folder = task(tmp_path / "t", "return 1")
    write_files(tmp_path / "bin", {"codex": "#!/bin/sh\n"})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for name in [name for name in os.environ if name.startswith(("CODEX_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    chosen = ("agents.runtime=codex", "budget.attempts=3")
    code, checks = validate(capsys, str(folder), *chosen)
    assert code == 1
    said, advice = checks["runtime"]["details"]
    assert said.startswith("no login of codex was found; looked for: CODEX_API_KEY")
    assert advice == "log in once with `codex`, or set CODEX_API_KEY"
    with pytest.raises(CoralError, match="cannot start codex: no login of codex was found"):
        create_run(load(folder, list(chosen)), tmp_path / "runs", lambda _: None)
    assert not (tmp_path / "runs").exists()


def test_a_fleet_that_would_spend_without_end_is_refused_unless_that_is_meant(tmp_path, capsys) -> None:
    folder = task(tmp_path / "t", "return 1")
    code, checks = validate(capsys, str(folder), "agents.runtime=claude", "agents.count=2")
    assert code == 1
    assert checks["budget"]["text"] == "no budget: agents (2 of claude) spend money until you stop them"
    assert main(["start", str(folder), "agents.runtime=claude"]) == 1
    assert "cannot start: no budget" in capsys.readouterr().err
    for meant in ("budget.none=true", "budget.hours=1", "budget.per_agent.attempts=3"):
        assert "budget" not in validate(capsys, str(folder), "agents.runtime=claude", meant)[1]
    assert "budget" not in validate(capsys, str(folder))[1]
    # Of a program that the task names somebody pays, where the task says what it costs.
    other = ("agents.runtime=command", 'agents.options={start: ["/bin/sh", "x"]}')
    assert "budget" not in validate(capsys, str(folder), *other)[1]
    checks = validate(capsys, str(folder), *other, "agents.prices={input: 3, output: 15}")[1]
    assert "spend money until you stop them" in checks["budget"]["text"]


def test_a_budget_that_nobody_could_keep_is_found(tmp_path, capsys) -> None:
    folder = task(tmp_path / "t", "return 1")
    code, checks = validate(capsys, str(folder), "budget.money=5", "budget.per_agent.tokens=5")
    assert code == 1
    assert checks["runtime"]["details"] == [
        "budget.money cannot be enforced: native reports nothing of what it uses",
        "budget.per_agent.tokens cannot be enforced: native reports nothing of what it uses",
    ]
    with pytest.raises(CoralError, match=r"cannot start: budget\.money cannot be enforced"):
        create_run(load(folder, ["budget.money=5"]), tmp_path / "runs", lambda _: None)
    assert not (tmp_path / "runs").exists()


def test_a_budget_of_money_needs_prices_where_a_program_tells_tokens_only(tmp_path) -> None:
    folder = task(tmp_path / "t", "return 1")
    given = ["budget.money=5", "budget.tokens=5", "agents.runtime=codex"]
    codex, claude, opencode = (find(name, {}) for name in ("codex", "claude", "opencode"))
    config = load(folder, given)
    assert unenforceable_budgets(config, config.agents, codex) == [
        "budget.money cannot be enforced: codex reports tokens only: set agents.prices"
    ]
    assert unenforceable_budgets(config, config.agents, claude) == []
    assert unenforceable_budgets(config, config.agents, opencode)[1:] == [
        "budget.tokens cannot be enforced: opencode does not report what an interrupted step used; "
        "limit attempts or hours instead"
    ]
    priced = load(folder, [*given, "agents.prices={input: 1, output: 2}"])
    assert unenforceable_budgets(priced, priced.agents, codex) == []
    # In a mixed fleet, agents that spend nothing hinder no budget.
    native = load(folder, ["budget.money=5"])
    assert unenforceable_budgets(native, native.agents, find("native", {})) != []
    mixed = load(folder, ["budget.money=5", "agents.assignments=[{runtime: claude}, {runtime: native}]"])
    assert [unenforceable_budgets(mixed, part, find(part.runtime, {})) for part in mixed.agents.assignments] == [[], []]


def test_a_task_that_cannot_be_read_is_one_check(tmp_path, capsys) -> None:
    folder = task(tmp_path / "t", "return 1")
    code, checks = validate(capsys, str(folder), "agents.count=0", "agents.cout=1")
    assert code == 1
    assert list(checks) == ["task"]
    assert len(checks["task"]["details"]) == 3  # type: ignore[arg-type]
    assert main(["validate", str(folder), "agents.count=0"]) == 1
    assert "override agents.count=0: agents.count: must be at least 1; got 0" in capsys.readouterr().err


def test_the_task_around_here_is_meant(tmp_path, monkeypatch, capsys) -> None:
    folder = task(tmp_path / "t", "return 1")
    monkeypatch.chdir(folder / "seed")
    _, checks = validate(capsys, "agents.runtime=nothing")
    assert str(checks["task"]["text"]).endswith(f"({os.path.realpath(folder)}/task.yaml)")
    monkeypatch.chdir(tmp_path)
    _, checks = validate(capsys)
    assert "there is no task.yaml in or above" in str(checks["task"]["text"])


def test_a_small_budget_is_warned_of_and_valid(tmp_path, capsys) -> None:
    made = task(tmp_path / "t", "return 1.0", agents={"count": 4}, budget={"attempts": 2})
    code, checks = validate(capsys, str(made))
    assert code == 0
    assert checks["budget"]["ok"] is True
    assert checks["budget"]["details"] == ["budget.attempts=2 is less than one for each of 4 agents"]
    assert "budget" not in validate(capsys, str(made), "budget.attempts=4")[1]


def test_a_grader_that_needs_what_a_seal_hides_is_told_how_to_get_it(tmp_path, capsys, monkeypatch) -> None:
    """Also that it is not the seal where it fails without one, too."""
    if level_of_graders("best") is Level.NONE:
        pytest.skip("NOT RUN: no sandbox works here")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").write_text("3")
    body = f"return float(open({str(tmp_path / 'data')!r}).read())"
    code, checks = validate(capsys, str(task(tmp_path / "t", body)))
    assert code == 1
    assert "grader.readable" in str(checks["grader"])
    _, checks = validate(capsys, str(tmp_path / "t"), "grader.readable=[~/data]")
    assert checks["grader"]["ok"]
    _, checks = validate(capsys, str(task(tmp_path / "u", "return 1 / 0")))
    assert "grader.readable" not in str(checks["grader"])
