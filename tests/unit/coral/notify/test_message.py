"""What of the timeline is sent, and how several notices become one message."""

import json

import pytest

from coral.notify.message import (
    SHOWN,
    TEXT_LENGTH,
    AlertLevel,
    Notice,
    OpenQuestion,
    compose,
    notice_of,
    questions_in,
)


def line(**event):
    return json.dumps({"at": "2026-01-02T03:04:05.678Z", "agent": "", "text": "", **event}).encode()


def notice(number, text="it hangs", level=AlertLevel.ALERT):
    return Notice(id=f"run-alert-{number}", level=level, at="2026-01-02T03:04:05.678Z", agent="ann", text=text)


@pytest.mark.parametrize(
    ("event", "level"),
    [
        ({"type": "alert", "id": "run-alert-1"}, AlertLevel.ALERT),
        ({"type": "stopped"}, AlertLevel.ALERT),
        ({"type": "published", "is_best": True}, AlertLevel.NEWS),
        ({"type": "verified"}, AlertLevel.NEWS),
        ({"type": "published"}, None),
        ({"type": "published", "is_best": "yes"}, None),
        ({"type": "spawned"}, None),
        ({}, None),
    ],
)
def test_what_is_sent_goes_by_the_type_of_a_line(event, level):
    found = notice_of("run", line(**event))
    assert (found and found.level) == level


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_line_of_the_timeline_is_left_out(data):
    assert notice_of("run", data) is None


def test_an_alert_keeps_its_id_and_other_lines_get_one_that_stays():
    assert notice_of("run", line(type="alert", id="run-alert-7")).id == "run-alert-7"
    assert notice_of("run", line(type="stopped")).id == notice_of("run", line(type="stopped")).id


def test_a_text_is_one_line_and_not_endless():
    found = notice_of("run", line(type="alert", id="x", text="one\ntwo\t" + "x" * 10_000))
    assert found.text.startswith("one two xxx")
    assert len(found.text) == TEXT_LENGTH


def test_what_an_agent_says_cannot_steer_the_terminal_of_who_reads_it():
    found = notice_of("run", line(type="alert", id="x", text="\x1b[31mred\x07 \u202eback\0 \ud800"))
    assert found.text == "[31mred back ?"
    assert found.text.encode()


def test_what_was_said_several_times_stands_once():
    message = compose("run", "task", [notice(1), notice(2), notice(3, "it is back")])
    assert [(row["id"], row.get("count")) for row in message.data()["alerts"]] == [
        ("run-alert-1", 2),
        ("run-alert-3", None),
    ]
    assert "ann: it hangs (2 times)" in message.text
    assert message.title == "Coral · task: 2 notices, 2 of them alerts"


def test_of_ten_thousand_notices_the_alerts_are_named_and_the_rest_is_counted():
    news = [notice(number, f"best {number}", AlertLevel.NEWS) for number in range(10_000)]
    message = compose("run", "task", [*news, notice(0, "the disk is full")])
    assert message.notices[0].text == "the disk is full"
    assert (len(message.notices), message.omitted) == (SHOWN, 10_001 - SHOWN)
    assert "and 9981 more: coral alerts --run run" in message.text


def test_of_ten_thousand_alerts_the_first_and_the_last_are_named():
    alerts = [notice(number, f"alert {number}") for number in range(10_000)]
    message = compose("run", "task", [*alerts, notice(0, "it has stopped")])
    assert [one.text for one in message.notices[:2]] == ["alert 0", "alert 1"]
    assert [one.text for one in message.notices[-2:]] == ["alert 9999", "it has stopped"]
    assert (len(message.notices), message.omitted) == (SHOWN, 10_001 - SHOWN)


def test_one_notice_is_its_own_title():
    assert compose("run", "task", [notice(1)]).title == "Coral · task: ann: it hangs"


def test_each_message_names_the_open_questions_and_how_to_answer_them():
    message = compose("run", "task", [notice(1)], (OpenQuestion(4, "ben", "May I use the network?"),))
    assert "open question 4 of ben: May I use the network?  coral answer 4 '...' --run run" in message.text
    assert message.data()["questions"] == [{"number": 4, "agent": "ben", "text": "May I use the network?"}]
    assert message.title == "Coral · task: ann: it hangs"


@pytest.mark.parametrize("rows", [None, 3, [None, {"number": "4"}, {}, []]])
def test_a_status_that_somebody_else_wrote_names_none(rows):
    assert questions_in({"questions": rows}) == ()


def test_questions_are_short_lines_and_not_many():
    rows = [{"number": number, "agent": "ann", "text": "\x1b[1mwhy\n" + "x" * 900} for number in range(100)]
    found = questions_in({"questions": rows})
    assert (len(found), len(found[0].text), found[0].text[:8]) == (SHOWN, 200, "[1mwhy x")
