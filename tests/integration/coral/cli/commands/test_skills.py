"""`coral skills --test`: the tests that skills bring along run, sealed and limited, and the list shows what came of
them."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from levels import params
from sample import make_run

from coral.cli.run_data import skill_tests
from coral.grader import candidate, sandbox
from coral.grader.sandbox import LEVELS
from workspace.knowledge import write_skill
from workspace.layout import Layout
from workspace.seal import Level

Coral = Callable[..., tuple[int, str, str]]


@pytest.fixture
def layout(operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path / "runs")


def skill(layout: Layout, name: str, **files: str) -> Path:
    folder = write_skill(layout.shared, name, {"description": name, "author": "agent-1"}, "x").parent
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)
    return folder


def test_tests_run_and_the_list_says_what_came_of_them(layout: Layout, coral: Coral) -> None:
    skill(layout, "plain")
    good = skill(layout, "good", part__py="X = 1\n", test_a__py="import part\ndef test_x(): assert part.X == 1\n")
    skill(layout, "bad", test__sh="echo because; exit 3\n")
    code, out, _ = coral("skills")
    assert (code, out.count("1 test, not run")) == (0, 2)
    code, out, _ = coral("skills", "--test", "--json")
    found = {test["skill"]: test for test in json.loads(out)}
    assert code == 1
    assert found.keys() == {"good", "bad"}
    assert found["good"]["passed"] is True
    assert "test.sh" in found["bad"]["why"]
    listed = {test["name"]: test["test"] for test in json.loads(coral("skills", "--json")[1])}
    assert listed["plain"] == ""
    assert listed["good"] == "1 test passed"
    assert listed["bad"].startswith("FAILS: test.sh")
    (good / "part.py").write_text("X = 2\n")
    assert "changed since its test" in coral("skills")[1]
    code, out, _ = coral("skills", "--test", "--read", "good")
    assert (code, "FAILS: test_a.py" in out) == (1, True)


def test_a_test_sees_a_copy_and_none_of_the_run(layout: Layout, coral: Coral, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    folder = skill(layout, "nosy", test__sh=f"touch here; test ! -e {tmp_path}/secret && test ! -e outside\n")
    (folder / "outside").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "pipe")
    code, out, err = coral("skills", "--test")
    assert code == 0, out + err
    assert not (folder / "here").exists()


def test_without_a_sandbox_nothing_runs(layout: Layout, coral: Coral, monkeypatch: pytest.MonkeyPatch) -> None:
    skill(layout, "nosy", test__sh="true\n")
    levels = list[str]()

    def refuse(*_: object, seal: Sequence[str] = LEVELS, **__: object) -> None:
        levels.extend(seal)
        raise OSError("no sandbox works here")

    monkeypatch.setattr(candidate, "run_candidate", refuse)
    code, _, err = coral("skills", "--test")
    assert (code, "no sandbox works here\n" in err, "not run without a sandbox" in err) == (1, True, True)
    assert set(levels) == set(LEVELS) - {"none"}


@pytest.mark.parametrize("level", params(Level.USER))
def test_a_user_of_its_own_runs_them_too(
    layout: Layout, coral: Coral, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "SEALED", (level,))
    skill(layout, "good", part__py="X = 1\n", test_a__py="import part\ndef test_x(): assert part.X == 1\n")
    code, out, err = coral("skills", "--test")
    assert code == 0, out + err


def test_a_skill_that_is_swapped_while_its_tests_run_has_not_passed(
    layout: Layout, coral: Coral, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = skill(layout, "swapped", part__py="X = 1\n", test__sh="true\n")
    run_on_copy = skill_tests._run

    def swap(copy: Path, tests: list[str]) -> skill_tests.SkillTest:
        outcome = run_on_copy(copy, tests)
        (folder / "part.py").write_text("X = 2\n")
        return outcome

    monkeypatch.setattr(skill_tests, "_run", swap)
    assert coral("skills", "--test")[0] == 0
    assert "changed since its test" in coral("skills")[1]


def test_a_test_that_does_not_end_has_failed(layout: Layout, coral: Coral, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_tests, "SECONDS", 0.5)
    skill(layout, "slow", test__sh="exec sleep 300\n")
    code, out, _ = coral("skills", "--test")
    assert (code, "FAILS: test.sh" in out) == (1, True)


def test_an_agent_may_run_them_and_keeps_nothing(layout: Layout, coral: Coral, monkeypatch: pytest.MonkeyPatch) -> None:
    skill(layout, "good", test__sh="true\n")
    monkeypatch.chdir(layout.clone("agent-1"))
    assert coral("skills", "--test")[0] == 0
    assert not layout.skill_tests.exists()
    (layout.shared / "skills" / "good" / "test.sh").unlink()
    assert "no skill has a test" in coral("skills", "--test")[1]
