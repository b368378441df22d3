"""A share as a bar."""

from rich.text import Text

from coral.cli.ui.table import dim


def bar(share: float, width: int, style: str) -> Text:
    """So many of `width` characters full as `share`, from 0 to 1, says."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return Text.assemble(("█" * full, style), dim("░" * (width - full)))
