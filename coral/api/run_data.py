"""A run as plain data, read by the same functions as the commands `status`, `log`, `notes` and others use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from attempts.index import query
from attempts.index.query import Wanted
from attempts.record import Attempt, Direction
from coral.api.curve import RunCurve, curve_of_run
from coral.api.rows import Rows
from coral.api.usage import RunUsage, usage_of
from coral.errors import CoralError
from coral.reading import attempt_rows, knowledge_view
from coral.reading.attempt_rows import COLUMNS, MeasuredAttempt
from coral.reading.knowledge_view import JudgedNote, KnowledgeView
from coral.reading.run_folder import named
from coral.reading.run_view import RunView
from coral.reading.settings import config_of, settings
from coral.reading.status_data import holdout_data, status_data
from workspace.layout import Layout

_NOTE = ["number", "name", "title", "author", "created", "kind", "state", "confidence", "attempts", "about"]
_NOTE += ["superseded_by", "synthesis", "body"]
_HELD_OUT = ("number", "score", "holdout", "reason", "divergence", "by")


def open_run(run: str | Path) -> RunData:
    """Open the run in a folder, or the one of that name near the current directory, as `--run` finds it.

    CoralError where there is none, or where nothing of it can be read.
    """
    return RunData(named(str(run), None))


class RunData:
    """A run as it is when a part is first read; `refresh()` gives it as it is then. Nothing is changed by reading.

    Any file may be damaged: then less is known, and `problems` says what. In an agent's workspace it shows what that
    agent may see. A thread opens a run of its own.
    """

    def __init__(self, layout: Layout) -> None:
        self._view = RunView(layout)
        store = self._view.store
        if not self._view.status and not any(store.find(number) for number in store.numbers()):
            what = f"cannot read the run {layout.root}: neither its status.json nor any of its records can be read"
            raise CoralError(what, "restore its folder; `coral runs` lists the runs that are found from here")

    def __repr__(self) -> str:
        best = self.best.median if self.best else None
        return f"<run {self.task}/{self.name}: {self.state}, best {best}>"

    def refresh(self) -> RunData:
        """Return the same run as it is now."""
        return RunData(self._view.layout)

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._view.layout.root

    @property
    def name(self) -> str:
        """The name of the run's folder."""
        return self._view.name

    @property
    def task(self) -> str:
        """The name of the run's task."""
        return self._view.task

    @cached_property
    def state(self) -> str:
        """running, stopping or stopped; left: agents run without a supervisor; dead: the supervisor is gone."""
        return self._view.state

    @property
    def is_running(self) -> bool:
        """Whether a supervisor of the run is at work."""
        return self.state in ("running", "stopping")

    @property
    def reason(self) -> str:
        """Why the run has stopped or is stopping, in words; empty while it runs."""
        return self._view.status.inner("reason").text("text")

    @property
    def direction(self) -> Direction:
        """The direction of the score in the task: maximize or minimize."""
        return self._view.direction

    @property
    def epoch(self) -> int:
        """The number of the present epoch, from 1: each changed task begins one. Scores of two are not compared."""
        return self._view.epoch

    @property
    def baseline(self) -> float | None:
        """The score of the seed: the median of its grades."""
        return self._view.baseline

    @property
    def noise(self) -> float | None:
        """The standard deviation of the score of one commit; None where it is not known."""
        return self._view.status.number("noise")

    @cached_property
    def best(self) -> MeasuredAttempt | None:
        """The attempt that is proven to be better than those before it; the seed, while nobody has beaten it."""
        return attempt_rows.measured(self._view, self._view.best)

    @cached_property
    def lead(self) -> MeasuredAttempt | None:
        """The attempt with the highest median, which need not be proven."""
        return attempt_rows.measured(self._view, self._view.best_and_lead[1].integer("number"))

    @cached_property
    def attempts(self) -> Rows[Attempt]:
        """Every record by number, the seed first, of all epochs: also what failed, and what was only measured again."""
        found = attempt_rows.recent(self._view, Wanted(only_agent=self._view.only_agent), None)
        lines = {line.attempt.number: line for line in reversed(found)}
        columns = [name for name in COLUMNS if name not in attempt_rows.MEASURED]

        def nested(attempt: Attempt) -> dict[str, object]:
            return attempt_rows.nested(lines[attempt.number])

        return Rows([line.attempt for line in lines.values()], columns, _flat, nested)

    @cached_property
    def leaderboard(self) -> Rows[MeasuredAttempt]:
        """The candidates of the present epoch, best first: one for each tree, with all that it scored; not the seed."""
        found = attempt_rows.ranking(self._view, Wanted(only_agent=self._view.only_agent), None)
        return Rows(found, COLUMNS, attempt_rows.flat, attempt_rows.nested)

    def attempt(self, number: int) -> Attempt:
        """Return the record of one attempt. CoralError if there is none, or the reader may not see it."""
        return self._view.attempt(number, "read")

    @cached_property
    def notes(self) -> Rows[JudgedNote]:
        """The notes of the agents, oldest first, each with whether the records support it."""
        knowledge = KnowledgeView(self._view)
        found = [knowledge.judged(note) for note in knowledge.notes]
        return Rows(found, _NOTE, _note, knowledge_view.nested)

    @cached_property
    def curve(self) -> RunCurve:
        """The best over time."""
        return curve_of_run(self._view)

    @cached_property
    def usage(self) -> RunUsage:
        """Money, tokens and time."""
        return usage_of(self._view)

    @cached_property
    def holdout(self) -> Rows[Mapping[str, object]]:
        """The scores that agents never see, the seed's first: number, score, holdout, reason, divergence, by. Empty
        without a hold-out, and for agents."""
        return Rows(holdout_data(self._view), _HELD_OUT, dict)

    @cached_property
    def settings(self) -> dict[str, str]:
        """Every setting of its task by dotted key, without secrets; empty where the task cannot be read."""
        config = config_of(self._view)
        return settings(config, defaults=True) if config else {}

    @cached_property
    def status(self) -> dict[str, Any]:
        """The state of the run, as `coral status --json` prints it."""
        return status_data(self._view)

    @cached_property
    def problems(self) -> list[str]:
        """The parts of the run that cannot be read, in words; empty for a sound run."""
        found = [] if self._view.status else ["status.json is missing or damaged"]
        unreadable = self._view.index.ask(query.totals).unreadable
        is_shown = unreadable and not self._view.only_agent
        return found + ([f"records that cannot be read: {unreadable}"] if is_shown else [])


def _flat(attempt: Attempt) -> dict[str, object]:
    return attempt_rows.flat(MeasuredAttempt(attempt))


def _note(judged: JudgedNote) -> dict[str, object]:
    data = knowledge_view.nested(judged)
    return {name: data[name] for name in _NOTE}
