"""The lead is the highest median and claims nothing; the best is proven side by side. Both follow from the records."""

from dataclasses import replace
from functools import reduce

import pytest
import sample

from attempts.noise import NoiseSetting
from attempts.record import Attempt, Direction, Kind, Verdict
from attempts.standing import (
    BEGUN,
    FAILURES,
    KEPT,
    PAIRS,
    Confirmation,
    Half,
    Judgement,
    Scored,
    Scoring,
    Standing,
    advance,
    is_exact,
    judge,
    judge_confirmation,
    lead,
    next_confirmation,
    noise_of,
    own_best,
    ranked,
    without_half,
)

EXACT, KNOWN = Scoring(), Scoring(noise=NoiseSetting(deviation=1.0))
ESTIMATED = Scoring(noise=NoiseSetting(deviation=None))
ANN, BEN = sample.AGENTS


class History:
    """Records as the supervisor makes them: judged by the standing, then added to it."""

    def __init__(self, scoring: Scoring = EXACT, baseline: float | None = 0.0) -> None:
        self.scoring, self.standing, self.records = scoring, Standing(), list[Attempt]()
        verdict = Verdict.FAILED if baseline is None else Verdict.NEW_BEST
        self._add(sample.attempt(0, baseline, verdict=verdict))

    def tried(self, score: float | None, agent: str = ANN, built_on: Scored | None = None, **given: object) -> Verdict:
        found = Judgement(Verdict.FAILED)
        if score is not None:
            found = judge(self.standing, agent, score, self.scoring, built_on)
        return self._record(found, score, agent=agent, **given)

    def confirmed(self, score: float | None, of: int | None = None, verdict: Verdict | None = None) -> Verdict:
        """The confirmation that is wanted, or one of the seed."""
        asked = next_confirmation(self.standing, self.scoring) if of is None else Confirmation(of)
        assert asked is not None
        found = Judgement(verdict or Verdict.FAILED, asked.against)
        if score is not None:
            found = judge_confirmation(self.standing, asked, score, self.scoring)
        return self._record(found, score, agent=self.records[asked.of].agent, kind=Kind.CONFIRM, of=asked.of)

    def pair(self, best: float, other: float) -> Verdict:
        self.confirmed(best)
        return self.confirmed(other)

    def seeds(self, *scores: float) -> None:
        for score in scores:
            self.confirmed(score, of=0)

    @property
    def wanted(self) -> Confirmation | None:
        return next_confirmation(self.standing, self.scoring)

    @property
    def lead(self) -> int | None:
        found = lead(self.standing, self.scoring)
        return found and found.number

    def _record(self, found: Judgement, score: float | None, **given: object) -> Verdict:
        self._add(
            sample.attempt(
                len(self.records), score, verdict=found.verdict, against=found.against, delta=found.delta, **given
            )
        )
        return found.verdict

    def _add(self, record: Attempt) -> None:
        self.records.append(record)
        self.standing = advance(self.standing, record, self.scoring)


def test_where_grades_are_exact_each_score_speaks_for_itself() -> None:
    history = History()
    assert [history.tried(score) for score in (1.0, 0.5, 1.0, 2.0)] == [
        Verdict.NEW_BEST,
        Verdict.WORSE,
        Verdict.TIED,
        Verdict.NEW_BEST,
    ]
    assert history.tried(1.5, BEN) is Verdict.OWN_BEST
    assert (history.standing.best, history.lead, history.wanted) == (4, 4, None)


def test_where_less_is_better() -> None:
    history = History(replace(EXACT, direction=Direction.MINIMIZE), 5.0)
    assert [history.tried(score) for score in (6.0, 4.0)] == [Verdict.WORSE, Verdict.NEW_BEST]
    assert [held.number for held in ranked(history.standing, history.scoring)] == [2, 1]
    assert history.records[2].delta == -1.0


def test_of_equal_scores_the_earlier_is_ahead_up_to_the_last_digits() -> None:
    history = History()
    history.tried(2.6359830849)
    assert history.tried(2.6359830849 + 1e-10, BEN) is Verdict.OWN_BEST
    assert (history.standing.best, history.lead) == (1, 1)


def test_a_copy_of_somebody_elses_work_is_no_gain() -> None:
    history = History()
    history.tried(0.5, BEN)
    history.tried(2.0)
    assert history.tried(2.0, BEN, Scored(2, 2.0)) is Verdict.TIED
    assert history.records[-1].against == 2
    assert history.tried(1.8, BEN, Scored(2, 2.0)) is Verdict.WORSE  # than what it was built on
    assert history.tried(2.5, BEN, Scored(2, 2.0)) is Verdict.NEW_BEST


def test_nothing_is_compared_while_the_seed_has_no_score() -> None:
    history = History(baseline=None)
    assert history.tried(None) is Verdict.FAILED
    assert history.tried(-3.0) is Verdict.NEW_BEST
    assert history.standing.best == 2


