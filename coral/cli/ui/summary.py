"""Prints the summary with which `coral start` ends: the leaderboard, the curve, the agents' conclusions, and what to do
next."""

from rich.console import Console
from rich.text import Text

from attempts.index.query import Wanted
from coral.cli.commands.export import repository_around
from coral.cli.commands.log import leaderboard
from coral.cli.commands.status import print_heading, print_warnings, resume_command
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_lookup import program
from coral.cli.ui.holdout import holdout_table
from coral.cli.ui.live_frame import curve
from coral.cli.ui.notes_page import print_synthesis, title_line
from coral.cli.ui.run_follower import RunFollower
from coral.cli.ui.table import console, dim, print_title
from coral.reading.attempt_rows import ranking
from coral.reading.knowledge_view import KnowledgeView
from coral.reading.run_view import RunView, is_seed
from coral.runs.verify import verified
from workspace.layout import Layout

BEST = 5
CURVE = 8


def summarize(layout: Layout) -> None:
    """Print the summary; parts for which the run has nothing are left out."""
    watch, out = RunFollower(layout), console()
    watch.update()
    view = watch.view
    out.print()
    print_heading(out, view)
    print_warnings(out, view)
    top = ranking(view, Wanted(only_agent=view.only_agent), BEST)
    if top:
        print_title(out, "Leaderboard")
        out.print(leaderboard(top, view, out.width))
    if len(view.holdouts) > 1:
        print_title(out, "The hold-out, which agents never saw")
        out.print(holdout_table(view, out.width))
    if watch.gained:
        print_title(out, "Best score over time")
        for text in curve(watch, min(out.width - 2, 100), CURVE):
            out.print(text)
    _conclusions(out, view)
    _further(out, view, view.proven)


def _conclusions(out: Console, view: RunView) -> None:
    """Print the latest synthesis in full and how current it is; if there is none, the titles of the latest notes."""
    knowledge = KnowledgeView(view)
    if knowledge.synthesis is not None:
        print_title(out, "What the agents concluded")
        print_synthesis(out, knowledge, knowledge.synthesis)
    elif knowledge.notes:
        print_title(out, "What the agents wrote down")
        for note in reversed(knowledge.notes[-BEST:]):
            out.print(title_line(knowledge.parse(note)))


def _further(out: Console, view: RunView, best: int | None) -> None:
    """Print the commands that an operator may want next, and the path of the run's folder, each on one line of output.
    `best`: the number of the proven best; None if nobody has beaten the seed: then nothing can be exported."""
    print_title(out, "To look further")
    rows = [("log", "all attempts"), ("notes", "everything the agents wrote down")]
    if best:
        rows += [(f"show {best} --diff", "the best attempt and its change"), _verify(view, best), _export(view, best)]
    leading = view.best_and_lead[1]
    lead = leading.integer("number")
    rows += (
        [(f"show {lead} --diff", "the lead, which is not proven to be better")]
        if lead and not is_seed(leading) and lead != best
        else []
    )
    rows = [(f"{program()} {text}", what) for text, what in rows]
    rows.append((resume_command(view), "continue from here"))
    width = max(len(command) for command, _ in rows)
    for command, what in rows:
        out.print(Text.assemble(f"{command:<{width}}  ", dim(what)), soft_wrap=True)
    out.print(dim(str(view.layout.root)), soft_wrap=True)


def _verify(view: RunView, best: int) -> tuple[str, str]:
    found = verified(view.layout).get(str(best))
    if found is None:
        return f"verify {best}", "grade it again, strictly: it is not verified yet"
    return f"verify {best}", "again: it is verified" if found.get("is_same") is True else "again: it is NOT verified"


def _export(view: RunView, best: int) -> tuple[str, str]:
    """Return the command that exports the best: to a branch, or as a patch if the task is known to be in no
    repository."""
    origin = run_lookup.origin(view.layout)
    if origin is not None and repository_around(origin) is None:
        return f"export {best} --patch {best}.patch", "its change as a patch"
    return f"export {best}", "bring it to a branch of your repository"
