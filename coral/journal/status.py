"""Whether a run has begun, and whether it has ended, as its journal says.

A module of its own: `coral stop` asks nothing else, and need not load what creates runs.
"""

from coral.journal import fold, segments
from workspace.layout import Layout


def has_begun(layout: Layout) -> bool:
    """Whether a supervisor decided anything in this run, which may be lost."""
    return bool(segments(layout.journal)) and fold(layout.journal).fleet.run.opened


def has_ended(layout: Layout) -> bool:
    """Whether the run never began or was ended in order, so that no process of it can be running."""
    return not segments(layout.journal) or bool(fold(layout.journal).fleet.run.finished)
