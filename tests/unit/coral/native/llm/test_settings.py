"""The options of the brain `llm`: what is refused, and where the server and the key come from."""

import pytest

from coral.native.llm.settings import LlmOptions


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "must be an object"),
        ({"modell": "x"}, "there is no option 'modell'"),
        ({"wire": "telnet"}, "wire must be chat or messages; got 'telnet'"),
        ({"window": 100}, "window must be a whole number from 16000; got 100"),
        ({"check_first": "yes"}, "check_first must be true or false; got 'yes'"),
        ({"gates": ["a:b", 3]}, "gates must be a list of texts; got"),
    ],
)
def test_wrong_options_are_refused(given: object, told: str) -> None:
    with pytest.raises(ValueError, match=told.replace("'", ".")):
        LlmOptions.read(given)


def test_the_server_and_the_key_come_from_the_environment_or_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://gateway")
    assert LlmOptions().url == "https://api.openai.com/v1"
    assert LlmOptions(wire="messages").url == "http://gateway"
    assert LlmOptions(wire="messages", base_url="http://mine").url == "http://mine"
    assert LlmOptions(wire="messages").key_name == "ANTHROPIC_API_KEY"
    options = LlmOptions.read({"key_variable": "MINE", "gates": ["m:f"]})
    assert options.key_name == "MINE"
    assert {"MINE", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"} <= options.key_names
    assert options.gates == ("m:f",)
