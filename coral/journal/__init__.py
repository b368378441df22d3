"""The run's memory: what happened, what was decided, and which fields changed; appended, and folded without logic.

A line is on the disk before anything in it is done. A crash may tear the last line: it is cut off before the next line
is written, and nothing that only it held had been done. See `lines` for one line, `segments` for the files.
"""

from coral.journal.changes import difference
from coral.journal.fold import Decision, RecoveredState, decisions, fold, fold_lines, published, read_lines, salvaged
from coral.journal.lines import FORMAT
from coral.journal.segments import segments
from coral.journal.writer import Journal

__all__ = [
    "FORMAT",
    "Decision",
    "Journal",
    "RecoveredState",
    "decisions",
    "difference",
    "fold",
    "fold_lines",
    "published",
    "read_lines",
    "salvaged",
    "segments",
]
