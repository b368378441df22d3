"""What `coral start` ends with: the leaderboard, the score curve, the agents' conclusions, and what to do next."""

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from attempts.index.query import Wanted
from coral.cli.commands.export import repository_around
from coral.cli.commands.log import leaderboard, ranking
from coral.cli.commands.notes import body_of, folders, is_synthesis, title_line
from coral.cli.commands.status import print_heading, resume_command, warnings
from coral.cli.run_data import run_lookup
from coral.cli.run_data.follow import RunFollower
from coral.cli.run_data.run_lookup import program
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.markdown import markdown
from coral.cli.ui.plot import curve
from coral.cli.ui.table import console, dim
from workspace.layout import Layout
from workspace.notes import find_notes

BEST = 5
CURVE = 8
FURTHER = (
    ("log", "all attempts"),
    ("notes", "everything the agents wrote down"),
    ("show {best} --diff", "the best attempt and its change"),
)


def summarize(layout: Layout) -> None:
    """Print it; of a run in which little happened, what there is."""
    watch, out = RunFollower(layout), console()
    watch.update()
    view = watch.view
    out.print()
    print_heading(out, view)
    for line in warnings(view):
        out.print(line)
    top = ranking(view, Wanted(alone=view.alone), BEST)
    if top:
        _title(out, "Leaderboard")
        out.print(leaderboard(top, view, out.width))
    if len(watch.points) > 1:
        _title(out, "Best score over time")
        for text in curve(watch.until_now(), min(out.width - 2, 100), CURVE):
            out.print(Text(text, style="green"))
    _conclusions(out, view)
    _further(out, view, top[0].attempt.number if top else None)


def _title(out: Console, text: str) -> None:
    out.print()
    out.print(Rule(Text(text, style="bold"), align="left", style="dim"))


def _conclusions(out: Console, view: RunView) -> None:
    """The latest synthesis in full: what the run has learned."""
    notes = find_notes(folders(view.layout))
    latest = next((note for note in reversed(notes) if is_synthesis(note)), None)
    if latest is not None:
        _title(out, "What the agents concluded")
        out.print(title_line(latest))
        out.print(markdown(body_of(latest)))
    elif notes:
        _title(out, "What the agents wrote down")
        for note in reversed(notes[-BEST:]):
            out.print(title_line(note))


def _further(out: Console, view: RunView, best: int | None) -> None:
    _title(out, "To look further")
    rows = [
        (f"{program()} {text}".format(best=best), what)
        for text, what in FURTHER
        if best is not None or "best" not in text
    ]
    if best is not None:
        rows.append(_export(view, best))
    rows.append((resume_command(view), "continue from here"))
    width = max(len(command) for command, _ in rows)
    for command, what in rows:
        out.print(Text.assemble(f"{command:<{width}}  ", dim(what)))
    out.print(dim(str(view.layout.root)), soft_wrap=True)  # whole, to be copied


def _export(view: RunView, best: int) -> tuple[str, str]:
    """To a branch, unless it is known that the task lies in no repository: then a patch is what works."""
    origin, command = run_lookup.origin(view.layout), f"{program()} export {best}"
    if origin is not None and repository_around(origin) is None:
        return f"{command} --patch {best}.patch", "its change as a patch"
    return command, "bring it to a branch of your repository"
