"""A mixed fleet: each assignment has its own program, model, account, prices and part; and what its budget can buy."""

from dataclasses import replace
from pathlib import Path

import pytest
from real_runs import TRY, Run, tries, wait_until, write_task

from attempts.store import Store
from coral.agent_setup import roster
from coral.agent_setup.prices import budget_concerns, budget_warning
from coral.config.load import Config, load
from coral.config.model import Assignment
from coral.errors import CoralError
from coral.fleet.members import Prices
from coral.fleet.rules import Rules
from coral.preflight.task_check import quick_findings
from coral.runs.rules import rules_of
from coral.runtimes.model import LaunchSpec

HEAD = "task: {name: t, description: d}\ngrader: {command: 'true'}\n"
MIXED = """\
agents:
  assignments:
    - {runtime: claude, count: 2, model: opus, prices: {input: 5, output: 25}}
    - {runtime: codex, account: work}
    - {runtime: native, role: "Tune the numbers; leave the design to the others."}
"""


def config(folder: Path, text: str, *overrides: str) -> Config:
    (folder / "seed").mkdir(exist_ok=True)
    (folder / "task.yaml").write_text(text if text.startswith("task:") else HEAD + text)
    return load(folder, overrides)


def rules_for(config: Config) -> Rules:
    return rules_of(config, roster.Roster(config), "")


def test_agents_are_numbered_through_all_assignments(tmp_path) -> None:
    mixed = config(tmp_path, MIXED)
    found = roster.members_of(mixed)
    assert {name: (part.runtime, part.model) for name, part in found.items()} == {
        "agent-1": ("claude", "opus"),
        "agent-2": ("claude", "opus"),
        "agent-3": ("codex", ""),
        "agent-4": ("native", ""),
    }
    made = roster.Roster(mixed)
    assert [made.runtime(name).name for name in made] == ["claude", "claude", "codex", "native"]
    assert made.runtime("agent-1") is made.runtime("agent-2")


def test_each_assignment_has_its_own_account_and_prices(tmp_path) -> None:
    rules = rules_for(config(tmp_path, MIXED))
    assert rules.accounts == {"agent-1": "claude", "agent-2": "claude", "agent-3": "work"}
    opus = Prices(input=5, cached=5, output=25)
    assert {name: prices for name, prices in rules.prices.items() if name != "agent-3"} == {
        "agent-1": opus,
        "agent-2": opus,
    }


def test_the_account_of_acp_and_command_is_that_of_their_program(tmp_path) -> None:
    text = """\
agents:
  assignments:
    - {runtime: acp, options: {command: [opencode, acp]}}
    - {runtime: acp, options: {command: /opt/bin/opencode acp --of-mine}}
    - {runtime: acp, options: {command: [qwen, --acp]}}
    - {runtime: acp, account: work, options: {command: [qwen, --acp]}}
    - {runtime: command, options: {start: "my-agent --new"}}
    - {runtime: command, options: {}}
    - {runtime: codex}
"""
    mixed = config(tmp_path, text)
    rules = rules_for(mixed)
    names = ["acp opencode", "acp opencode", "acp qwen", "work", "command my-agent", "command", "codex"]
    assert rules.accounts == {f"agent-{number}": name for number, name in enumerate(names, 1)}


def test_each_assignment_has_its_own_model_and_effort(tmp_path) -> None:
    text = """\
agents:
  assignments:
    - {runtime: claude, model: opus, options: {effort: high}}
    - {runtime: claude, model: sonnet, options: {effort: low}}
    - {runtime: claude}
"""
    made = roster.Roster(config(tmp_path, text))

    def given(agent: str) -> dict[str, str]:
        job = LaunchSpec(agent=agent, launch=1, session=None, clone=tmp_path, state=tmp_path, run_root=tmp_path)
        argv = made.runtime(agent).command(replace(job, model=made.assignment(agent).model)).argv
        return {name: argv[argv.index(name) + 1] for name in ("--model", "--effort") if name in argv}

    assert [given(name) for name in made] == [
        {"--model": "opus", "--effort": "high"},
        {"--model": "sonnet", "--effort": "low"},
        {},
    ]


