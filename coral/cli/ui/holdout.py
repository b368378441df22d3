"""Shows the operator the scores on the hold-out beside the scores that agents see."""

from rich.text import Text

from coral.cli.ui.table import Table, table
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.holdout import Compared, divergence_text

COLUMNS = (">#", ".median", ".±seed", ".hold-out", ".±seed on it?", "agent", "the hold-out says*")
MOST = 10


def holdout_table(view: RunView, width: int) -> Table:
    """Return a table of the seed and the last attempts that were graded on the hold-out."""
    compared = view.holdouts
    seed, rest = compared[0], compared[1:]
    rows = [_row(view, graded, seed) for graded in (seed, *rest[-MOST:])]
    return table(COLUMNS, rows, width)


def holdout_line(view: RunView) -> Text | None:
    """Return what the hold-out says of the best; None if the best is the seed or was not graded on the hold-out yet."""
    best = view.best_and_lead[0].integer("number")
    found = next((graded for graded in view.holdouts[1:] if graded.row.number == best), None)
    if found is None:
        return None
    text, seed = divergence_text(found), view.holdouts[0]
    scores = f"#{found.row.number} {format.score(found.row.holdout)}, the seed {format.score(seed.row.holdout)}"
    return Text.assemble("hold-out ", scores, (f": {text}" if text else "", "yellow"))


def _row(view: RunView, one: Compared, seed: Compared) -> list[str | Text]:
    row, attempt = one.row, view.attempt_or_none(one.row.number)
    is_seed = one is seed
    return [
        str(row.number),
        format.score(row.score),
        "" if is_seed else format.delta(row.score, seed.row.score),
        format.score(row.holdout),
        "" if is_seed else format.delta(row.holdout, seed.row.holdout),
        attempt.agent if attempt else "",
        Text(divergence_text(one) or ("the seed" if is_seed else ""), style="yellow" if one.divergence else "dim"),
    ]
