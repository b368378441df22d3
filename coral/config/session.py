"""The section of task.yaml about the conversations of agents."""

from coral.config.section import Count, Section, key


class FreshAfterSection(Section):
    """When an agent's next launch begins a new conversation. A key that is left out does not count."""

    compactions: Count | None = key("After the conversation was compacted this many times.", None)
    tokens: Count | None = key("After the conversation used this many tokens, excluding cache reads.", None)


class SessionSection(Section):
    """How long agents keep one conversation."""

    fresh_after: FreshAfterSection = key(
        "When the next launch begins a new conversation, whose prompt tells the story so far. No agent is interrupted "
        "for it.",
        FreshAfterSection,
    )
