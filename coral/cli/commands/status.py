"""`coral status`: shows the state of a run, from the status.json that its supervisor writes. The live view shows the
same."""

import argparse
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from coral.cli.parser import print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_lookup import command
from coral.cli.ui.agents_table import agents_table, progress_text
from coral.cli.ui.holdout import holdout_line
from coral.cli.ui.life import life_lines
from coral.cli.ui.table import console, dim, tone
from coral.fleet.health import HealthLevel
from coral.fleet.reasons import BudgetKey, ReasonKind, RunEndKind
from coral.reading import visibility
from coral.reading.beat_spans import spans
from coral.reading.budgets import trials, used
from coral.reading.lenient_json import LenientJson
from coral.reading.run_health import run_health
from coral.reading.run_view import RunView, is_seed
from coral.reading.status_data import status_data
from coral.views import format
from coral.views.health import when_text
from heartbeats.archive import beats_in
from workspace.disk import disk_problem_of
from workspace.layout import OPERATOR
from workspace.seal import Level

TROUBLES = 5  # lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_lookup.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for programs: status.json, and whether it is supervised")
    about = "draw who was alive, idle, dead or parked over the run (with --json: from and until when)"
    parser.add_argument("--timeline", action="store_true", help=about)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    if args.timeline:
        return _timeline(view, as_json=args.json)
    if args.json:
        return print_json(status_data(view))
    out = console()
    print_heading(out, view)
    print_warnings(out, view)
    _body(out, view)
    return 0


def _timeline(view: RunView, *, as_json: bool) -> int:
    """Print when each agent was alive, up to now; for a run that nobody supervises, up to its last status."""
    clock = time.time()
    until = clock - (format.age(view.status.text("wall"), clock) or 0.0) + view.lateness
    names = [agent.text("name") for agent in view.status.objects("agents")] or view.agents()
    agents = {name: spans(beats_in(view.layout.beats(name)), until) for name in names}
    if as_json:
        return print_json(
            {"until": until, "agents": {name: list(map(asdict, own_spans)) for name, own_spans in agents.items()}}
        )
    out = console()
    print_heading(out, view)
    out.print()
    for line in life_lines(agents, until, clock, out.width):
        out.print(line, overflow="ellipsis", no_wrap=True)
    return 0


def print_heading(out: Console, view: RunView) -> None:
    """Print the heading, each line cut to the width of the screen."""
    for line in heading(view):
        out.print(line, overflow="ellipsis", no_wrap=True)


def heading(view: RunView) -> list[Text]:
    """Return three or four lines: the run, its best attempt, what is being graded, and what is left of the budget."""
    return [*summary_lines(view), *_budget(view.status)]


def summary_lines(view: RunView) -> list[Text]:
    """Return the heading without the budget."""
    status = view.status
    clock = status.number("clock")
    epoch = [Text(f"epoch {view.epoch}")] if view.epoch > 1 else []
    first = [Text(view.task, style="bold"), Text(view.name), tone(view.state), *epoch]
    if clock is not None:
        first.append(Text(format.duration(int(clock + view.lateness))))
    held_out = holdout_line(view)
    return [Text(" · ").join(first), _best(view), *([held_out] if held_out else []), _work(view)]


def _budget(status: LenientJson) -> list[Text]:
    lines = status.inner("budget").texts("lines")
    return [Text.assemble("budget ", " · ".join(lines))] if lines else []


def _best(view: RunView) -> Text:
    """Return the proven best, which is the seed while nobody has beaten it; and the lead, if it is another attempt."""
    best, lead = view.best_and_lead
    number = best.integer("number")
    best_score, lead_score, seed = format.scores([best.number("median"), lead.number("median"), view.baseline])
    why = "" if view.status.data.get("confirms") is not False else f": {NOT_CONFIRMED}"
    unproven = (
        Text(f"  lead {lead_score}{_attempt(view, lead)}, not proven{why}")
        if lead.data.get("proven") is False
        else Text()
    )
    if number is None:
        return Text("no score yet" if view.baseline is None else f"no score yet; the seed has {seed}")
    if is_seed(best):
        proven = " for certain" if unproven else ""
        return Text.assemble(f"nobody has beaten the seed ({seed}){proven}", unproven)
    gain = format.delta(best.number("median"), view.baseline)
    than = dim(f"  seed {seed} ({gain})" if gain else "  the seed has no score")
    who = _attempt(view, best)
    return Text.assemble("best ", (best_score, "bold green"), who, than, unproven, f"  {best.text('title', 200)}")


