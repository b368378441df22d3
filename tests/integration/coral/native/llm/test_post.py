"""Requests to servers that answer in their own ways: through a proxy, over TLS, drop by drop, or not to the end."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from coral.native.llm import post as post_module
from coral.native.llm.chat_wire import ChatWire
from coral.native.llm.client import ModelClient
from coral.native.llm.conversation import AnswerMessage, Message, PromptMessage, ResultMessage, ToolCall
from coral.native.llm.messages_wire import MessagesWire
from coral.native.llm.post import Limits, UnusableRequestError, post, read_url
from coral.native.llm.request import Fault, ModelError, ModelRequest, ModelWire
from coral.native.llm.textual import TextualWire

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def read_request(connection: socket.socket) -> bytes:
    """Read a request to the end of its body: a connection that is closed before is reset, and its answer lost."""
    data = b""
    while b"\r\n\r\n" not in data and (piece := connection.recv(65536)):
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while length and len(body) < int(length[1]) and (piece := connection.recv(65536)):
        body += piece
    return head + b"\r\n\r\n" + body


@contextmanager
def server(serve: Callable[[socket.socket, bytes], None]) -> Iterator[tuple[int, list[bytes]]]:
    """Serve connections on loopback one after the other; give the port, and the requests as they come."""
    listening, requests = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def run() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with closing(connection), suppress(OSError):
                connection.settimeout(20)
                head = read_request(connection)
                requests.append(head)
                serve(connection, head)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], requests
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(20)


def answer(connection: socket.socket, _head: bytes) -> None:
    connection.sendall(OK)


def body_of(url: str, *, silence: float = 20) -> bytes:
    with post(url, {}, b"{}", Limits(silence, time.monotonic() + 20)) as response:
        assert response.status == 200
        return response.read()


def test_a_server_is_asked_directly() -> None:
    with server(answer) as (port, requests):
        assert body_of(f"http://127.0.0.1:{port}/v1/x?version=2") == b"ok"
    assert requests[0].startswith(b"POST /v1/x?version=2 HTTP/1.1\r\n")


def test_a_proxy_of_the_environment_passes_the_request_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with server(answer) as (port, requests):
        monkeypatch.setenv("HTTP_PROXY", f"http://me:pass%20word@127.0.0.1:{port}")
        assert body_of("http://model.invalid:8080/v1/x") == b"ok"
        monkeypatch.setenv("NO_PROXY", ".invalid")
        with pytest.raises(OSError):
            body_of("http://model.invalid:8080/v1/x")
    assert len(requests) == 1
    assert requests[0].startswith(b"POST http://model.invalid:8080/v1/x HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cGFzcyB3b3Jk\r\n" in requests[0]


def certificate(folder: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=model.test"]
    words += ["-addext", "subjectAltName=DNS:model.test,IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(words, check=True, capture_output=True)
    return cert, key


@contextmanager
def tls_server(folder: Path) -> Iterator[tuple[int, Path]]:
    cert, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listening = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            try:
                with closing(context.wrap_socket(connection, server_side=True)) as secured:
                    read_request(secured)
                    secured.sendall(OK)
            except OSError:
                pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1], cert
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(20)


def test_tls_by_a_certificate_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tls_server(tmp_path) as (port, cert):
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        post_module._tls.cache_clear()
        assert body_of(f"https://127.0.0.1:{port}/v1") == b"ok"
    post_module._tls.cache_clear()


def test_an_unknown_certificate_ends_the_launch(tmp_path: Path) -> None:
    with tls_server(tmp_path) as (port, _):
        client = ModelClient(ChatWire(), f"https://127.0.0.1:{port}/v1", "key")
        with pytest.raises(ModelError, match=r"cannot be trusted: self.signed certificate") as refused:
            client.ask(ModelRequest(model="m", system="s"))
    assert refused.value.fault is Fault.FATAL


def test_tls_goes_through_a_tunnel_of_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tunnel(connection: socket.socket, head: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with socket.create_connection(("127.0.0.1", port), 20) as onward:
            copy = threading.Thread(target=pump, args=(onward, connection), daemon=True)
            copy.start()
            pump(connection, onward)
            copy.join(20)

    def pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    with tls_server(tmp_path) as (port, cert), server(tunnel) as (proxy_port, requests):
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy_port}")
        post_module._tls.cache_clear()
        assert body_of("https://model.test/v1") == b"ok"
    post_module._tls.cache_clear()
    assert requests[0].startswith(b"CONNECT model.test:443 HTTP/1.")


def drip(connection: socket.socket, _head: bytes) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"x" * 1000:
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


def test_headers_that_come_drop_by_drop_end_at_the_deadline() -> None:
    with server(drip) as (port, _):
        client = ModelClient(ChatWire(), f"http://127.0.0.1:{port}", "key", answer_seconds=0.4)
        with pytest.raises(ModelError, match=r"no whole answer came within 0\.4 seconds") as slow:
            client.ask(ModelRequest(model="m", system="s"))
    assert slow.value.fault is Fault.TRANSIENT


def test_silence_has_a_limit_of_its_own() -> None:
    with server(lambda connection, _: time.sleep(1)) as (port, _), pytest.raises(TimeoutError):
        body_of(f"http://127.0.0.1:{port}", silence=0.1)


def test_half_a_chunk_is_no_answer() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\ndata: {"
    with server(lambda connection, _: connection.sendall(head)) as (port, _), pytest.raises(HTTPException):
        body_of(f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("wire", [ChatWire(), MessagesWire(), TextualWire(ChatWire())])
@pytest.mark.parametrize("ends", ["hangs", "resets"])
def test_an_answer_ends_where_its_stream_says_so(wire: ModelWire, ends: str) -> None:
    over = threading.Event()

    def serve(connection: socket.socket, _head: bytes) -> None:
        events = [b'{"choices": [{"delta": {"content": "hi"}}]}', b"[DONE]"]
        if isinstance(wire, MessagesWire):
            block = b'{"type": "content_block_start", "content_block": {"type": "text", "text": "hi"}}'
            events = [block, b'{"type": "message_stop"}']
        body = b"".join(b"data: " + event + b"\n\n" for event in events)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(body), body))
        if ends == "hangs":
            over.wait(20)
        else:  # a chunk that is no chunk
            connection.sendall(b"oh\r\n")

    with server(serve) as (port, _):
        client = ModelClient(wire, f"http://127.0.0.1:{port}", "key", answer_seconds=10)
        assert client.ask(ModelRequest(model="m", system="s")).text == "hi"
        over.set()


NEWER = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
OLDER = (
    "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted'}]"
)
ORDER = "Unexpected role 'user' after role 'tool'"
TALK = (
    PromptMessage(text="go"),
    AnswerMessage(text="", calls=(ToolCall(id="c", name="log", arguments="{}"),)),
    ResultMessage(call="c", name="log", text="done"),
    PromptMessage(text="more"),
)


def sent(wire: ModelWire, base: str, *messages: Message) -> bytes:
    refusal = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with server(lambda connection, _: connection.sendall(refusal)) as (port, requests):
        client = ModelClient(wire, f"http://127.0.0.1:{port}{base}", "key")
        with pytest.raises(ModelError):
            client.ask(ModelRequest(model="m", system="s", messages=messages))
    return requests[0]


@pytest.mark.parametrize(
    ("wire", "base", "path"),
    [
        (ChatWire(), "/v1", b"/v1/chat/completions"),
        (MessagesWire(), "", b"/v1/messages"),
        (MessagesWire(), "/v1/?beta=1", b"/v1/messages?beta=1"),
        (MessagesWire(), "/claude", b"/claude/v1/messages"),
    ],
)
def test_a_base_with_or_without_its_version(wire: ModelWire, base: str, path: bytes) -> None:
    assert sent(wire, base).startswith(b"POST " + path + b" HTTP/1.1")


@pytest.mark.parametrize("wire", [ChatWire(), MessagesWire()])
def test_half_a_character_is_not_sent(wire: ModelWire) -> None:
    call = ToolCall(id="c", name="log", arguments=r'{"text": "b\ud83d"}')
    body = sent(wire, "", AnswerMessage(text="a\ud83d \ud83d\ude00 é", calls=(call,))).decode()
    assert "a\ufffd \U0001f600 é" in body
    assert "b\ufffd" in body


@pytest.mark.parametrize("refusal", [NEWER, OLDER, ORDER, f"{NEWER} {ORDER}"])
def test_a_form_that_a_server_refuses_is_replaced_once(refusal: str) -> None:
    def refuses(body: dict[str, Any]) -> bool:
        after = [one["role"] for one in body["messages"]][-2:] == ["tool", "user"]
        newer, older = NEWER in refusal and "max_tokens" in body, OLDER in refusal and "max_completion_tokens" in body
        return newer or older or (ORDER in refusal and after)

    def serve(connection: socket.socket, request: bytes) -> None:
        if refuses(json.loads(request.partition(b"\r\n\r\n")[2])):
            error = json.dumps({"error": {"message": "Provider returned error", "metadata": {"raw": refusal}}})
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + error.encode())
        else:
            connection.sendall(b'HTTP/1.1 200 OK\r\n\r\ndata: {"choices": [{"delta": {"content": "hi"}}]}\n\n')
            connection.sendall(b"data: [DONE]\n\n")

    with server(serve) as (port, requests):
        client = ModelClient(ChatWire(), f"http://127.0.0.1:{port}", "key")
        effort = "low" if refusal == OLDER else ""
        request = ModelRequest(model="m", system="s", messages=TALK, effort=effort, answer_tokens=9)
        assert [client.ask(request).text for _ in "12"] == ["hi", "hi"]
        assert len(requests) == 3
    body = json.loads(requests[-1].partition(b"\r\n\r\n")[2])
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 9
    assert "more" in body["messages"][-1]["content"]


@pytest.mark.parametrize("refusal", [NEWER, OLDER, ORDER, "max_tokens is too large: this model supports at most 5"])
@pytest.mark.parametrize("wire", [ChatWire, MessagesWire, lambda: TextualWire(ChatWire())])
def test_a_refusal_of_every_form_is_an_error(wire: Callable[[], ModelWire], refusal: str) -> None:
    error = f"HTTP/1.1 400 Bad Request\r\n\r\n{refusal}".encode()
    with server(lambda connection, _: connection.sendall(error)) as (port, requests):
        client = ModelClient(wire(), f"http://127.0.0.1:{port}", "key")
        with pytest.raises(ModelError) as refused:
            client.ask(ModelRequest(model="m", system="s", messages=TALK, answer_tokens=9))
    assert refused.value.fault is Fault.REJECTED
    assert len(requests) <= 2


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:80",
        "ftp://host",
        "http://",
        "http://a b",
        "http://host:port",
        "http://host:99999",
        "http://host:0",
        "http://höst",
        "http://api..host",
        f"http://{'a' * 64}.host",
        "http://[::1",
        "http://host\r\nx: y",
    ],
)
def test_an_address_that_cannot_be_asked(address: str) -> None:
    with pytest.raises(UnusableRequestError, match="no address of the form"):
        read_url(address)
    with pytest.raises(ModelError, match="cannot ask the model") as refused:
        ModelClient(ChatWire(), address, "key").ask(ModelRequest(model="m", system="s"))
    assert refused.value.fault is Fault.FATAL


def test_a_key_that_is_no_header_is_refused() -> None:
    with (
        server(lambda *_: None) as (port, requests),
        pytest.raises(ModelError, match="cannot ask the model: the key") as refused,
    ):
        ModelClient(ChatWire(), f"http://127.0.0.1:{port}", "key\nmore").ask(ModelRequest(model="m", system="s"))
    assert refused.value.fault is Fault.FATAL
    assert "more" not in str(refused.value)
    assert not any(request.strip() for request in requests)


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_proxy_of_another_kind_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", address)
    with pytest.raises(UnusableRequestError):
        body_of("http://model.invalid/v1")
