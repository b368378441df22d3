"""Whole prompts at chosen moments, compared with files that a person has read.

`GOLDEN=write .venv/bin/pytest tests/unit/coral/views/test_prompt_situations.py` writes the files anew. Read what
changed before you commit it.
"""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from prompt_situations import SITUATIONS, Moment, agents_md, rendered, told

from coral.fleet.reasons import Finding
from coral.views.prompt import inline_sections, instructions
from workspace.seal import Level

GOLDEN = Path(__file__).parent / "golden"
EVERY = pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.__name__)


def golden(situation: Callable[[Path], str]) -> Path:
    return GOLDEN / f"{situation.__name__}.md"


@EVERY
def test_a_prompt_is_as_it_was_read(situation: Callable[[Path], str], tmp_path: Path) -> None:
    text = rendered(situation, tmp_path)
    if os.environ.get("GOLDEN") == "write":
        golden(situation).write_text(text, encoding="utf-8")
    assert text == golden(situation).read_text(encoding="utf-8")


NEXT, SUBMIT = "**Next attempt.**", "`coral eval -m"
# What a reader who takes each sentence literally would do next, wherever it stands.
ELSEWHERE = re.compile(
    r"\b(go on|continue your work|then continue|make the next attempt|submit (it|them|this)|start again)\b", re.I
)
STEP, REFERENCE = re.compile(r"^(\d+)\. ", re.MULTILINE), re.compile(r"\bsteps? (\d)(?: to (\d))?")


def parts(text: str) -> list[str]:
    """The parts of a prompt under its headings, in which code and quotations are no instructions."""
    plain = re.sub(r"^ *```.*?^ *```|^ *>.*?$|\"[^\"\n]*\"", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.split(r"^## ", plain, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "situation", [each for each in SITUATIONS if each is not agents_md], ids=lambda each: each.__name__
)
def test_whoever_takes_a_prompt_literally_finds_one_next_step(situation: Callable[[Path], str], tmp_path: Path) -> None:
    *before, now = parts(rendered(situation, tmp_path))
    assert now.startswith("Now\n")
    (following,) = [line for line in now.splitlines() if line.startswith(NEXT)]
    assert following.count(SUBMIT) == 1
    others = "\n".join([*before, now.replace(following, "")])
    assert [word for word in (NEXT, SUBMIT) if word in others] == []
    assert ELSEWHERE.findall(others) == []


@EVERY
def test_steps_are_numbered_and_those_that_are_named_exist(situation: Callable[[Path], str], tmp_path: Path) -> None:
    for part in parts(rendered(situation, tmp_path)):
        steps = [int(number) for number in STEP.findall(part)]
        assert steps == list(range(1, len(steps) + 1))
        named = [int(number) for pair in REFERENCE.findall(part) for number in pair if number]
        assert set(named) <= set(steps)


def test_what_coral_eval_prints_ends_with_the_one_next_step(tmp_path: Path) -> None:
    moment = Moment(tmp_path).graded("agent-1", ("a second ring, 2.1", 2.24), seen=False)
    sections = inline_sections(moment.run_context, moment.fleet(), "agent-1", told("reflect", "redirect"), 60.0)
    assert [section["name"] for section in sections] == ["reflect", "redirect"]
    assert [section["text"].count(SUBMIT) for section in sections] == [0, 1]
    assert "Make the first attempt of the new family" in sections[-1]["text"].splitlines()[-1]
    assert inline_sections(moment.run_context, moment.fleet(), "agent-1", (), 60.0) == []


@pytest.mark.parametrize(
    ("place", "is_here"), [("", True), ("  executor: ray\n  ray: {address: '127.0.0.1:9'}\n", False)]
)
def test_an_agent_on_a_node_is_told_of_no_sandbox_and_no_jobs(tmp_path: Path, place: str, is_here: bool) -> None:
    moment = Moment(tmp_path, agents=place).stalled(Finding.SILENT)
    text = instructions(replace(moment.run_context, level=Level.BUBBLEWRAP), "agent-1")
    assert ("sandbox" in text, "coral job" in text) == (is_here, is_here)
    assert ("coral job" in moment.prompt(*told("stalled"))) == is_here


def test_every_file_belongs_to_a_situation() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {golden(situation).name for situation in SITUATIONS}