def _attempt(view: RunView, measured: LenientJson) -> str:
    """Return what is said after a score: ` ±0.003 (4 grades) #17 by agent-2`. The standard error follows from the noise
    of all repeated measurements, since a few grades of one attempt may agree by chance."""
    count, noise = measured.integer("count") or 1, view.status.number("noise")
    error = f" ±{noise / math.sqrt(count):.2g}" if noise else ""
    grades = f" ({count} grades)" if count > 1 else ""
    return f"{error}{grades} #{measured.text('number')} by {measured.text('agent')}"


def _work(view: RunView) -> Text:
    status, grading = view.status, view.status.inner("grading")
    confirmations = status.integer("confirmations") or 0
    again = [format.plural(confirmations, "confirmation")] if confirmations else []
    attempts = format.plural(view.attempts, "attempt") + _failed(view)
    parts = [part for part in (attempts, trials(status), *again, used(view)) if part]
    if view.state not in ("running", "stopping"):
        return Text(" · ".join(parts))
    if running := grading.integers("running"):
        beats = {beat.integer("number"): beat for beat in grading.objects("beats")}
        parts.append("grading " + " ".join(f"#{number}{progress_text(beats.get(number))}" for number in running[:8]))
    if held_out := grading.integers("holdout"):
        parts.append("on the hold-out " + " ".join(f"#{number}" for number in held_out[:8]))
    if queued := grading.integers("queued"):
        parts.append(f"{len(queued)} queued")
    if grading.data.get("paused") is True:
        parts.append("grading is paused")
    if grading.data.get("held") is True:
        parts.append("grading is held: coral grading release")
    if level := status.text("seal"):
        parts.append("unprotected" if level == Level.NONE else f"sealed by {level}")
    return Text(" · ".join(parts))


def _failed(view: RunView) -> str:
    """Return how many attempts failed, and the most frequent reason: `, 71 failed (70: its result has no score)`."""
    most = next(iter(view.status.objects("failures")), LenientJson({}))
    reason = f" ({most.text('count')}: {most.text('reason', 80)})" if most.text("reason") else ""
    return f", {view.failed} failed{reason}" if view.failed else ""


def resume_command(view: RunView) -> str:
    """Return the command that continues the run. In it, budgets that are used up are doubled until they exceed what is
    used: with smaller ones the run would end again at once."""
    how = command("resume", view.layout)
    reason = view.status.inner("reason")
    kind = reason.text("kind") if view.state == "stopped" else ""
    if kind == RunEndKind.BUDGET:
        budgets = [
            (reason.inner("budget"), 0.0),
            *((budget, budget.number("used")) for budget in _used_up(view.status)),
        ]
        return " ".join((how, *_larger("budget", budgets)))
    if kind == RunEndKind.TARGET:
        return f"{how} budget.target=null"
    if kind == RunEndKind.PLATEAU:
        return f"{how} budget.plateau={2 * (reason.number('limit') or 0):.15g}"
    if kind == RunEndKind.ALL_RETIRED:
        agents = [(agent.inner("reason"), agent) for agent in view.status.objects("agents")]
        own = [(end.inner("budget"), agent) for end, agent in agents if end.text("kind") == ReasonKind.OWN_BUDGET]
        amounts = [(budget, _used_of(agent, budget.text("key"))) for budget, agent in own]
        return " ".join((how, *_larger("budget.per_agent", amounts)))
    return how


def _used_up(status: LenientJson) -> list[LenientJson]:
    """Return the budgets of the run of which nothing is left."""
    budgets = status.objects("budgets")
    return [budget for budget in budgets if 0 < (budget.number("limit") or 0) <= (budget.number("used") or 0)]


def _used_of(agent: LenientJson, key: str) -> float | None:
    return agent.number("attempts") if key == BudgetKey.ATTEMPTS else agent.inner("spent").number(key)


