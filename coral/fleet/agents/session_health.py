"""Session health: an agent's next launch begins a new session when its conversation was compacted too often, or is too
long. No agent is interrupted for that."""

from dataclasses import replace

from coral.fleet.agent_state import Agent, Conversation, OutputCounts
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.rules import Rules
from coral.fleet.transaction import Transaction


def begin_session(transaction: Transaction, agent: Agent) -> Agent:
    """The next launch begins a new conversation: count its compactions and tokens from here on."""
    return transaction.set_agent(agent.name, conversation=Conversation(tokens_before=agent.spent.tokens))


def on_output(transaction: Transaction, agent: Agent, before: OutputCounts) -> None:
    more = agent.output_counts.compactions - before.compactions
    if more:
        talk = replace(agent.conversation, compactions=agent.conversation.compactions + more)
        transaction.set_agent(agent.name, conversation=talk)


def reason_to_renew(agent: Agent, rules: Rules) -> Reason | None:
    """Why the conversation is not to be resumed; None where it is."""
    compactions, tokens = agent.conversation.compactions, agent.spent.tokens - agent.conversation.tokens_before
    if rules.fresh_compactions is not None and compactions >= rules.fresh_compactions:
        return Reason(ReasonKind.SESSION_COMPACTED, count=compactions)
    if rules.fresh_tokens is not None and tokens >= rules.fresh_tokens:
        return Reason(ReasonKind.SESSION_LONG, count=tokens)
    return None
