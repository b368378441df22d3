"""An agent's own submissions: what became of each, and the wait for its grade. Standard library only.

The reply to a submission says its number, then that its record is published. Nothing here reads status.json or needs
`private`, which a sealed agent cannot read. A submission stays, whatever becomes of the wait.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from attempts.files import read_bytes
from attempts.record import Attempt, Kind, Verdict
from attempts.store import Store
from coral.cli.run_data.send_request import pauses, unsupervised
from coral.reading.lenient_json import LenientJson, read
from coral.views.scale import Scale
from workspace.layout import Layout

FOLLOW_UP_SECONDS = 2.0  # that a published record waits for the reply that names the heartbeats which follow
DOUBT = 0.3  # seconds without a number before asking whether there is a supervisor at all, and then every ten
PENDING_LOOKED_AT = 20  # of the latest submissions


@dataclass(frozen=True)
class Inline:
    """A heartbeat that is delivered in the output of the command that waits."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class SubmissionState:
    """What is known of a submission: nothing, a number, a refusal, or a record and what follows from it.

    `scale`: of the differences of scores when the record was published. `settled`: nothing more will come. `abandoned`:
    nothing will come before somebody resumes the run.
    """

    number: int | None = None
    attempt: Attempt | None = None
    refused: str = ""
    hint: str = ""
    reason: Mapping[str, object] | None = None
    heartbeats: tuple[str, ...] = ()
    inline: tuple[Inline, ...] = ()
    scale: Scale = Scale()  # noqa: RUF009  # it is frozen
    settled: bool = False
    abandoned: bool = False


def wait(layout: Layout, agent: str, submission: str, seconds: float) -> SubmissionState:
    """Wait until the grade is published, the submission refused or the run abandoned, at most `seconds`."""
    store, outcome = Store(layout.attempts), SubmissionState()
    published_at, doubt = float("inf"), DOUBT
    for passed in pauses(seconds):
        outcome = outcome_of(store, agent, submission)
        if outcome.settled:
            break
        if outcome.attempt is not None:
            published_at = min(published_at, passed)
            if passed - published_at > FOLLOW_UP_SECONDS:
                break
        elif passed >= doubt:
            doubt = passed + 10
            if unsupervised(layout):
                return replace(outcome_of(store, agent, submission), abandoned=True)
    return outcome


def outcome_of(store: Store, agent: str, submission: str) -> SubmissionState:
    reply = LenientJson(store.read_reply(agent, submission))
    if refused := reply.text("refused", 2000):
        hint, reason = reply.text("hint"), reply.inner("reason").data
        return SubmissionState(refused=refused, hint=hint, reason=reason, settled=True)
    number, launch = reply.integer("attempt"), reply.integer("launch")
    attempt = store.find(number)
    settled = attempt is not None and reply.data.get("published") is True
    here, scale = launch_here(agent), _scale(reply.inner("scale"))
    if not here or (launch is not None and here > launch):
        return SubmissionState(number, attempt, scale=scale, settled=settled)
    names, inline = tuple(reply.texts("heartbeats")), tuple(_inline(data) for data in reply.objects("inline"))
    return SubmissionState(number, attempt, heartbeats=names, inline=inline, scale=scale, settled=settled)


def _scale(data: LenientJson) -> Scale:
    return Scale(data.number("gain") or 0.0, data.number("noise") or 0.0, data.integer("seed") or 0)


def launch_here(agent: str) -> int:
    """The number of the agent's launch that this command runs in; 0 where it runs in none, as in a person's terminal
    or in a job: what follows from a grade reaches the agent elsewhere then. What followed from a grade of an earlier
    launch was delivered by the launches since."""
    who, _, number = os.environ.get("CORAL_LAUNCH", "").partition("/")[2].rpartition("/")
    return int(number) if who == agent and number.isdecimal() and number.isascii() else 0


def pending(layout: Layout, store: Store, agent: str, own: list[str], commit: str) -> SubmissionState | None:
    """What is known of the newest submission of this commit that waits for its grade; None if there is none."""
    for submission in reversed(own[-PENDING_LOOKED_AT:]):
        outcome = outcome_of(store, agent, submission)
        waits = outcome.attempt is None and not outcome.refused
        if waits and _commit_of(layout, agent, submission, outcome) == commit:
            return outcome
    return None


def graded(store: Store, tree: str, *, tune: bool) -> Attempt | None:
    """The newest attempt with this tree. A void one does not count: it says nothing about the tree; nor, without
    `tune`, a trial of numbers: that may be submitted for good afterwards."""
    from attempts.index import query  # a database takes as long to load as all the rest, and few need it
    from attempts.index.index import Index

    for number in Index(store.root).ask(lambda rows: list(query.with_tree(rows, tree))):
        attempt = store.find(number)
        if attempt is None or attempt.tree != tree or attempt.verdict is Verdict.VOID:
            continue
        if attempt.kind is not Kind.TUNE or tune:
            return attempt
    return None


def _commit_of(layout: Layout, agent: str, submission: str, outcome: SubmissionState) -> str:
    """The commit of a submission that is not graded yet: from the inbox, later from where the hub pins it."""
    if outcome.number is None:
        return read(layout.attempts / "inbox" / agent / f"{submission}.json").text("commit")
    try:
        return read_bytes(layout.hub / "refs" / "attempts" / str(outcome.number)).decode("ascii").strip()
    except (OSError, ValueError):
        return ""


def _inline(data: LenientJson) -> Inline:
    text = data.data.get("text")
    return Inline(data.text("id"), data.text("name", 60), text if isinstance(text, str) else "")
