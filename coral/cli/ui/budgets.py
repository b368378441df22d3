"""Draws budgets as bars, each with a forecast of when it will be used up if the run goes on as it has so far."""

from rich.text import Text

from coral.cli.ui.bar import bar
from coral.reading.budgets import BudgetUse, uses
from coral.reading.lenient_json import LenientJson

WIDTH = 12  # characters of a bar


def bars(status: LenientJson, late: float) -> list[Text]:
    """Return one line for each budget. `late`: the age of the status in seconds."""
    return [_bar(use) for use in uses(status, late)]


def _bar(use: BudgetUse) -> Text:
    if use.share is None:
        return Text(f"{use.key} {use.amounts}")
    style = "red" if use.share >= 0.95 else "yellow" if use.share >= 0.8 else "green"
    text = Text.assemble(f"{use.key} ", bar(use.share, WIDTH, style), f" {use.amounts}")
    if use.left:
        text.append(f", {use.left}", style="dim")
    return text
