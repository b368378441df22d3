"""When a message may go: the digest, the quiet hours, and what follows a failure."""

import pytest

from coral.notify.schedule import FIRST_PAUSE, LONGEST_PAUSE, Schedule, quiet_of

NOON, NIGHT = 12 * 60, 3 * 60


@pytest.mark.parametrize(
    ("hours", "minute", "holds"),
    [
        ("22:00-07:00", 22 * 60, True),
        ("22:00-07:00", NIGHT, True),
        ("22:00-07:00", 7 * 60, False),
        ("22:00-07:00", NOON, False),
        ("12:30-13:30", 12 * 60 + 29, False),
        ("12:30-13:30", 12 * 60 + 30, True),
        ("12:30-13:30", 13 * 60 + 30, False),
        ("9:00-9:00", 9 * 60, False),
    ],
)
def test_quiet_hours_may_go_over_midnight(hours, minute, holds):
    assert quiet_of(hours).holds(minute) is holds


def test_the_first_message_goes_at_once_and_the_next_after_the_digest():
    schedule = Schedule(digest=60.0)
    assert schedule.may_send(0.0, NOON, has_alert=True, is_last=False)
    schedule = schedule.sent(0.0, has_alert=True)
    assert not schedule.may_send(59.9, NOON, has_alert=True, is_last=False)
    assert schedule.may_send(60.0, NOON, has_alert=True, is_last=False)


def test_news_holds_back_later_news_and_no_alert():
    schedule = Schedule(digest=60.0).sent(0.0, has_alert=False)
    assert not schedule.may_send(5.0, NOON, has_alert=False, is_last=False)
    assert schedule.may_send(5.0, NOON, has_alert=True, is_last=False)
    schedule = schedule.sent(5.0, has_alert=True)
    assert not schedule.may_send(64.9, NOON, has_alert=True, is_last=False)
    assert not schedule.may_send(64.9, NOON, has_alert=False, is_last=False)
    assert schedule.may_send(65.0, NOON, has_alert=False, is_last=False)


def test_news_between_two_alerts_does_not_shorten_the_digest():
    schedule = Schedule(digest=60.0).sent(0.0, has_alert=True)
    assert not schedule.may_send(59.0, NOON, has_alert=False, is_last=False)


def test_nothing_is_sent_in_quiet_hours_but_the_end_of_a_run():
    schedule = Schedule(digest=60.0, quiet=quiet_of("22:00-07:00")).sent(0.0, has_alert=True)
    assert not schedule.may_send(100.0, NIGHT, has_alert=True, is_last=False)
    assert schedule.may_send(100.0, NOON, has_alert=True, is_last=False)
    assert schedule.may_send(1.0, NIGHT, has_alert=True, is_last=True)


def test_what_fails_is_tried_again_after_pauses_that_double():
    schedule, clock, pauses = Schedule(digest=1.0), 0.0, []
    for _ in range(10):
        schedule = schedule.failed(clock)
        pauses.append(schedule.not_before - clock)
        clock = schedule.not_before
    assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    assert schedule.sent(clock, has_alert=True).failed(clock).pause == FIRST_PAUSE


def test_a_target_may_ask_for_a_longer_pause():
    assert Schedule(digest=1.0).failed(0.0, at_least=120.0).not_before == 120.0
