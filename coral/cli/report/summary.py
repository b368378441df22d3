"""The top of a report - the task, what came of it, what it took, why it ended - and its end, which says how the run was
made."""

import contextlib
from collections.abc import Iterable, Sequence

from coral import __version__
from coral.cli.report.markup import Html, element, join
from coral.cli.report.parts import data_table, pairs, section
from coral.config.load import Config
from coral.errors import CoralError
from coral.journal.lines import Lines
from coral.journal.segments import segments
from coral.reading import settings
from coral.reading.budgets import trials, unknown_use, used, used_by
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.runs.verify import verified
from coral.views import format
from coral.views.curve import Curve
from workspace.seal import Level


def heading(view: RunView, config: Config | None, curve: Curve) -> Html:
    """Return the title, the most important figures, and the task in its author's words."""
    when = view.status.text("started_at")[:16].replace("T", " ")
    about = " · ".join(part for part in (view.name, view.state, f"started {when} UTC" if when else "") if part)
    task = config.task.description if config else ""
    return element(
        "header",
        element("h1", format.line(view.task, 200)),
        element("p", about, class_="quiet"),
        element("dl", *(_tile(*tile) for tile in _tiles(view, curve)), class_="tiles"),
        element("p", _ended(view)) if _ended(view) else None,
        element("details", element("summary", "The task"), element("div", task.strip(), class_="foreign prose"))
        if task.strip()
        else None,
    )


def _tile(name: str, value: str, more: str) -> Html:
    value_text = element("dd", element("span", value, class_="figure"), element("span", more, class_="more"))
    return element("div", element("dt", name), value_text)


def _tiles(view: RunView, curve: Curve) -> Iterable[tuple[str, str, str]]:
    status, lead = view.status, view.best_and_lead[1]
    best = view.attempt_or_none(view.proven)  # from the records, which remain if status.json is lost
    value = curve.best if best else None
    best_score, lead_score, seed = format.scores([value, lead.number("median"), view.baseline])
    if best is None:
        yield "Best", seed, "no attempt has a score" if view.baseline is None else "the seed: nobody has beaten it"
    else:
        gain = format.delta(value, view.baseline)
        than = f"{gain} against the seed's {seed}" if gain else "the seed has no score"
        who = f"#{best.number} by {format.line(best.agent, 60)}"
        yield "Best, proven", best_score, f"{who}, {than}{_graded_again(view, best.number)}"
    if lead.data.get("proven") is False:
        who = f"#{lead.text('number')} by {lead.text('agent', 60)}, not proven to be better"
        yield "Lead", lead_score, who
    failed = f"{view.failed} failed" if view.failed else "none failed"
    yield "Attempts", str(view.attempts), f"{failed}, {beside} beside them" if (beside := trials(status)) else failed
    agents = len(status.objects("agents")) or len(view.agents())
    at_least = "at least " if status.number("clock") is None else ""  # the last attempt was published then
    yield "Time", f"{at_least}{format.duration(curve.end)}", f"with {format.plural(agents, 'agent')}"
    if curve.to_best is not None:
        yield "Time to the best", format.duration(curve.to_best), f"in {format.plural(len(curve.gained), 'step')}"
    if use := used(view):
        yield "Use", use, "by the models of the agents"


def _graded_again(view: RunView, number: int) -> str:
    """Return what grading an attempt again, strictly, has shown; empty if nobody has verified it."""
    found = LenientJson(verified(view.layout)).inner(str(number))
    score, recorded = format.score(found.number("score")), format.score(found.number("recorded"))
    if found.data.get("is_same") is True:
        return f", graded again with {'the same score' if score == recorded else f'{score}, within the noise'}"
    now = found.text("reason") if found.number("score") is None else f"it scored {score}"
    return f", NOT verified: graded again, {now}" if found else ""


def _ended(view: RunView) -> str:
    why = view.status.inner("reason").text("text")
    if view.state == "stopped":
        return f"It stopped: {why}." if why else "It stopped."
    if view.state in ("running", "stopping"):
        return "It was not over when this report was made."
    return "Nobody supervised it when this report was made."


def making(view: RunView, config: Config | None) -> Html:
    """Return how the run was made: versions, seal, agents, settings."""
    best = view.attempt_or_none(view.best)
    seal = view.status.text("seal")
    facts = [
        ("Run", view.name),
        ("Supervised by", ", ".join(f"coral {version}" for version in _versions(view)) or "not known"),
        ("Report made by", f"coral {__version__}"),
        ("Direction", f"{view.direction} the score"),
        ("Epochs", str(view.epoch) + ("; scores of earlier ones are not compared" if view.epoch > 1 else "")),
        (
            "Agents sealed",
            "no: they could change what their operator can" if seal == Level.NONE else seal and f"by {seal}",
        ),
        ("Result channel of the best", best.channel if best is not None else ""),
        ("Commit of the best", best.commit if best is not None else ""),
        ("Noise", format.score(noise) if (noise := view.status.number("noise")) else ""),
    ]
    return section(
        "how",
        "How it was made",
        pairs((name, format.line(value, 500)) for name, value in facts if value),
        _agents(view),
        _settings(settings.settings(config)) if config else None,
    )


def _versions(view: RunView) -> Sequence[str]:
    """Return the versions of Coral that have supervised the run, as far as its journal can be read."""
    found: dict[str, None] = {}
    with contextlib.suppress(CoralError, OSError):
        for path in segments(view.layout.journal):
            with contextlib.suppress(CoralError, OSError):
                for line in Lines(path, may_be_torn=True).heads():
                    found[format.line(line.get("version", "?"), 40)] = None
    return list(found)


def _agents(view: RunView) -> Html | None:
    agents, unknown = view.status.objects("agents"), unknown_use(view.status)
    scores = format.scores([agent.number("best") for agent in agents])
    rows = [
        [
            agent.text("name", 80),
            agent.text("runtime", 80),
            agent.text("model", 80),
            agent.text("attempts"),
            score,
            f"#{number}" if (number := agent.integer("best_number")) is not None else "",
            used_by(agent, unknown),
        ]
        for agent, score in zip(agents, scores, strict=True)
    ]
    names = ("agent", "program", "model", ">attempts", ">own best", "which", ">used")
    return data_table("The agents", names, rows) if rows else None


def _settings(found: dict[str, str]) -> Html:
    rows = sorted(found.items())
    table = data_table("Settings of its task that are not at their defaults", ("key", "value"), rows)
    return element("details", element("summary", f"Settings ({len(rows)})"), table)


def footer() -> Html:
    text = "Made by coral report. It holds everything it shows: no script, no request, nothing outside of this file."
    return element("footer", join(element("p", text, class_="quiet")))
