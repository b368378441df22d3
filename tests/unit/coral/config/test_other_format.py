"""A task of the other CORAL as a Config: what becomes of each key, what is said of it, and what is refused."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from files import write_files

from coral.config.load import Config, load, load_frozen
from coral.errors import CoralError
from coral.grader.task_grader import MARGIN, NO_TIMEOUT
from coral.preflight.task_check import quick_findings
from heartbeats.example import example_context
from heartbeats.heartbeat import BUILT_IN, Heartbeat, find
from heartbeats.render import problems, render
from heartbeats.trigger import Every, Stagnant

LEAST = "task: {name: Their Task, description: Make it larger.}\n"
FILES = {"seed/solution.py": "print(1)\n", "eval/grader.py": "from coral.grader import TaskGrader\n"}


def made(folder: Path, text: str = "", files: Mapping[str, str] = FILES, overrides: tuple[str, ...] = ()) -> Config:
    """The task of this folder: these lines after the least that a task must have."""
    write_files(folder, {**files, "task.yaml": LEAST + text})
    return load(folder, overrides)


def lines(config: Config) -> str:
    assert config.translated is not None
    return "\n".join(config.translated)


def heartbeat(config: Config, name: str) -> Heartbeat:
    found = find(config.heartbeats, name)
    assert found is not None
    return found


def test_the_least_task_has_the_defaults_of_its_own_format(tmp_path) -> None:
    config = made(tmp_path)
    assert config.translated == ()
    assert (config.grader.entry, config.task.seed) == ("eval/grader.py:Grader", "seed")
    assert (config.grader.timeout, config.grader.direction) == (300 + MARGIN, "maximize")
    assert (config.agents.runtime, config.agents.model, config.agents.count) == ("claude", "", 1)
    assert config.heartbeats == BUILT_IN
    assert config.grader.seed_may_fail


def test_a_task_of_ours_is_none_of_the_other(tmp_path) -> None:
    ours = {**FILES, "grade.py": "def grade(workspace): return 1\n"}
    assert made(tmp_path, "grader: {entry: grade.py:grade}\n", ours).translated is None


def test_every_key_of_the_grader_arrives(tmp_path) -> None:
    config = made(
        tmp_path,
        """
grader:
  timeout: "600"
  args: {program_file: solution.py, n: 3}
  direction: minimize
  private: [answers.json, deep/more.csv]
  parallel: {max_workers: 4}
  max_pending_per_agent: 3
""",
        {**FILES, "answers.json": "1", "deep/more.csv": "2"},
    )
    grader = config.grader
    assert (grader.timeout, grader.slots, grader.direction) == (630, 4, "minimize")
    assert (grader.args, grader.private) == ({"program_file": "solution.py", "n": 3}, ("answers.json", "deep/more.csv"))
    assert lines(config) == (
        "grader.max_pending_per_agent: no counterpart: an agent may always submit; the queue is bounded by grader.slots"
    )


def test_no_timeout_is_the_longest_that_there_is(tmp_path) -> None:
    assert made(tmp_path, "grader: {timeout: 0}\n").grader.timeout == NO_TIMEOUT


def test_a_packaged_grader_is_installed_and_keeps_its_hidden_files(tmp_path) -> None:
    text = 'grader: {entrypoint: "pkg.grade:Judge", setup: ["uv pip install -e ./pkg"]}\n'
    grader = made(tmp_path, text, {**FILES, "eval/data.txt": "7"}).grader
    assert (grader.entry, grader.setup, grader.private) == ("pkg.grade:Judge", ("uv pip install -e ./pkg",), ("eval",))


@pytest.mark.parametrize(
    ("name", "ours"),
    [("claude_code", "claude"), ("claude-code", "claude"), ("openai-codex", "codex"), ("kiro-cli", "kiro")],
)
def test_agent_programs_have_our_names(tmp_path, name: str, ours: str) -> None:
    assert made(tmp_path, f"agents: {{runtime: {name}, count: 3}}\n").agents.runtime == ours


def test_agents_arrive_with_limits_roles_skills_and_mounts(tmp_path) -> None:
    config = made(
        tmp_path,
        """
