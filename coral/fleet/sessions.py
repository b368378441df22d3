"""How worn a conversation is. A new one begins only where a launch happens anyway, never by an interrupt of its own."""

from dataclasses import replace

from coral.fleet.draft import Draft
from coral.fleet.policy import Rules
from coral.fleet.state import Agent, Count
from coral.fleet.wear import Talk


def begin(draft: Draft, agent: Agent) -> Agent:
    """A conversation begins with the next launch."""
    return draft.set_agent(agent.name, talk=Talk(tokens_before=agent.spent.tokens))


def heard(draft: Draft, agent: Agent, before: Count) -> None:
    more = agent.count.compactions - before.compactions
    if more:
        talk = replace(agent.talk, compactions=agent.talk.compactions + more)
        draft.set_agent(agent.name, talk=talk)


def worn(agent: Agent, rules: Rules) -> str:
    """What a conversation has behind it that is not to be gone on with; empty where it is."""
    compactions, tokens = agent.talk.compactions, agent.spent.tokens - agent.talk.tokens_before
    if rules.fresh_compactions is not None and compactions >= rules.fresh_compactions:
        return f"{compactions} compactions" if compactions != 1 else "a compaction"
    if rules.fresh_tokens is not None and tokens >= rules.fresh_tokens:
        return f"{tokens} tokens"
    return ""
