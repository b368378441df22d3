"""Every screen and every JSON of one run agrees: on the best, the lead, the counts, the money and the reasons."""

import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clones import git
from real_runs import READ_NUMBER, coral_process, tries, write_task
from records import readable
from rich.console import Console

from attempts.noise import median
from attempts.record import Attempt, Kind, Verdict
from attempts.store import Store
from coral.cli.ui.live_frame import frame
from coral.cli.ui.run_follower import RunFollower
from coral.views.format import money, score, scores
from workspace.layout import Layout, runs_under

pytestmark = pytest.mark.slow

USE = {"use": {"input": 1000, "cached": 500, "output": 10, "cost": 0.25}}
NOISY = (
    "import random, time\n\n\ndef grade(workspace):\n"
    "    return float((workspace / 'x.txt').read_text()) + random.Random(time.time_ns()).gauss(0, 0.01)\n"
)
BROKEN = """\
def grade(workspace):
    row = (workspace / 'x.txt').read_text()
    return 0 if row == '0' else {'failed': 'no sum' if row > '7' else 'row ' + row + ' is wrong'}
"""


@dataclass(frozen=True)
class Case:
    """`best`: the numbers of the attempts that may be the best; none where nobody beats the seed. `proven`: what the
    title of a best matches that measuring again must have proven; then numbers are not known."""

    values: tuple[object, ...]
    best: tuple[int, ...]
    grade: str = READ_NUMBER
    overrides: tuple[str, ...] = ()
    failed: int = 0
    alone: bool = True  # one agent, so that the numbers of its attempts are known
    extra: str = ""  # of the task
    agents: int = 1
    proven: str = ""
    lead: str = ""  # the title of a lead that is not proven


CASES = {
    "improving": Case((1, 2, 3, "3.0", "1.0"), (3,)),
    "minimising": Case((5, -1, -2, 3), (3,), overrides=("grader.direction=minimize",)),
    "seed unbeaten": Case((-1, -2, "0.0", -3), ()),
    "one failed": Case((1, "x", 2), (3,), failed=1),
    "all failed": Case(tuple(range(1, 11)), (), grade=BROKEN, failed=10),
    "noisy": Case(
        (0.1, 5, 5.001, 4.999), (), grade=NOISY, overrides=("grader.noise=auto",), alone=False, proven="value (5|4.999)"
    ),
    "unproven": Case(
        (5, 6),
        (),
        grade=NOISY,
        overrides=("grader.noise=0.5", "grader.confirm=0", "budget.target=4"),
        alone=False,
        lead="value 6",
    ),
    "held out": Case((1, -5, 2), (3,), extra="holdout: {args: {split: test}}\n"),
    "several agents": Case((1, 2, 3), (), overrides=("agents.count=3",), alone=False, agents=3),
    "mixed programs": Case((1, 2, 3), (), alone=False, agents=2),
}


