"""The skills that agents read as data: what is not of their forms is left alone."""

from pathlib import Path

import pytest

from coral.native.shared_skills import HandOver, SearchSkill, read_skill
from workspace.knowledge import Skill, list_skills, write_skill


@pytest.mark.parametrize("skill", [SearchSkill("agent-2", 30, {"rows": (5.0, 3.0)}), HandOver("agent-2", 3)])
def test_what_is_written_is_what_is_read(tmp_path: Path, skill: SearchSkill | HandOver):
    write_skill(tmp_path, "some", skill.front("why: so"), "body")
    (written,) = list_skills(tmp_path)
    assert read_skill(written) == skill
    assert "why: so" in written.description
    write_skill(tmp_path, "earlier/some", skill.front("why: so"), "body")
    assert [read_skill(found) for found in list_skills(tmp_path) if found.is_earlier] == [None]


@pytest.mark.parametrize(
    "front",
    [
        {"families": "{}"},
        {"form": "coral-search/1", "families": "{", "after": "3"},
        {"form": "coral-search/1", "families": "[1]", "after": "3"},
        {"form": "coral-search/1", "families": "[" * 9999, "after": "3"},
        {"form": "coral-search/1", "families": '{"rows": 3}', "after": "3"},
        {"form": "coral-search/1", "families": '{"rows": ["a", 1]}', "after": "3"},
        {"form": "coral-search/1", "families": '{"rows": [1, 2]}', "after": "3"},
        {"form": "coral-search/1", "families": '{"rows": [-1, -1]}', "after": "3"},
        {"form": "coral-search/1", "families": '{"rows": [NaN, NaN]}', "after": "3"},
        {"form": "coral-search/1", "families": '{"rows": [1e30, 1]}', "after": "3"},
        {"form": "coral-search/1", "families": "{}", "after": "-"},
        {"form": "coral-search/1", "families": "{}"},
        {"form": "coral-hand-over/1", "attempt": "many"},
    ],
)
def test_other_skills_and_what_cannot_be_read_are_left_alone(tmp_path: Path, front: dict[str, str]):
    write_skill(tmp_path, "other", {"description": "x", **front}, "body")
    (written,) = list_skills(tmp_path)
    assert read_skill(written) is None


def test_a_skill_that_is_gone_is_none(tmp_path: Path):
    assert read_skill(Skill("gone", "", tmp_path / "gone.md", "", "")) is None
