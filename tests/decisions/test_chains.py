"""Heartbeats whose answers set off the next ones, as transcripts: a chain ends at its limit, and work is never one."""

from dataclasses import replace

import pytest
from stage import CHECKPOINT, REFLECT, TIP, Stage, rules_with, setting, tree

from attempts.noise import NoiseSetting
from attempts.record import Kind
from attempts.standing import Scored, Scoring
from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.policy import MAX_CHAIN
from coral.fleet.reasons import ReasonKind
from heartbeats.heartbeat import Heartbeat, Scope
from heartbeats.trigger import Every

CONSOLIDATE = Heartbeat(name="consolidate", trigger=Every(2), scope=Scope.FLEET, protected=True)
LIMIT = f"chain ({MAX_CHAIN})"


class Answering(Stage):
    """Agents that answer each heartbeat by a submission."""

    def tries(self, clock: float, agent: str = "ann", *, of: str = "", score: float | None = 1.0) -> list[str]:
        """An attempt with this tree, of its own where none is given; what is said when it is graded."""
        number = self.fleet.run.next_number
        self.at(clock, self.submission(agent))
        self.at(clock, replace(self.taken(number), tree=of or tree(number)))
        said = self.at(clock, self.graded(number, score, reason="" if score is not None else "wrong"))
        self.at(clock, on.Published(number=number))
        return said

    def takes_up(self, clock: float, agent: str = "ann") -> None:
        """It is interrupted for what it is owed, comes back, and has read it."""
        if self[agent].phase is Phase.INTERRUPTED:
            self.resumed(agent, clock)

    def answers(self, count: int, agent: str = "ann", *, of: str = "", score: float | None = 1.0) -> list[str]:
        """So many attempts, each an answer to what the one before has set off; what is said to the last."""
        said: list[str] = []
        for _ in range(count):
            clock = self.clock + 1
            said = self.tries(clock, agent, of=of, score=score)
            self.takes_up(clock, agent)
        return said

    def depths(self) -> list[int]:
        return [message.depth for message in self["ann"].pending_messages]


@pytest.mark.parametrize("score", [1.0, None])
def test_a_chain_ends_at_the_limit_with_one_alert(score: float | None) -> None:
    stage = Answering(rules=rules_with(REFLECT, CONSOLIDATE))
    assert stage.answers(MAX_CHAIN, of="same", score=score)[-1] == f"interrupt ann/{MAX_CHAIN}"
    assert stage["ann"].launch == MAX_CHAIN + 1
    said = stage.answers(1, of="same", score=score)
    alerted = f"of ann: ann gets no more heartbeats before it submits something new: {LIMIT}"
    assert (said[0], said[1].partition(" of ")[2]) == (f"skipped ann: reflect: {LIMIT}", alerted.removeprefix("of "))
    # What it does on like that sets off nothing, and is no news.
    said = stage.answers(1, of="same", score=score)
    assert said[:-1] == [f"skipped ann: reflect: {LIMIT}", f"skipped ann: consolidate: {LIMIT}"]
    stage.answers(20, of="same", score=score)
    cuts = [alert for alert in stage.fleet.run.undelivered_alerts if alert.reason]
    assert [(alert.reason and alert.reason.kind, alert.agent) for alert in cuts] == [(ReasonKind.CHAIN, "ann")]
    assert (stage["ann"].launch, stage["ann"].phase) == (MAX_CHAIN + 1, Phase.RUNNING)
    assert stage["ann"].pending_messages == ()
    # The count goes on where it stands: what was skipped is not owed later.
    assert stage.answers(1)[-1] == f"interrupt ann/{MAX_CHAIN + 1}"
    assert stage.fleet.run.progress.evals == MAX_CHAIN + 23


def test_work_after_every_heartbeat_is_never_cut() -> None:
    stage = Answering(rules=rules_with(REFLECT, CONSOLIDATE, CHECKPOINT))
    for number in range(3 * MAX_CHAIN):
        stage.answers(1, score=float(number % 5))
        assert stage["ann"].chain.depth == 1
    assert (stage["ann"].launch, stage.fleet.run.alert_count) == (3 * MAX_CHAIN + 1, 0)


def test_after_work_a_chain_may_be_as_long_again_and_has_an_alert_of_its_own() -> None:
    stage = Answering(rules=rules_with(REFLECT))
    stage.answers(MAX_CHAIN + 5, of="same")
    stage.answers(1)
    assert (stage["ann"].chain.depth, stage["ann"].chain.is_cut) == (1, False)
    assert stage.answers(MAX_CHAIN - 1, of=stage["ann"].chain.tree)[-1].startswith("interrupt")
    assert stage.answers(1, of=stage["ann"].chain.tree)[-2].startswith("alert run-alert-2 of ann")


def test_a_tree_that_anybody_has_submitted_before_is_no_work() -> None:
    noisy = Scoring(noise=NoiseSetting(deviation=0.2))
    stage = Answering(rules=replace(rules_with(REFLECT), scoring=noisy))
    stage.answers(2)
    for _ in range(2):
        number = stage.fleet.run.next_number
        stage.at(stage.clock + 1, stage.submission("ann"))
        # The trees of #1 and #2 in turn, and they are known to have a score.
        known = Scored(number=number - 2, score=1.0)
        stage.at(stage.clock, replace(stage.taken(number, duplicate=known), tree=tree(number - 2)))
        stage.at(stage.clock, stage.graded(number, 1.0))
        stage.takes_up(stage.clock)
    assert stage["ann"].chain.depth == 3