def test_one_noisy_score_is_never_a_new_best_and_pairs_prove_one() -> None:
    history = History(KNOWN)
    assert history.tried(6.0) is Verdict.OWN_BEST
    assert (history.standing.best, history.lead, history.wanted) == (0, 1, Confirmation(0, 1))
    history.confirmed(0.2)
    assert history.wanted == Confirmation(1, 0)
    assert history.confirmed(6.1) is Verdict.NEW_BEST  # 5.9 apart; the bar of one pair is 3 x the root of 2
    assert (history.standing.best, history.wanted) == (1, None)
    assert history.records[-1].of == 1


def test_a_lucky_score_is_found_out_and_is_no_lead_any_more() -> None:
    history = History(KNOWN)
    history.tried(2.0, BEN)
    history.tried(5.0)
    assert history.pair(0.0, 1.0) is Verdict.TIED
    assert history.lead == 2  # its median is 3
    history.pair(0.0, 0.5)
    assert (history.standing.best, history.lead, history.wanted) == (0, 1, None)


def test_a_lead_that_is_within_the_noise_is_built_on_and_not_measured() -> None:
    history = History(KNOWN)
    assert history.tried(1.5) is Verdict.TIED
    assert (history.lead, history.standing.best, history.wanted) == (1, 0, None)


def test_a_pair_is_measured_three_times_at_most() -> None:
    history = History(KNOWN)
    history.tried(9.0)
    for _ in range(PAIRS):
        assert history.pair(5.0, 8.0) is Verdict.TIED or history.standing.best == 1
    assert history.wanted is None


def test_the_first_score_which_made_it_the_lead_does_not_count_in_its_proof() -> None:
    history = History(KNOWN)
    history.tried(100.0)
    assert history.pair(0.0, 4.0) is Verdict.TIED
    assert history.pair(0.0, 4.0) is Verdict.NEW_BEST  # 4 twice is beyond 3 standard errors of two pairs


def test_a_new_best_forgets_pairs_with_the_one_before() -> None:
    history = History(KNOWN)
    history.tried(9.0)
    history.pair(0.0, 9.0)
    assert history.standing.best == 1
    assert all(not held.gains and not held.begun for held in history.standing.measured.values())


def test_noise_is_estimated_from_the_seed_and_then_from_what_is_measured_again() -> None:
    history = History(ESTIMATED)
    assert history.tried(3.0) is Verdict.TIED  # nothing is known of the noise yet
    history = History(ESTIMATED)
    history.seeds(0.1, -0.1)
    assert noise_of(history.standing, ESTIMATED).freedom == 2
    history.tried(4.0)
    history.pair(0.05, 4.1)
    assert noise_of(history.standing, ESTIMATED).freedom == 4


def test_a_grader_that_never_differs_is_believed_after_three_attempts_that_were_measured_again() -> None:
    history = History(ESTIMATED)
    history.seeds(0.0, 0.0)
    for score in (1.0, 2.0, 3.0):
        assert history.tried(score) is Verdict.OWN_BEST
        assert history.pair(score - 1, score) is Verdict.NEW_BEST
    assert is_exact(history.standing, noise_of(history.standing, ESTIMATED), ESTIMATED)
    assert history.tried(4.0) is Verdict.NEW_BEST
    assert history.wanted is None


def test_noise_that_a_constant_seed_hides_is_noticed_by_the_pairs() -> None:
    history = History(ESTIMATED)
    history.seeds(0.0, 0.0)
    history.tried(5.0)
    history.pair(0.0, 2.0)
    assert history.standing.best == 0
    assert history.wanted == Confirmation(0, 3)


def test_a_pair_with_a_failed_half_is_dropped_and_a_lead_that_fails_again_leads_no_more() -> None:
    history = History(KNOWN)
    history.tried(4.0, BEN)
    history.tried(9.0)
    for _ in range(FAILURES):
        assert history.lead == 2
        history.confirmed(0.0)
        history.confirmed(None)
    assert (history.lead, history.standing.half) == (1, None)


def test_pairs_whose_first_half_fails_do_not_go_on_for_ever() -> None:
    history = History(KNOWN)
    history.tried(9.0)
    for _ in range(BEGUN):
        history.confirmed(None)
    assert history.wanted is None


def test_a_void_half_drops_the_pair_blames_nobody_and_is_not_repeated_for_ever() -> None:
    history = History(KNOWN)
    history.tried(9.0)
    for _ in range(BEGUN):
        assert history.wanted == Confirmation(0, 1)
        history.confirmed(0.0)
        history.confirmed(None, verdict=Verdict.VOID)
    assert (history.wanted, history.lead) == (None, 1)
    for _ in range(FAILURES):
        assert not history.standing.measured[0].is_refuted
        history.confirmed(None, of=0, verdict=Verdict.VOID)
    assert history.standing.measured[0].is_refuted  # as a seed to measure again; it stays the best
    assert history.standing.best == 0


def test_an_exact_score_below_a_lead_that_could_not_be_proven_is_no_new_best() -> None:
    history = History(ESTIMATED)
    history.seeds(0.0, 0.0)
    history.tried(1.0)
    history.pair(0.0, 1.0)
    history.tried(2.0)
    history.pair(1.0, 2.0)
    history.tried(3.0)
    history.confirmed(2.0)
    history.tried(9.0, BEN)  # while the pair that makes the third is measured
    history.confirmed(3.0, of=None)
    assert history.lead == history.records[-2].number
    assert history.tried(5.0) is Verdict.OWN_BEST
    assert history.wanted is not None


