"""Usage limits of accounts: when one agent meets its account's limit, all agents of that account are parked.

At the reset that the provider named one agent, the probe, starts first; the others follow one by one once it has worked
without meeting the limit again. An account that is closed for good, as by a wrong key, retires its agents.
"""

import hashlib
from dataclasses import replace

from coral.fleet.agent_state import LIVE, Agent, Order, Phase
from coral.fleet.agents.back_off import back_off
from coral.fleet.policy import JITTER_SECONDS, PROBE_SECONDS, RETURN_SECONDS
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.run_state import Limit
from coral.fleet.transaction import Transaction


def on_limit(transaction: Transaction, agent: Agent, seconds_left: float | None) -> None:
    """Handle that an agent met the usage limit of its account. `seconds_left`: until the limit ends; None where the
    provider named no time."""
    account = transaction.rules.accounts[agent.name]
    known = transaction.run.limits.get(account)
    if known is not None and known.probe != agent.name:
        if known.until is not None and seconds_left is not None and not known.probe:
            # Agents that met the limit together may have been told different resets: the latest counts.
            _set_limit(transaction, account, replace(known, until=max(known.until, transaction.clock + seconds_left)))
        return
    tries = 0 if known is None else known.tries + 1
    seconds = _seconds_to_probe(transaction, agent, seconds_left, tries)
    _set_limit(transaction, account, Limit(until=transaction.clock + seconds, tries=tries))
    if known is None:
        count = len(_agents_of(transaction, account))
        parked = "its agent is" if count == 1 else f"{count} agents are"
        transaction.alert(f"{account} has reached its usage limit; {parked} parked for {seconds / 60:.1f} minutes")


def close(transaction: Transaction, account: str, reason: Reason) -> None:
    """Close an account that will have no usage again. The operator is alerted once, however many agents depend on
    it."""
    known = transaction.run.limits.get(account)
    if known is None or not known.closed:
        _set_limit(transaction, account, Limit(closed=reason))
        transaction.alert(f"{account} can no longer be used; its agents stop", reason=reason)
        for agent in _agents_of(transaction, account):
            if agent.phase is Phase.PARKED:
                transaction.set_agent(agent.name, deadline=transaction.clock)  # it waits for nothing any more


def reopen(transaction: Transaction, agent: Agent) -> None:
    """Try a closed account again, because the operator may have put it right."""
    if closed(transaction, agent):
        _set_limit(transaction, transaction.rules.accounts[agent.name], None)


def leave(transaction: Transaction, agent: Agent) -> None:
    """Handle that an agent leaves its account for another one: if it was the probe, another agent of the account
    becomes the probe."""
    limit = _limit_of(transaction, agent)
    if limit is not None and limit.probe == agent.name:
        account = transaction.rules.accounts[agent.name]
        _set_limit(transaction, account, replace(limit, probe="", until=transaction.clock))


def is_held(transaction: Transaction, agent: Agent) -> bool:
    """Return whether the agent's account is at its limit, and the agent is not the probe."""
    limit = _limit_of(transaction, agent)
    return limit is not None and limit.probe != agent.name


def closed(transaction: Transaction, agent: Agent) -> Reason | None:
    """Return why the agent's account is closed; None while it is not."""
    limit = _limit_of(transaction, agent)
    return None if limit is None else limit.closed


def on_output(transaction: Transaction, agent: Agent) -> None:
    """Handle an agent's output: from the first output of the probe on, the limit is lifted unless the probe meets it
    again within `PROBE_SECONDS`."""
    limit = _limit_of(transaction, agent)
    if limit is not None and limit.probe == agent.name and limit.until is None:
        _set_limit(
            transaction, transaction.rules.accounts[agent.name], replace(limit, until=transaction.clock + PROBE_SECONDS)
        )


def on_launch_ended(transaction: Transaction, agent: Agent, well: bool) -> None:
    """Handle that a launch ended for another reason than the usage limit. If the agent is the probe and ended well, the
    limit is lifted; if it failed, another agent probes after a back-off."""
    limit = _limit_of(transaction, agent)
    if limit is None or limit.probe != agent.name:
        return
    account = transaction.rules.accounts[agent.name]
    if well:
        _lift(transaction, account)
    else:
        seconds = back_off(transaction.run.id, agent, agent.crashes + 1, transaction.rules)
        _set_limit(transaction, account, replace(limit, probe="", failed=agent.name, until=transaction.clock + seconds))


