"""The sections of task.yaml about budgets."""

from coral.config.section import Count, Finite, Money, Section, key


class AllowanceSection(Section):
    """A budget for each agent: it stops the agent, not the run. A key that is left out sets no limit."""

    attempts: Count | None = key("Graded attempts.", None)
    money: Money | None = key("US dollars.", None)
    tokens: Count | None = key("Tokens, excluding cache reads.", None)


class BudgetSection(Section):
    """When the run stops. A key that is left out sets no limit."""

    attempts: int | None = key("Stop after this many graded attempts.", None, ge=1)
    hours: Finite | None = key("Stop after this many hours.", None, gt=0)
    money: Money | None = key("Stop when the agents have used this many US dollars.", None)
    tokens: Count | None = key("Stop when the agents have used this many tokens, excluding cache reads.", None)
    plateau: Count | None = key("Stop after this many attempts in a row that did not improve the fleet's best.", None)
    per_agent: AllowanceSection = key("A budget for each agent.", AllowanceSection)
    target: Finite | None = key("Stop when the best, which is proven, is this good.", None)
    ask_above: Money | None = key(
        "Ask before a start that may cost more than this many US dollars by the last runs of the task, by rough prices "
        "or by budget.money, whichever is least. Where nobody can be asked, --yes is needed.",
        None,
    )
    none: bool = key(
        "True where a run without any limit is meant: else one whose agents cost money is refused without a limit.",
        False,
    )
