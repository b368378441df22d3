"""What the timeline says reaches its targets at least once, whatever they do and whoever dies in between."""

import json

import pytest
from real_runs import wait_until
from webhook import webhook

from coral.config.alerts import AlertsSection
from coral.notify import notifier as notifier_module
from coral.notify.message import AlertLevel
from coral.notify.notifier import Notifier, delivery_to, targets_of
from coral.notify.outbox import Outbox
from workspace.layout import Layout, create

DIGEST = 0.05


@pytest.fixture
def layout(tmp_path, monkeypatch):
    monkeypatch.setattr(notifier_module, "LOOK_SECONDS", 0.01)
    made = Layout(tmp_path / "runs" / "number" / "run")
    create(made, ["ann"])
    return made


def write(layout, *numbers, **more):
    with layout.events.open("a") as file:
        for number in numbers:
            event = {"at": "2026-01-02T03:04:05Z", "type": "alert", "agent": "", "text": f"alert {number}"}
            file.write(json.dumps({**event, "id": f"run-alert-{number}", **more}) + "\n")


def notifier(layout, *urls, **more):
    alerts = AlertsSection.model_validate({"to": urls, "digest": DIGEST, **more}, strict=False)
    made = Notifier(layout, "number", alerts)
    made.start()
    return made, targets_of(alerts)[0]


def ids(*numbers):
    return [f"run-alert-{number}" for number in numbers]


def test_alerts_arrive_in_order_and_once_where_nothing_goes_wrong(layout):
    with webhook() as hook:
        running, _ = notifier(layout, hook.url)
        write(layout, 1)
        wait_until(lambda: hook.ids == ids(1))
        write(layout, 2, 3)
        wait_until(lambda: len(hook.ids) >= 3)
        running.close()
    assert hook.ids == ids(1, 2, 3)


def test_a_message_has_the_questions_that_are_open(layout):
    layout.status.write_text(json.dumps({"questions": [{"number": 4, "agent": "ann", "text": "May I?"}]}))
    with webhook() as hook:
        running, _ = notifier(layout, hook.url)
        write(layout, 1)
        wait_until(lambda: hook.ids == ids(1))
        running.close()
    assert hook.messages[0]["questions"] == [{"number": 4, "agent": "ann", "text": "May I?"}]
    assert "coral answer 4 '...'" in hook.messages[0]["text"]


def test_news_goes_only_to_who_wants_it(layout):
    with webhook() as alerts, webhook() as news:
        running, _ = notifier(layout, alerts.url, routes=[{"to": [news.url], "level": "news", "digest": DIGEST}])
        write(layout, "best", type="published", is_best=True)
        write(layout, "other", type="published")
        write(layout, 1)
        wait_until(lambda: ids(1)[0] in news.ids)
        wait_until(lambda: alerts.ids)
        running.close()
    assert alerts.ids == ids(1)
    assert news.ids[-1:] == ids(1) or set(news.ids) == {*ids("best", 1)}
    assert set(news.ids) == {*ids("best", 1)}


def test_an_alert_does_not_wait_for_the_digest_that_news_began(layout):
    with webhook() as hook:
        running, _ = notifier(layout, hook.url, level="news", digest=3600)
        write(layout, "best", type="published", is_best=True)
        wait_until(lambda: hook.ids == ids("best"))
        write(layout, "next", type="published", is_best=True)
        write(layout, 1)
        wait_until(lambda: set(hook.ids) == {*ids("best", "next", 1)})
        write(layout, 2)
        running.close()
    assert hook.ids[-1:] == ids(2)


def test_one_that_refuses_is_tried_again_and_holds_up_nobody(layout, monkeypatch):
    monkeypatch.setattr("coral.notify.schedule.FIRST_PAUSE", 0.05)
    with webhook() as refusing, webhook() as other:
        refusing.status = 503
        running, targets = notifier(layout, refusing.url, other.url)
        write(layout, 1)
        wait_until(lambda: other.ids == ids(1))
        wait_until(lambda: len(refusing.received) >= 3)
        wait_until(lambda: "503" in delivery_to(layout, targets[0]).problem)
        refusing.status = 200
        wait_until(lambda: delivery_to(layout, targets[0]).problem == "")
        running.close()
    assert set(refusing.ids) == {*ids(1)}
    assert other.ids == ids(1)


def test_a_target_that_hangs_delays_neither_the_others_nor_the_end(layout, monkeypatch):
    monkeypatch.setattr(notifier_module, "LAST_SECONDS", 0.2)
    with webhook() as hanging, webhook() as other:
        hanging.hangs.set()
        running, targets = notifier(layout, hanging.url, other.url)
        write(layout, 1)
        wait_until(lambda: other.ids == ids(1))
        wait_until(lambda: hanging.received)
        running.close()
        assert delivery_to(layout, targets[0]).offset == 0, "it has not taken it: the next supervisor sends it again"


def test_what_was_not_taken_before_a_supervisor_died_the_next_one_sends(layout):
    with webhook() as hook:
        hook.status = 500
        first, _ = notifier(layout, hook.url)
        write(layout, 1)
        wait_until(lambda: hook.received)
        first.close()
        write(layout, 2)
        hook.status, hook.received[:] = 200, []
        second, _ = notifier(layout, hook.url)
        wait_until(lambda: len(hook.ids) >= 2)
        second.close()
    assert hook.ids == ids(1, 2)


def test_a_target_that_is_new_to_a_run_hears_only_of_what_comes(layout):
    write(layout, 1, 2)
    with webhook() as hook:
        running, targets = notifier(layout, hook.url)
        wait_until(lambda: delivery_to(layout, targets[0]))
        write(layout, 3)
        wait_until(lambda: hook.ids)
        running.close()
    assert hook.ids == ids(3)


def test_ten_thousand_alerts_in_a_moment_are_few_messages_and_none_is_left_out(layout):
    with webhook() as hook:
        running, _ = notifier(layout, hook.url, digest=0.5)
        for start in range(0, 10_000, 1000):
            write(layout, *range(start, start + 1000))
        wait_until(lambda: sum(len(message["alerts"]) + message["omitted"] for message in hook.messages) >= 10_000)
        running.close()
    assert sum(len(message["alerts"]) + message["omitted"] for message in hook.messages) == 10_000
    assert len(hook.messages) < 50


def test_a_timeline_that_is_cut_or_torn_holds_nobody_up(layout):
    with webhook() as hook:
        running, _ = notifier(layout, hook.url)
        write(layout, 1)
        wait_until(lambda: hook.ids == ids(1))
        layout.events.write_text("")
        with layout.events.open("ab") as file:
            file.write(b'{"type": "alert", "id": "torn", "text": "ha')
        layout.events.write_text("")
        write(layout, 2)
        wait_until(lambda: ids(2)[0] in hook.ids)
        running.close()
    assert "torn" not in hook.ids


def test_what_replaces_the_timeline_while_a_message_is_sent_is_not_taken_for_sent(layout):
    outbox = Outbox(layout.events, layout.notified / "target.json", AlertLevel.ALERT)
    write(layout, 1)
    notices, after = outbox.waiting()
    layout.events.write_text("")
    write(layout, 2)  # as long as what it replaces
    outbox.has_sent(after)
    again, _ = outbox.waiting()
    assert [notice.id for notice in (*notices, *again)] == ids(1, 2)
