"""Runs at moments that call for a prompt, as a supervisor knows them, and the prompts that agents are given then.

Everything but the processes is real: the task, the records, the notes, the state of the fleet, the templates.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from files import write_files
from sample import attempt

from attempts import progress
from attempts.failures import counted
from attempts.record import Attempt, Kind, Verdict
from attempts.standing import Standing, advance, judge
from attempts.store import Store
from coral.agent_setup.roster import Roster
from coral.config.load import load
from coral.fleet.actions import Spawn
from coral.fleet.agent_state import Agent, PendingMessage, Stall
from coral.fleet.reasons import Finding, Reason, ReasonKind
from coral.fleet.run_state import Fleet, Run
from coral.records.recent import RecentResults
from coral.runs.rules import rules_of
from coral.supervisor.context import RunContext
from coral.views.prompt import instructions, launch_prompt
from workspace import knowledge
from workspace.layout import Layout, create

DESCRIPTION = "Pack 26 circles into the unit square so that the sum of their radii is largest."
CHECK = "def check(folder):\n    return 1.0\n"
NAMES = ("agent-1", "agent-2", "agent-3")
CONCLUSIONS = """## Conclusions

- A wider second ring gains: #1 to #3, +0.31, while the corners stay free. Sure.
- Of 6 attempts 2 failed by overlaps after rounding to 3 digits (#2, #5).

## Contradictions

- None.

## Gaps

- Rows of unequal height.

## Next

1. Rows of unequal height.
2. Solve for the radii once the centres are fixed.
3. Free the corners in #3.
"""


class Moment:
    """A run of three agents on one task, in `folder`; attempts are graded one by one."""

    def __init__(
        self, folder: Path, *,
        check: bool = True, noise: str = "0", budget: int = 40, tips: str = "", agents: str = "",
    ) -> None:  # fmt: skip
        """`agents`: more lines of that section."""
        lines = [
            "name: rings",
            f"description: {DESCRIPTION}",
            "editable: [pack.py]",
            *(["check: check.py:check"] * check),
        ]
        lines += [f"tips: {tips}"] * bool(tips)
        text = "task:\n" + "".join(f"  {line}\n" for line in lines)
        text += f"grader:\n  entry: grade.py:grade\n  noise: {noise}\n"
        text += f"agents:\n  runtime: scripted\n  count: 3\n  options: {{script: [hang]}}\n{agents}"
        text += f"budget:\n  attempts: {budget}\n"
        files = {"task.yaml": text, "grade.py": "def grade(workspace):\n    return 1.0\n"}
        config = load(write_files(folder / "task", {**files, "seed/pack.py": "", "seed/check.py": CHECK}))
        layout, roster = Layout(folder / "runs" / "rings" / "20300101-120000-a1b2"), Roster(config)
        create(layout, NAMES)
        knowledge.create(layout.shared)
        self.rules = rules_of(config, roster, "")
        self.run_context = RunContext(layout, config, self.rules, RecentResults(), roster)
        self.standing, self.run = Standing(), Run()
        self.agents = {name: Agent(name=name, launch=1) for name in NAMES}
        self._publish(attempt(0, 1.82, seconds=11.6))

    def graded(self, agent: str, *results: tuple[str, float | str | None], seen: bool = True) -> "Moment":
        """Publish attempts of one agent, each a title with a score or the reason of a failure. `seen`: whether the
        agent was told of them."""
        for title, found in results:
            number = self.run_context.results.baseline is not None and self.run.next_number
            plain = {"agent": agent, "title": title, "seconds": 12.4, "submitted_at": "", "published_at": ""}
            if isinstance(found, float):
                judged = judge(self.standing, agent, found, self.rules.scoring)
                verdict = {"verdict": judged.verdict, "against": judged.against, "delta": judged.delta}
                record = attempt(int(number), found, **plain, **verdict)  # type: ignore[arg-type]
            else:
                record = attempt(int(number), None, **{**plain, "reason": found or ""})
            self._publish(record)
            self.agents[agent] = replace(
                self.agents[agent],
                progress=progress.advance_own(self.agents[agent].progress, record),
                **({"last_result_seen": record.order} if seen else {}),
            )
        return self

    def note(self, name: str, author: str, minute: int, body: str = "x", **front: object) -> "Moment":
        given = {"title": name.replace("-", " "), "author": author, "created": f"2030-01-01T12:{minute:02}:00.000Z"}
        knowledge.write_note(self.run_context.layout.shared, name, {**given, "kind": "note", **front}, body)  # type: ignore[dict-item]
        return self

    def prompt(
        self, *messages: PendingMessage, session: str | None = "s", launch: int = 4, clock: float = 2520.0
    ) -> str:
        """Return the prompt that agent-1 is given."""
        agent = self.agents["agent-1"]
        reason, seen = Reason(ReasonKind.HEARTBEAT), agent.last_result_seen
        spawn = Spawn(
            agent="agent-1", launch=launch, session=session, messages=messages, last_result_seen=seen, reason=reason
        )
        text, warnings = launch_prompt(self.run_context, self.fleet(), "agent-1", spawn, clock)
        assert warnings == []
        return text

    def fleet(self) -> Fleet:
        run = replace(self.run, best=self.standing.best, half=self.standing.half)
        return Fleet(run=run, agents=self.agents, measured=self.standing.measured)

    def stalled(self, finding: Finding = Finding.NO_PROGRESS) -> "Moment":
        stall = Stall(finding=finding, lasted=2400.0, escalations=1)
        self.agents["agent-1"] = replace(self.agents["agent-1"], stall=stall)
        return self

    def _publish(self, record: Attempt) -> None:
        Store(self.run_context.layout.attempts).publish(record)
        self.run_context.results.add(record)
        self.standing = advance(self.standing, record, self.rules.scoring)
        self.run = replace(self.run, next_number=record.number + 1, order=record.order)
        if record.kind is Kind.REAL:
            self.run = replace(self.run, progress=progress.advance_fleet(self.run.progress, record))
        if record.verdict is Verdict.FAILED:
            _, failures = counted(self.run.failures, record.reason)
            self.run = replace(self.run, failed=self.run.failed + 1, failures=failures)


def told(*names: str, **prompts: str) -> tuple[PendingMessage, ...]:
    """Return messages that wait. `prompts`: the texts of those that are not built in, by the heartbeat's name."""
    given = [*((name, "") for name in names), *prompts.items()]
    return tuple(
        PendingMessage(id=f"h{place}", name=name, prompt=prompt, since=0.0, due=0.0)
        for place, (name, prompt) in enumerate(given, start=1)
    )


def _begun(folder: Path, **given: Any) -> Moment:
    """Return a run with some attempts of each agent, and the notes that they have written."""
    moment = Moment(folder, **given)
    moment.graded("agent-2", ("rows of five, 1.9", 1.93), ("rows of six, 2.0", "two circles overlap"))
    moment.graded("agent-1", ("a second ring, 2.1", 2.24), ("the ring wider, 2.3", 2.31))
    moment.graded("agent-3", ("corners first, 2.0", "two circles overlap"), ("corners of 0.1, 1.9", 1.9))
    moment.note(
        "corners-cost-0.4", "agent-3", 9, "#6 scores 1.9.", title="Circles in the corners cost 0.4", attempts=[6]
    )
    return moment


def _stuck(folder: Path, **given: Any) -> Moment:
    """Return a run in which five attempts of agent-1 in a row have gained nothing; the others have written a conclusion
    and a claim."""
    moment = _begun(folder, **given)
    moment.note("synthesis-after-6", "agent-3", 12, CONCLUSIONS, kind="synthesis", attempts=[1, 3])
    moment.note("rows-end-near-1.95", "agent-2", 14, title="Equal rows end near 1.95", claims="rows of unequal height")
    tries = [(f"the ring at {radius}, 2.32", 2.31 - radius / 100) for radius in (0.21, 0.22, 0.23, 0.24)]
    return moment.graded("agent-1", *tries).graded("agent-1", ("the ring at 0.25, 2.32", 2.3), seen=False)


def start(folder: Path) -> str:
    return Moment(folder, tips="The score counts only if no two circles overlap.").prompt(session=None, launch=1)


def start_without_a_check(folder: Path) -> str:
    return Moment(folder, check=False).prompt(session=None, launch=1)


def first_failure(folder: Path) -> str:
    moment = Moment(folder).graded("agent-1", ("a second ring, 2.1", "two circles overlap: 3 and 7"), seen=False)
    return moment.prompt(*told("reflect"), launch=2)


def new_best(folder: Path) -> str:
    return _begun(folder).graded("agent-1", ("a third ring, 2.4", 2.44), seen=False).prompt(*told("reflect"))


def reflect(folder: Path) -> str:
    return _begun(folder).graded("agent-1", ("a third ring, 2.4", 2.12), seen=False).prompt(*told("reflect"))


def together(folder: Path) -> str:
    return _stuck(folder).prompt(*told("reflect", "consolidate", "redirect"))


def redirect(folder: Path) -> str:
    return _stuck(folder).prompt(*told("redirect"))


def checkpoint(folder: Path) -> str:
    return _begun(folder).prompt(*told("checkpoint"))


def landing_at_80(folder: Path) -> str:
    moment = _begun(folder, budget=8).graded("agent-1", ("a third ring, 2.4", 2.44), seen=False)
    return moment.prompt(*told("reflect", "land"))


def landing_at_95(folder: Path) -> str:
    return _stuck(folder, budget=12).prompt(*told("reflect", "redirect", "land"))


def fresh(folder: Path) -> str:
    return _stuck(folder).prompt(session=None)


def fresh_with_a_heartbeat(folder: Path) -> str:
    return _stuck(folder).prompt(*told("reflect"), session=None)


def noisy(folder: Path) -> str:
    moment = Moment(folder, noise="0.05").graded("agent-2", ("rows of five, 1.9", 1.96))
    moment.graded("agent-1", ("a second ring, 2.1", 1.93), ("the ring wider, 2.0", 1.94), seen=False)
    return moment.prompt(*told("reflect"))


def operator(folder: Path) -> str:
    return _begun(folder).prompt(*told(message="Keep the corners free from now on."))


def mixed(folder: Path) -> str:
    """Return a prompt with a message of the operator, a heartbeat of the task, one of Coral's, and the notice of a
    stall."""
    moment = _begun(folder).graded("agent-1", ("a third ring, 2.4", 2.12), seen=False)
    own = {"message": "Keep the corners free from now on.", "plan": "Compare your plan with #{{ fleet.best_number }}."}
    return moment.prompt(*told("reflect", **own))


def stalled(folder: Path) -> str:
    return _begun(folder).stalled().prompt(*told("stalled", "checkpoint"))


def start_with_words(folder: Path) -> str:
    return Moment(folder).prompt(*told(message="Keep the corners free."), session=None, launch=1)


def keep_going(folder: Path) -> str:
    return _stuck(folder).prompt()


def agents_md(folder: Path) -> str:
    return instructions(_begun(folder).run_context, "agent-1")


SITUATIONS: Sequence[Callable[[Path], str]] = (
    agents_md,
    start,
    start_without_a_check,
    start_with_words,
    first_failure,
    new_best,
    reflect,
    redirect,
    together,
    checkpoint,
    landing_at_80,
    landing_at_95,
    fresh,
    fresh_with_a_heartbeat,
    noisy,
    operator,
    mixed,
    stalled,
    keep_going,
)


def rendered(situation: Callable[[Path], str], folder: Path) -> str:
    """Return the prompt of a situation, with what differs from machine to machine replaced."""
    text = re.sub(r"Python 3[\w.+]* \([^)]*\)", "Python 3.12.3 (/usr/bin/python3)", situation(folder))
    return re.sub(r"\b\d+ cores?\b", "8 cores", text)