def shortest_wait(transaction: Transaction, agent: Agent) -> float:
    """Return the seconds for which a usage limit is taken to last at least, whatever the provider says: a provider may
    name reset times that are never true, and without this back-off the agent would be started in vain again and
    again."""
    return back_off(transaction.run.id, agent, agent.crashes, transaction.rules)


def advance(transaction: Transaction) -> None:
    """Start a probe at each account whose reset has come, and lift each limit whose probe has worked long enough."""
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
            _begin_probe(transaction, account, limit)


def resume(transaction: Transaction, away: float) -> None:
    """Adjust limits when a new supervisor takes over: resets come nearer by the `away` seconds of wall-clock time for
    which nobody supervised, and closed accounts are tried again."""
    for account, limit in list(transaction.run.limits.items()):
        if limit.closed:
            _set_limit(transaction, account, None)
        elif not limit.probe and limit.until is not None:
            _set_limit(transaction, account, replace(limit, until=max(limit.until - away, transaction.clock)))
    for agent in list(transaction.agents.values()):
        # The operator may have changed the task to other accounts.
        if agent.phase is Phase.PARKED and agent.deadline is None and not is_held(transaction, agent):
            transaction.set_agent(agent.name, deadline=transaction.clock)


def _begin_probe(transaction: Transaction, account: str, limit: Limit) -> None:
    candidates = [
        agent
        for agent in _agents_of(transaction, account)
        if agent.phase not in LIVE and agent.order is Order.WORK and not _has_own_deadline(transaction, agent)
    ]
    if not candidates:
        if not _agents_of(transaction, account):
            _set_limit(transaction, account, None)
        return
    probe = min(candidates, key=lambda candidate: _unfitness(candidate, limit))
    _set_limit(transaction, account, replace(limit, probe=probe.name, until=None))
    if probe.phase is Phase.PARKED:
        transaction.set_agent(probe.name, deadline=transaction.clock)
    transaction.log("probing", f"whether {account} has usage again", probe.name)


def _unfitness(agent: Agent, limit: Limit) -> tuple[bool, int, bool]:
    """Return the sort key by which the probe is chosen, lowest first: any agent but the last probe that failed, then
    the agent with the fewest crashes, then one that is parked by the limit alone."""
    return agent.name == limit.failed, agent.crashes * bool(limit.failed), agent.phase is not Phase.PARKED


def _lift(transaction: Transaction, account: str) -> None:
    _set_limit(transaction, account, None)
    mine = _agents_of(transaction, account)
    held = [agent for agent in mine if agent.phase is Phase.PARKED and agent.order is Order.WORK]
    parked = [agent for agent in held if not _has_own_deadline(transaction, agent)]
    between = max(RETURN_SECONDS, transaction.rules.stagger)
    for place, agent in enumerate(parked, 1):
        deadline = transaction.clock + place * between
        transaction.set_agent(agent.name, phase=Phase.WAITING, deadline=deadline, reason=Reason(ReasonKind.LIMIT_OVER))
    transaction.log("limit lifted", f"{account} has usage again; {len(parked)} more agents come back")


def _has_own_deadline(transaction: Transaction, agent: Agent) -> bool:
    """Return whether the agent is parked until a time of its own, and not only until its account has usage again."""
    return agent.phase is Phase.PARKED and agent.deadline is not None and transaction.clock < agent.deadline


def _set_limit(transaction: Transaction, account: str, limit: Limit | None) -> None:
    others = {name: other for name, other in transaction.run.limits.items() if name != account}
    transaction.set_run(limits=others if limit is None else {**others, account: limit})


def _limit_of(transaction: Transaction, agent: Agent) -> Limit | None:
    account = transaction.rules.accounts.get(agent.name)
    return None if account is None else transaction.run.limits.get(account)


def _agents_of(transaction: Transaction, account: str) -> list[Agent]:
    """Return the account's agents that have not retired."""
    agents = [agent for agent in transaction.agents.values() if transaction.rules.accounts.get(agent.name) == account]
    return [agent for agent in agents if agent.phase is not Phase.RETIRED]


def _seconds_to_probe(transaction: Transaction, agent: Agent, seconds_left: float | None, tries: int) -> float:
    """Return how many seconds to wait before a probe starts. Where the provider named no reset time, or one that has
    passed, this is a back-off."""
    rules = transaction.rules
    shortest = shortest_wait(transaction, agent)
    seconds = rules.backoff_max * 2.0 ** min(tries, 3) if seconds_left is None else max(seconds_left, shortest)
    digest = hashlib.sha256(f"{transaction.run.id}/{agent.name}/{agent.launch}/limit".encode()).digest()
    return seconds + min(JITTER_SECONDS, seconds / 10) * digest[0] / 255