def test_each_assignment_has_its_own_time_of_research(tmp_path) -> None:
    text = "agents: {stagger: 7, assignments: [{runtime: claude, count: 2, research: 20}, {runtime: codex}]}\n"
    rules = rules_for(config(tmp_path, text))
    assert rules.research == {"agent-1": 1200.0, "agent-2": 1200.0}
    assert rules.stagger == 7.0


def test_the_limits_of_stalls_and_sessions_are_rules(tmp_path) -> None:
    rules = rules_for(config(tmp_path, ""))
    assert (rules.stall, rules.no_progress) == (1200.0, 7200.0)
    assert (rules.outage, rules.retries, rules.fresh_compactions, rules.fresh_tokens) == (900.0, 30, None, None)
    more = "agents: {no_progress: 60, outage: 70, retries: 8}\nsession: {fresh_after: {compactions: 3, tokens: 4000}}\n"
    rules = rules_for(config(tmp_path, more))
    assert (rules.no_progress, rules.outage, rules.retries) == (60.0, 70.0, 8)
    assert (rules.fresh_compactions, rules.fresh_tokens) == (3, 4000)


def test_how_long_a_phase_may_be_silent_is_a_rule(tmp_path) -> None:
    rules = rules_for(config(tmp_path, "agents: {stall: 100}\n"))
    phases = ("starting", "thinking", "tool", "compacting", "a phase of its own")
    assert [rules.ttl_of(phase) for phase in phases] == [100, 100, 150, 100, 100]
    rules = rules_for(config(tmp_path, "agents: {ttl: {starting: 1, thinking: 2, tool: 3, compacting: 4}}\n"))
    assert [rules.ttl_of(phase) for phase in phases] == [1, 2, 3, 4, 1200]


@pytest.mark.parametrize("never", ["0", "null"])
def test_no_progress_may_be_unlimited(tmp_path, never: str) -> None:
    assert rules_for(config(tmp_path, f"agents: {{no_progress: {never}}}\n")).no_progress is None


def test_without_assignments_the_section_is_the_only_one(tmp_path) -> None:
    alike = config(tmp_path, "agents: {count: 2, runtime: codex, model: m}\n")
    assert [(part.runtime, part.model) for part in roster.members_of(alike).values()] == [("codex", "m")] * 2


@pytest.mark.parametrize(
    ("text", "override", "told"),
    [
        ("agents: {assignments: [{runtime: pi, coutn: 2}]}", "", 'assignments[0].coutn: unknown key (with 2); did you'),
        ("agents: {assignments: [{runtime: pi}, {count: 0}]}", "", "assignments[1].count: must be at least 1; got 0"),
        ("agents: {assignments: [{count: 600}, {count: 401}]}", "", "more than 1000 agents in its assignments"),
        ("agents: {assignments: pi}", "", 'agents.assignments: must be a list; got "pi"'),
        ("agents: {model: m, assignments: [{runtime: pi}]}", "", "has both assignments and model: say those in each"),
        ("agents: {assignments: [{runtime: pi}]}", "agents.count=3", "has both assignments and count: say those"),
    ],
)  # fmt: skip
def test_a_wrong_assignment_is_refused_at_its_place(text: str, override: str, told: str, tmp_path) -> None:
    with pytest.raises(CoralError) as caught:
        config(tmp_path, text, *([override] if override else []))
    assert told in str(caught.value)


def test_a_missing_program_is_found_before_anything_starts(tmp_path) -> None:
    text = "agents:\n  assignments:\n    - {runtime: native}\n    - {runtime: pi, options: {program: /no/such/pi}}\n"
    mixed = config(tmp_path, text)
    with pytest.raises(CoralError, match="cannot start pi: /no/such/pi: there is no such program"):
        roster.Roster(mixed).check()
    assert [(finding.ok, finding.text) for finding in quick_findings(mixed, tmp_path) if finding.name == "runtime"] == [
        (True, "native, 1 agent"),
        (False, "pi cannot be used"),
    ]


