"""`coral notify test`: sends a test message to each target of a task's alerts, and says whether it was accepted."""

import argparse
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial

from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.progress import steps
from coral.config.load import load
from coral.errors import CoralError
from coral.notify.message import AlertLevel, Message, Notice
from coral.notify.notifier import targets_of
from coral.notify.target import SendError, Target

TEXT = "This is a test. Alerts of this task arrive here."


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs: a list of {target, sent, reason}")
    verbs = parser.verbs()
    verbs.required = True
    about = "send a test message to each target of `alerts` in task.yaml"
    verb = verbs.add_parser("test", help=about, description=f"{about[0].upper()}{about[1:]}.", example="my-task")
    verb.add_argument("task", nargs="?", metavar="TASK", help="its folder or file (default: the one around here)")
    verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="as above")


def run(args: argparse.Namespace) -> int:
    config = load(run_lookup.task_of("send a test message", args.task, [])[0])
    targets, problems = targets_of(config.alerts)
    if not targets and not problems:
        hint = "for example `alerts: {to: [https://example.org/hook]}`: docs/alerts.md"
        raise CoralError("cannot send a test message: the task tells nobody of alerts", hint)
    rows: list[dict[str, object]] = [
        {"target": "", "sent": False, "reason": f"{error}; {error.hint}"} for error in problems
    ]
    if targets:
        with steps() as say, ThreadPoolExecutor(len(targets)) as pool:  # one target that hangs delays no other
            say(f"a message to {', '.join(target.name for target in targets)}")
            rows += pool.map(partial(_send, config.task.name), targets)
    if args.json:
        print_json(rows)
    else:
        for row in rows:
            print(f"{row['target']}: sent" if row["sent"] else f"{row['target'] or 'not sent'}: {row['reason']}")
    return 0 if all(row["sent"] for row in rows) else 1


def _send(task: str, target: Target) -> dict[str, object]:
    try:
        target.send(_message(task))
    except SendError as error:
        return {"target": target.name, "sent": False, "reason": str(error)}
    return {"target": target.name, "sent": True, "reason": ""}


def _message(task: str) -> Message:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    notice = Notice(id=f"test-{now}", level=AlertLevel.ALERT, at=now, agent="", text=TEXT)
    return Message(run="test", task=task, notices=(notice,))
