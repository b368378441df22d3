"""`coral doctor --ping` with the real programs: what it says is what a run would meet."""

import threading

import pytest
from driven import PATIENCE, Drive
from model_server import Step

from coral.fleet.events import Ending
from coral.preflight.ping import PROMPT, ping

pytestmark = pytest.mark.timeout(900)


def test_a_program_answers_with_a_word(program: str, drive: Drive) -> None:
    server, desk = drive(program, [Step(say="pong", usage=(100, 7, 0))])
    pong = ping(desk.runtime, desk.model, 2 * PATIENCE, threading.Event())
    assert (pong.ending, pong.reply) == (Ending.CLEAN, "pong"), pong
    assert server.turns[0].has(PROMPT.strip())


def test_a_key_that_is_refused_is_said(program: str, drive: Drive) -> None:
    _, desk = drive(program, [Step(error="denied", times=1000)])
    pong = ping(desk.runtime, desk.model, 2 * PATIENCE, threading.Event())
    assert pong.ending is Ending.TERMINAL, pong
    assert pong.error
