"""Follows an agent's own submissions: what came of each, and the wait for its grade. Standard library only.

The reply to a submission names the attempt's number, and later says that its record is published. Neither status.json
nor `private` is read here, since a sealed agent cannot read them. A submission remains, whatever happens to the process
that waits.
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

FOLLOW_UP_SECONDS = 2.0  # to wait after the record for the reply that names the heartbeats which follow
DOUBT = 0.3  # seconds without a record before checking whether there is a supervisor; then every ten
PENDING_LOOKED_AT = 20  # of the latest submissions


@dataclass(frozen=True)
class Inline:
    """A heartbeat that is delivered in the output of the command that waits."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class SubmissionState:
    """What is known of a submission: nothing, its number, its refusal, or its record and what follows from it.

    `scale`: the scale of differences of scores when the record was published. `settled`: nothing more will come.
    `abandoned`: nothing will come until somebody resumes the run.
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
    """Wait until the grade is published, the submission is refused, or nobody supervises the run any more, at most
    `seconds`."""
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
    """Return the number of the agent's launch that this process runs in; 0 if it runs in none, as in a person's
    terminal or in a job. Heartbeats that follow from a grade are shown only to the launch that was running then: in no
    launch, or a later one, the agent gets them otherwise."""
    who, _, number = os.environ.get("CORAL_LAUNCH", "").partition("/")[2].rpartition("/")
    return int(number) if who == agent and number.isdecimal() and number.isascii() else 0


def pending(layout: Layout, store: Store, agent: str, own: list[str], commit: str) -> SubmissionState | None:
    """Return what is known of the newest submission of this commit that waits for its grade; None if there is none."""
    for submission in reversed(own[-PENDING_LOOKED_AT:]):
        outcome = outcome_of(store, agent, submission)
        waits = outcome.attempt is None and not outcome.refused
        if waits and _commit_of(layout, agent, submission, outcome) == commit:
            return outcome
    return None


def graded(store: Store, tree: str, *, tune: bool) -> Attempt | None:
    """Return the newest attempt with this tree; None if there is none. Void attempts do not count, since they say
    nothing about the tree. Attempts of the kind tune count only with `tune`: their tree may be submitted as a real
    attempt afterwards."""
    from attempts.index import query  # loading a database takes as long as all else, and few need it
    from attempts.index.index import Index

    for number in Index(store.root).ask(lambda rows: list(query.with_tree(rows, tree))):
        attempt = store.find(number)
        if attempt is None or attempt.tree != tree or attempt.verdict is Verdict.VOID:
            continue
        if attempt.kind is not Kind.TUNE or tune:
            return attempt
    return None


def _commit_of(layout: Layout, agent: str, submission: str, outcome: SubmissionState) -> str:
    """Return the commit of a submission that is not graded yet: from the inbox or, once it has a number, from its ref
    in the hub."""
    if outcome.number is None:
        return read(layout.attempts / "inbox" / agent / f"{submission}.json").text("commit")
    try:
        return read_bytes(layout.hub / "refs" / "attempts" / str(outcome.number)).decode("ascii").strip()
    except (OSError, ValueError):
        return ""


def _inline(data: LenientJson) -> Inline:
    text = data.data.get("text")
    return Inline(data.text("id"), data.text("name", 60), text if isinstance(text, str) else "")
