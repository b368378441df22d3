"""Whether a run has begun, and whether it has ended: read from its journal, which alone knows.

A module of its own: `coral stop` asks nothing else, and need not load what makes runs.
"""

from coral.journal import fold, segments
from workspace.layout import Layout


def has_begun(layout: Layout) -> bool:
    """Whether a supervisor decided anything in this run: then there may be something to lose."""
    return bool(segments(layout.journal)) and fold(layout.journal).fleet.run.opened


def has_ended(layout: Layout) -> bool:
    """Whether the run was ended in order, so that nothing of it can be running."""
    return not segments(layout.journal) or bool(fold(layout.journal).fleet.run.finished)
