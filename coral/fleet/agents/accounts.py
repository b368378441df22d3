"""Accounts: agents that spend from one purse stop together when it is empty, and come back one after the other.

When the provider said that usage is there again, one agent tries; only when it has found some do the others start.
A purse that is closed for good, as by a wrong key, ends the work of all that depend on it.
"""

import hashlib
from dataclasses import replace

from coral.fleet.agent_state import LIVE, Agent, Phase
from coral.fleet.policy import JITTER_SECONDS, PROBE_SECONDS, RETURN_SECONDS, back_off
from coral.fleet.run_state import Limit
from coral.fleet.transaction import Transaction

OVER = "usage limit is over"


def on_limit(transaction: Transaction, agent: Agent, until: float | None) -> None:
    """An agent ran into its account's limit, which ends in `until` seconds, if the provider said so."""
    account = transaction.rules.accounts[agent.name]
    known = transaction.run.limits.get(account)
    if known is not None and known.probe != agent.name:
        if known.until is not None and until is not None and not known.probe:
            # The same wave: who knows of the latest end is believed.
            _limit(transaction, account, replace(known, until=max(known.until, transaction.clock + until)))
        return
    tries = 0 if known is None else known.tries + 1
    seconds = _seconds(transaction, agent, until, tries)
    _limit(transaction, account, Limit(until=transaction.clock + seconds, tries=tries))
    if known is None:
        count = len(_agents_of(transaction, account))
        transaction.alert(
            f"{account} has reached its usage limit; {count} agents are parked for {seconds / 60:.1f} minutes"
        )


def close(transaction: Transaction, account: str, reason: str) -> None:
    """Nothing can come of this account any more. Told once, however many depend on it."""
    known = transaction.run.limits.get(account)
    if known is None or not known.closed:
        _limit(transaction, account, Limit(closed=reason))
        transaction.alert(f"{account} is of no use any more, and its agents stop: {reason}")


def is_held(transaction: Transaction, agent: Agent) -> bool:
    """Whether its account has nothing to spend, and it is not the one who tries."""
    limit = _limit_of(transaction, agent)
    return limit is not None and limit.probe != agent.name


def closed(transaction: Transaction, agent: Agent) -> str:
    """Why its account is closed; empty while it is not."""
    limit = _limit_of(transaction, agent)
    return "" if limit is None else limit.closed


def on_output(transaction: Transaction, agent: Agent) -> None:
    """Words of the one who tries: if no limit follows soon, there is usage again."""
    limit = _limit_of(transaction, agent)
    if limit is not None and limit.probe == agent.name and limit.until is None:
        _limit(
            transaction, transaction.rules.accounts[agent.name], replace(limit, until=transaction.clock + PROBE_SECONDS)
        )


def on_launch_ended(transaction: Transaction, agent: Agent, well: bool) -> None:
    """The one who tries has ended, and not at a limit: well, or for a reason of its own, and then another tries."""
    limit = _limit_of(transaction, agent)
    if limit is None or limit.probe != agent.name:
        return
    account = transaction.rules.accounts[agent.name]
    if well:
        _lift(transaction, account)
    else:
        seconds = back_off(transaction.run.id, agent, agent.crashes + 1, transaction.rules)
        _limit(transaction, account, replace(limit, probe="", failed=agent.name, until=transaction.clock + seconds))


def earliest_start(transaction: Transaction, agent: Agent) -> float:
    """For how many seconds a limit is taken to last at the least. Resets that are named may never be true, and then
    it is a back-off like any other."""
    return back_off(transaction.run.id, agent, agent.crashes, transaction.rules)


def advance(transaction: Transaction) -> None:
    """Whatever the clock makes due: somebody tries, or everybody comes back."""
    for account, limit in list(transaction.run.limits.items()):
        if limit.closed:
            continue
        if limit.probe and transaction.agents[limit.probe].phase is Phase.RETIRED:
            limit = replace(limit, probe="", until=transaction.clock)
        if limit.until is None or transaction.clock < limit.until:
            continue
        if limit.probe:
            _lift(transaction, account)
        else:
            _try(transaction, account, limit)