agents:
  count: 2
  runtime: codex
  model: some-model
  runtime_options:
    {model_reasoning_effort: high, fast_mode: true, role_file: role.md, mounts: {data.csv: input/data.csv}}
  timeout: 0
  stagger_seconds: 4
  max_turns: 50
  skills: [tools/plotting]
  warmstart: {enabled: true}
  restart_burst_threshold: 5
  restart_pause_seconds: 100
  gateway: {enabled: false}
  research: no
""",
        {**FILES, "role.md": "Think.", "data.csv": "1", "tools/plotting/SKILL.md": "plot"},
    )
    agents = config.agents
    assert (agents.count, agents.runtime, agents.model, agents.options) == (
        2,
        "codex",
        "some-model",
        {"effort": "high"},
    )
    assert agents.mounts == {"input/data.csv": "data.csv", "skills/plotting": "tools/plotting"}
    assert (agents.role, agents.stall, agents.stagger, agents.research) == ("Think.", NO_TIMEOUT, 4, 20)
    assert (config.run.breaker_crashes, config.run.breaker_pause, config.run.breaker_window) == (5, 100, 60)
    said = {line.partition(": ")[0] for line in lines(config).splitlines()}
    assert said == {
        "agents.warmstart",
        "agents.skills",
        "agents.runtime_options.fast_mode",
        "agents.max_turns",
        "agents.research",
    }


def test_assignments_inherit_and_have_no_model_of_another_program(tmp_path) -> None:
    config = made(
        tmp_path,
        """
agents:
  runtime: claude_code
  model: opus
  assignments:
    - {count: 2}
    - {runtime: codex, runtime_options: {model_reasoning_effort: low}}
    - {model: sonnet}
""",
    )
    kinds = [(each.runtime, each.model, each.count, each.options) for each in config.agents.assignments]
    assert kinds == [
        ("claude", "opus", 2, {}),
        ("codex", "", 1, {"effort": "low"}),
        ("claude", "sonnet", 1, {}),
    ]


def test_heartbeats_are_translated_by_name_trigger_and_scope(tmp_path) -> None:
    config = made(
        tmp_path,
        """
agents:
  heartbeat:
    - {name: reflect, every: 500}
    - {name: consolidate, every: 20}
    - {name: pivot, every: 7, trigger: plateau}
    - {name: lint_wiki, every: 10, global: true}
    - {name: Deep_Check, every: 4, global: yes, prompt: "In {shared_dir} {agent_id}: {other}, {{x}} and {% y %}."}
