"""`coral heartbeat`: shows the heartbeats in force and when they are due; changes are requests, which the supervisor
grants or refuses."""

import argparse
import json
import sys
from collections.abc import Mapping

from attempts.files import expanded
from coral.cli.commands.tell import EVERYBODY, check_agent
from coral.cli.parser import Parser, count, finite, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.errors import CoralError
from coral.reading import visibility
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from heartbeats.entry import is_period, is_switched_off
from heartbeats.example import CONTEXT_NAMES
from heartbeats.folder import FLEET, Folder
from heartbeats.heartbeat import Delivery, Scope
from workspace.layout import OPERATOR, Layout

CHANGES = ("every", "stagnant", "minutes", "scope", "delivery", "prompt")
UNGROUPED = 6  # agents that get rows of their own; if there are more, those with equal heartbeats share rows
COLUMNS = ("whose", "heartbeat", "when*", "next*", "delivery?", "set by?", "prompt*?")

Rows = Mapping[str, list[LenientJson]]


def add_arguments(parser: Parser) -> None:
    _about(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    verbs = parser.verbs()
    keeps = "add a heartbeat, or change one: options that are not given keep their value"
    change = verbs.add_parser("set", help=keeps, example="simplify --stagnant 8 --prompt 'Make your best simpler.'")
    change.add_argument("name", metavar="NAME", help="reflect, consolidate, redirect, checkpoint, or one of your own")
    when = change.add_mutually_exclusive_group()
    every = "after every N attempts; or at each such time of the run, as 30m or 2h; 0 or 0m takes it away"
    when.add_argument("--every", type=_every, metavar="N", help=every)
    when.add_argument("--stagnant", type=count, metavar="N", help="after N attempts in a row without improvement")
    when.add_argument("--minutes", type=finite, metavar="M", help="every M minutes")
    names = ", ".join(sorted(CONTEXT_NAMES))
    prompt = f"what it says, or @FILE with it: a Jinja template that may use {names}; see coral help heartbeats"
    change.add_argument("--prompt", metavar="TEXT", help=prompt)
    raw = "accept a prompt that cannot be rendered; agents get it as it is"
    change.add_argument("--raw", action="store_true", help=raw)
    whose = "whose attempts count: the agent's own, or the fleet's"
    change.add_argument("--scope", choices=[scope.value for scope in Scope], help=whose)
    how = "by an interrupt, or in the output of `coral eval`"
    change.add_argument("--delivery", choices=[way.value for way in Delivery], help=how)
    remove = verbs.add_parser("remove", help="remove a heartbeat that is not protected", example="simplify")
    remove.add_argument("name", metavar="NAME")
    reset = verbs.add_parser("reset", help="restore the heartbeats that the run started with", example="")
    for verb in (change, remove, reset):
        _about(verb, default=argparse.SUPPRESS)
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=send_request.JSON_HELP)