def test_two_equal_assignments_are_two(tmp_path) -> None:
    made = roster.Roster(config(tmp_path, "agents: {assignments: [{runtime: native}, {runtime: native, role: x}]}\n"))
    assert [made.assignment(name).role for name in made] == ["", "x"]
    assert isinstance(made.assignment("agent-1"), Assignment)


SHELL = 'echo 7 > x.txt; coral eval -m "from the shell"; sleep 600'


def test_a_mixed_fleet_works_in_one_run(start, tmp_path) -> None:
    task = write_task(tmp_path / "task", TRY)
    text = (task / "task.yaml").read_text()
    begin, end = text.index("agents:\n"), text.index("run:\n")
    script = '{script: [{edit: {file: x.txt, content: "{n}"}}, {submit: "try {n}"}]}'
    shell = f"{{start: [/bin/sh, -c, {SHELL!r}]}}"
    agents = (
        f"agents:\n  assignments:\n    - runtime: scripted\n      count: 2\n      options: {script}\n"
        f"    - runtime: command\n      role: Write sevens.\n      options: {shell}\n"
    )
    (task / "task.yaml").write_text(text[:begin] + agents + text[end:])
    run = start(task)
    everybody = {"agent-1", "agent-2", "agent-3"}
    wait_until(lambda: {record.agent for record in run.attempts()} == everybody, what="an attempt of each")
    assert {record.score for record in run.attempts() if record.agent == "agent-3"} == {7.0}
    shown = {name: (run.layout.clone(name) / "AGENTS.md").read_text() for name in everybody}
    assert {name for name, text in shown.items() if "## Your part\n\nWrite sevens.\n" in text} == {"agent-3"}
    wait_until(lambda: run.received("agent-1", "reflect"), what="a heartbeat")


# --- what a budget can buy, told before it is spent ------------------------------------------------------------------


SLOTS = "task: {name: t, description: d}\ngrader: {command: 'true', slots: 2}\n"
CLAUDE = "agents: {runtime: claude, count: 4}\n"
PRICED = "agents: {runtime: codex, count: 4, prices: {input: 10, cached: 1, output: 50}}\n"
MIX = "agents: {assignments: [{runtime: claude, prices: {input: 30, output: 90}}, {runtime: native, count: 3}]}\n"


@pytest.mark.parametrize(
    ("text", "grade", "told"),
    [
        ("agents: {count: 4}\nbudget: {attempts: 3}\n", 1.0, "attempts=3 is less than one for each of 4 agents"),
        ("agents: {count: 4}\nbudget: {attempts: 4}\n", 1.0, ""),
        ("budget: {hours: 0.05}\n", 200.0, "enough for about 1 attempt, as grading the seed took 3 min 20 s"),
        ("budget: {hours: 0.05}\n", 130.0, "enough for about 2 attempts, as grading the seed took 2 min 10 s"),
        ("budget: {hours: 0.05}\n", 720.0, "hours=0.05 is enough for less than one attempt, as"),
        ("budget: {hours: 0.0001}\n", 0.3, "enough for about 2 attempts, as grading the seed took 0.3 s"),
        ("budget: {hours: 0.05}\n", 120.0, ""),
        ("agents: {count: 4}\nbudget: {hours: 0.05}\n", 120.0, "hours=0.05 is enough for about 3 attempts"),
        ("budget: {hours: 0.05}\n", 0.0, ""),
        (CLAUDE + "budget: {money: 1}\n", 1.0, "budget.money=1 is enough for about 3 attempts, at a rough $0.27 each"),
        (CLAUDE + "budget: {money: 2}\n", 1.0, ""),
        (PRICED + "budget: {money: 1}\n", 1.0, "budget.money=1 is enough for about 1 attempt, at a rough $0.90 each"),
        (MIX + "budget: {money: 1}\n", 1.0, "enough for less than one attempt, at a rough $10.44"),
        ("budget: {money: 0.01}\n", 1.0, ""),
        (CLAUDE + "budget: {tokens: 100_000}\n", 1.0, "budget.tokens=100000 is enough for about 2 attempts, at a"),
        (CLAUDE + "budget: {tokens: 150_000}\n", 1.0, ""),
        (CLAUDE + "budget: {per_agent: {money: 0.5}}\n", 1.0, "budget.per_agent.money=0.5 is enough for about 1 at"),
        (CLAUDE + "budget: {per_agent: {tokens: 9}}\n", 1.0, "per_agent.tokens=9 is enough for less than one attempt"),
        (CLAUDE + "budget: {per_agent: {money: 0.9, tokens: 110_000}}\n", 1.0, ""),
        ("", 1.0, ""),
    ],
)  # fmt: skip
def test_what_a_budget_may_not_be_enough_for(text: str, grade: float, told: str, tmp_path) -> None:
    found = list(budget_concerns(config(tmp_path, SLOTS + text), grade))
    assert len(found) == (1 if told else 0)
    assert told in "".join(found)


