"""All that the dashboard imports from the command line and from `coral.reading`: functions that read a run, and
functions that put it into words.

The dashboard and the commands show the same figures because they share these.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from coral.cli.commands.heartbeat import due_of
from coral.cli.commands.replay import PastRun
from coral.cli.commands.status import warnings
from coral.cli.commands.transcript import end_of_launch, label_of, runtime_of, text_of
from coral.cli.report.knowledge import rendered
from coral.cli.run_data import comparison, send_request
from coral.cli.run_data.comparison import RunOutcome
from coral.cli.run_data.set_budget import set_request
from coral.cli.ui.agents_table import activity, coming
from coral.cli.ui.events import event_text, is_step
from coral.cli.ui.notes_diff import changes
from coral.cli.ui.notes_page import body_of
from coral.reading.attempt_rows import with_scores
from coral.reading.budgets import Unknown, per_hour, trials, unknown_use, used, used_by, uses
from coral.reading.curve import read_sample
from coral.reading.knowledge_view import KnowledgeView
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView, is_seed, names_in
from coral.reading.timeline import PUBLISHED, PublishedClocks, Timeline, end_of, events
from workspace.layout import Layout

__all__ = [
    "PUBLISHED",
    "KnowledgeView",
    "LenientJson",
    "PastRun",
    "PublishedClocks",
    "RunOutcome",
    "RunView",
    "Timeline",
    "Unknown",
    "activity",
    "body_of",
    "changes",
    "coming",
    "comparison",
    "due_of",
    "end_of",
    "end_of_launch",
    "event_text",
    "events",
    "is_seed",
    "is_step",
    "label_of",
    "names_in",
    "opened",
    "per_hour",
    "read_sample",
    "rendered",
    "runtime_of",
    "send_request",
    "set_request",
    "text_of",
    "trials",
    "unknown_use",
    "used",
    "used_by",
    "uses",
    "warnings",
    "with_scores",
]


@contextmanager
def opened(layout: Layout) -> Iterator[RunView]:
    """Give a view of the run as it is now. Its index is closed by the thread that opened it, as SQLite demands."""
    view = RunView(layout)
    try:
        yield view
    finally:
        view.close()
