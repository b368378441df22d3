"""The answer to a checkpoint is understood however it is decorated, and nothing else is taken for one."""

import pytest
from hypothesis import given, strategies as st

from heartbeats.reply import AlertReply, OkReply, OtherReply, parse_reply


@pytest.mark.parametrize(
    "text",
    [
        *("HEARTBEAT_OK", "**HEARTBEAT_OK**", "`HEARTBEAT_OK`.", "> HEARTBEAT_OK", "HEARTBEAT_OK\r\n"),
        *("All fine.\n\nHEARTBEAT_OK\n\n", "```\nHEARTBEAT_OK\n```"),
        *("\u201cHEARTBEAT_OK\u201d", "\ufeffHEARTBEAT_OK", "HEARTBEAT_OK \u200b"),
        "It would be ALERT: x\nif it were so.\nHEARTBEAT_OK",
        "ALERT: solved meanwhile\nHEARTBEAT_OK",
    ],
)
def test_ok_is_the_last_line(text: str) -> None:
    assert parse_reply(text) == OkReply()


@pytest.mark.parametrize(
    ("text", "alert"),
    [
        ("ALERT: the disk is full", "the disk is full"),
        ("Looked at it.\nALERT: the disk is full\n\n", "the disk is full"),
        ("**ALERT:** the disk is full", "the disk is full"),
        ("**ALERT: the disk is full**", "the disk is full"),
        ("- `ALERT: the disk is full`", "the disk is full"),
        ("ALERT: first\nALERT: second", "second"),
        ("HEARTBEAT_OK\nALERT: no, the disk is full", "no, the disk is full"),
        ("ALERT: the disk is full\nI go on now.", "the disk is full"),
        ("ALERT:\nthe disk\nis full", "the disk is full"),
        ("ALERT: " + "x" * 9_000, "x" * 2_000),
        ("ALERT: \x1b[31mred", "[31mred"),
    ],
)
def test_an_alert_is_a_line(text: str, alert: str) -> None:
    assert parse_reply(text) == AlertReply(alert)


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n\n", "```\n```", "I am fine.", "heartbeat_ok", "NOT HEARTBEAT_OK", "ALERT:", "ALERT"),
        *("HEARTBEAT_OK, and now I go on.", "HEARTBEAT_OK\nI go on now."),
        *("an ALERT: in the middle", "alert: small letters"),
    ],
)
def test_anything_else_is_no_answer(text: str) -> None:
    assert parse_reply(text) == OtherReply(text)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    reply = parse_reply(text)
    assert not isinstance(reply, AlertReply) or reply.text
