"""The examples that come along: listed by their pages, and copied whole or not at all."""

import json
from pathlib import Path

import pytest

from coral.cli.commands.examples import folders
from coral.config.load import load

NAMES = ["circle_packing", "erdos_overlap", "faster_function", "min_max_distance", "tabular_model", "ticket_prompt"]


@pytest.fixture(autouse=True)
def _elsewhere(operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_each_is_listed_with_the_first_sentence_of_its_page(coral) -> None:
    code, said, _ = coral("examples", "--json")
    found = json.loads(said)
    assert code == 0
    assert [example["name"] for example in found] == NAMES
    for example in found:
        assert example["about"].removesuffix(".") in " ".join(
            (Path(example["folder"]) / "README.md").read_text().split()
        )
    assert coral("examples")[1].count("\n") == len(NAMES) + 3


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_is_a_task_with_its_schema(coral, name: str) -> None:
    code, said, _ = coral("examples", "copy", name)
    assert (code, said.splitlines()[-1]) == (0, f"  coral start {name}")
    copy = Path(name)
    schema = copy / (copy / "task.yaml").read_text().partition("$schema=")[2].split()[0]
    assert json.loads(schema.read_text())["title"] == "TaskFile"
    assert load(copy).task.name == name
    source = next(folder for folder in folders() if folder.name == name)
    for file in (path for path in copy.rglob("*") if path.is_file() and path.suffix != ".yaml" and path != schema):
        assert file.read_bytes() == (source / file.relative_to(copy)).read_bytes()
    links = [part.partition(")")[0] for part in (copy / "README.md").read_text().split("](")[1:]]
    assert [link for link in links if not (copy / link).exists()] == []


def test_a_copy_has_the_name_and_the_place_that_were_asked_for(coral, tmp_path: Path) -> None:
    code, said, _ = coral("examples", "copy", "ticket_prompt", "a b/mine", "--json")
    assert (code, json.loads(said)) == (0, {"task": str(tmp_path / "a b" / "mine" / "task.yaml")})
    assert "coral start 'a b/more'" in coral("examples", "copy", "ticket_prompt", "a b/more")[1]


def test_what_is_there_is_not_touched(coral) -> None:
    Path("mine").mkdir()
    Path("mine/task.yaml").write_text("mine")
    code, _, said = coral("examples", "copy", "ticket_prompt", "mine")
    assert code == 1
    assert "cannot copy ticket_prompt to mine: that is there already" in said
    assert [path.read_text() for path in Path("mine").iterdir()] == ["mine"]


def test_an_example_that_is_none_is_refused_with_those_that_are(coral) -> None:
    code, _, said = coral("examples", "copy", "circle_paking")
    assert code == 1
    assert "cannot copy 'circle_paking': there is no such example" in said
    assert ", ".join(NAMES) in said
    assert list(Path().iterdir()) == []