def _larger(section: str, budgets: Iterable[tuple[LenientJson, float | None]]) -> list[str]:
    """Return the overrides that double these budgets until they exceed what is used. `section`: the key above theirs;
    `budgets`: each with what is used of it, None if that is not known."""
    limits: dict[str, float] = {}
    for budget, amount in budgets:
        key, limit = budget.text("key"), 2 * (budget.number("limit") or 0)
        while 0 < limit <= (amount or 0):
            limit *= 2
        limits[key] = max(limit, limits.get(key, limit))
    return [f"{section}.{key}={limit:.15g}" for key, limit in limits.items()]


def print_warnings(out: Console, view: RunView) -> None:
    """Print the lines that the operator must read first, each on one line of output however narrow the terminal is: a
    line break within a command would spoil a copy of it."""
    for line in warnings(view):
        out.print(line, soft_wrap=True)


def warnings(view: RunView) -> list[Text]:
    """Return the lines that the operator must read first."""
    if not view.is_made and view.supervisor is None:
        return [Text(text, style="red") for text in run_lookup.unmade(view.layout)]
    how, lines = resume_command(view), list[Text]()
    if not view.status:
        # A sealed agent sees the records, but neither status.json nor the task's files are in its sandbox.
        is_hidden = visibility.is_agent() and not view.is_open
        why = "a sealed agent cannot read its status.json" if is_hidden else "its status.json is missing or damaged"
        text = f"{why}; `coral log` still reads the attempts"
        lines.append(Text(text, style="yellow"))
    if view.supervisor is not None and (problem := disk_problem_of(view.layout.root)):
        lines.append(Text(f"{problem}; nothing new starts until there is space again", style="red"))
    if view.state == "dead":
        last = f"; last sign of life {format.ago(view.status.data.get('wall'))}" if view.status else ""
        lines.append(Text(f"nobody supervises this run{last}: continue it with `{how}`", style="red"))
    elif view.state == "left":
        since = format.ago(view.status.data.get("wall"))
        text = f"the supervisor left {since}; agents and grades continue; `{how}` takes them over"
        lines.append(Text(text, style="yellow"))
    elif view.state == "stopped":
        why = view.status.inner("reason").text("text")
        lines.append(Text(f"stopped{': ' if why else ''}{why}; continue it with `{how}`"))
    if view.state == "stopped" and (left := view.status.inner("grading").integers("holdout")):
        numbers = ", ".join(f"#{number}" for number in left)
        text = f"{numbers}: not graded on the hold-out yet; `{command('resume', view.layout)}` does it"
        lines.append(Text(text, style="yellow"))
    lines += [] if view.state not in ("running", "stopping") or not view.status else _troubles(run_health(view))
    unread = list(view.layout.requests_of(OPERATOR).glob("*.json"))
    if view.supervisor is None and view.is_open and (count := len(unread)):
        are = "is" if count == 1 else "are"
        lines.append(Text(f"{format.plural(count, 'request')} of yours {are} carried out when it is resumed"))
    return lines


def _troubles(health: Mapping[str, Any]) -> list[Text]:
    """Return what is wrong and for how long, one line each; empty if the run is healthy."""
    color = "red" if health["level"] == HealthLevel.UNHEALTHY else "yellow"
    return [
        Text(f"{health['level']}: {reason['text']}{when_text(reason)}", style=color)
        for reason in health["reasons"][:TROUBLES]
    ]


def _body(out: Console, view: RunView) -> None:
    if view.status.objects("agents"):
        out.print()
        out.print(agents_table(view.status, view.lateness, out.width))
    questions = view.status.objects("questions")
    if questions:
        out.print()
    for question in questions:
        number, who = question.integer("number"), question.text("agent")
        reply = dim(f"  {command(f'answer {number}', view.layout)} '...'")
        asked = Text.assemble((f"question {number} ", "yellow"), f"{who}: {question.text('text')}", reply)
        out.print(asked, soft_wrap=True)
    alerts = [alert for alert in view.status.objects("alerts") if alert.data.get("acknowledged") is not True]
    if alerts:
        out.print()
    for alert in alerts[-5:]:
        style = "red" if alert.text("level") in ("error", "critical") else "yellow"
        text = Text.assemble(("alert ", style), alert.text("text"), dim(f"  {format.ago(alert.data.get('at'))}"))
        out.print(text)


NOT_CONFIRMED = "grader.confirm allows no more confirmations"
