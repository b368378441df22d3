"""What the documents point to is there, and what they show is accepted by the code that would take it."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from coral.cli import COMMANDS
from coral.cli.parser import Parser
from coral.config.load import load

ROOT = Path(__file__).parents[2]
# The pages that say what to write and what to run. What benchmarks.md names, it has measured.
SHOWN = [ROOT / "README.md", *sorted(set(ROOT.glob("docs/*.md")) - {ROOT / "docs/benchmarks.md"})]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in SHOWN)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/README.md")]
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
TASK, GRADER = "task: {name: t, description: d}\n", "grader: {entry: grade.py:grade}\n"


def fragments() -> list[str]:
    """The blocks of YAML, without the indentation of a list around them."""
    found = re.findall(r"^( *)```yaml\n(.*?)^ *```", TEXT, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def commands() -> list[str]:
    """What stands in the text as `coral ...`, the lines of blocks of commands that no test runs, and the examples that
    each command's help gives."""
    prose = re.sub(r"^ *```.*?^ *```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    lines = [line[6:] for kind, block in blocks if not kind for line in block.splitlines() if line.startswith("coral ")]
    examples = [f"{name} {example}".strip() for name, (_, _, example) in COMMANDS.items()]
    return sorted({*re.findall(r"`coral ([^`\n]+)`", prose), *lines, *examples})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("fragment", fragments())
def test_every_fragment_of_a_task_can_be_loaded(tmp_path: Path, fragment: str) -> None:
    (tmp_path / "seed").mkdir()
    for name in ("grade.py", "grade_longer.py"):
        (tmp_path / name).write_text("def grade(workspace): return 1\n")
    for name in ("roles", "measurements", "held-out-data"):
        (tmp_path / name).mkdir()
    (tmp_path / "roles" / "explore.md").write_text("Look where nobody has looked.\n")
    (tmp_path / "task.yaml").write_text(TASK + ("" if "grader:" in fragment else GRADER) + fragment)
    assert load(tmp_path)


@pytest.mark.parametrize("line", commands())
def test_every_command_in_the_text_is_one(line: str) -> None:
    name, *words = shlex.split(line.replace("...", "").replace("PATH", "path"))
    assert name in COMMANDS
    parser = Parser(prog=f"coral {name}")
    importlib.import_module(f"coral.cli.commands.{name}").add_arguments(parser)
    if words or name not in ("eval", "job"):  # alone they are spoken of; to run they need a word more
        parser.read(words)


def test_there_is_something_to_look_at() -> None:
    assert len(fragments()) >= 2
    assert len(commands()) >= 4
