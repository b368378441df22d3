"""The example: its grader forgives nothing, its check agrees with its grader, and its seed leaves room."""

import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from files import load_module

from coral.config.load import load
from coral.grader import Fail
from coral.grading.once import grade_once

EXAMPLE = Path(__file__).parents[2] / "examples" / "circle_packing"


GRADE, CHECK = load_module(EXAMPLE / "grade.py"), load_module(EXAMPLE / "seed" / "check.py")


def grid(radius: float = 0.07) -> list[dict[str, object]]:
    return [{"x": 0.1 + 0.15 * (k % 6), "y": 0.1 + 0.15 * (k // 6), "r": radius} for k in range(26)]


def workspace(folder: Path, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps({"circles": content})
    (folder / "circles.json").write_text(text)
    return folder


def refused(folder: Path, content: object) -> str:
    with pytest.raises(Fail) as fail:
        GRADE.grade(workspace(folder, content))
    return fail.value.reason


def test_the_seed_is_modest_and_feasible():
    result = GRADE.grade(EXAMPLE / "seed")
    assert 1.5 < result.score < 2.0
    checked = CHECK.check(str(EXAMPLE / "seed"))
    assert checked["score"] == pytest.approx(result.score)
    assert min(checked["slack"]) > 0


def test_the_task_is_graded_as_coral_grades_it(tmp_path):
    config = load(EXAMPLE, ())
    found = grade_once(config, tmp_path)
    assert found.score == pytest.approx(1.82)
    command = [sys.executable, "check.py"]
    said = subprocess.run(command, cwd=EXAMPLE / "seed", capture_output=True, text=True, check=True).stdout
    assert "1.82" in said
    assert "ok" in said


def test_the_sum_is_exact(tmp_path):
    assert GRADE.grade(workspace(tmp_path, grid())).score == math.fsum([0.07] * 26)


@pytest.mark.parametrize("change", ["overlap", "edge", "touch"])
def test_the_last_bit_decides(tmp_path, change):
    """Circles that touch exactly are allowed; one unit in the last place more, here below 1e-18, is not."""
    tiny = 2.0**-10
    circles = grid(tiny)
    circles[0] = {"x": tiny, "y": tiny, "r": tiny}
    circles[1] = {"x": 3 * tiny, "y": tiny, "r": tiny}
    if change == "touch":
        assert GRADE.grade(workspace(tmp_path, circles)).score == 26 * tiny
    elif change == "overlap":
        circles[1]["x"] = math.nextafter(3 * tiny, 0)
        assert "circles 0 and 1 overlap" in refused(tmp_path, circles)
    else:
        circles[0]["x"] = math.nextafter(tiny, 0)
        assert "circle 0 reaches" in refused(tmp_path, circles)


def test_an_overlap_that_floating_point_does_not_see(tmp_path):
    """hypot and a sum of radii agree here to the last bit, yet the exact distance is smaller."""
    for k in range(1, 400):
        x, r = 0.3 + k / 1000, (0.3 + k / 1000 - 0.1) / 2
        one, two = (0.1, 0.5, r), (x, 0.5 + 1e-9 * k, math.nextafter(math.hypot(x - 0.1, 1e-9 * k) - r, 0))
        distance = math.hypot(one[0] - two[0], one[1] - two[1])
        exact = (Fraction(one[0]) - Fraction(two[0])) ** 2 + (Fraction(one[1]) - Fraction(two[1])) ** 2
        if distance - one[2] - two[2] >= 0 and exact < (Fraction(one[2]) + Fraction(two[2])) ** 2:
            break
    else:
        pytest.fail("no such pair was found")
    with pytest.raises(Fail, match="overlap"):
        GRADE.apart([tuple(map(Fraction, one)), tuple(map(Fraction, two))])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", '"0.1"', "null", "true", "[]"])
@pytest.mark.parametrize("name", ["x", "y", "r"])
def test_what_is_no_finite_number_fails(tmp_path, name, value):
    text = json.dumps({"circles": grid()}).replace(f'"{name}": ', f'"{name}": {value}, "was": ', 1)
    text = text.replace(f', "was": {grid()[0][name]}', "", 1)
    reason = refused(tmp_path, text)
    assert "not a" in reason


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (grid()[:25], "there are 25 circles"),
        ([*grid(), {"x": 0.95, "y": 0.95, "r": 0.01}], "there are 27 circles"),
        ("", "cannot read"),
        ("[]", "must be"),
        ('{"circles": {}}', "must be"),
        ('{"circles": [], "more": 1}', "must be"),
        ("[" * 100_000, "more than"),
        ("[" * 50_000, "cannot read"),
        ('{"circles": ' + " " * 70_000 + "[]}", "more than"),
        ('{"circles": [], "circles": []}', "twice"),
        ([{"x": 0.5, "y": 0.5, "r": 0.1, "z": 1}] * 26, "and nothing else"),
        ([{"x": 0.5, "y": 0.5}] * 26, "and nothing else"),
        ([[0.5, 0.5, 0.1]] * 26, "and nothing else"),
        ([{"x": 0.5, "y": 0.5, "r": 0.0}] * 26, "no positive radius"),
        ([{"x": 0.5, "y": 0.5, "r": -0.1}] * 26, "no positive radius"),
        ([{"x": 0.5, "y": 0.5, "r": 0.1}] * 26, "circles 0 and 1 overlap"),
        ([{"x": 5, "y": 5, "r": 1e-300}] * 26, "reaches"),
    ],
)
def test_hostile_files_fail_with_a_reason(tmp_path, content, said):
    assert said in refused(tmp_path, content)


def test_a_tiny_exponent_costs_nothing(tmp_path):
    text = json.dumps({"circles": grid()}).replace('"r": 0.07', '"r": 1e-999999999', 1)
    assert "no positive radius" in refused(tmp_path, text)
    digits = json.dumps({"circles": grid()}).replace('"x": 0.1', '"x": 0.1' + "0" * 40_000, 1)
    assert GRADE.grade(workspace(tmp_path, digits)).score == pytest.approx(1.82)
    whole = json.dumps({"circles": grid()}).replace('"x": 0.1', '"x": 1' + "0" * 40_000, 1)
    assert refused(tmp_path, whole)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "missing"])
def test_only_a_regular_file_is_read(tmp_path, kind):
    path = tmp_path / "circles.json"
    if kind == "link":
        path.symlink_to(EXAMPLE / "seed" / "circles.json")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(Fail, match="cannot read"):
        GRADE.grade(tmp_path)


def test_nothing_of_the_candidates_is_executed(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('executed')")
    (tmp_path / "check.py").write_text("raise SystemExit('executed')")
    assert GRADE.grade(workspace(tmp_path, grid())).score == pytest.approx(1.82)


def test_the_commands_of_its_page_work_as_written(tmp_path):
    """In a copy, and with one attempt for each run; without a name a run lies beside its task."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "circle_packing", ignore=shutil.ignore_patterns("runs"))
    shell = re.findall(r"```sh\n(.*?)```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line) for block in shell for line in block.splitlines()]
    assert [words[:2] for words in commands] == [["coral", "validate"], ["coral", "start"]]
    for words in commands:
        few = ["agents.count=1", "budget.attempts=1", "agents.options={seconds: 0.3}"]
        command = [sys.executable, "-P", "-m", *words, *(few if words[1] == "start" else [])]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
