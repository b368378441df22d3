"""Questions of agents to the operator. An agent goes on while its question is open; the answer is a message to it."""

from coral.errors import CoralError
from coral.fleet.agent_state import Phase
from coral.fleet.messages import MESSAGE
from coral.fleet.run_state import Question
from coral.fleet.transaction import Transaction

MAX_OPEN = 5  # questions of one agent


def ask(transaction: Transaction, agent: str, text: str) -> str:
    """Open a question, and alert the operator. CoralError where it is empty, or too many questions of the agent are
    open."""
    if not text.strip():
        raise CoralError("cannot ask nothing", "coral ask 'May I use the network?'")
    open_ones = [question.number for question in transaction.run.questions if question.agent == agent]
    if len(open_ones) >= MAX_OPEN:
        numbers = ", ".join(map(str, open_ones))
        raise CoralError(f"cannot ask: your questions {numbers} are open", "go on without an answer")
    number = transaction.run.question_count + 1
    transaction.alert(f"asks (question {number}): {text}", agent)
    alert = transaction.run.alert_count
    asked = Question(number=number, alert=alert, agent=agent, text=text, asked_at=transaction.clock)
    transaction.set_run(question_count=number, questions=(*transaction.run.questions, asked))
    return f"question {number} is with the operator; go on meanwhile, the answer comes as a message"


def answer(transaction: Transaction, number: int, text: str) -> str:
    """Close a question, acknowledge its alert, and queue the answer for the agent. CoralError where it is not open."""
    found = next((question for question in transaction.run.questions if question.number == number), None)
    if found is None:
        numbers = ", ".join(str(question.number) for question in transaction.run.questions)
        known = f"open questions: {numbers}; `coral status` shows them with these numbers, `coral alerts` has others"
        hint = known if numbers else "no question is open"
        raise CoralError(f"cannot answer question {number}: it is not open", hint)
    if not text.strip():
        raise CoralError(f"cannot answer question {number} with nothing", "say something")
    transaction.set_run(questions=tuple(question for question in transaction.run.questions if question is not found))
    transaction.settle_alert(found.alert)
    agent = transaction.agents.get(found.agent)
    if agent is None or agent.phase is Phase.RETIRED:
        return f"question {number} is closed; {found.agent}, which asked it, has retired"
    due = transaction.clock + transaction.rules.max_defer
    prompt = f"You asked (question {number}): {found.text}\n\nThe answer: {text}"
    transaction.queue_notice(found.agent, MESSAGE, due, prompt=prompt)
    return f"{found.agent} gets the answer when a turn or an eval ends"
