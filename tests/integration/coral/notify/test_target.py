"""Messages that really arrive: by HTTP, by a program, by mail."""

import contextlib
import hashlib
import hmac
import json
import socket
import sys
import threading
from contextlib import contextmanager

import pytest
from real_runs import wait_until
from shortages import no_more_threads
from webhook import webhook

from coral.config.alerts import AlertRoute
from coral.errors import CoralError
from coral.notify import target as target_module
from coral.notify.message import AlertLevel, Message, Notice
from coral.notify.target import SendError, Target

NOTICE = Notice(id="run-alert-3", level=AlertLevel.ALERT, at="2026-01-02T03:04:05Z", agent="ann", text="it hangs ✓")
MESSAGE = Message("run", "number", (NOTICE,))


def target(destination, **more):
    route = AlertRoute.model_validate(more, strict=False)
    return Target(route, destination)


def test_a_webhook_gets_the_message_signed(monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", "a secret")
    with webhook() as hook:
        target(hook.url, secret="HOOK_SECRET").send(MESSAGE)
    ((headers, body),) = hook.received
    signature = hmac.new(b"a secret", body, hashlib.sha256).hexdigest()
    assert headers["X-Coral-Signature"] == f"sha256={signature}"
    assert (headers["X-Coral-Id"], headers["Content-Type"]) == ("run-alert-3", "application/json")
    data = json.loads(body)
    assert data["alerts"] == [
        {"id": "run-alert-3", "level": "alert", "at": "2026-01-02T03:04:05Z", "agent": "ann", "text": "it hangs ✓"}
    ]
    assert "ann: it hangs ✓" in data["text"]


def test_the_name_of_a_target_gives_nothing_away(monkeypatch):
    monkeypatch.setenv("HOOK", "https://example.org/services/T0/secret")
    assert target("https://example.org/services/T0/secret").name == "https://example.org/..."
    assert target("http://ann:pass@127.0.0.1:8080/secret").name == "http://127.0.0.1:8080/..."
    assert target("env:HOOK").name == "env:HOOK"
    assert "pass" not in target("mailto://user:pass@example.org?to=a@example.org").name


def test_a_target_that_cannot_work_is_named_as_it_was_typed(monkeypatch):
    monkeypatch.setattr(target_module.sys, "platform", "linux")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CoralError, match="cannot send alerts to desktop: there is no program notify-send"):
        target("desktop")
    with pytest.raises(CoralError, match="cannot send alerts to dekstop: "):
        target("dekstop")
    with pytest.raises(CoralError, match=r"cannot send alerts to unknown://\.\.\.: "):
        target("T0secretTOKENxyz")


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [(500, {}, 0.0), (429, {"Retry-After": "120"}, 120.0), (302, {"Location": "http://127.0.0.1:1/"}, 0.0)],
)
def test_what_does_not_take_the_message_says_why(status, headers, wait):
    with webhook() as hook:
        hook.status, hook.headers = status, headers
        with pytest.raises(SendError, match=str(status)) as caught:
            target(hook.url).send(MESSAGE)
        assert caught.value.wait == wait
        assert len(hook.received) == 1


