"""Draws a share as a bar."""

from rich.text import Text

from coral.cli.ui.table import dim


def bar(share: float, width: int, style: str) -> Text:
    """Return a bar of `width` characters, of which `share` (0 to 1) are full."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return Text.assemble(("█" * full, style), dim("░" * (width - full)))
