"""The examples of docs/native.md as they stand there: a tool, a gate and a brain of one's own; its table of options."""

import json
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from llm_agent import LlmDesk, call
from model_server import ModelServer, Step
from native_agent import LocalAgent
from pages import ROOT, write_files

from coral.native.brain import find_brain
from coral.native.calls import Submit
from coral.native.llm.plugins import own_gates, own_tools
from coral.native.llm.settings import LlmOptions
from coral.native.loop import Loop
from coral.native.situation import Idle, ResultReceived

PAGE = ROOT / "docs" / "native.md"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, [PAGE])
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "own"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_a_tool_and_a_gate_of_ones_own(own: Path) -> None:
    script = [
        Step(calls=[call("convert", value=3, unit="km"), call("convert", value=-1, unit="mm")]),
        Step(calls=[call("convert", value=3, unit="mile"), call("write_file", path="data/x.txt", content="")]),
        Step(calls=[call("write_file", False, path="x.txt", content="one")]),
    ]
    with ModelServer(script) as server:
        desk = LlmDesk(own, server, tools=["own.units:Convert"], gates=["own.units:keep_data"])
        desk.agent.prompt("go")
        desk.agent.chain()
        offered = {tool["function"]["name"]: tool["function"] for tool in server.asked[0].body["tools"]}
        results = [(result["text"], result["failed"]) for result in desk.results()]
        desk.close()
    assert offered["convert"]["description"] == "Convert a length to metres."
    assert results[0] == ("3000 m", False)
    assert results[1] == ("a length is not negative; give its amount", True)
    assert "unit: Input should be 'mm', 'cm' or 'km'" in results[2][0]
    assert results[3] == ("refused: data/ is given; change the program instead", True)
    assert results[4] == ("x.txt: 1 line written", False)


def test_what_is_no_tool_or_gate_is_refused(own: Path) -> None:
    with pytest.raises(ValueError, match="it is no subclass of AgentTool"):
        own_tools(["own.units:keep_data"])
    (own / "own" / "broken.py").write_text("x = y\n")
    (own / "own" / "ends.py").write_text("raise SystemExit\n")
    for spec, words in (
        ("own.units:__doc__", "it is no function"),
        ("own.nothing:x", "or on PYTHONPATH"),
        ("own.broken:x", "name 'y' is not defined"),
        ("own.ends:x", "cannot use the gate 'own.ends:x': SystemExit"),
    ):
        with pytest.raises(ValueError, match=words):
            own_gates([spec])


def test_a_brain_of_ones_own(own: Path) -> None:
    agent = LocalAgent(own / "run")
    brain = find_brain("own.halves:Halves")()
    situation = agent.bench.observe(Idle())
    (submit,) = brain.reason(situation, Idle())
    assert isinstance(submit, Submit)
    assert submit.candidate.texts == {"p.json": '{"x": 0.5}'}
    agent.snapshots.memory = agent.snapshots.memory.add_result(submit.candidate.trial)
    after = agent.bench.observe(Idle())
    (later,) = brain.reason(after, Idle())
    assert later.candidate.texts == {"p.json": '{"x": 0.25}'}
    assert brain.reason(after, ResultReceived(submit.candidate.trial))[0].text == "#None scores None"
    # Its loop: there is no run, so that the submission fails, and the brain goes on.
    Loop(agent.bench, brain, 2).run()
    assert json.loads((agent.clone / "p.json").read_text())["x"] < 0.5
    assert agent.printed("error")
    agent.file.close()


def test_the_page_lists_every_option_as_it_is() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", PAGE.read_text(), re.MULTILINE))
    options = {option.name: option.metadata["description"] for option in fields(LlmOptions) if option.name != "brain"}
    assert {name: rows.get(name) for name in options} == options
