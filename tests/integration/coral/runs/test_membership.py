"""How an agent is driven that is added or moved: what follows from the task, and what is refused."""

from pathlib import Path

import pytest

from coral.agent_setup.roster import Roster, assignment_of
from coral.config.load import Config, load
from coral.config.model import Assignment
from coral.errors import CoralError
from coral.fleet.members import Member, WantedMember
from coral.runs.membership import check, wanted_assignment

TASK = """\
task: {name: t, description: d}
grader: {command: 'true'}
agents:
  assignments:
    - {runtime: scripted, count: 2, role: Draft., research: 5, options: {script: [hang]}}
    - {runtime: claude, model: opus, account: work, prices: {input: 5, output: 25}}
"""


def config(folder: Path, text: str = TASK) -> Config:
    (folder / "seed").mkdir(exist_ok=True)
    (folder / "task.yaml").write_text(text)
    return load(folder, ())


def test_a_new_agent_is_driven_as_the_first_of_the_task_or_as_those_of_its_runtime(tmp_path: Path) -> None:
    task = config(tmp_path)
    first = wanted_assignment(task, WantedMember(), None)
    assert first == Assignment(runtime="scripted", role="Draft.", options={"script": ["hang"]})
    other = wanted_assignment(task, WantedMember(runtime="claude", model="sonnet", role="Review."), None)
    assert (other.model, other.role, other.account) == ("sonnet", "Review.", "work")
    assert other.prices is not None
    assert other.prices.input == 5
    assert wanted_assignment(task, WantedMember(runtime="codex"), None) == Assignment(runtime="codex")


def test_who_is_moved_to_another_runtime_keeps_its_role_and_leaves_what_belonged_to_the_program(tmp_path: Path) -> None:
    task = config(tmp_path)
    before = Roster(task).assignment("agent-1")
    assert wanted_assignment(task, WantedMember(model=""), before).options == {"script": ["hang"]}
    moved = wanted_assignment(task, WantedMember(runtime="claude"), before)
    assert (moved.role, moved.model, moved.options, moved.count) == ("Draft.", "opus", {}, 1)
    back = wanted_assignment(task, WantedMember(runtime="scripted"), moved)
    assert back == wanted_assignment(task, WantedMember(), before)


def test_paths_of_a_program_that_an_operator_names_begin_at_the_folder_of_the_task(tmp_path: Path) -> None:
    wanted = WantedMember(runtime="scripted", options={"script": "steps.json"})
    assert wanted_assignment(config(tmp_path), wanted, None).options == {"script": f"{tmp_path}/steps.json"}


def test_a_roster_has_those_who_were_added_and_moved(tmp_path: Path) -> None:
    members = {"zoe": Member(runtime="claude", model="opus", rest={"account": "home"}, added=True)}
    members["agent-3"] = Member(runtime="scripted", rest={"options": {"script": ["hang"]}})
    roster = Roster(config(tmp_path), members)
    assert list(roster) == ["agent-1", "agent-2", "agent-3", "zoe"]
    assert (roster.runtime("zoe").name, roster.account("zoe")) == ("claude", "home")
    assert (roster.runtime("agent-3").name, roster.account("agent-3")) == ("scripted", "")
    changed = roster.with_member("agent-1", members["zoe"])
    assert (changed.runtime("agent-1").name, roster.runtime("agent-1").name) == ("claude", "scripted")


def test_keys_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CoralError, match="cannot read how an agent is driven"):
        assignment_of(Member(runtime="native", rest={"mounts": 7}))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (WantedMember(runtime="command"), "cannot start command: start is empty"),
        (WantedMember(runtime="nothing"), "cannot use the runtime 'nothing'"),
        (WantedMember(runtime="command", options={"start": "true"}), "cannot add: budget.money cannot be enforced"),
        (WantedMember(model="opus"), "scripted uses no model"),
    ],
)
def test_who_cannot_be_driven_so_is_refused(tmp_path: Path, wanted: WantedMember, message: str) -> None:
    task = config(tmp_path, TASK + "budget: {money: 5}\n")
    with pytest.raises(CoralError, match=message):
        check(task, wanted_assignment(task, wanted, None), "add")
