"""The attempts in a report: the leaderboard, what the best was built on and what it changed, what failed, and the
hold-out."""

import re
from itertools import pairwise

from attempts.index import query
from attempts.index.query import Named, Wanted
from attempts.noise import deviation, median
from attempts.record import Attempt, Kind, Verdict
from coral.cli.report.markup import Html, element, join
from coral.cli.report.parts import data_table, section
from coral.reading.attempt_rows import MeasuredAttempt, ranking, with_scores
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.holdout import divergence_text
from workspace.errors import GitError
from workspace.hub import diff

TOP = 25
ANCESTORS = 60
FAILURES = 12
NAMED = 8  # attempts that are named of one kind of failure
TITLE = 160
DIFF_LINES, DIFF_WIDTH = 2000, 400
_FILE = re.compile(r"diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename |old mode|new mode")


def leaderboard(view: RunView) -> Html:
    lines = ranking(view, Wanted(only_agent=view.only_agent), TOP)
    if not lines:
        return section("leaderboard", "Leaderboard", element("p", "No attempt has a score."))
    again = any(len(line.scores) > 1 for line in lines)
    columns = [">attempt", ">score", *((">grades", ">±sd") if again else ()), ">±seed", "verdict", "agent", "title"]
    rows = [_row(line, view, again=again) for line in lines]
    title = "The best attempt" if len(rows) == 1 else f"The best {len(rows)} attempts"
    return section("leaderboard", "Leaderboard", data_table(title, columns, rows))


def _row(line: MeasuredAttempt, view: RunView, *, again: bool) -> list[object]:
    attempt = line.attempt
    middle = median(line.scores) if line.scores else attempt.score
    spread = f"{deviation(line.scores):.2g}" if len(line.scores) > 1 else ""
    is_best = attempt.number == view.proven
    return [
        f"#{attempt.number}",
        element("strong", format.score(middle)) if is_best else format.score(middle),
        *((str(len(line.scores)), spread) if again else ()),
        format.delta(middle, view.baseline),
        _verdict(attempt, "the best" if is_best and attempt.verdict is not Verdict.NEW_BEST else ""),
        format.line(attempt.agent, 60),
        _title(attempt),
    ]


def _title(attempt: Attempt) -> Html:
    return element("bdi", format.line(attempt.title, TITLE))


def _verdict(attempt: Attempt, more: str = "") -> Html:
    word = "the seed" if attempt.kind is Kind.BASELINE else str(attempt.verdict)
    dot = element("span", class_=f"key verdict {word.replace(' ', '-')}")
    return join(dot, word, f", {more}" if more else "")


def lineage(view: RunView) -> Html | None:
    """Return a table of the attempts that the best was built on, the oldest first; None if there is no proven best."""
    best = view.proven
    if best is None:
        return None
    found = view.index.with_records(lambda rows: map(Named, query.lineage(rows, best, ANCESTORS, view.only_agent)))
    line = with_scores(view, (attempt for _, attempt in found if attempt.epoch == view.epoch))
    steps = [None, *(format.delta(after.median, before.median) for before, after in pairwise(line))]
    rows = [
        [
            f"#{ancestor.attempt.number}",
            format.score(ancestor.median),
            step or "",
            _verdict(ancestor.attempt),
            ancestor.attempt.agent,
            _title(ancestor.attempt),
        ]
        for ancestor, step in zip(line, steps, strict=True)
    ]
    whole = bool(line) and line[0].attempt.kind is Kind.BASELINE
    says = f"#{best} was built on these, the oldest first" + ("" if whole else "; earlier ones are not shown")
    columns = (">attempt", ">score", ">change", "verdict", "agent", "title")
    return section("lineage", "How the best came about", data_table(says, columns, rows))


def difference(view: RunView) -> Html | None:
    """Return the difference between the seed and the best."""
    best, seed = view.attempt_or_none(view.proven), view.seed
    if best is None or seed is None:
        return None
    title = f"What #{best.number} changed of the seed"
    try:
        text = diff(view.layout.hub, seed.commit, best.commit)
    except (GitError, OSError) as error:
        return section("difference", title, element("p", f"The difference cannot be shown: {format.line(error, 300)}."))
    return section("difference", title, coloured(text) if text.strip() else element("p", "Nothing."))


def coloured(text: str) -> Html:
    """Return a difference line by line. Long lines and long differences are cut, and say so."""
    lines = format.source(text).split("\n")
    shown = [_diff_line(line) for line in lines[:DIFF_LINES]]
    left = len(lines) - len(shown)
    more = element("p", f"{left} more lines are not shown.", class_="quiet") if left > 0 else None
    code = element("pre", element("code", *shown), class_="diff", tabindex="0", role="region", aria_label="difference")
    return join(code, more)


def _diff_line(line: str) -> Html:
    cut = line if len(line) <= DIFF_WIDTH else f"{line[:DIFF_WIDTH]} … {len(line) - DIFF_WIDTH} more characters"
    kind = "file" if _FILE.match(line) else {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
    return element("span", f"{cut}\n", class_=kind)


def failures(view: RunView) -> Html | None:
    groups = view.index.ask(lambda rows: query.failures(rows, Wanted(only_agent=view.only_agent)))
    if not groups:
        return None
    rows = [
        [str(len(group.numbers)), element("bdi", format.line(group.reason, 200)), _numbers(group.numbers)]
        for group in groups[:FAILURES]
    ]
    left = sum(len(group.numbers) for group in groups[FAILURES:])
    more = element("p", f"{left} more failed for other reasons.", class_="quiet") if left else None
    return section(
        "failures",
        "What failed",
        data_table("Failed attempts by their reason", (">failed", "reason", "attempts"), rows),
        more,
    )


def _numbers(numbers: tuple[int, ...]) -> str:
    shown = ", ".join(f"#{number}" for number in numbers[: -NAMED - 1 : -1])
    return shown + (" …" if len(numbers) > NAMED else "")


def holdout(view: RunView) -> Html | None:
    """Return a table of scores on the hold-out beside the scores that agents saw; None if there are none."""
    if len(view.holdouts) < 2:
        return None
    rows = [
        [
            f"#{graded.row.number}",
            format.score(graded.row.score),
            format.score(graded.row.holdout),
            format.line(divergence_text(graded), 200),
        ]
        for graded in (view.holdouts[0], *view.holdouts[1:][-TOP:])
    ]
    columns = (">attempt", ">score", ">on the hold-out", "the hold-out says")
    return section(
        "holdout", "The hold-out", data_table("Scores that agents never saw; first the seed's", columns, rows)
    )
