"""Mounts, role files and instructions: what a task names on this machine reaches its agents, and is never submitted."""

import json
from pathlib import Path

import pytest
from files import write_files
from real_runs import READ_NUMBER, Run, wait_until

from coral.agent_setup.clone import restore_mounts
from coral.agent_setup.roster import Mount, members_of
from coral.config.load import Config, load, load_frozen
from coral.errors import CoralError
from coral.runs.create import create_run
from workspace.git import Git

HEAD = "task: {name: t, description: d}\ngrader: {entry: grade.py:grade, private: [hidden]}\n"


def task(folder: Path, agents: str) -> Path:
    """A task in `folder/task` with something beside it, and with that section of agents."""
    made = folder / "task"
    for name in ("seed/src", "hidden", "../data/deep"):
        (made / name).mkdir(parents=True)
    (made / "grade.py").write_text("def grade(workspace):\n    return 1.0\n")
    (made / "seed" / "src" / "x.txt").write_text("0")
    (made / "part.md").write_text("Look at the edges.\n\nLeave the middle to others.\n", "utf-8-sig")
    (folder / "data" / "table.csv").write_text("1,2\n")
    (made / "task.yaml").write_text(HEAD + agents)
    return made


def read(folder: Path, agents: str, *overrides: str) -> Config:
    return load(task(folder, agents), overrides)


def refused(folder: Path, agents: str) -> str:
    with pytest.raises(CoralError) as caught:
        read(folder, agents)
    return str(caught.value)


# --- what a task may say --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mounts", "told"),
    [
        ("{data: ../nothing}", 'agents.mounts.data: "../nothing" does not exist (looked at '),
        ("{data: '~no-such-user-at-all/x'}", 'mounts.data: "~no-such-user-at-all/x" does not exist'),
        ("{../data: ../data}", "must be a path inside the workspace"),
        ("{/data: ../data}", "must be a path inside the workspace"),
        ("{.: ../data}", "must be a path inside the workspace"),
        ("{.git/hooks: ../data}", "must be a path inside the workspace"),
        ("{.shared: ../data}", "must be a path inside the workspace"),
        ("{src: ../data}", "is in the seed already"),
        ("{src/x.txt: ../data}", "is in the seed already"),
        ("{data: ../data, data/deep: ../data}", 'mounts.data/deep: lies in "data", which is a mount itself'),
        ("{data: ., }", '"." holds what belongs to the grader: agents would see it'),
        ("{data: ..}", '".." holds what belongs to the grader'),
        ("{data: hidden}", '"hidden" holds what belongs to the grader'),
        ("{data: grade.py}", '"grade.py" holds what belongs to the grader'),
        ("[../data]", "must be a section of keys and values"),
        ("{data: 3}", "must be text"),
    ],
)
def test_a_wrong_mount_is_refused_at_its_place(mounts: str, told: str, tmp_path) -> None:
    said = refused(tmp_path, f"agents:\n  mounts: {mounts}\n")
    assert told in said
    assert "task.yaml:4:" in said


def test_a_wrong_mount_of_an_assignment_is_refused_there(tmp_path) -> None:
    said = refused(tmp_path, "agents: {assignments: [{}, {mounts: {x: nowhere}}]}\n")
    assert 'agents.assignments[1].mounts.x: "nowhere" does not exist' in said


@pytest.mark.parametrize(
    ("agents", "told"),
    [
        ("{role_file: nothing.md}", 'agents.role_file: "nothing.md" is no file (looked at '),
        ("{role_file: seed}", '"seed" is no file'),
        ("{role_file: part.md, role: x}", "agents.role_file: stands beside a role; keep one of them"),
        ("{assignments: [{role_file: a.md}]}", 'agents.assignments[0].role_file: "a.md" is no file'),
        ("{research: 5}", "agents.research: native agents do no research: leave it out"),
        ("{runtime: claude, research: 0}", "agents.research: must be more than 0; got 0"),
        ("{stagger: -1}", "agents.stagger: must be at least 0; got -1"),
    ],
)
def test_a_wrong_role_or_research_is_refused_at_its_place(agents: str, told: str, tmp_path) -> None:
    assert told in refused(tmp_path, f"agents: {agents}\n")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\0b", b"x" * 100_001])
def test_a_role_file_must_be_a_text_of_limited_size(content: bytes, tmp_path) -> None:
    made = task(tmp_path, "agents: {role_file: part.md}\n")
    (made / "part.md").write_bytes(content)
    with pytest.raises(CoralError, match=r'"part.md" (is no text of at most 100 kB|cannot be read as a text)'):
        load(made)


def test_a_run_keeps_the_text_of_its_role_files(tmp_path) -> None:
    given = read(
        tmp_path, "agents: {assignments: [{role_file: part.md}, {role: Go first., count: 2}, {runtime: claude}]}\n"
    )
    words = "Look at the edges.\n\nLeave the middle to others.\n"
    assert [member.role for member in members_of(given).values()] == [words, "Go first.", "Go first.", ""]
    (tmp_path / "frozen.yaml").write_text(given.text)
    (tmp_path / "task" / "part.md").unlink()
    kept = load_frozen(tmp_path / "frozen.yaml")
    assert kept.agents == given.agents
    assert members_of(kept)["agent-1"].role == words


