"""What a run keeps of its task reads back to the same task, whatever has become of the task's folder."""

import shutil
from pathlib import Path

import pytest
from cases import TIMES
from hypothesis import HealthCheck, given, settings, strategies as st

from coral.config import document
from coral.config.load import load, load_frozen, write
from coral.errors import CoralError

TASK = """\
task:
  name: t
  description: |
    Two lines,
      the second with ${HOME}.
  tips: "tab\\there, \\u2028, null"
  editable: ["*.json"]
grader: {command: ["python3", "-c", ""], direction: minimize, args: {none: ~, nan: .nan, on: "on", list: [], map: {}}}
heartbeats:
  - {name: reflect, every: 4}
  - {name: own, stagnant: 2, prompt: "{{ run.id }}: go on"}
"""
hard = st.text("ab \n\t#:-|>'\"{}[]&*!%@`,?\\1.e~<=\r\x85\u2028\ufeff\U0001f600\x00", max_size=20)
text = st.text(max_size=30) | hard | st.sampled_from(["true", "null", "1e3", "0x1F", "2024-01-01", "<<", "=", "---"])
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "task" / "seed").mkdir(parents=True)
    (tmp_path / "task" / "task.yaml").write_text(TASK)
    return tmp_path / "task"


def test_a_frozen_task_is_the_task_with_its_overrides(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "private.yaml"
    kept.write_text(load(folder, ["budget.hours=1"]).text, encoding="utf-8")
    assert load_frozen(kept, ["budget.hours=2"]).budget.hours == 2
    config = load(folder, ["agents.count=3", "task.seed=seed"])
    kept.write_text(config.text, encoding="utf-8")
    shutil.rmtree(folder)
    again = load_frozen(kept)
    assert again.text == config.text
    assert (again.path, again.folder, again.seed) == (config.path, config.folder, config.seed)
    for section in ("task", "agents", "budget", "run", "heartbeats"):
        assert getattr(again, section) == getattr(config, section)
    assert str(again.grader) == str(config.grader)  # NaN is not equal to itself
    assert again.agents.count == 3


def test_a_frozen_task_holds_absolute_paths_in_the_options_of_runtimes(folder: Path, tmp_path: Path) -> None:
    of_one = "{runtime: scripted, options: {script: one.json}}"
    mixed = load(folder, [f"agents.assignments=[{of_one}, {{runtime: scripted, options: {{script: [hang]}}}}]"])
    assert [dict(part.options) for part in mixed.agents.assignments] == [
        {"script": f"{folder}/one.json"},
        {"script": ["hang"]},
    ]
    kept = tmp_path / "private.yaml"
    kept.write_text(load(folder, ["agents.runtime=scripted", "agents.options={script: a/steps.json}"]).text)
    assert load_frozen(kept).agents.options == {"script": f"{folder}/a/steps.json"}
    assert load_frozen(kept, ["agents.options.script=b.json"]).agents.options == {"script": f"{folder}/b.json"}


def test_a_frozen_task_holds_every_default_and_a_task_file_is_none(folder: Path) -> None:
    with pytest.raises(CoralError, match="not the task of a run"):
        load_frozen(folder / "task.yaml")
    assert "poll_seconds: 5.0" in load(folder).text
    assert "origin: " in load(folder).text


@settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(text, plain, min_size=1, max_size=4))
def test_written_yaml_is_read_back_to_the_same_values(data: dict[str, object]) -> None:
    read = document.read(write(data))
    assert read.problems == []
    assert read.data == data
