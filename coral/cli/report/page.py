"""Writes a run as one HTML file that needs no server, no network and no script: to send, to print, to attach."""

import hashlib
from base64 import b64encode
from collections import Counter
from pathlib import Path

from coral.cli.report import figures, results, summary
from coral.cli.report.knowledge import rendered
from coral.cli.report.markup import Html, element, join
from coral.cli.report.parts import data_table, section
from coral.cli.ui.notes_page import body_of
from coral.reading.curve import read_curve
from coral.reading.knowledge_view import KnowledgeView
from coral.reading.run_view import RunView
from coral.reading.settings import config_of
from coral.reading.timeline import TimelineFigures, read_figures
from coral.views import format

STYLE = Path(__file__).with_name("style.css")
NOTES = 10
MARKDOWN = 60_000  # characters of one note


def page(view: RunView) -> str:
    """Return the whole document."""
    figures_read = read_figures(view.layout)
    config, curve = config_of(view), read_curve(view, figures_read.clocks)
    sections = [
        figures.curves(curve),
        conclusions(view),
        results.leaderboard(view),
        results.lineage(view),
        results.difference(view),
        heartbeats(view, figures_read),
        results.failures(view),
        results.holdout(view),
        summary.making(view, config),
    ]
    main = [summary.heading(view, config, curve), *(part for part in sections if part), summary.footer()]
    title = f"{format.line(view.task, 100)} · {view.name}"
    style = Html(STYLE.read_text(encoding="utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(style)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", style),
    )
    document = element("html", head, element("body", element("main", *main)), lang="en")
    return f"<!doctype html>\n{document}\n"


def policy(style: str) -> str:
    """Return a policy that lets the page load and run nothing, and use only our own style, by its digest."""
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def conclusions(view: RunView) -> Html:
    """Return the latest synthesis in full, with what the records say of its figures; and the titles of the latest
    notes."""
    knowledge = KnowledgeView(view)
    notes, note = knowledge.notes, knowledge.synthesis
    parts: list[Html | None] = []
    if note is not None:
        when = note.created[:16].replace("T", " ")
        cites = ", ".join(f"#{number}" for number in note.attempts[:20])
        about = ", ".join(
            part for part in (f"note {note.number}", note.author, when, f"about {cites}" if cites else "") if part
        )
        parts.append(element("h3", element("bdi", note.title)))
        parts.append(element("p", about, class_="quiet"))
        parts.append(element("div", rendered(body_of(note)[:MARKDOWN]), class_="foreign prose"))
        evidence = knowledge.evidence(note)
        if evidence.agreeing or evidence.disputed:
            agree = "1 of its figures agrees" if evidence.agreeing == 1 else f"{evidence.agreeing} of its figures agree"
            text = f"{agree} with the records"
            disputed = [element("li", format.line(problem, 300)) for problem in evidence.disputed]
            parts.append(element("p", f"{text}; {len(disputed)} do not:" if disputed else f"{text}."))
            parts.append(element("ul", *disputed) if disputed else None)
    rows = [
        [str(number), element("bdi", note.title), note.author, note.created[:16].replace("T", " ")]
        for number, note in ((number, raw.parse(number)) for number, raw in notes[: -NOTES - 1 : -1])
    ]
    if rows:
        parts.append(
            data_table(
                f"The latest of {format.plural(len(notes), 'note')}", (">note", "title", "author", "written"), rows
            )
        )
    nothing = element("p", "The agents wrote nothing down.")
    return section("conclusions", "What the agents concluded", *(parts or [nothing]))


def heartbeats(view: RunView, figures_read: TimelineFigures) -> Html | None:
    """Return a table of how many messages of each heartbeat agents received, and how many they did not and why."""
    waiting = Counter(name for agent in view.status.objects("agents") for name in agent.texts("pending"))
    names = dict.fromkeys([*figures_read.heartbeats, *waiting])
    rows = [
        [
            format.line(name, 80),
            *(
                str(count[name] or "")
                for count in (figures_read.received, figures_read.withdrawn, figures_read.skipped, waiting)
            ),
        ]
        for name in names
    ]
    if not rows:
        return None
    columns = ("heartbeat", ">received", ">withdrawn", ">skipped", ">pending")
    text = "Messages of each heartbeat. Withdrawn: an improvement overtook them. Skipped: the one before was open"
    return section("heartbeats", "Heartbeats", join(data_table(text, columns, rows)))
