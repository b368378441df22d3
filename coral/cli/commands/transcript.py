"""`coral transcript AGENT`: shows what an agent was told, said and did, from what its program printed.

A launch is read line by line, so that a long log takes no more memory than a short one.
"""

import argparse
import contextlib
import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain

from rich.rule import Rule
from rich.text import Text

from coral.cli.parser import count
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_lookup import command
from coral.cli.ui.table import console, dim
from coral.errors import CoralError
from coral.reading.lenient_json import LenientJson
from coral.reading.run_folder import here
from coral.reading.run_view import RunView
from coral.runtimes.model import Counted, Runtime
from coral.runtimes.registry import find
from coral.views import format, transcript
from coral.views.format import usage
from coral.views.transcript import EntryKind, LaunchHistory, TranscriptEntry
from workspace.layout import find_agent

SHOWN = 200  # entries
LINES = {EntryKind.PROMPT: 12, EntryKind.RESULT: 6, EntryKind.TOOL: 6}
STYLES = {
    EntryKind.PROMPT: "cyan",
    EntryKind.REPLY: "bold",
    EntryKind.ERROR: "red",
    EntryKind.LIMIT: "red",
    EntryKind.RETRY: "yellow",
}
LABELS = {EntryKind.REPLY: "says", EntryKind.OMITTED: "left out", EntryKind.COMPACTION: "compacted"}
QUIET = (EntryKind.STEP, EntryKind.RESULT, EntryKind.OMITTED, EntryKind.USAGE)
HINT = "agents of this run do not share"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="?", help="the agent (default: the one whose workspace this is)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--launch", type=count, metavar="N", help="that launch instead of the last one")
    which.add_argument("--all", action="store_true", help="all launches, in their order")
    most = f"at most the last N entries (default {SHOWN}); 0 is all"
    parser.add_argument("-n", type=count, default=SHOWN, metavar="N", help=most)
    parser.add_argument("--full", action="store_true", help="prompts and answers of tools in full")
    parser.add_argument("--json", action="store_true", help="for programs: one object a line")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    agent = _agent(view, args.agent)
    launches = transcript.launches(view.layout, agent)
    if not launches:
        print(f"{agent} has not been launched yet")
        return 0
    chosen = launches if args.all else [_launch(agent, launches, args.launch)]
    runtimes = {launch: runtime_of(view, agent, launch) for launch in chosen}
    found = (transcript.entries(view.layout, agent, launch, runtime) for launch, runtime in runtimes.items())
    entries = chain.from_iterable(found)
    shown, earlier = _last(entries, args.n)
    if args.json:
        for entry in shown:
            print(json.dumps(_data(entry)))
        return 0
    _show(view, agent, launches[-1], shown, full=args.full)
    _further(view, agent, launches, chosen, earlier)
    return 0


def _agent(view: RunView, named: str | None) -> str:
    """Return the agent whose transcript is shown: the named one, the one in whose workspace this process runs, or the
    only one."""
    found = find_agent(here())
    own = found[1] if found is not None and found[0].root == view.layout.root.resolve() else ""
    agents = view.agents()
    agent = named or own or (agents[0] if len(agents) == 1 else "")
    if view.only_agent and agent != view.only_agent:
        raise CoralError(f"cannot show the transcript of {agent}: it is not yours", HINT)
    if agent not in agents:
        known = f"there are {', '.join(agents[:20])}" if agents else "this run has no agents"
        unknown = f"cannot show the transcript of {agent!r}: there is no such agent"
        raise CoralError(unknown if agent else "cannot tell whose transcript to show", known)
    return agent


def _launch(agent: str, launches: list[int], wanted: int | None) -> int:
    if wanted is not None and wanted not in launches:
        hint = f"there are {launches[0]} to {launches[-1]}"
        raise CoralError(f"cannot show launch {wanted} of {agent}: there is no such launch", hint)
    return launches[-1] if wanted is None else wanted


def runtime_of(view: RunView, agent: str, launch: int) -> Runtime:
    """Return the runtime of an agent's launch. Its name is from status.json, since the operator may have moved the
    agent. Its options are those of the frozen task for this runtime, if there are any and the task can be read."""
    from coral.agent_setup.roster import assignments_of, members_of
    from coral.config.load import load_frozen

    shown = next((row for row in view.status.objects("agents") if row.text("name") == agent), LenientJson())
    former = (row for row in shown.objects("former") if launch <= (row.integer("through") or 0))
    name = next(former, shown).text("runtime")
    try:
        config = load_frozen(view.layout.task_file)
        own = members_of(config).get(agent)
    except (CoralError, OSError):
        if not name:
            raise
        return find(name, {})
    same = [
        assignment
        for assignment in (own, *assignments_of(config))
        if assignment is not None and name in ("", assignment.runtime)
    ]
    return find(same[0].runtime, same[0].options) if same else find(name, {})


