"""Sends the requests of the live view in threads, so that the view goes on while an answer is waited for."""

import queue
import threading
from typing import NamedTuple

from coral.cli.run_data import send_request
from coral.cli.ui.live_state import Request
from coral.errors import CoralError
from workspace.layout import Layout


class LiveAnswer(NamedTuple):
    text: str
    refused: bool


class LiveRequests:
    """The requests that were sent. `waiting`: how many of them are not answered yet."""

    def __init__(self, layout: Layout) -> None:
        self.waiting = 0
        self._layout = layout
        self._answers: queue.SimpleQueue[LiveAnswer] = queue.SimpleQueue()

    def send(self, request: Request) -> None:
        self.waiting += 1
        threading.Thread(target=self._ask, args=(request,), name="request", daemon=True).start()

    def answers(self) -> list[LiveAnswer]:
        """Return the answers that came since the last call."""
        found = [self._answers.get() for _ in range(self._answers.qsize())]
        self.waiting -= len(found)
        return found

    def _ask(self, request: Request) -> None:
        try:
            sender = send_request.as_operator("steer the agents")
            answered = send_request.answer_to(self._layout, sender, request)
            self._answers.put(LiveAnswer(_joined(str(answered["message"]), str(answered["hint"])), False))
        except CoralError as error:
            self._answers.put(LiveAnswer(_joined(str(error), error.hint), True))
        except OSError as error:
            self._answers.put(LiveAnswer(f"cannot send it: {error}", True))


def _joined(message: str, hint: str) -> str:
    return f"{message} · {hint}" if hint else message
