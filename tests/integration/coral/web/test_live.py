"""A real server of a run that changes: what it tells an open page, what it does when the run goes away."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest
from dashboard import Served, live_messages, serving, visitor
from real_runs import wait_until
from sample import attempt, make_run, write_events, write_status

from attempts.store import Store
from coral.web.live import BACKLOG, FeedReader, RunFeed, signature
from coral.web.server import bind
from heartbeats.interval import WatchedLook
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    made = make_run(tmp_path / "runs")
    write_status(made)
    return made


@pytest.fixture
def served(layout: Layout) -> Iterator[Served]:
    with serving(layout) as found:
        yield found


def first(messages: Iterator[tuple[str, str]], kind: str) -> Any:
    return next(json.loads(data) for name, data in messages if name == kind)


def test_a_published_attempt_is_told_at_once(layout: Layout, served: Served) -> None:
    with served.client() as client, live_messages(client, layout.root.name) as messages:
        assert first(messages, "fleet")["attempts"] == 4
        delays = []
        for number in range(5, 16):
            Store(layout.attempts).publish(attempt(number, 3.0 + number))
            write_events(layout, {"type": "published", "attempt": number, "clock": 700.0, "agent": "agent-2"})
            began = time.monotonic()
            point = first(messages, "point")
            delays.append(time.monotonic() - began)
            assert (point["number"], point["score"], point["at"]) == (number, 3.0 + number, 700.0)
        print(f"a published attempt is told after {sorted(delays)[len(delays) // 2] * 1000:.0f} ms")


def test_a_changed_status_and_an_event_are_told(layout: Layout, served: Served) -> None:
    with served.client() as client, live_messages(client, layout.root.name) as messages:
        first(messages, "events")
        write_status(layout, attempts=123)
        while first(messages, "fleet")["attempts"] != 123:
            pass
        write_events(layout, {"type": "alert", "text": "look here", "clock": 1.0, "agent": "agent-1"})
        assert first(messages, "event")["text"] == "alert look here"


def test_a_run_that_is_moved_away_is_told_and_shown_again_when_it_is_back(layout: Layout, served: Served) -> None:
    with served.client() as client, live_messages(client, layout.root.name) as messages:
        first(messages, "fleet")
        away = layout.root.with_name("away")
        layout.root.rename(away)
        while "gone" not in first(messages, "fleet"):
            pass
        answer = client.get(f"/api/runs/{layout.root.name}/attempts")
        assert answer.status_code in (404, 410)
        assert answer.json()["error"]
        away.rename(layout.root)
        while "gone" in first(messages, "fleet"):
            pass
        assert client.get(f"/api/runs/{layout.root.name}/attempts").status_code == 200
        layout.root.rename(away)  # into its own folder the server might write its index meanwhile
        shutil.rmtree(away)
        while "gone" not in first(messages, "fleet"):
            pass
        assert not layout.root.exists()  # nobody makes it again


def test_the_server_writes_nothing(layout: Layout, served: Served) -> None:
    with served.client() as client:
        for path in ("fleet", "curve", "attempts", "attempts/4"):
            assert client.get(f"/api/runs/{layout.root.name}/{path}").status_code == 200
        files = {path for path in layout.root.rglob("*") if path.is_file()}
        assert {path.name for path in files} - {"index.sqlite"} == {
            path.name for path in files if path.suffix in (".json", ".md", ".yaml")
        }
        assert list(layout.requests_of("operator").iterdir()) == []


def test_a_record_that_is_a_link_to_something_private_is_not_read(layout: Layout, served: Served) -> None:
    layout.private.mkdir(exist_ok=True)
    secret = layout.private / "answer.json"
    secret.write_text(json.dumps({"number": 9, "title": "secret"}))
    (layout.attempts / "000009.json").symlink_to(secret)
    layout.status.unlink()
    layout.status.symlink_to(secret)
    with served.client() as client:
        for path in ("fleet", "attempts", "attempts/9", "curve"):
            assert "secret" not in client.get(f"/api/runs/{layout.root.name}/{path}").text


def test_it_ends_at_once_with_pages_open(layout: Layout, served: Served) -> None:
    with served.client() as client, live_messages(client, layout.root.name) as messages:
        first(messages, "fleet")
        served.process.terminate()
        assert served.process.wait(120) is not None
        # Ended in order and not cut, so that there is nothing to complain about.
        assert [kind for kind, _ in messages if kind not in ("event", "events", "fleet")] == []
        assert "ERROR" not in served.process.stderr.read()


def test_a_server_that_is_started_again_with_its_token_knows_open_pages(layout: Layout) -> None:
    token = {"CORAL_UI_TOKEN": "a token for many starts"}
    port = 20_000 + os.getpid() % 10_000  # below those that the system gives to others in between
    with serving(layout, port=port, **token) as served, served.client() as client:
        cookies = dict(client.cookies)
    with serving(layout, port=port, **token) as again:
        assert httpx.get(f"{again.url}/api/session", cookies=cookies).status_code == 200
    with serving(layout, port=port) as again:
        assert httpx.get(f"{again.url}/api/session", cookies=cookies).status_code == 401


def test_an_agent_is_refused(layout: Layout) -> None:
    with pytest.raises(AssertionError, match="that is for the operator"), serving(layout, CORAL_AGENT="agent-1"):
        pass


def test_commits_that_git_cannot_find_are_told_in_words(layout: Layout) -> None:
    answer = visitor(layout).get(f"/api/runs/{layout.root.name}/attempts/4/diff")
    assert answer.status_code == 404
    assert "git diff" in answer.json()["error"]


def test_pages_that_come_at_once_share_one_watch(layout: Layout) -> None:
    async def scenario() -> int:
        feed = RunFeed(layout)
        pages = [feed.messages() for _ in range(5)]
        before = asyncio.all_tasks()
        await asyncio.gather(*(anext(page) for page in pages))
        watches = asyncio.all_tasks() - before
        await asyncio.gather(*(page.aclose() for page in pages))
        await asyncio.gather(*watches)
        return len(watches)

    assert asyncio.run(scenario()) == 1


def test_whoever_knows_the_address_can_connect_before_it_serves(layout: Layout) -> None:
    with contextlib.closing(bind("127.0.0.1", 0)) as bound, socket.create_connection(bound.getsockname()):
        pass


def test_a_page_that_falls_behind_is_sent_away_and_the_others_go_on(layout: Layout) -> None:
    async def scenario() -> None:
        feed = RunFeed(layout)
        asleep, awake = feed.messages(), feed.messages()
        await anext(asleep)
        await anext(awake)
        for number in range(BACKLOG + 1):
            feed._send([("event", str(number))])
            while (await anext(awake))[1] != str(number):
                pass
        kinds = [kind async for kind, _ in asleep]
        assert len(kinds) <= 2
        await awake.aclose()

    asyncio.run(scenario())


def test_looking_costs_a_few_calls_of_stat(layout: Layout) -> None:
    before = signature(layout)
    assert signature(layout) == before
    write_status(layout, attempts=9)
    assert signature(layout) != before
    assert wait_until(lambda: signature(Layout(layout.root / "nothing")) == ((0, 0, 0),) * 3)


def test_pages_begin_again_when_what_tells_them_fails(layout: Layout, monkeypatch) -> None:
    def fail(_: object) -> None:
        raise ValueError("no such thing was foreseen")

    async def scenario() -> None:
        feed = RunFeed(layout)
        with monkeypatch.context() as broken:
            broken.setattr(FeedReader, "changes", fail)
            async with asyncio.timeout(20):
                assert [kind async for kind, _ in feed.messages()] == ["fleet", "events"]
        write_status(layout, attempts=123)
        again = feed.messages()
        assert json.loads((await anext(again))[1])["attempts"] == 123
        await again.aclose()
        assert WatchedLook(layout.supervisor_beats).is_watched()  # the run's beats come often while a page is open

    asyncio.run(scenario())