def _last(entries: Iterator[TranscriptEntry], most: int) -> tuple[Iterable[TranscriptEntry], int]:
    """Return the last `most` entries, and how many came before them. No more than that are held in memory."""
    if most <= 0:
        return entries, 0
    kept = deque(enumerate(entries), maxlen=most)
    return [entry for _, entry in kept], kept[0][0] if kept else 0


def _data(entry: TranscriptEntry) -> dict[str, object]:
    """Return an entry for JSON, without empty fields."""
    plain = {name: value for name, value in asdict(entry).items() if value not in ("", None, False, 0)}
    if entry.usage is not None:
        plain["usage"] = {name: value for name, value in asdict(entry.usage).items() if value is not None}
    return plain


def _show(view: RunView, agent: str, last: int, entries: Iterable[TranscriptEntry], *, full: bool) -> None:
    out, launch, timeline = console(), 0, transcript.launch_history(view.layout, agent)
    for entry in entries:
        if entry.launch != launch:
            launch = entry.launch
            out.print(Rule(_title(view, agent, launch, last, timeline), align="left", style="dim"))
        style = STYLES.get(entry.kind, "dim" if entry.kind in QUIET else "")
        style = "red" if entry.failed else style
        text = end_of_launch(entry, timeline, view) if entry.kind is EntryKind.END else text_of(entry)
        for label, line in _lines(entry, text, None if full else LINES.get(entry.kind)):
            out.print(Text.assemble((f"{label:<10}", "dim"), (line, style)), soft_wrap=True)


def _title(view: RunView, agent: str, launch: int, last: int, timeline: LaunchHistory) -> Text:
    parts = [Text(agent, style="bold"), Text(f"launch {launch} of {last}")]
    parts += [Text(timeline.reasons[launch])] if launch in timeline.reasons else []
    with contextlib.suppress(OSError):
        started = view.layout.prompt(agent, launch).stat().st_mtime
        parts.append(dim(format.ago(datetime.fromtimestamp(started, UTC).isoformat())))
    return Text(" · ").join(parts)


def _lines(entry: TranscriptEntry, text: str, most: int | None) -> Iterator[tuple[str, str]]:
    lines = text.splitlines() or [""]
    for place, line in enumerate(lines[:most]):
        yield ("" if place else label_of(entry)), line
    if most is not None and len(lines) > most:
        yield "", f"… {format.plural(len(lines) - most, 'more line')} (--full)"


def label_of(entry: TranscriptEntry) -> str:
    if entry.kind is EntryKind.RESULT:
        return "  failed" if entry.failed else "  answer"
    return LABELS.get(entry.kind, entry.kind)


def text_of(entry: TranscriptEntry) -> str:
    match entry.kind:
        case EntryKind.TOOL:
            return f"{entry.tool}: {entry.text}" if entry.text else entry.tool
        case EntryKind.RESULT:
            return entry.text or f"({entry.tool or 'the tool'} ended)"
        case EntryKind.USAGE if entry.usage is not None:
            whole = " since the conversation began" if entry.usage.counted is Counted.SESSION else ""
            return usage(asdict(entry.usage)) + whole
        case EntryKind.LIMIT:
            return f"{entry.text}{_until(entry)}"
        case _:
            return entry.text


def end_of_launch(entry: TranscriptEntry, timeline: LaunchHistory, view: RunView) -> str:
    """Return how the launch ended: in the program's own words, else as its runtime judged."""
    ending = str(entry.ending or timeline.endings.get(entry.launch, ""))
    if not ending:
        is_running = entry.launch in timeline.reasons and view.supervisor is not None
        return "not yet: it is running" if is_running else "not known"
    unknown = f" ({format.plural(entry.unknown, 'line')} of a kind that Coral does not know)" if entry.unknown else ""
    return f"{ending}{_until(entry)}{': ' if entry.text else ''}{entry.text}{unknown}"


def _until(entry: TranscriptEntry) -> str:
    if entry.until is None:
        return ""
    return f" until {format.moment(entry.until)}"


def _further(view: RunView, agent: str, launches: list[int], chosen: list[int], earlier: int) -> None:
    """Print how many earlier entries and other launches were left out, and the options that show them."""
    notes = []
    if earlier:
        notes.append(f"{earlier} earlier {'entry' if earlier == 1 else 'entries'}: -n 0 shows all")
    if len(chosen) < len(launches):
        notes.append(f"{len(launches)} launches: --launch N or --all")
    if notes:
        console().print(dim(f"{command(f'transcript {agent}', view.layout)} has {'; '.join(notes)}"), soft_wrap=True)
