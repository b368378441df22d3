"""Who may ask: the Host and Origin, the token and its cookie, the header of a change, the policy of every answer."""

import socket

import pytest
from dashboard import BASE, PORT, TOKEN, change_headers, stranger, visitor
from sample import make_run

from coral.web.access import HEADERS, PageAccess, is_loopback, is_own_host, own_names
from coral.web.assets import assets
from workspace.layout import Layout


@pytest.fixture
def layout(tmp_path):
    return make_run(tmp_path / "runs")


def test_nothing_of_a_run_is_had_without_the_token(layout: Layout) -> None:
    client = stranger(layout)
    page = client.get("/")
    assert (page.status_code, "token" in page.text, "script" in page.text) == (401, True, False)
    for path in ("/api/session", f"/api/runs/{layout.root.name}/fleet", f"/api/runs/{layout.root.name}/live", "/api/x"):
        assert client.get(path).status_code == 401, path
    assert client.get("/", params={"token": "wrong"}).status_code == 401
    assert not client.cookies


def test_the_token_becomes_a_cookie_that_scripts_and_other_pages_do_not_get(layout: Layout) -> None:
    client = stranger(layout)
    answer = client.get("/", params={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert client.get("/").status_code == 200


def test_the_page_and_its_files_are_served(layout: Layout) -> None:
    client = visitor(layout)
    assert {path: client.get(path).status_code for path in assets()} == dict.fromkeys(assets(), 200)
    tag = client.get("/app.js").headers["etag"]
    assert client.get("/app.js", headers={"if-none-match": tag}).status_code == 304


def test_every_answer_has_the_policy(layout: Layout) -> None:
    client = visitor(layout)
    for path in ("/", "/app.js", "/api/session", "/nothing", f"/api/runs/{layout.root.name}/fleet"):
        answer = client.get(path)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path
    assert "unsafe" not in HEADERS["content-security-policy"]


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1.evil.example", "", "x@127.0.0.1"])
def test_a_name_that_was_pointed_here_gets_nothing(layout: Layout, host: str) -> None:
    assert visitor(layout).get("/api/session", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:7331", "[::1]:7331", "192.168.1.7:7331"])
def test_addresses_of_this_machine_are_its_own(host: str) -> None:
    assert is_own_host(host)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": f"ftp://127.0.0.1:{PORT}"},
        {"origin": "http://["},
        {"origin": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_another_page_gets_nothing(layout: Layout, headers: dict[str, str]) -> None:
    assert visitor(layout).get("/api/session", headers=headers).status_code == 403


def test_a_name_server_is_asked_once_whatever_names_are_tried(monkeypatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(socket, "getfqdn", lambda: asked.append("x") or "full.name.example")
    own_names.cache_clear()
    try:
        for host in ("localhost", "127.0.0.1:1", "[::1]"):
            assert is_own_host(host)
        assert asked == []
        assert [is_own_host(host) for host in ("evil.example", "full.name.example", "other.example")] == [0, 1, 0]
        assert asked == ["x"]
    finally:
        own_names.cache_clear()


def test_our_own_page_is_let_through(layout: Layout) -> None:
    answer = visitor(layout).get("/api/session", headers={"origin": BASE, "sec-fetch-site": "same-origin"})
    assert answer.json()["change"] == change_headers()["x-coral-change"]


def test_nothing_is_changed_by_another_method_or_without_the_pages_token(layout: Layout) -> None:
    client, path = visitor(layout), f"/api/runs/{layout.root.name}/requests"
    assert client.put(path, json={}).status_code == 405
    assert client.delete(path).status_code == 405
    assert client.post(path, json={}).status_code == 403
    assert client.post(path, json={}, headers={"x-coral-change": "guess"}).status_code == 403
    assert (
        client.post(path, content=b"{}", headers={**change_headers(), "content-type": "text/plain"}).status_code == 415
    )
    assert client.post(path, json="x" * 200_000, headers=change_headers()).status_code == 413
    pieces = {**change_headers(), "transfer-encoding": "chunked", "content-length": "2"}
    assert client.post(path, json={}, headers=pieces).status_code == 413
    assert list(layout.requests_of("operator").iterdir()) == []


@pytest.mark.parametrize("way", ["..%2f", "%2e%2e/", "..%252f", "....//", "/", "%5c..%5c", "%00"])
@pytest.mark.parametrize("start", ["/", "/vendor/", "/api/runs/", "/api/runs/{run}/", "/api/runs/{run}/attempts/"])
def test_no_path_leads_out_of_what_is_served(layout: Layout, start: str, way: str) -> None:
    layout.task_file.write_text("a secret task")
    client = visitor(layout)
    for end in ("private/task.yaml", "status.json", "etc/passwd", "access.py"):
        answer = client.get(BASE + start.replace("{run}", layout.root.name) + way * 3 + end)
        assert answer.status_code in (400, 404), answer.url
        assert "secret" not in answer.text


def test_tokens_are_long_and_differ_and_are_not_shown() -> None:
    first, second = PageAccess(1), PageAccess(1)
    assert len(first.token) >= 40
    assert first.token != second.token
    assert first.token not in repr(first)
    assert len({first.token, first.cookie, first.change}) == 3


def test_loopback_is_told_from_addresses_that_others_reach() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1")] == [
        *[True] * 3,
        *[False] * 3,
    ]
