"""The runs that the dashboard shows: the one that it was opened for, and the others in the same folder of runs."""

from coral.errors import CoralError
from coral.web.live import RunFeed
from workspace.layout import Layout, folder_of_runs, runs_under


class Runs:
    """Finds a run by its name. No part of a request is ever used as a path."""

    def __init__(self, first: Layout) -> None:
        self.first = first
        self._feeds: dict[str, RunFeed] = {}

    def all(self) -> list[Layout]:
        """Return all runs of every task, newest first."""
        beside = [run for run in runs_under(folder_of_runs(self.first)) if run.root != self.first.root]
        return sorted([self.first, *beside], key=lambda run: run.root.name, reverse=True)

    def find(self, name: str) -> Layout:
        """Return the run of this name. CoralError if there is none."""
        if name == self.first.root.name:
            return self.first  # even if its folder is gone: then the page says so
        found = next((run for run in self.all() if run.root.name == name), None)
        if found is None:
            raise CoralError(f"cannot find the run {name[:80]!r}", "it may have been moved or removed")
        return found

    def readable(self, name: str) -> Layout:
        """Return the run of this name. CoralError if there is none or its folder is gone."""
        found = self.find(name)
        if not found.attempts.is_dir():
            raise CoralError(f"cannot read {name[:80]}: its folder is gone", "was it moved or removed?")
        return found

    def feed(self, name: str) -> RunFeed:
        """Return the feed of a run's changes, which all pages that show the run share."""
        layout = self.find(name)
        return self._feeds.setdefault(layout.root.name, RunFeed(layout))

    def end_feeds(self) -> None:
        """End all live connections."""
        for feed in list(self._feeds.values()):  # another thread may add one
            feed.end()
