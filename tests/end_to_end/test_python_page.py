"""docs/python.md and the notebook run as they are written, and a user's type checker accepts the page.

Cells are run as plain Python, without a notebook server: that would bring thirty packages for a call of `exec`.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, blocks
from real_runs import coral_process

from workspace.layout import runs_under

pytestmark = pytest.mark.slow

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
# Each cell is executed as a notebook does: the value of a last expression is shown.
SHOW = """\
import ast, json, sys
names = {"__name__": "__main__"}
for cell in json.load(sys.stdin):
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        print(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    made = coral_process("init", "my-task", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    return tmp_path


def page() -> str:
    found = [block.text for block in blocks([ROOT / "docs" / "python.md"]) if block.kind == "python"]
    assert len(found) >= 4
    return "\n".join(found)


def execute(here: Path, *words: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-P", *words], cwd=here, input=given, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_page_runs_as_it_is_written(here: Path) -> None:
    (here / "page.py").write_text(page())
    shown = execute(here, "page.py")
    assert "stopped the budget of 6 attempts is used up" in shown
    (layout,) = runs_under(here / "runs")
    status = json.loads(coral_process("status", "--json", "--run", str(layout.root), cwd=here).stdout)
    assert f"{status['best']['number']} {status['best']['median']} from {status['baseline']}" in shown


def test_a_type_checker_accepts_the_page(here: Path) -> None:
    (here / "page.py").write_text(page() + "\nreveal_type(run.best)\nreveal_type(run.attempts[0].score)\n")
    shown = execute(here, "-m", "mypy", "--strict", "--cache-dir", str(here / "cache"), "page.py")
    assert 'Revealed type is "coral.reading.attempt_rows.MeasuredAttempt | None"' in shown, "and not Any"
    assert 'Revealed type is "float | None"' in shown


def test_the_notebook_runs_and_keeps_no_output() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    for cell in notebook["cells"]:
        assert {"cell_type", "id", "metadata", "source"} <= cell.keys()
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


def test_its_cells_show_what_they_promise(here: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(ast.parse(text) for text in code)
    shown = execute(here, "-c", SHOW, given=json.dumps(code))
    assert shown.count(" by agent-") == 8
    assert ": stopped, best " in shown
    assert " grades, the seed " in shown
