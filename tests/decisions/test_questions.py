"""Questions of agents to the operator, as transcripts."""

from dataclasses import replace

from stage import Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.questions import MAX_OPEN


def asked(stage: Stage, text: str = "may I?", agent: str = "ann") -> list[str]:
    return stage.at(1, stage.asks(agent, on.Ask(text=text)))


def test_a_question_is_an_alert_and_stays_open_until_it_is_answered() -> None:
    stage = Stage()
    lines = asked(stage)
    assert any("alert run-alert-1 of ann: asks (question 1): may I?" in line for line in lines)
    assert any("question 1 is with the operator" in line for line in lines)
    (question,) = stage.fleet.run.questions
    assert (question.number, question.agent, question.text, question.asked_at) == (1, "ann", "may I?", 1)
    lines = stage.at(2, stage.asks("operator", on.AnswerQuestion(number=1, text="yes")))
    assert any("ann gets the answer" in line for line in lines)
    assert any(line.startswith("asked: question 1: ann gets the answer") for line in lines)
    assert stage.fleet.run.questions == ()
    (message,) = stage.fleet.agents["ann"].pending_messages
    assert message.prompt == "You asked (question 1): may I?\n\nThe answer: yes"
    assert stage.fleet.agents["ann"].pending_messages[0].due == 2 + stage.rules.max_defer


def test_an_answer_goes_to_the_agent_that_asked_and_closes_its_question_alone() -> None:
    stage = Stage(2)
    asked(stage, "one?")
    asked(stage, "two?", "ben")
    stage.at(2, stage.asks("operator", on.AnswerQuestion(number=2, text="no")))
    assert [question.number for question in stage.fleet.run.questions] == [1]
    assert stage.fleet.agents["ann"].pending_messages == ()
    assert "The answer: no" in stage.fleet.agents["ben"].pending_messages[0].prompt


def test_an_answer_acknowledges_the_alert_of_its_question_alone() -> None:
    stage = Stage(2)
    asked(stage, "one?")
    stage.at(1, stage.asks("ben", on.RaiseAlert(text="help")))
    asked(stage, "two?", "ben")
    stage.at(2, stage.asks("operator", on.AnswerQuestion(number=2, text="no")))
    assert (stage.fleet.run.alerts_acknowledged, stage.fleet.run.alerts_settled) == (0, (3,))
    (line,) = stage.at(3, stage.asks("operator", on.AcknowledgeAlerts(through=2)))
    assert "2 alerts are acknowledged" in line
    assert stage.fleet.run.alerts_settled == (3,)
    (line,) = stage.at(3, stage.asks("operator", on.AcknowledgeAlerts(through=None)))
    assert "0 alerts are acknowledged" in line
    assert (stage.fleet.run.alerts_acknowledged, stage.fleet.run.alerts_settled) == (3, ())
    stage.at(4, stage.asks("operator", on.AnswerQuestion(number=1, text="yes")))
    assert stage.fleet.run.alerts_settled == ()  # by then it was acknowledged
    asked(stage, "three?")
    stage.at(5, stage.asks("operator", on.AcknowledgeAlerts(through=None)))
    stage.at(6, stage.asks("operator", on.AnswerQuestion(number=3, text="yes")))
    assert (stage.fleet.run.alerts_acknowledged, stage.fleet.run.alerts_settled) == (4, ())


def test_what_cannot_be_asked_or_answered_is_refused() -> None:
    stage = Stage()
    assert "cannot ask nothing" in asked(stage, " ")[0]
    for number in range(MAX_OPEN):
        asked(stage, f"{number}?")
    assert f"cannot ask: your questions 1, 2, 3, 4, {MAX_OPEN} are open" in asked(stage, "another?")[0]
    for sender, request, refusal in (
        ("operator", on.Ask(text="x"), "cannot ask yourself"),
        ("ann", on.AnswerQuestion(number=1, text="x"), "cannot do this for an agent"),
        ("operator", on.AnswerQuestion(number=9, text="x"), "cannot answer question 9: it is not open"),
        ("operator", on.AnswerQuestion(number=1, text=" "), "cannot answer question 1 with nothing"),
    ):
        assert refusal in stage.at(3, stage.asks(sender, request))[0]
    line = stage.at(4, stage.asks("operator", on.AnswerQuestion(number=9, text="x")))[0]
    assert "(open questions: 1, 2, 3, 4, 5; `coral status` shows them" in line
    line = Stage().at(2, stage.asks("operator", on.AnswerQuestion(number=9, text="x")))[0]
    assert line.endswith("(no question is open)")
    assert len(stage.fleet.run.questions) == MAX_OPEN
    assert stage.fleet.run.question_count == MAX_OPEN


def test_the_question_of_an_agent_that_has_retired_can_still_be_closed() -> None:
    stage = Stage(2)
    asked(stage)
    retired = replace(stage["ann"], phase=Phase.RETIRED)
    stage.fleet = replace(stage.fleet, agents={**stage.fleet.agents, "ann": retired})
    lines = stage.at(2, stage.asks("operator", on.AnswerQuestion(number=1, text="yes")))
    assert any("ann, which asked it, has retired" in line for line in lines)
    assert stage.fleet.run.questions == ()
