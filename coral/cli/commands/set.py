"""`coral set`: change a budget of the running run. It takes effect at once, and agents are told."""

import argparse
import math

from coral.cli.parser import Parser
from coral.cli.run_data import run_lookup, send_request
from coral.errors import CoralError

SECTION = "budget."
NO_LIMIT, AS_TASK = "none", "task"
HINT = "coral set budget.hours=12"


def add_arguments(parser: Parser) -> None:
    what = "budget.KEY=VALUE: hours, attempts, money, tokens, plateau or target; per_agent.attempts, .money or .tokens"
    parser.add_argument("setting", metavar="KEY=VALUE", help=f"{what}. VALUE: a number, `none`, or `task` to undo it")
    run_lookup.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help=send_request.JSON_HELP)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator("change the budget")
    layout = run_lookup.run_of(args)
    return send_request.ask(layout, sender, _request(args.setting), as_json=args.json)


def _request(setting: str) -> dict[str, object]:
    key, equals, value = setting.partition("=")
    if not equals:
        raise CoralError(f"cannot set {setting!r}: it lacks a value", HINT)
    if not key.startswith(SECTION):
        hint = "only budgets can be set while the run goes on; the rest by `coral stop` and `coral resume KEY=VALUE`"
        raise CoralError(f"cannot set {key}", hint)
    request: dict[str, object] = {"type": "set_budget", "key": key.removeprefix(SECTION)}
    if value == AS_TASK:
        return {**request, "as_task": True}
    return {**request, "limit": None if value == NO_LIMIT else _number(key, value)}


def _number(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise CoralError(f"cannot set {key} to {value!r}: it is no number", f"{HINT}, or `none` for no limit")
    return number
