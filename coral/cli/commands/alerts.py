"""`coral alerts`: shows what needs a person in the words of the supervisor and of agents, what is acknowledged, and
where alerts are sent."""

import argparse
from collections.abc import Mapping
from typing import Any

from rich.text import Text

from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.cli.ui.table import console, dim
from coral.config.load import load_frozen
from coral.errors import CoralError
from coral.notify.notifier import delivery_to, targets_of
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.report import alerts_in
from workspace.layout import Layout

SHOWN = 20
LONGEST = 2000  # characters of one, on one line; --json has all of it


def add_arguments(parser: Parser) -> None:
    run_lookup.add_arguments(parser)
    parser.add_argument("-n", type=int, default=SHOWN, metavar="COUNT", help=f"the latest so many (default: {SHOWN})")
    parser.add_argument("--json", action="store_true", help="for programs: {alerts, targets}")
    verbs = parser.verbs()
    about = "acknowledge the alerts up to this one; `coral status` shows them no more"
    verb = verbs.add_parser("ack", help=about, description=f"{about[0].upper()}{about[1:]}.", example="3")
    verb.add_argument("number", nargs="?", type=int, metavar="N", help="its number (default: the last one)")
    verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=send_request.JSON_HELP)
    run_lookup.add_arguments(verb, argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    if args.verb == "ack":
        sender = send_request.as_operator("acknowledge alerts")
        request = {"type": "acknowledge_alerts", "through": args.number}
        return send_request.ask(layout, sender, request, as_json=args.json)
    alerts = _alerts(layout)[-args.n :] if args.n > 0 else []
    targets = _targets(layout)
    if args.json:
        return print_json({"alerts": alerts, "targets": targets})
    out = console()
    for alert in alerts:
        out.print(_line(alert))
    if not alerts:
        out.print("no alerts")
    for target in targets:
        out.print(_standing(target))
    return 0


def _alerts(layout: Layout) -> list[dict[str, Any]]:
    """Return the latest alerts. An alert counts as acknowledged once the operator has acknowledged it, or its cause is
    over: its question was answered, or its agent works again."""
    status = RunView(layout).status
    last, settled = status.integer("alerts_acknowledged") or 0, status.integers("alerts_settled")
    return [
        alert | {"acknowledged": 0 < alert["number"] <= last or alert["number"] in settled}
        for alert in alerts_in(layout.events)
    ]


def _line(alert: Mapping[str, Any]) -> Text:
    """Return an alert as a line: its number, its agent, its text, its age; yellow until it is acknowledged."""
    who = format.line(str(alert.get("agent") or ""), 60)
    text = format.line(alert["text"], LONGEST)
    text = f"{who}: {text}" if who else text
    when = format.ago(alert["at"]) + (", acknowledged" if alert["acknowledged"] else "")
    style = "default" if alert["acknowledged"] else "yellow"
    return Text.assemble((f"{alert['number'] or '':>4}", style), f"  {text}", dim(f"  {when}"))


def _targets(layout: Layout) -> list[dict[str, object]]:
    """Return the targets of alerts; `problem` is empty if the last message was accepted."""
    try:
        found, problems = targets_of(load_frozen(layout.task_file).alerts)
    except CoralError:
        return []  # a sealed agent cannot read the task
    rows: list[dict[str, object]] = []
    for target in found:
        delivery = delivery_to(layout, target)
        problem, since = (delivery.problem, delivery.since) if delivery is not None else ("", "")
        rows.append({"name": target.name, "level": target.route.level, "problem": problem, "since": since})
    rows += [{"name": "", "level": "", "problem": str(error), "since": ""} for error in problems]
    return rows


def _standing(target: dict[str, object]) -> Text:
    if not target["name"]:
        return Text(str(target["problem"]), style="yellow")
    who = f"{target['level']} goes to {target['name']}"
    if not target["problem"]:
        return dim(who)
    since = format.ago(target["since"])
    return Text(f"{who}: not taken, first {since}: {format.clean(str(target['problem']))}; it is tried again", "yellow")
