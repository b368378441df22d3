"""A runtime of the user's own, as the documents show it, drives a program from its first prompt to a resumed run."""

import re
import sys
from pathlib import Path

import pytest
from real_runs import wait_until

from coral.cli import main
from coral.fleet.reasons import Budget, BudgetKey, RunEnd, RunEndKind
from coral.runtimes import registry
from coral.runtimes.model import Ending, LaunchSummary, OutputEvent

PAGE = Path(__file__).parents[4] / "docs" / "runtimes.md"
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Tries 1, 2, 3 ..., one per launch; what it has used in all its life is kept where it keeps its conversations.
PROGRAM = f"""#!{sys.executable} -P
import json, os, pathlib, subprocess, sys

mode, session = sys.argv[1:3]
assert sys.argv[3:] == ["--model", "large"]
state = pathlib.Path(os.environ["MY_AGENT_HOME"]) / session
if mode == "--resume" and not state.exists():
    sys.exit("no such conversation")
count = int(state.read_text()) + 1 if state.exists() else 1
state.write_text(str(count))
say = lambda **event: print(json.dumps(event), flush=True)
say(type="says", text=sys.stdin.read()[:20] + " ...")
say(type="used", **{{"in": 100 * count, "out": 10 * count}})
pathlib.Path("x.txt").write_text(str(count))
say(type="tool", text="coral eval")
subprocess.run(["coral", "eval", "-m", f"try {{count}}"], stdout=subprocess.DEVNULL)
say(type="done")
"""


@pytest.fixture
def own(tmp_path, monkeypatch) -> Path:
    (code,) = PYTHON.findall(PAGE.read_text(encoding="utf-8"))
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "my_runtime.py").write_text(code)
    program = tmp_path / "my-agent"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.delitem(sys.modules, "my_runtime", raising=False)
    return program


def test_a_runtime_of_ones_own_drives_a_whole_run(own: Path, start, capsys) -> None:
    overrides = ("agents.runtime=my_runtime:MyAgent", "agents.model=large", "budget.attempts=3")
    run = start(["hang"], overrides=(*overrides, f"agents.options={{program: {own}}}"))
    run.wait_for_end()
    assert [record.score for record in run.attempts()] == [1.0, 2.0, 3.0]
    agent = run.fleet().agents["agent-1"]
    # One conversation, whose figures are its own sum.
    assert (agent.spent.input, agent.spent.output) == (300, 30)
    assert len(list(run.layout.state("agent-1").iterdir())) == 1
    assert main(("transcript", "agent-1", "--launch", "1", "--run", str(run.layout.root))) == 0
    said = capsys.readouterr().out
    assert "says      You are agent-1" in said
    assert "tool      shell: coral eval" in said
    # A conversation that the program has lost begins anew.
    for file in run.layout.state("agent-1").iterdir():
        file.unlink()
    assert main(("resume", "--detach", "--run", str(run.layout.root), "budget.attempts=4")) == 0
    used_up = RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4))
    wait_until(lambda: run.fleet().run.finished == used_up, what="the end")
    assert run.attempts()[-1].score == 1.0
    assert agent.session != run.fleet().agents["agent-1"].session


def test_the_documented_runtime_reads_and_judges_as_documented(own: Path) -> None:
    runtime = registry.find("my_runtime:MyAgent", {"program": str(own)})
    assert registry.check("my_runtime:MyAgent", {"program": str(own)}, "large") == []
    assert registry.check("my_runtime:MyAgent", {}) == ["my-agent is not on PATH"]
    for garbage in (b"\xff", b"[]", b"{}", b"null", b'{"type": "used"}', b'{"type": "used", "in": [], "out": "x"}'):
        assert runtime.read(garbage)[0].reply == ""
    assert runtime.read(b'{"type": "new"}') == (OutputEvent(unknown="new"),)
    assert runtime.judge(0, LaunchSummary(ending=Ending.CLEAN)) is Ending.CLEAN
    assert runtime.judge(130, LaunchSummary()) is Ending.INTERRUPTED
    assert runtime.judge(1, LaunchSummary(stderr="no such conversation")) is Ending.UNKNOWN_SESSION
    assert runtime.judge(1, LaunchSummary()) is Ending.CRASHED


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_runtime:Other", "cannot use the runtime 'my_runtime:Other'"),
        ("no_such_module:X", "No module named 'no_such_module'"),
        ("my_runtime:json", "json cannot be called"),
        ("raising:X", "KeyError: 'HOME_OF_MINE'"),
        ("my_runtime:MyAgent.__init__", "TypeError: "),
        ("picky:Ends", "SystemExit: 3: it is called with the options"),
        ("picky:X", "cannot use the runtime 'picky:X': KeyError: 'program': it is called with the options"),
    ],
)
def test_a_runtime_that_cannot_be_used_is_refused_with_a_reason(own: Path, name: str, said: str) -> None:
    (own.parent / "modules" / "raising.py").write_text("import os\nos.environ['HOME_OF_MINE']\n")
    picky = "def X(options):\n    return options['program']\n\n\ndef Ends(options):\n    raise SystemExit(3)\n"
    (own.parent / "modules" / "picky.py").write_text(picky)
    (problem,) = registry.check(name, {})
    assert said in problem


def test_the_page_names_every_runtime_and_every_option_of_the_programs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in registry.RUNTIMES if f"`{name}`" not in page] == []
    for name in registry.RUNTIMES:
        (problem,) = registry.check(name, {"zzz": 1})[:1]
        known = re.findall(r"[a-z_]+", problem.partition("there are ")[2])
        if name not in ("native", "command", "scripted"):
            assert [name for name in known if f"`{name}`" not in page] == []