def test_nobody_listens_and_one_that_never_answers(monkeypatch):
    monkeypatch.setattr(target_module, "SECONDS", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(SendError, match="refused"):
            target(f"http://127.0.0.1:{free.getsockname()[1]}/").send(MESSAGE)
    with webhook() as hook:
        hook.hangs.set()
        with pytest.raises(SendError, match="took more than"):
            target(hook.url).send(MESSAGE)


@pytest.mark.parametrize(
    "answer", [b"220 mail.example.org ESMTP\r\n", b"\xff\xfe\x1b[31m\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"]
)
def test_what_answers_in_another_protocol_has_not_taken_it(answer):
    with raw_server(answer) as url, pytest.raises(SendError, match="does not speak HTTP") as caught:
        target(url).send(MESSAGE)
    assert str(caught.value).isprintable()


def test_an_address_that_is_none_is_no_crash():
    with pytest.raises(SendError, match="nonnumeric port"):
        target("http://127.0.0.1:port/").send(MESSAGE)
    with pytest.raises(SendError, match="control characters"):
        target("http://127.0.0.1/a b").send(MESSAGE)


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\nA: "])
def test_an_answer_of_a_byte_now_and_then_is_given_up_too(begin, monkeypatch):
    monkeypatch.setattr(target_module, "SECONDS", 0.5)
    with raw_server(begin, pause=0.05) as url, pytest.raises(SendError, match="took more than"):
        target(url).send(MESSAGE)


@contextmanager
def raw_server(begin: bytes, pause: float = 0.0):
    """One that answers with these bytes, then with one more at each `pause`, until the client is gone."""

    def answer():
        connection, _ = server.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            connection.sendall(begin)
            while pause:
                over.wait(pause)
                connection.sendall(b"K")

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join()


def test_a_program_gets_the_message_on_its_standard_input(tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    program = (sys.executable, "-c", f"import sys; open({str(kept)!r}, 'w').write(sys.stdin.read())")
    target(program).send(MESSAGE)
    assert json.loads(kept.read_text()) == MESSAGE.data()
    with pytest.raises(SendError, match="exit code 3: no"):
        target((sys.executable, "-c", "import sys; print('no', file=sys.stderr); sys.exit(3)")).send(MESSAGE)
    with no_more_threads(), pytest.raises(SendError, match="can't start new thread"):
        target((sys.executable, "-c", "")).send(MESSAGE)
    monkeypatch.setattr(target_module, "SECONDS", 0.3)
    with pytest.raises(SendError, match="took more than"):
        target((sys.executable, "-c", "import time; time.sleep(60)")).send(MESSAGE)


def test_a_program_is_over_when_it_ends_though_what_it_started_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(target_module, "SECONDS", 5.0)
    over, kept = tmp_path / "over", tmp_path / "kept"
    goes_on = f"(until test -e {over}; do sleep 0.02; done; echo late >&2; echo x >> {kept}) &"
    target(("/bin/sh", "-c", goes_on)).send(MESSAGE)
    with pytest.raises(SendError, match=r"exit code 4: no$"):
        target(("/bin/sh", "-c", f"echo no >&2; {goes_on} exit 4")).send(MESSAGE)
    over.touch()
    wait_until(lambda: kept.exists() and kept.read_text() == "x\nx\n")


class MailServer(threading.Thread):
    """Speaks as much SMTP as a mail needs."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.mail = b""

    def run(self):
        with self.socket:
            connection, _ = self.socket.accept()
        with connection, connection.makefile("rwb") as stream:

            def answer(text):
                stream.write(text + b"\r\n")
                stream.flush()

            answer(b"220 here")
            for line in stream:
                word = line.split()[0].upper() if line.split() else b""
                if word == b"DATA":
                    answer(b"354 go on")
                    for part in iter(stream.readline, b".\r\n"):
                        self.mail += part
                answer(b"221 bye" if word == b"QUIT" else b"250 ok")
                if word == b"QUIT":
                    return


def test_a_mail_arrives_by_apprise():
    server = MailServer()
    server.start()
    address = f"mailto://127.0.0.1:{server.port}?from=coral@example.org&to=ann@example.org&mode=insecure"
    target(address).send(MESSAGE)
    server.join(30)
    assert b"To: ann@example.org" in server.mail
    assert b"Subject:" in server.mail


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("env:NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set"),
        ("gopher://example.org", "apprise does not know it"),
        ("just words", "apprise does not know it"),
        (("no-such-program-anywhere",), "there is no such program"),
    ],
)
def test_a_target_that_cannot_work_here_says_why(destination, words):
    with pytest.raises(CoralError, match=words):
        target(destination)
