"""What the operator orders one agent to do: pause, go on, begin again, retire.

An order stands until the next one, also over a resume. `lifecycle` obeys it when the agent would start.
"""

from coral.errors import CoralError
from coral.fleet.agent_state import LIVE, Agent, Order, Phase
from coral.fleet.agents import accounts, budgets
from coral.fleet.agents.launch_exit import retire, wait
from coral.fleet.agents.lifecycle import DISMISSED, PAUSED, interrupt
from coral.fleet.policy import MAX_KILLS
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.transaction import Transaction


def pause(transaction: Transaction, name: str) -> str:
    """Interrupt the agent, and do not start it again until `unpause` or `restart`. Its submissions are still graded."""
    agent = find(transaction, name, "pause")
    if agent.order is Order.PAUSE:
        raise CoralError(f"cannot pause {name}: it is paused already", f"coral agent unpause {name}")
    _check_at_work(agent, "pause")
    agent = transaction.set_agent(name, order=Order.PAUSE)
    if agent.phase is Phase.RUNNING:
        interrupt(transaction, agent, PAUSED)
    elif agent.phase in (Phase.WAITING, Phase.PARKED):
        transaction.set_agent(name, phase=Phase.PARKED, deadline=None, reason=PAUSED)
    return f"{name} is paused"


def unpause(transaction: Transaction, name: str) -> str:
    agent = find(transaction, name, "unpause")
    if agent.order is not Order.PAUSE:
        raise CoralError(f"cannot unpause {name}: it is not paused", "coral status shows who is")
    _check_at_work(agent, "unpause")
    agent, unpaused = transaction.set_agent(name, order=Order.WORK), Reason(ReasonKind.UNPAUSED)
    if agent.phase not in LIVE:
        wait(transaction, agent, unpaused)
    elif agent.reason.kind is ReasonKind.PAUSED:  # its launch is still ending
        transaction.set_agent(name, reason=unpaused)
    return f"{name} goes on"


def restart(transaction: Transaction, name: str, *, fresh: bool) -> str:
    """Interrupt the agent's launch and begin another one; if the agent waits, is parked or has retired, begin one now.
    `fresh`: the launch begins a new session."""
    agent = find(transaction, name, "restart")
    if agent.kills >= MAX_KILLS:
        raise CoralError(f"cannot restart {name}: its program cannot be killed", "see the processes of this machine")
    if (over := budgets.agent_over(agent, transaction.rules)) and over.budget:
        hint = f"a larger one: coral set budget.per_agent.{over.budget.key}=NUMBER"
        raise CoralError(f"cannot restart {name}: its own budget is used up", hint)
    accounts.reopen(transaction, agent)
    restarted = Reason(ReasonKind.RESTARTED)
    agent = transaction.set_agent(name, order=Order.WORK, crashes=0, begins_session=agent.begins_session or fresh)
    if agent.phase is Phase.RUNNING:
        interrupt(transaction, agent, restarted)
    elif agent.phase not in LIVE:
        wait(transaction, agent, restarted)
    elif agent.reason.kind in (ReasonKind.PAUSED, ReasonKind.DISMISSED):
        transaction.set_agent(name, reason=restarted)
    return f"{name} begins again" + (" in a fresh session" if fresh else "")


def dismiss(transaction: Transaction, name: str) -> str:
    """Interrupt the agent, and do not start it again until `restart`. Its submissions are still graded."""
    agent = find(transaction, name, "retire")
    _check_at_work(agent, "retire")
    agent = transaction.set_agent(name, order=Order.RETIRE)
    if agent.phase not in LIVE:  # a launch is interrupted by the next look at the time
        retire(transaction, agent, DISMISSED, alert=False)
    elif agent.reason.kind is ReasonKind.PAUSED:
        transaction.set_agent(name, reason=DISMISSED)
    return f"{name} retires"


def restore(transaction: Transaction, name: str, order: Order) -> None:
    """Give an agent again the order that it had before a damaged journal lost that decision. An order that the agent
    cannot be given now is left out: it has retired by itself, or its own budget is used up."""
    before = transaction.agents[name].order
    if before is not order:
        try:
            _change(transaction, name, before, order)
        except CoralError:
            return


def _change(transaction: Transaction, name: str, before: Order, order: Order) -> None:
    if before is Order.RETIRE:
        restart(transaction, name, fresh=False)
    elif before is Order.PAUSE:
        unpause(transaction, name)
    if order is Order.PAUSE:
        pause(transaction, name)
    elif order is Order.RETIRE:
        dismiss(transaction, name)


def find(transaction: Transaction, name: str, verb: str) -> Agent:
    if name not in transaction.agents:
        known = ", ".join(transaction.agents)
        raise CoralError(f"cannot {verb} {name!r}: there is no such agent", f"there are: {known}")
    if transaction.run.is_ending:
        raise CoralError(f"cannot {verb} {name}: the run is stopping", "`coral resume` continues it")
    return transaction.agents[name]


def _check_at_work(agent: Agent, verb: str) -> None:
    if agent.phase is Phase.RETIRED or agent.order is Order.RETIRE:
        raise CoralError(f"cannot {verb} {agent.name}: it has retired", f"coral agent restart {agent.name}")
