"""The window: what goes first, what stays together, what is clipped, what a summary names."""

import pytest
from hypothesis import given, strategies as st

from coral.native.llm import window
from coral.native.llm.conversation import AnswerMessage, LlmMemory, Message, PromptMessage, ResultMessage, ToolCall
from coral.native.llm.request import ModelRequest


def turns(number: int, size: int = 300) -> tuple[Message, ...]:
    messages: list[Message] = []
    for place in range(number):
        call = ToolCall(id=f"c{place}", name="read_file", arguments=f'{{"path": "f{place}.py"}}')
        messages.append(PromptMessage(text=f"go {place}"))
        messages.append(AnswerMessage(text=f"I look at #{place}", calls=(call,)))
        messages.append(ResultMessage(call=call.id, name="read_file", text="x" * size))
    return tuple(messages)


@given(st.integers(1, 12), st.integers(0, 3000), st.integers(0, 4000))
def test_a_result_stays_with_its_call(number: int, size: int, most: int) -> None:
    messages = turns(number, size)
    place = window.cut(messages, most)
    kept = messages[place:]
    assert kept
    assert not isinstance(kept[0], ResultMessage)
    calls = {call.id for message in kept if isinstance(message, AnswerMessage) for call in message.calls}
    assert {message.call for message in kept if isinstance(message, ResultMessage)} == calls


@given(st.integers(1, 4), st.integers(0, 3000), st.integers(0, 3), st.integers(0, 4000))
def test_the_last_answer_stays_with_its_results(number: int, size: int, prompts: int, most: int) -> None:
    """The model has not seen them, whatever was said after them."""
    messages = (*turns(number, size), *[PromptMessage(text="Heartbeat. Please continue.")] * prompts)
    assert messages[3 * number - 2 :] == messages[window.cut(messages, most) :][-2 - prompts :]


@given(
    st.lists(st.integers(0, 60_000), min_size=1, max_size=16),
    st.lists(st.integers(0, 2000), max_size=200),
    st.sampled_from(["x", "é", "字", "😀"]),
    st.integers(9000, 20_000),
)
def test_what_is_too_long_is_clipped_until_it_fits(
    sizes: list[int], prompts: list[int], letter: str, most: int
) -> None:
    """The most that an answer may hold, and the prompts of many launches that failed after it."""
    calls = tuple(ToolCall(id=f"c{place}", name="run", arguments=letter * size) for place, size in enumerate(sizes))
    messages: tuple[Message, ...] = (PromptMessage(text="go"), AnswerMessage(text=letter * sizes[0], calls=calls))
    messages += tuple(ResultMessage(call=made.id, name="run", text=made.arguments) for made in calls)
    messages += tuple(PromptMessage(text=letter * size) for size in prompts)
    squeezed = window.squeezed(messages, most)
    assert [type(message) for message in squeezed[: len(sizes) + 2]] == list(map(type, messages[: len(sizes) + 2]))
    assert len(squeezed) <= len(messages)
    assert sum(map(window.message_tokens, squeezed)) <= most
    fits = sum(map(window.message_tokens, messages)) <= most
    assert (squeezed == messages) == fits


def test_the_last_answer_keeps_its_reasoning_where_others_can_be_clipped() -> None:
    old, new = (AnswerMessage(text="a", reasoning=(name * 9000,)) for name in ("x", "y"))
    messages = (PromptMessage(text="go"), old, PromptMessage(text="b" * 6000), new)
    squeezed = window.squeezed(messages, 4000)
    assert [message.reasoning for message in squeezed if isinstance(message, AnswerMessage)] == [(), new.reasoning]


def test_a_clipped_text_keeps_its_ends() -> None:
    text = f"begin{'x' * 5000}end"
    clipped = window.clip(text, 500)
    assert clipped.startswith("begin")
    assert clipped.endswith("end")
    assert len(clipped) < 520
    assert "characters are left out here" in clipped
    assert window.clip("short", 500) == "short"


def test_a_summary_names_attempts_and_files_and_comes_after_a_prompt() -> None:
    messages = turns(3)
    assert window.mentions(messages) == "attempts #0, #1, #2; files f0.py, f1.py, f2.py"
    memory = LlmMemory(session="s", messages=messages)
    after = window.replaced(memory, 4, "what was")
    assert after.summary == "what was"
    assert isinstance(after.messages[0], PromptMessage)
    assert after.messages[1:] == messages[4:]
    assert window.replaced(memory, 3, "").messages == messages[3:]


def test_everything_in_a_request_is_counted() -> None:
    small = ModelRequest(model="m", system="a" * 30)
    large = ModelRequest(model="m", system="a" * 30, core="b" * 300, messages=turns(1, 3000))
    assert window.request_tokens(small) == 10
    assert window.request_tokens(large) > 10 + 100 + 1000
    assert "CALL read_file" in window.as_text(large.messages, 10_000)


@pytest.mark.parametrize("letter", ["x", "字"])
def test_what_is_to_be_summarised_is_as_long_as_it_may_be(letter: str) -> None:
    text = window.as_text([PromptMessage(text=letter * 1000)] * 50, 2000)
    assert 1900 < window.tokens_of(text) < 2010