@pytest.mark.parametrize("name", CASES)
def test_all_that_is_said_of_a_run_agrees(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    script = [step for value in case.values for step in (USE, *tries(value))]
    task = write_task(tmp_path / "task", script, grade=case.grade, extra=case.extra)
    if name == "mixed programs":
        mix_programs(task, script)
    for words in (("init", "-q"), ("add", "task"), ("commit", "-qm", "the task")):
        git(tmp_path, *words)  # to export to
    attempts = len(case.values) * case.agents
    started = coral_process("start", str(task), "--plain", f"budget.attempts={attempts}", *case.overrides, cwd=tmp_path)
    assert started.returncode == 0, started.stderr
    (layout,) = runs_under(tmp_path / "runs")
    said = Said(tmp_path)
    status = said("status")
    records = [record for record in readable(Store(layout.attempts)) if record.kind is Kind.REAL]
    assert_counts(said, status, layout, records, case)
    assert_best(said, status, layout, case, started.stdout)
    assert_money_and_reason(said, status, started.stdout, layout)
    assert_hold_out(said, status, layout, case)
    assert_prompts(layout)


def mix_programs(task: Path, script: list[object]) -> None:
    """Two runtimes: one that tells what it uses, and one that does not."""
    shell = "echo up\n" + "".join(f"echo -{n} > x.txt; coral eval -m 'value -{n}'\n" for n in (1, 2, 3))
    (task / "seed" / "agent.sh").write_text(shell)
    other = {"runtime": "command", "options": {"start": ["/bin/sh", "{clone}/agent.sh"]}}
    mixed = [{"runtime": "scripted", "options": {"script": script}}, other]
    path = task / "task.yaml"
    head, _, tail = path.read_text().partition("agents:\n")
    path.write_text(f"{head}agents: {json.dumps({'assignments': mixed})}\nrun:{tail.partition('run:')[2]}")


class Said:
    """What a command says: as data, or in words."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *words: str) -> Any:
        return json.loads(self._output(*words, "--json"))

    def words(self, *words: str) -> str:
        return self._output(*words)

    def _output(self, *words: str) -> str:
        done = coral_process(*words, cwd=self._folder, COLUMNS="400")
        assert done.returncode == 0, done.stderr
        return done.stdout


def assert_counts(said: Said, status: Any, layout: Layout, records: list[Attempt], case: Case) -> None:
    (listed,) = said("runs")
    replayed = said("replay", "--at", "99h")
    failed = [record.number for record in records if record.verdict is Verdict.FAILED]
    assert status["attempts"] == listed["attempts"] == replayed["attempts"] == len(records)
    assert sum(agent["attempts"] for agent in status["agents"]) == len(records)
    assert status["failed"] == replayed["failed"] == len(failed) == case.failed
    groups = said("log", "--failures")
    assert sum(group["count"] for group in groups) == len(failed)
    assert status["failures"] == replayed["failures"]
    assert [(group["reason"], group["count"]) for group in status["failures"]] == [
        (group["reason"], group["count"]) for group in groups
    ]
    shown = {row["number"]: row for row in said("log", "--recent", "-n", "1000")}
    ancestry = {row["number"]: row["score"] for row in said("lineage", "-n", "0")}
    everything = readable(Store(layout.attempts))
    assert {row["number"] for row in shown.values() if row["kind"] == "real"} == {record.number for record in records}
    for record in records:
        assert (shown[record.number]["score"], shown[record.number]["verdict"]) == (record.score, record.verdict.value)
        one = said("show", str(record.number))
        assert (one["score"], one["verdict"], one["reason"]) == (record.score, record.verdict.value, record.reason)
        middle = None if record.score is None else median(measured(everything, record.number))
        assert ancestry[record.number] == middle
        if (again := shown[record.number].get("measured")) is not None:
            assert (again["median"], one["measured"]) == (middle, again)
        assert re.match(
            rf"#{record.number} {re.escape(score(middle))}  {record.verdict}",
            said.words("show", str(record.number)),
        )
    confirmations = [row for row in shown.values() if row["kind"] == "confirm"]
    assert status["confirmations"] == replayed["confirmations"] == len(confirmations)
    headline = said.words("status")
    assert re.search(rf"^{len(records)} attempts?\b", headline, re.MULTILINE)
    assert (f"{len(failed)} failed" in headline) == bool(failed)


def measured(everything: list[Attempt], number: int) -> list[float]:
    """What an attempt scored, each time that it was measured."""
    found = [record for record in everything if number in (record.number, record.of)]
    return [record.score for record in found if record.score is not None and record.kind is not Kind.HOLDOUT]


def assert_best(said: Said, status: Any, layout: Layout, case: Case, summary: str) -> None:
    everything = readable(Store(layout.attempts))
    (listed,) = said("runs")
    replayed = said("replay", "--at", "99h")
    assert status["best"] == listed["best"] == replayed["best"]
    assert status["lead"] == listed["lead"] == replayed["lead"]
    best = status["best"]["number"] if status["best"] else None
    if case.alone:
        assert (best or 0) in (case.best or (0,))
    watch, lines = RunFollower(layout), io.StringIO()
    watch.update()
    out = Console(file=lines, width=400, height=60)
    out.print(frame(watch, out, "a hint"))
    screens = (said.words("status"), summary, lines.getvalue())
    middle = median(measured(everything, best or 0))
    assert status["best"]["median"] == watch.points[-1][1] == middle
    assert_lead(status, case, screens)
    if not best:
        assert not case.proven
        assert all("nobody has beaten the seed" in screen for screen in screens)
        assert "coral export" not in summary
        assert "the best" not in said.words("log")
        assert "the seed" in said.words("runs")
        return
    winner = next(record for record in everything if record.number == best)
    proofs = [record for record in everything if record.of == best and record.verdict is Verdict.NEW_BEST]
    assert bool(proofs) == bool(case.proven)
    assert not case.proven or re.match(case.proven, winner.title)
    assert status["best"]["agent"] == winner.agent
    ranked = said("log")
    assert ranked[0]["number"] == (status["lead"] or status["best"])["number"]
    assert (
        next(row for row in ranked if row["number"] == best).get("measured", {"median": winner.score})["median"]
        == middle
    )
    lead = status["lead"]["median"] if status["lead"] else None
    shown = scores([middle, lead, status["baseline"]])[0]  # as many digits as tell these apart
    for screen in screens:
        assert f"#{best} by {winner.agent}" in screen
        assert f"best {shown} " in screen
        assert "nobody has beaten" not in screen
    assert score(middle) in said.words("runs")
    assert f"coral export {best}" in summary
    assert [row["number"] for row in ranked if row["number"] == best] == [best]
    assert re.search(rf"^ *{best} .*(new best|the best)", said.words("log"), re.MULTILINE)
    branch = said("export", str(best))["branch"]
    assert f"#{best} by {winner.agent}, score {score(middle)}" in git(layout.root, "log", "-1", "--format=%B", branch)


def assert_lead(status: Any, case: Case, screens: tuple[str, ...]) -> None:
    """A lead that is not the best is shown, and called what it is; each agent's own best is at most the lead."""
    lead, best = status["lead"], status["best"]
    ahead = bool(lead) and not lead["proven"]
    assert all(("not proven" in screen) == ahead for screen in screens)
    own = [agent["best"] for agent in status["agents"] if agent["best_number"] is not None]
    if lead and own:
        first = max if status["direction"] == "maximize" else min
        assert first([*own, lead["median"]]) == lead["median"]
    if case.lead:
        assert lead["title"] == case.lead
        assert best["number"] == 0
        assert all(f"#{lead['number']} by {lead['agent']}, not proven" in screen for screen in screens)
        assert all("grader.confirm allows no more" in screen for screen in screens)
        assert f"coral show {lead['number']} --diff" in screens[1]
        assert all("nobody has beaten the seed" in screen and "for certain" in screen for screen in screens)
        assert all("when the best, which is proven, reaches 4" in screen for screen in screens)


def assert_prompts(layout: Layout) -> None:
    """What a prompt says of attempts is what the records said when it was written: each score stands for the first
    grades of its attempt, as many as it names."""
    everything = readable(Store(layout.attempts))
    texts = [path.read_text() for path in layout.root.glob("logs/*/*.prompt.md")]
    rows = [
        row
        for text in texts
        for row in re.findall(r"^- #(\d+) (\S+)(?: \(median of (\d+) grades\))? agent-", text, re.MULTILINE)
    ]
    for number, value, count in rows:
        assert value == score(median(measured(everything, int(number))[: int(count or 1)]))
    own = [
        found
        for text in texts
        for found in re.findall(r"^You: \d+ attempts?, best (\S+) \(#(\d+)\)", text, re.MULTILINE)
    ]
    for value, number in own:
        scores = measured(everything, int(number))
        assert value in {score(median(scores[:count])) for count in range(1, len(scores) + 1)}


def assert_money_and_reason(said: Said, status: Any, summary: str, layout: Layout) -> None:
    (listed,) = said("runs")
    replayed = said("replay", "--at", "99h")
    for part in ("spent", "tokens_unknown_of", "money_unknown_of"):
        assert status[part] == replayed[part]
    parts = ("tokens", "money")
    unknown = {part: [agent["name"] for agent in status["agents"] if agent["spent"][part] is None] for part in parts}
    assert all(status[f"{part}_unknown_of"] == names for part, names in unknown.items())
    assert all(("at least" in screen) == any(unknown.values()) for screen in (said.words("status"), summary))
    for part in ("tokens", "input", "cached", "output", "money"):
        assert status["spent"][part] == pytest.approx(sum(agent["spent"][part] or 0 for agent in status["agents"]))
    assert money(status["spent"]["money"]) in said.words("status")
    assert money(status["spent"]["money"]) in summary
    reason = status["reason"]["text"]
    assert reason == listed["reason"]["text"] == replayed["reason"]["text"]
    assert all(reason in screen for screen in (summary, said.words("status"), layout.events.read_text()))


def assert_hold_out(said: Said, status: Any, layout: Layout, case: Case) -> None:
    if not case.extra:
        assert "holdout" not in status
        return
    kept = json.loads(layout.holdout_scores.read_text())["scores"]
    assert [(row["number"], row["holdout"]) for row in status["holdout"]] == [
        (row["number"], row["score"]) for row in kept
    ]
    for row in status["holdout"]:
        assert row["score"] == said("show", str(row["number"]))["score"] == row["holdout"]  # it is the same grader
    assert status["holdout"][-1]["number"] == status["best"]["number"]
    assert f"hold-out #{status['best']['number']} {score(status['best']['score'])}" in said.words("status")