def test_only_what_is_an_answer_is_a_link() -> None:
    stage = Answering(rules=rules_with(replace(REFLECT, trigger=Every(3))))
    stage.answers(3, of="same")
    assert stage["ann"].chain.depth == 1
    # Many at once are one answer, however many heartbeats they set off.
    stage = Answering(rules=rules_with(REFLECT))
    stage.answers(1, of="same")
    numbers = range(2, 2 + 2 * MAX_CHAIN)
    for number in numbers:
        stage.at(stage.clock, stage.submission("ann"))
        stage.at(stage.clock, replace(stage.taken(number), tree="same"))
    for number in numbers:
        stage.at(stage.clock, stage.graded(number, 1.0))
    assert stage.depths() == [2] * len(numbers)
    # What the operator says, and a notice of ours, set off no chain.
    stage = Answering(rules=rules_with(REFLECT))
    stage.ask("operator", on.Tell(to="ann", text="submit"))
    stage.at(3, stage.exited("ann"))
    stage.until(100)
    stage.at(100, stage.heard("ann"))
    assert stage["ann"].chain.depth == 0


def test_what_the_clock_asks_begins_a_chain_and_lengthens_and_ends_none() -> None:
    stage = Answering(rules=replace(rules_with(REFLECT, CHECKPOINT), stall=9e9))
    stage.answers(2, of="same")
    stage.until(1800)
    stage.at(1801, stage.exited("ann"))
    stage.at(1801, stage.heard("ann"))
    assert stage["ann"].awaiting_reply == ("checkpoint",)
    assert stage["ann"].chain.depth == 2
    stage.answers(1)
    assert stage["ann"].chain.depth == 1
    stage = Answering(rules=replace(rules_with(CHECKPOINT), stall=9e9))
    stage.until(1800)
    stage.at(1801, stage.exited("ann"))
    stage.at(1801, stage.heard("ann"))
    assert stage["ann"].chain.depth == 1


def test_what_the_clock_asks_of_the_fleet_begins_a_chain_too() -> None:
    stage = Answering(rules=replace(rules_with(replace(CHECKPOINT, scope=Scope.FLEET)), stall=9e9))
    stage.until(1800)
    assert [message.depth for message in stage.fleet.run.unassigned_messages] == [1]


@pytest.mark.parametrize(("sender", "due"), [("ann", 160), ("operator", 100)])
def test_no_agent_has_its_next_heartbeat_of_the_clock_by_retiming_it(sender: str, due: float) -> None:
    stage = Answering(rules=replace(rules_with(CHECKPOINT), stall=9e9, max_defer=9e9))
    stage.ask(sender, setting("ann", name="checkpoint", every="2h"), 99)
    assert stage["ann"].targets["checkpoint"] == 1800
    stage.ask(sender, setting("ann", name="checkpoint", every="60s"), 100)
    # That of the operator is due at once, so that its next period has begun.
    assert stage["ann"].targets["checkpoint"] == 160
    assert [message.since for message in stage["ann"].pending_messages] == ([100] if due == 100 else [])
    assert stage.until(159) == []
    stage.until(160)
    assert stage["ann"].pending_messages[0].since == due


def test_one_that_was_fired_before_the_work_and_is_read_after_it_does_not_lengthen_what_follows() -> None:
    stage = Answering(rules=rules_with(REFLECT))
    stage.answers(3, of="same")
    stage.tries(stage.clock + 1, of="same")
    stage.tries(stage.clock + 1)
    assert stage.depths() == [4, 1]
    stage.takes_up(stage.clock)
    assert stage["ann"].chain.depth == 1


def test_the_chain_of_one_agent_is_no_others_and_a_tune_is_work_too() -> None:
    stage = Answering(2, rules_with(REFLECT))
    stage.answers(MAX_CHAIN + 1, of="same")
    assert stage["ann"].chain.is_cut
    assert stage.answers(1, "ben", of="same")[-1] == "interrupt ben/1"
    stage.in_grading(stage.clock + 1, "ann", kind=Kind.TUNE)
    assert (stage["ann"].chain.depth, stage["ann"].chain.is_cut) == (0, False)


def test_what_coral_eval_prints_is_a_link_like_what_interrupts() -> None:
    stage = Answering(rules=rules_with(TIP))
    for _ in range(MAX_CHAIN + 2):
        number = stage.fleet.run.next_number
        clock = stage.clock + 1
        stage.at(clock, stage.submission("ann", wait=500))
        stage.at(clock, replace(stage.taken(number), tree="same"))
        stage.at(clock, stage.graded(number, 1.0))
        ids = tuple(message.id for message in stage["ann"].pending_messages)
        stage.ask("ann", on.Acknowledge(messages=ids, jobs=()), clock)
    assert (stage["ann"].launch, stage["ann"].chain.depth, stage["ann"].chain.is_cut) == (1, MAX_CHAIN, True)
