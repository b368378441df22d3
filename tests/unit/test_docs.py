"""What the documents point to is there, and what they show is accepted by the code that would take it."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from pages import ROOT, SHOWN, Block, blocks, write_files

from coral.cli import COMMANDS, parser_of
from coral.cli.help.commands import parsers, whole_parser
from coral.config.load import load
from heartbeats.render import problems

TEXT = "\n".join(page.read_text(encoding="utf-8") for page in SHOWN)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/README.md")]
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
TASK, GRADER = "task: {name: t, description: d}\n", "grader: {entry: grade.py:grade}\n"
YAML = [block for block in blocks() if block.kind == "yaml"]
NEEDS = [block for block in blocks() if block.mark == "needs"]
OF_OTHERS = ("cd", "git", "make", "npm", "pip", "python3")  # programs that a block with needs may name


def commands() -> list[str]:
    """What stands in the text as `coral ...`, the lines of blocks of commands that no test runs, and the examples that
    each help gives."""
    prose = re.sub(r"^ *```.*?^ *```", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    unrun = [line for block in blocks() if block.kind == "" or block.mark for line in block.commands]
    lines = [line[6:] for line in unrun if line.startswith("coral ")]
    examples = [parser.example[6:] for parser in parsers(whole_parser()) if parser.example.startswith("coral ")]
    return sorted({*re.findall(r"`coral ([^`\n]+)`", prose), *lines, *filter(None, examples)})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    assert [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("block", YAML, ids=lambda block: block.page.name)
def test_every_yaml_can_be_loaded_as_a_task(tmp_path: Path, block: Block) -> None:
    folder = tmp_path / "t"
    (folder / "seed").mkdir(parents=True)
    for name in ("grade.py", "grade_longer.py", "grade.sh"):
        (folder / name).write_text("def grade(workspace): return 1\n")
    (folder / "hidden.json").write_text("1\n")
    for name in ("roles", "measurements", "held-out-data"):
        (folder / name).mkdir()
    (folder / "roles" / "explore.md").write_text("Look where nobody has looked.\n")
    if block.file:
        write_files(tmp_path)
        assert load(tmp_path / Path(block.file).parent)
        return
    (folder / "task.yaml").write_text(TASK + ("" if "grader:" in block.text else GRADER) + block.text)
    config = load(folder)
    assert [wrong for beat in config.heartbeats if beat.prompt for wrong in problems(beat.prompt)] == []


@pytest.mark.parametrize("line", commands())
def test_every_command_in_the_text_is_one(line: str) -> None:
    """Read by the parser that would read it: what no test can run, for it costs money, is checked so far at least."""
    written = line.replace("...", "").replace("PATH", "path").partition(" | ")[0]
    name, *words = shlex.split(re.sub(r" > \S+$", "", written), comments=True)
    assert name in COMMANDS or name in ("COMMAND", "-V", "--help")
    if name in COMMANDS and words:  # alone it is spoken of
        parser_of(name).read([word for word in words if word != "--help"])


@pytest.mark.parametrize("block", NEEDS, ids=lambda block: f"{block.page.name}: {block.why}")
def test_what_is_not_run_says_why_and_names_nothing_unknown(block: Block) -> None:
    assert block.why
    assert block.kind == "sh"
    assert {line.split()[0] for line in block.commands} <= {"coral", *OF_OTHERS}


def test_every_mark_of_a_block_is_known() -> None:
    assert {block.mark for block in blocks()} <= {"", "needs", "made"}


@pytest.mark.parametrize(
    "block", [block for block in blocks() if block.kind == "python"], ids=lambda block: block.page.name
)
def test_every_python_can_be_compiled(block: Block) -> None:
    assert ast.parse(block.text).body


@pytest.mark.parametrize("parser", parsers(whole_parser())[1:], ids=lambda parser: parser.prog)
def test_every_help_has_an_example_of_its_own(parser) -> None:
    assert parser._example is not None, "give `example` to add_parser"


def messages() -> list[str]:
    """The messages that troubleshooting.md explains."""
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?) \| ", text, re.MULTILINE)
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]


def said() -> list[str]:
    """The texts in our code; of an f-string the parts between what it fills in."""
    files = [
        path for package in ("attempts", "heartbeats", "workspace", "coral") for path in (ROOT / package).rglob("*.py")
    ]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    return [
        node.value.casefold()
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_the_messages_that_are_explained_are_ones_that_coral_says() -> None:
    texts = said()
    parts = {part.strip() for message in messages() for part in message.split("...") if part.strip(" :;,.")}
    assert len(parts) > 20
    assert {part for part in parts if not any(part.casefold() in text for text in texts)} == set()


def test_there_is_something_to_look_at() -> None:
    assert len(YAML) >= 10
    assert len(commands()) >= 40
    assert len(NEEDS) >= 3
