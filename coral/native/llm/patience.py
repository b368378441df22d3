"""Asks a model until it answers: after an error that may pass, it asks again after a back-off.

If the server names a wait, that is kept if it is short; a long one ends the launch, and the supervisor parks the
account.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from coral.native.llm.client import ModelClient
from coral.native.llm.request import LONGEST_WAIT, Fault, ModelError, ModelRequest, Reply

TRIES = 6
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long to wait. `report`: gets the number of the failed try, the seconds until the next, and the
    reason. `scale`: of the back-off; tests wait less."""

    report: Callable[[int, float, str], None]
    scale: float = 1.0
    sleep: Callable[[float], None] = time.sleep

    def ask(self, client: ModelClient, request: ModelRequest) -> Reply:
        """Return a whole answer that is not empty. Raises the last ModelError if none came."""
        for number in range(1, TRIES + 1):
            try:
                reply = client.ask(request)
                if not reply.empty:
                    return reply
                problem = _emptiness(reply, request)
            except ModelError as error:
                problem = error
            seconds = self._wait(problem, number)
            if seconds is None or number == TRIES:
                raise problem
            self.report(number, seconds, str(problem))
            self.sleep(seconds)
        raise AssertionError("unreachable")

    def _wait(self, problem: ModelError, number: int) -> float | None:
        """Return the seconds before the next try; None if another try would be in vain."""
        if problem.fault in (Fault.FATAL, Fault.REJECTED):
            return None
        named = problem.retry_after or 0.0  # some servers name none, or a time that has passed
        if named > LONGEST_WAIT:
            return None
        return max(named, self.scale * min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (number - 1)))


def _emptiness(reply: Reply, request: ModelRequest) -> ModelError:
    """Return the error of an empty answer. One that was cut off was reasoning alone: it cost as much as an answer may,
    and so would the next."""
    if not reply.cut:
        return ModelError(Fault.TRANSIENT, "the model gave an empty answer")
    limit = f"{request.answer_tokens} tokens" if request.answer_tokens else "the server's own limit"
    text = f"the answer was cut off before its first word, at {limit}; set answer_tokens higher, or window lower"
    return ModelError(Fault.FATAL, text)