# --- what agents find -----------------------------------------------------------------------------------------------


MOUNTED = """\
agents:
  runtime: scripted
  count: 2
  options: {script: [hang]}
  role_file: part.md
  mounts: {data: ../data, more/table.csv/: ../data/table.csv}
"""


def test_a_clone_has_its_mounts_and_the_instructions_name_them(tmp_path) -> None:
    layout = Run(task(tmp_path, MOUNTED), tmp_path / "runs").layout
    for agent in ("agent-1", "agent-2"):
        clone = layout.clone(agent)
        assert (clone / "data" / "deep").is_dir()
        assert (clone / "more" / "table.csv").read_text() == "1,2\n"
        assert Git(clone / ".git", GIT_WORK_TREE=clone).text("status", "--porcelain", "-uall") == ""
        guide = (clone / "AGENTS.md").read_text()
        assert "`data`, `more/table.csv` lie outside this folder" in guide
        assert "## Your part\n\nLook at the edges.\n\nLeave the middle to others.\n" in guide
        part = (layout.shared / "roles" / f"{agent}.md").read_text()
        assert part == f"---\nagent: {agent}\n---\n\nLook at the edges.\n\nLeave the middle to others.\n"


def test_without_mounts_the_instructions_do_not_mention_any(tmp_path) -> None:
    layout = Run(task(tmp_path, "agents: {runtime: scripted, options: {script: [hang]}}\n"), tmp_path / "runs").layout
    guide = (layout.clone("agent-1") / "AGENTS.md").read_text()
    assert "outside this folder" not in guide
    assert "## Your part" not in guide
    assert list((layout.shared / "roles").iterdir()) == []


def test_a_mount_at_the_instruction_file_is_refused(tmp_path) -> None:
    agents = "agents: {runtime: scripted, options: {script: [hang]}, mounts: {./AGENTS.md: ../data/table.csv}}\n"
    with pytest.raises(CoralError, match=r"cannot mount .*table.csv: AGENTS.md is taken"):
        Run(task(tmp_path, agents), tmp_path / "runs")
    assert not (tmp_path / "runs").exists() or list((tmp_path / "runs").iterdir()) == []


def test_a_file_of_the_agent_in_place_of_a_mount_stays(tmp_path) -> None:
    layout = Run(task(tmp_path, MOUNTED), tmp_path / "runs").layout
    clone, away = layout.clone("agent-1"), tmp_path / "away"
    away.mkdir()
    (clone / "data").unlink()
    (clone / "data").mkdir()
    (clone / "data" / "mine").write_text("mine")
    (clone / "more" / "table.csv").unlink()
    (clone / "more").rmdir()
    (clone / "more").symlink_to(away)
    table = tmp_path / "data/table.csv"
    (clone / "saved.csv").write_text("saved")
    restore_mounts(
        clone, [Mount(tmp_path / "data", "data"), Mount(table, "more/deep/table.csv"), Mount(table, "saved.csv")]
    )
    assert (clone / "data" / "table.csv").read_text() == "1,2\n"
    assert (clone / "saved.csv").read_text() == "1,2\n"
    assert [path.read_text() for path in clone.glob(".coral-mount-*/mine")] == ["mine"]
    assert [path.read_text() for path in clone.glob(".coral-mount-*") if path.is_file()] == ["saved"]
    assert list(away.iterdir()) == []


SCRIPT = "cat data/table.csv\ncp data/table.csv x.txt\ncoral eval -m copied\nrm data\nexit 0\n"


def test_an_agent_reads_its_mounts_and_never_submits_them(start, tmp_path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "table.csv").write_text("7\n")
    run = start(SCRIPT, overrides=(f"agents.mounts={{data: {data}}}",))
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.score == 7.0
    assert Git(run.layout.hub).text("ls-tree", "-r", "--name-only", attempt.commit).split() == ["agent.sh", "x.txt"]
    # The next launch finds it again, though this one has removed it.
    second = run.layout.output("agent-1", 2)
    wait_until(lambda: second.exists() and second.read_text().startswith("7\n"), what="the second launch")
    run.stop()
    assert (data / "table.csv").read_text() == "7\n"


def test_the_instructions_mention_those_of_the_seed_that_the_program_does_not_read(tmp_path) -> None:
    agents = f"agents: {{runtime: claude, options: {json.dumps({'program': str(tmp_path / 'claude')})}}}\n"
    task = "task: {name: t, description: d}\ngrader: {entry: t/grade.py:grade}\n" + agents
    seed = {"seed/x.txt": "1", "seed/AGENTS.md": "Use tabs.", "seed/CLAUDE.md": "Be terse."}
    write_files(tmp_path, {"claude": "#!/bin/sh\n", "t/grade.py": READ_NUMBER, "task.yaml": task, **seed})
    layout = create_run(load(tmp_path), tmp_path / "runs", lambda _: None)
    clone = layout.clone("agent-1")
    text = (clone / "CLAUDE.md").read_text()
    assert "read AGENTS.md as well" in text
    assert text.endswith("Be terse.")
    assert (clone / "AGENTS.md").read_text() == "Use tabs."
