"""The problems of a script are found before anything is started."""

from pathlib import Path

import pytest

from coral.runtimes.scripted.runtime import Scripted


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ([], "script has no steps"),
        ("missing.json", "script cannot be read"),
        (["hnag"], "step 1: there is no option 'hnag'; did you mean hang?"),
        ([{"print": 3}], "step 1: print needs a text"),
        ([{"sleep": -1}], "sleep needs seconds"),
        ([{"busy": True}], "busy needs seconds"),
        ([{"hang": 3}], "hang takes no value"),
        ([{"edit": {"content": "x"}}], "edit needs a file"),
        ([{"edit": {"file": "x"}}], "edit needs one of content, append, replace"),
        ([{"edit": {"file": "x", "replace": "y"}}], "edit needs [old, new] in replace"),
        ([{"edit": {"file": "x", "content": "y", "mode": 1}}], "there is no option 'mode'"),
        ([{"submit": {"mesage": "x"}}], "did you mean message?"),
        ([{"fork": {"dead": True}}], "did you mean deaf?"),
        ([{"fork": 3}], "fork needs options"),
        ([{"ignore": ["SIGINT"]}], "ignore needs names of signals"),
        ([{"crash": 256}], "crash needs an exit code from 0 to 255"),
        ([{"crash": "BOOM"}], "crash needs names of signals"),
        ([{"crash": 1.5}], "crash needs an exit code or a signal"),
        ([{"repeat": []}], "step 1, repeat has no steps"),
        ([{"repeat": {"times": 0, "steps": ["hang"]}}], "times must be a whole number from 1"),
        ([{"repeat": {"time": 1, "steps": ["hang"]}}], "did you mean times?"),
        ([{"print": "a", "say": "b"}], "step 1 must be one name"),
        ([3], "step 1 must be one name"),
        ([{"print": "x" * 200_000}], "put it into a file"),
    ],
)
def test_wrong_scripts_are_found_before_anything_is_started(script: object, problem: str) -> None:
    problems = Scripted({"script": script}).check()
    assert any(problem in found for found in problems), problems


def test_a_script_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('["hang"]')
    (tmp_path / "s.yaml").write_text("- hang\n- sleep: 1e-3\n")
    (tmp_path / "bad.yaml").write_text("- [")
    assert Scripted({"script": str(tmp_path / "s.json")}).check() == []
    assert Scripted({"script": str(tmp_path / "s.yaml")}).check() == []
    assert "cannot be read" in Scripted({"script": str(tmp_path / "bad.yaml")}).check()[0]
    assert "no option 'scrip'" in Scripted({"scrip": 1}).check()[0]


def test_a_right_script_has_no_problems() -> None:
    steps = ["hang", {"edit": {"file": "a", "content": ""}}]
    assert Scripted({"script": [{"repeat": {"times": 2, "steps": steps}}]}).check() == []