def resume(transaction: Transaction, away: float) -> None:
    """A new supervisor: the provider's clock went on while nobody supervised, for so many seconds as far as the time
    of day can tell; and a closed account is tried again."""
    for account, limit in list(transaction.run.limits.items()):
        if limit.closed:
            _limit(transaction, account, None)
        elif not limit.probe and limit.until is not None:
            _limit(transaction, account, replace(limit, until=max(limit.until - away, transaction.clock)))
    for agent in list(transaction.agents.values()):
        # A task may have been changed to other accounts.
        if agent.phase is Phase.PARKED and agent.deadline is None and not is_held(transaction, agent):
            transaction.set_agent(agent.name, deadline=transaction.clock)


def _try(transaction: Transaction, account: str, limit: Limit) -> None:
    candidates = [
        agent
        for agent in _agents_of(transaction, account)
        if agent.phase not in LIVE and not _is_resting(transaction, agent)
    ]
    if not candidates:
        if not _agents_of(transaction, account):
            _limit(transaction, account, None)
        return
    probe = min(candidates, key=lambda candidate: _unfitness(candidate, limit))
    _limit(transaction, account, replace(limit, probe=probe.name, until=None))
    if probe.phase is Phase.PARKED:
        transaction.set_agent(probe.name, deadline=transaction.clock)
    transaction.log("probing", f"whether {account} has usage again", probe.name)


def _unfitness(agent: Agent, limit: Limit) -> tuple[bool, int, bool]:
    """Who tries is rather not who could not the last time, then who failed less often, then who has nothing else to
    wait for."""
    return agent.name == limit.failed, agent.crashes * bool(limit.failed), agent.phase is not Phase.PARKED


def _lift(transaction: Transaction, account: str) -> None:
    _limit(transaction, account, None)
    mine = _agents_of(transaction, account)
    parked = [agent for agent in mine if agent.phase is Phase.PARKED and not _is_resting(transaction, agent)]
    between = max(RETURN_SECONDS, transaction.rules.stagger)
    for place, agent in enumerate(parked, 1):
        deadline = transaction.clock + place * between
        transaction.set_agent(agent.name, phase=Phase.WAITING, deadline=deadline, why=OVER)
    transaction.log("limit lifted", f"{account} has usage again; {len(parked)} more agents come back")


def _is_resting(transaction: Transaction, agent: Agent) -> bool:
    """Whether it is parked for a reason of its own, until a time of its own."""
    return agent.phase is Phase.PARKED and agent.deadline is not None and transaction.clock < agent.deadline


def _limit(transaction: Transaction, account: str, limit: Limit | None) -> None:
    others = {name: other for name, other in transaction.run.limits.items() if name != account}
    transaction.set_run(limits=others if limit is None else {**others, account: limit})


def _limit_of(transaction: Transaction, agent: Agent) -> Limit | None:
    account = transaction.rules.accounts.get(agent.name)
    return None if account is None else transaction.run.limits.get(account)


def _agents_of(transaction: Transaction, account: str) -> list[Agent]:
    """Those who have not retired."""
    agents = [agent for agent in transaction.agents.values() if transaction.rules.accounts.get(agent.name) == account]
    return [agent for agent in agents if agent.phase is not Phase.RETIRED]


def _seconds(transaction: Transaction, agent: Agent, until: float | None, tries: int) -> float:
    """How long to wait. A provider that names no time, or one that has come already, is not asked again at once."""
    rules = transaction.rules
    seconds = (
        rules.backoff_max * 2.0 ** min(tries, 3) if until is None else max(until, earliest_start(transaction, agent))
    )
    digest = hashlib.sha256(f"{transaction.run.id}/{agent.name}/{agent.launch}/limit".encode()).digest()
    return seconds + min(JITTER_SECONDS, seconds / 10) * digest[0] / 255
