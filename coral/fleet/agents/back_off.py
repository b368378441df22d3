"""How long an agent waits before it is started again after a failure."""

import hashlib

from coral.fleet.agent_state import Agent
from coral.fleet.rules import Rules


def back_off(run: str, agent: Agent, failures: int, rules: Rules) -> float:
    """Return the exponential back-off after `failures` failures in a row, in seconds. The jitter of up to a fifth is a
    hash of run, agent and launch and not random, so that `decide` stays pure."""
    seconds: float = min(rules.backoff * 2.0 ** min(failures - 1, 30), rules.backoff_max)
    digest = hashlib.sha256(f"{run}/{agent.name}/{agent.launch}".encode()).digest()
    return seconds * (1.0 + 0.2 * digest[0] / 255)
