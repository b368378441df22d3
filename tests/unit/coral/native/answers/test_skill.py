"""The skill that native agents share: what is not of its form is left alone."""

from pathlib import Path

from coral.native.answers.skill import NAME, front_matter, search_skill_of
from coral.native.search.bandit import FamilyStats
from workspace import frontmatter
from workspace.knowledge import Skill, list_skills, write_skill


def test_what_is_written_is_what_is_loaded(tmp_path):
    stats = {"rows": FamilyStats(5.0, 3.0, 0.25)}
    write_skill(tmp_path, NAME, front_matter("agent-2", "Where it pays", stats, 9, 30), "body")
    (written,) = list_skills(tmp_path)
    loaded = search_skill_of(written)
    assert loaded is not None
    assert (loaded.stats, loaded.start, loaded.after) == (stats, 9, 30)
    assert loaded.version == f"{NAME} by agent-2 after 30 attempts"


def test_skills_of_other_forms_are_left_alone(tmp_path):
    for name, front in {
        "other": {"description": "x", "families": "{}"},
        "torn": {"form": "coral-search/1", "families": "{"},
        "list": {"form": "coral-search/1", "families": "[1]"},
        "nested": {"form": "coral-search/1", "families": "[" * 9999},
    }.items():
        write_skill(tmp_path, name, front, "body")
    assert [search_skill_of(skill) for skill in list_skills(tmp_path)] == [None] * 4
    assert search_skill_of(Skill("gone", "", tmp_path / "gone.md", "", "")) is None


def test_counts_that_are_no_counts_are_left_out(tmp_path):
    odd = {"form": "coral-search/1", "families": '{"rows": 3, "x": {"tries": "a"}}', "start": "-"}
    write_skill(tmp_path, "odd", odd, "")
    (written,) = list_skills(tmp_path)
    loaded = search_skill_of(written)
    assert loaded is not None
    assert loaded.stats == {"x": FamilyStats()}
    assert loaded.start is None


def test_all_agents_write_the_same_file(tmp_path):
    path = write_skill(tmp_path, NAME, front_matter("agent-2", "", {}, None, 7), "x")
    assert path == tmp_path / "skills" / NAME / "SKILL.md"
    assert frontmatter.split(Path(path).read_text())[0]["after"] == "7"