def test_of_a_cluster_that_nobody_has_measured_one_grade_at_a_time_is_expected(tmp_path) -> None:
    ray = "task: {name: t, description: d}\ngrader: {command: 'true', executor: ray, ray: {address: 'h:1'}}\n"
    (concern,) = budget_concerns(config(tmp_path, ray + "budget: {hours: 0.05}\n"), 100.0)
    assert concern.startswith("budget.hours=0.05 is enough for about 1 attempt, as")


def test_all_of_it_is_one_line(tmp_path) -> None:
    tight = config(tmp_path, SLOTS + CLAUDE + "budget: {attempts: 1, money: 0.1}\n")
    assert budget_warning(tight, 1.0) == (
        "the budget may be too small: budget.attempts=1 is less than one for each of 4 agents; "
        "budget.money=0.1 is enough for less than one attempt, at a rough $0.27 each"
    )


def test_the_record_of_the_seed_says_how_long_its_grade_took(tmp_path) -> None:
    slow = "import time\n\n\ndef grade(workspace):\n    time.sleep(0.3)\n    return 1.0\n"
    run = Run(write_task(tmp_path / "task", tries(1), grade=slow), tmp_path / "runs")
    assert Store(run.layout.attempts).read(0).seconds >= 0.3


def of_two(folder: Path, claude: int, codex: int) -> Config:
    """A task with so many agents of two programs."""
    folder.mkdir()
    counts = {"claude": claude, "codex": codex}
    parts = ", ".join(f"{{runtime: {name}, count: {count}}}" for name, count in counts.items() if count)
    return config(folder, f"agents: {{assignments: [{parts}]}}\n")


@pytest.mark.parametrize(
    ("before", "after", "known", "problem"),
    [
        ((1, 1), (1, 3), 2, ""),
        ((1, 3), (1, 1), 4, ""),
        ((1, 1), (2, 1), 2, "the program of agent-2 from codex to claude"),
        ((1, 1), (1, 0), 2, "the number of agents of codex"),
        # One that was taken away before has the program that it had.
        ((1, 0), (3, 0), 3, ""),
        ((1, 0), (1, 1), 2, "the program of agent-2 from claude to codex"),
        ((1, 0), (1, 1), 1, ""),
    ],
)
def test_an_agent_of_a_run_keeps_its_program(tmp_path, before, after, known: int, problem: str) -> None:
    names = [f"agent-{number}" for number in range(1, known + 1)]
    old, new = of_two(tmp_path / "old", *before), of_two(tmp_path / "new", *after)
    if not problem:
        roster.check_same_programs(old, new, names)
        return
    with pytest.raises(CoralError, match=f"cannot change {problem}"):
        roster.check_same_programs(old, new, names)