def test_a_copy_of_an_attempt_that_is_forgotten_tries_no_luck_of_its_own() -> None:
    history = History(KNOWN)
    for number in range(1, KEPT + 3):
        history.tried(float(number))
    assert 1 not in history.standing.measured
    history.tried(99.0, of=1)
    assert history.lead == KEPT + 2
    assert KEPT + 3 not in history.standing.measured


def test_a_best_that_fails_when_it_is_repeated_stays_its_authors_best() -> None:
    history = History(KNOWN)
    history.tried(50.0)
    history.pair(0.0, 50.0)
    assert history.standing.best == 1
    history.tried(60.0, BEN)
    for _ in range(FAILURES):
        history.confirmed(None)
    own = own_best(history.standing, ANN, history.scoring)
    assert own is not None
    assert (history.standing.best, own.number) == (1, 1)
    assert history.tried(10.0) is Verdict.WORSE


def test_pairs_that_showed_nothing_are_made_up_for_once_the_noise_is_known_better() -> None:
    history = History(ESTIMATED)
    history.seeds(1.2)
    history.tried(9.0)
    measured = history.standing.measured
    spent = replace(measured[2], gains=(3.5, 4.0, 3.4), begun=PAIRS)
    history.standing = replace(history.standing, measured={**measured, 2: spent})
    assert history.wanted is None
    history.seeds(*([0.6, -0.6] * 8))
    assert history.wanted == Confirmation(0, 2)
    assert history.pair(0.0, 3.6) is Verdict.NEW_BEST


def test_pairs_that_restarts_cut_short_do_not_use_up_those_of_the_lead() -> None:
    history = History(KNOWN)
    history.tried(5.0)
    for _ in range(2 * BEGUN):
        history.confirmed(0.0)
        history.standing = without_half(history.standing)
    assert history.wanted == Confirmation(0, 1)
    assert without_half(history.standing) == history.standing
    # What is left of such a pair blames nobody if it is void.
    history.confirmed(None, of=1, verdict=Verdict.VOID)
    assert history.standing.measured[1].failures == 0


def test_gains_beyond_all_measure_raise_nothing() -> None:
    history = History(KNOWN)
    history.tried(1.2e308)
    measured = history.standing.measured
    grown = replace(measured[1], gains=(1e308, 1.2e308))
    history.standing = replace(history.standing, measured={**measured, 1: grown}, half=Half(0, 1, 0.0))
    assert history.confirmed(1.2e308) is Verdict.NEW_BEST


def test_noise_as_a_share_is_that_of_the_level_compared_with() -> None:
    history = History(Scoring(noise=NoiseSetting(deviation=0.02, relative=True)))
    history.tried(-5.0, BEN)
    assert history.tried(-0.001, BEN) is Verdict.TIED or history.standing.best == 0
    assert not is_exact(history.standing, noise_of(history.standing, history.scoring), history.scoring)


def test_the_same_tree_once_more_is_a_measurement_of_the_first() -> None:
    history = History(KNOWN)
    history.tried(5.0)
    history.tried(1.0, BEN, of=1)
    assert history.standing.measured[1].scores == (5.0, 1.0)
    assert [held.number for held in ranked(history.standing, KNOWN)] == [1]


def test_an_own_best_is_the_agents_highest_median_else_the_seed() -> None:
    history = History(KNOWN)
    own = own_best(history.standing, BEN, KNOWN)
    assert own is not None
    assert own.number == 0
    history.tried(1.0, BEN)
    history.tried(5.0, ANN)
    own = own_best(history.standing, BEN, KNOWN)
    assert own is not None
    assert own.number == 1


def test_what_is_remembered_does_not_grow_with_the_run() -> None:
    history = History(KNOWN)
    for number in range(300):
        history.tried((number * 7919 % 101) / 500, sample.AGENTS[number % 2])
    assert len(history.standing.measured) <= 2 * KEPT + 1
    scores = sorted((record.score or 0.0 for record in history.records[1:]), reverse=True)
    assert [held.value for held in ranked(history.standing, KNOWN)][:KEPT] == scores[:KEPT]


@pytest.mark.parametrize("scoring", [EXACT, KNOWN, ESTIMATED])
def test_the_standing_and_the_best_follow_from_the_records_alone(scoring: Scoring) -> None:
    history = History(scoring)
    for number in range(60):
        history.tried((number * 7919 % 101) / 9, sample.AGENTS[number % 2])
        while history.wanted is not None:
            history.confirmed((len(history.records) * 104729 % 17) / 9)
    assert reduce(lambda standing, record: advance(standing, record, scoring), history.records, Standing()) == (
        history.standing
    )
    proofs = [record for record in history.records if record.verdict is Verdict.NEW_BEST]
    last = max(proofs, key=lambda record: record.order)
    assert history.standing.best == (last.number if last.of is None else last.of)