def _every(text: str) -> int | str:
    if text.isdecimal():
        return int(text)
    if not is_period(text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of attempts nor a time such as 30m")
    return text


def _about(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--agent", metavar="AGENT", default=default, help="of one agent")
    whose.add_argument("--fleet", action="store_true", default=default or False, help="of the fleet as a whole")
    run_lookup.add_arguments(parser, default)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    check_agent(view, args.agent, "; --fleet is the fleet as a whole")
    if args.verb is None:
        return _show(view, args)
    sender, owner = _parties(view.layout, args)
    code = send_request.ask(view.layout, sender, {**_request(args), "owner": owner}, as_json=args.json)
    changes = {key: getattr(args, key) for key in CHANGES} if args.verb == "set" else {}
    is_retimed = any(changes.get(key) for key in ("every", "stagnant", "minutes")) and not is_switched_off(changes)
    if is_retimed and sender == OPERATOR and not args.json:
        print("  a shorter interval holds at once, a longer one from the next on", file=sys.stderr)
    return code


def _parties(layout: Layout, args: argparse.Namespace) -> tuple[str, str]:
    """Return the sender of the request and the owner of the heartbeats. In a workspace the sender is its agent, which
    can change only its own heartbeats or the fleet's."""
    agent = visibility.agent_inside()
    if agent is None:
        sender = send_request.as_operator("change the heartbeats of others")
        return sender, FLEET if args.fleet else args.agent or EVERYBODY
    if args.agent not in (None, agent):
        raise CoralError(f"cannot change the heartbeats of {args.agent}: you are {agent}", "change your own")
    of_fleet = any(row.get("name") == getattr(args, "name", "") for row in Folder(layout.heartbeats).read(FLEET))
    return agent, FLEET if args.fleet or of_fleet else agent


def _request(args: argparse.Namespace) -> dict[str, object]:
    if args.verb == "reset":
        return {"type": "reset_heartbeats"}
    if args.verb == "remove":
        return {"type": "remove_heartbeat", "name": args.name}
    changes = {key: getattr(args, key) for key in CHANGES if getattr(args, key) is not None}
    if not changes:
        raise CoralError(f"cannot set {args.name}: nothing to change was named", "coral heartbeat set --help")
    if "prompt" in changes:
        changes["prompt"] = _prompt(args.name, args.prompt, raw=args.raw)
    # What is not named stays as it is: the supervisor knows what is in force.
    return {"type": "set_heartbeat", "heartbeat": {"name": args.name, **changes}}


def _prompt(name: str, given: str, *, raw: bool) -> str:
    """Return the prompt, which `given` is or names as @FILE. CoralError if it is empty or, without `raw`, cannot be
    rendered."""
    from heartbeats.render import problems  # only here: most changes have no prompt

    try:
        prompt = expanded(given[1:]).read_text(encoding="utf-8") if given.startswith("@") else given
    except (OSError, ValueError) as error:
        raise CoralError(f"cannot read the prompt: {error}", "--prompt TEXT, or --prompt @FILE") from None
    if not prompt.strip():
        hint = "write what it says; without --prompt, its prompt stays as it is"
        raise CoralError(f"cannot set {name}: its prompt says nothing", hint)
    if not raw and (wrong := problems(prompt)):
        hint = "correct it; --raw sends it to the agents as it is"
        raise CoralError(f"cannot set {name}: its prompt cannot be rendered: {wrong[0]}", hint)
    return prompt


def _show(view: RunView, args: argparse.Namespace) -> int:
    folder = Folder(view.layout.heartbeats)
    rows = {owner: [LenientJson(row) for row in folder.read(owner)] for owner in _owners(view, args)}
    if args.json:
        return print_json(
            {
                owner: [{**row.data, "next": due_of(view, owner, row)} for row in own_rows]
                for owner, own_rows in rows.items()
            }
        )
    if not any(rows.values()):
        print("no heartbeat is in force yet: the supervisor writes the list when the run begins")
        return 0
    # Imported here, since it takes most of the time and the verbs do not need it.
    from coral.cli.ui.table import print_table

    lines = []
    for name, owner in _groups(rows):
        for place, row in enumerate(rows[owner]):
            due = due_of(view, owner, row) if name == owner else ""
            by = row.text("by") + (" (protected)" if row.data.get("protected") is True else "")
            prompt = row.text("prompt", 120) or "the built-in prompt"
            whose = name if place == 0 else " "
            lines.append([whose, row.text("name"), row.text("when"), due, row.text("delivery"), by, prompt])
    print_table(COLUMNS, lines)
    return 0


def _owners(view: RunView, args: argparse.Namespace) -> list[str]:
    if args.fleet:
        return [FLEET]
    agent = args.agent or visibility.agent_inside()
    return [FLEET, agent] if agent else [FLEET, *view.agents()]


def _groups(rows: Rows) -> list[tuple[str, str]]:
    """Return (name of the group, one owner in it) for each group of owners with the same heartbeats."""
    owners = [owner for owner in rows if rows[owner]]
    if len(owners) <= UNGROUPED + 1:
        return [(owner, owner) for owner in owners]
    alike: dict[str, list[str]] = {}
    for owner in owners:
        same = json.dumps([{**row.data, "next": ""} for row in rows[owner]], sort_keys=True, default=str)
        alike.setdefault(same, []).append(owner)
    return [(members[0] if len(members) == 1 else f"{len(members)} agents", members[0]) for members in alike.values()]


def due_of(view: RunView, owner: str, row: LenientJson) -> str:
    """Return in words when a heartbeat is due: from status.json, which is at most some seconds old, else from the file
    of heartbeats. Empty for an agent that has retired."""
    for agent in view.status.objects("agents"):
        if agent.text("name") == owner or owner == FLEET:
            for coming in agent.objects("next"):
                if coming.text("name") == row.text("name"):
                    return coming.text("in", 40)
            if owner != FLEET and agent.text("phase") == "retired":
                return ""
    return row.text("next", 40)