""",
    )
    assert heartbeat(config, "reflect").trigger == Every(10)
    assert heartbeat(config, "consolidate").trigger == Every(20)
    assert heartbeat(config, "redirect").trigger == Stagnant(7)
    own = heartbeat(config, "deep-check")
    assert (own.trigger, own.scope) == (Every(4), "fleet")
    assert problems(own.prompt) == []
    assert [line.partition(":")[0] for line in lines(config).splitlines()] == [
        "agents.heartbeat reflect",
        "agents.heartbeat lint_wiki",
    ]


def test_braces_of_a_prompt_are_words(tmp_path) -> None:
    text = "In {shared_dir} {agent_id}: {other}, {{x}}, {# z #} and {% y %}."
    config = made(tmp_path, f"agents: {{heartbeat: [{{name: own, every: 2, prompt: '{text}'}}]}}\n")
    assert render(heartbeat(config, "own").prompt, example_context()).text.strip() == (
        "In .shared agent-1: {other}, {{x}}, {# z #} and {% y %}."
    )


def test_pivot_without_a_trigger_comes_after_every_so_many(tmp_path) -> None:
    assert heartbeat(made(tmp_path, "agents: {heartbeat: [{name: pivot, every: 6}]}\n"), "redirect").trigger == Every(6)


def test_the_old_keys_of_heartbeats_still_count(tmp_path) -> None:
    config = made(tmp_path, "agents: {reflect_every: 2, heartbeat_every: 15}\n")
    assert (heartbeat(config, "reflect").trigger, heartbeat(config, "consolidate").trigger) == (Every(2), Every(15))


def test_texts_name_the_shared_folder_as_it_is_called_here(tmp_path) -> None:
    text = "task: {name: t, description: 'See {shared_dir}/notes and {x}.', tips: '{shared_dir}'}\n"
    write_files(tmp_path, {**FILES, "task.yaml": text})
    task = load(tmp_path).task
    assert (task.description, task.tips) == ("See .shared/notes and {x}.", ".shared")


def test_a_repository_that_is_only_right_elsewhere_is_the_seed_beside_the_task(tmp_path) -> None:
    config = made(tmp_path, "workspace: {repo_path: ./examples/their/seed, setup: [uv sync], results_dir: out}\n")
    assert config.seed == tmp_path / "seed"
    assert (config.workspace.setup, config.workspace.runs, lines(config)) == (("uv sync",), "out", "")


def test_a_repository_is_the_seed_where_there_is_no_other(tmp_path, monkeypatch) -> None:
    files = {
        "task/eval/grader.py": "",
        "repo/main.py": "",
        "task/task.yaml": LEAST + "workspace: {repo_path: ./repo}\n",
    }
    write_files(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    assert load(tmp_path / "task").seed == tmp_path / "repo"


def test_two_seeds_cannot_be_joined_without_a_copy(tmp_path) -> None:
    config = made(tmp_path / "task", f"workspace: {{repo_path: {tmp_path / 'repo'}}}\n", {**FILES, "../repo/a.py": ""})
    assert (config.task.seed, "`coral import` joins the two" in lines(config)) == ("seed", True)


def test_without_any_seed_agents_begin_with_nothing(tmp_path) -> None:
    config = made(tmp_path, "workspace: {repo_path: ./nowhere}\n", {"eval/grader.py": ""})
    assert [path.name for path in config.seed.iterdir()] == [".gitkeep"]
    assert "agents begin with an empty one" in lines(config)


def test_links_to_nothing_and_foreign_imports_are_said_beforehand(tmp_path) -> None:
    grader = "from coral.grader import TaskGrader\nfrom coral.agent.registry import get_runtime\n"
    write_files(tmp_path, {**FILES, "eval/grader.py": grader, "task.yaml": LEAST})
    (tmp_path / "eval" / "testdata").symlink_to("/nowhere/data")
    assert lines(load(tmp_path)).splitlines() == [
        "eval/testdata: a link to nothing, left out",
        "grader: it imports coral.agent.registry of the other system, which is not here: it fails where it uses that",
    ]


def test_a_seed_that_uv_installs_gets_the_network_and_says_so(tmp_path, monkeypatch) -> None:
    programs = write_files(tmp_path / "bin", {"uv": "#!/bin/sh\n"})
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    grader = "class Grader: command = 'self.get_python_command()'\n"
    config = made(tmp_path / "t", files={**FILES, "eval/grader.py": grader, "seed/pyproject.toml": "[project]\n"})
    assert (config.grader.network, config.grader.writable) == (True, ("~/.cache/uv",))
    assert "network: true" in lines(config)
    assert not made(tmp_path / "u", files={**FILES, "eval/grader.py": grader}).grader.network


def test_what_nobody_knows_is_left_out_and_said(tmp_path) -> None:
    text = "task: {name: t, description: d, evaluation_guidance: x}\nextra: 1\nsharing: {notes: false}\n"
    text += "run: {ui: true, docker_image: img}\ngrader: {colour: red}\nworkspace: {run_dir: x}\n"
    write_files(tmp_path, {**FILES, "task.yaml": text})
    said = lines(load(tmp_path)).splitlines()
    assert {line.partition(":")[0] for line in said} == {
        "task.evaluation_guidance",
        "extra",
        "grader.colour",
        "workspace.run_dir",
        "run.docker_image",
    }


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("timeout: soon", "task.yaml:3:3: grader.timeout: must be a number"),
        ("private: [../outside]", "task.yaml:3:13: grader.private[0]: must be inside the task's folder"),
        ("direction: up", "task.yaml:3:3: grader.direction: must be"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place_in_their_file(tmp_path, key: str, problem: str) -> None:
    with pytest.raises(CoralError) as caught:
        made(tmp_path, f"grader:\n  {key}\n")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("agents: {gateway: true}", "2:10: agents.gateway: must be a section of keys and values; got true"),
        ("agents: {warmstart: yes}", '2:10: agents.warmstart: must be a section of keys and values; got "yes"'),
        ("agents: {runtime_options: [a]}", "2:10: agents.runtime_options: must be a section of keys and values"),
        ("agents: {runtime_options: {mounts: [a]}}", "2:28: agents.runtime_options.mounts: must be a section of keys"),
        ("agents: {assignments: {count: 2}}", "2:10: agents.assignments: must be a list; got {'count': 2}"),
        ("agents: {assignments: [a]}", "2:24: agents.assignments[0]: must be a section of keys and values"),
        ("agents: {assignments: [{runtime_options: 5}]}", "agents.assignments[0].runtime_options: must be a section"),
        ("agents: {runtime_options: 5, assignments: [{count: 2}]}", "2:10: agents.runtime_options: must be a section"),
        ("agents: {heartbeat: 5}", "2:10: agents.heartbeat: must be a list; got 5"),
        ("agents: {heartbeat: [reflect]}", "2:22: agents.heartbeat[0]: must be a section of keys and values"),
        ("agents: [a]", "2:1: agents: must be a section of keys and values; got ['a']"),
        ("grader: {parallel: 4}", "2:10: grader.parallel: must be a section of keys and values; got 4"),
    ],
)
def test_what_is_no_section_or_no_list_is_refused_at_its_place(tmp_path, key: str, problem: str) -> None:
    with pytest.raises(CoralError) as caught:
        made(tmp_path, f"{key}\n")
    assert str(caught.value).startswith("cannot use this task: one problem")
    assert problem in str(caught.value)


def test_one_skill_needs_no_list(tmp_path) -> None:
    config = made(tmp_path, "agents: {skills: tools/plotting}\n", {**FILES, "tools/plotting/SKILL.md": "plot"})
    assert config.agents.mounts == {"skills/plotting": "tools/plotting"}


def test_the_command_line_chooses_another_program_without_its_model(tmp_path) -> None:
    text = "agents: {runtime: claude_code, model: opus, runtime_options: {model_reasoning_effort: high}}\n"
    config = made(tmp_path, text, overrides=("agents.runtime=native", "agents.count=4"))
    assert (config.agents.runtime, config.agents.model, config.agents.options) == ("native", "", {})
    assert config.agents.count == 4
    said = lines(config)
    assert "agents.model: left out: it is for claude_code, not for native" in said
    assert "agents.options: left out: it is for claude_code, not for native" in said


def test_the_built_in_agent_does_no_research_which_is_said(tmp_path) -> None:
    text = "agents: {warmstart: {enabled: true}}\n"
    config = made(tmp_path, text, overrides=("agents.runtime=native",))
    assert config.agents.research is None
    assert lines(config) == "agents.warmstart: left out: native agents do no research"
    assert made(tmp_path, text, overrides=("agents.runtime=codex",)).agents.research == 20


def test_the_copy_of_a_run_is_a_task_of_ours(tmp_path) -> None:
    config = made(tmp_path, "agents: {heartbeat: [{name: pivot, every: 4, trigger: plateau}]}\n")
    (tmp_path / "frozen.yaml").write_text(config.text)
    frozen = load_frozen(tmp_path / "frozen.yaml")
    assert (frozen.grader, frozen.heartbeats, frozen.translated) == (config.grader, config.heartbeats, None)


def test_its_heartbeats_pass_the_checks_of_validate(tmp_path) -> None:
    config = made(
        tmp_path,
        "agents: {heartbeat: [{name: a, every: 3, prompt: 'Use {{x}}'}]}\n",
        overrides=("agents.runtime=native",),
    )
    found = {finding.name: finding for finding in quick_findings(config, tmp_path / "runs")}
    assert found["heartbeats"].ok, found["heartbeats"]
