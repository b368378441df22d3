"""`agents.count=4` on the command line: typed like YAML, checked like the file, and blamed by its own words."""

from pathlib import Path

import pytest

from coral.config.load import load
from coral.errors import CoralError

TASK = """\
task: {name: t, description: d}
grader: {entry: "grade.py:grade", args: {fast: true}}
heartbeats: [{name: reflect, every: 2}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "seed").mkdir()
    (tmp_path / "grade.py").write_text("")
    (tmp_path / "task.yaml").write_text(TASK)
    return tmp_path


def problems(folder: Path, *overrides: str) -> list[str]:
    with pytest.raises(CoralError) as caught:
        load(folder, overrides)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_the_hint_depends_on_whether_the_file_or_an_override_is_wrong(folder: Path) -> None:
    def advice(*overrides: str) -> str:
        with pytest.raises(CoralError) as caught:
            load(folder, overrides)
        return caught.value.hint

    assert advice("agent.count=4").startswith("correct it where you typed it")
    (folder / "task.yaml").write_text(TASK + "budgets: {}\n")
    assert (
        advice("agent.count=4")
        == advice()
        == "correct these lines; `coral validate` checks the task again and costs nothing"
    )


def test_overrides_are_read_as_yaml_values_and_a_later_one_wins(folder: Path) -> None:
    config = load(
        folder,
        ["agents.count=4", "budget.hours=0.025", "run.watch=false", "grader.args.n=[1, {a: x}]", "budget.target=1e-3"],
    )
    assert (config.agents.count, config.budget.hours, config.run.watch) == (4, 0.025, False)
    assert config.grader.args == {"fast": True, "n": [1, {"a": "x"}]}
    assert config.budget.target == 0.001
    assert load(folder, ["agents.count=4", "agents={count: 5}", "agents.count=6"]).agents.count == 6
    assert load(folder, ["grader.args={}"]).grader.args == {}
    assert load(folder, ["task.tips="]).task.tips == ""
    assert load(folder, ["budget.hours=3", "budget.hours=null"]).budget.hours is None
    assert load(folder, ["grader.entry=", "grader.command=[python3, g.py]"]).grader.command == ("python3", "g.py")


@pytest.mark.parametrize(
    "text", ["use: less # now", "a = b", "${HOME}", "- not a list", "two\nlines", "it's", "100%", "*", "!x", "&y"]
)
def test_a_text_that_is_no_plain_yaml_value_is_taken_as_it_is(folder: Path, text: str) -> None:
    assert load(folder, [f"task.tips={text}"]).task.tips == text


def test_a_problem_names_the_override_that_caused_it(folder: Path) -> None:
    assert problems(folder, "agents.count=0", "agents.cout=3", "task.name=42", 'task.tips="42"') == [
        "override agents.count=0: agents.count: must be at least 1; got 0",
        'override agents.cout=3: agents.cout: unknown key (with 3); did you mean "count"?',
        "override task.name=42: task.name: must be text; got 42 (put it in quotes)",
    ]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("agents.count", "is not of the form section.key=value"),
        ("=4", "is not of the form section.key=value"),
        ("agents..count=4", "is not of the form section.key=value"),
        ("agents.count=[1", "agents.count: is not YAML"),
        ("agents.count.more=1", "must be a whole number; got {'more': 1}"),
        ("heartbeats.0.every=3", "heartbeats: holds no keys; override it whole"),
        ("nonsense=1", "nonsense: unknown key (with 1)"),
        ("heartbeats=[{name: reflect, every: 99}]", "heartbeats[0]: cannot change reflect: it is protected"),
    ],
)
def test_an_invalid_override_is_refused(folder: Path, override: str, told: str) -> None:
    found = problems(folder, override)
    assert len(found) == 1
    assert found[0].startswith(f"override {override}: ")
    assert told in found[0]
