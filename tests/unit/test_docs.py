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
from coral.errors import CoralError
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


def test_every_link_inside_the_repository_leads_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in LINK.findall(page.read_text(encoding="utf-8"))]
    assert [f"{page}: {link}" for page, link in links if not (page.parent / link).exists()] == []


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


def test_the_architecture_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    found = {path.name for path in (ROOT / "coral").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {name for name in found if f"| `{name}/` |" not in text} == set()


def test_every_command_in_the_text_is_one() -> None:
    """Read by the parser that would read it: what no test can run, for it costs money, is checked so far at least."""
    wrong = {line: said for line in commands() if (said := fault_of_command(line))}
    assert wrong == {}


def fault_of_command(line: str) -> str:
    """What its parser says against it; empty where it accepts it."""
    written = line.replace("...", "").replace("PATH", "path").partition(" | ")[0]
    name, *words = shlex.split(re.sub(r" > \S+$", "", written), comments=True)
    if name not in COMMANDS:
        return "" if name in ("COMMAND", "-V", "--help") else "no such command"
    try:
        if words:  # alone it is spoken of
            parser_of(name).read([word for word in words if word != "--help"])
    except CoralError as error:
        return str(error)
    return ""


def test_what_is_not_run_says_why_and_names_nothing_unknown() -> None:
    assert [block for block in NEEDS if not block.why or block.kind != "sh"] == []
    programs = {(block.page.name, line.split()[0]) for block in NEEDS for line in block.commands}
    assert {(page, program) for page, program in programs if program not in ("coral", *OF_OTHERS)} == set()


def test_every_mark_of_a_block_is_known() -> None:
    assert {block.mark for block in blocks()} <= {"", "needs", "made"}


def test_every_python_can_be_compiled() -> None:
    texts = [(block.page, block.text) for block in blocks() if block.kind == "python"]
    assert [text for page, text in texts if not ast.parse(text, filename=str(page)).body] == []


def test_every_help_has_an_example_of_its_own() -> None:
    """`example` of add_parser gives it."""
    assert [parser.prog for parser in parsers(whole_parser())[1:] if parser._example is None] == []


def messages() -> list[str]:
    """The messages that troubleshooting.md explains."""
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?) \| ", text, re.MULTILINE)
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]


def said() -> str:
    """All texts in our code, a NUL between two; of an f-string the parts between what it fills in."""
    files = [
        path for package in ("attempts", "heartbeats", "workspace", "coral") for path in (ROOT / package).rglob("*.py")
    ]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    constants = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return "\0".join(value.casefold() for value in constants if isinstance(value, str))


@pytest.mark.slow
def test_the_messages_that_are_explained_are_ones_that_coral_says() -> None:
    texts = said()
    parts = {part.strip() for message in messages() for part in message.split("...") if part.strip(" :;,.")}
    assert len(parts) > 20
    assert {part for part in parts if part.casefold() not in texts} == set()


def test_there_is_something_to_look_at() -> None:
    assert len(YAML) >= 10
    assert len(commands()) >= 40
    assert len(NEEDS) >= 3
