"""What a program makes of a model that refuses is told apart, so that nobody runs into one wall again and again."""

import pytest
from driven import Drive
from model_server import Step

from coral.fleet.events import Ending

pytestmark = pytest.mark.timeout(900)

PROMPT, AGAIN = "The prompt: MARK-ONE.", "Go on: MARK-TWO."
TERMINAL, CRASHED, FRESH, LIMIT = Ending.TERMINAL, Ending.CRASHED, Ending.UNKNOWN_SESSION, Ending.LIMIT
# None: it asks again and again without a word, and ends only when it is interrupted.
ENDINGS: dict[str, dict[str, Ending | None]] = {
    "denied": dict.fromkeys(("claude", "codex", "opencode", "gemini", "qwen", "copilot", "pi"), TERMINAL),
    "too many": {
        "claude": LIMIT,
        "codex": LIMIT,
        "opencode": None,
        "gemini": None,
        "qwen": None,
        "copilot": None,
        "pi": None,
    },
    "overloaded": {
        "claude": CRASHED,
        "codex": None,
        "opencode": None,
        "gemini": None,
        "qwen": None,
        "copilot": None,
        "pi": None,
    },
    "too long": {
        "claude": FRESH,
        "codex": FRESH,
        "opencode": None,
        "gemini": FRESH,
        "qwen": FRESH,
        "copilot": FRESH,
        "pi": FRESH,
    },
}


@pytest.mark.parametrize("error", ENDINGS)
def test_each_error_is_told_apart(error: str, program: str, drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "1")
    server, desk = drive(program, [Step(error=error, times=1000)])
    launch, expected = desk.launch(PROMPT), ENDINGS[error][program]
    if expected is None:
        launch.wait_for(lambda: len(server.turns) > 1, "another try")
        launch.interrupt()
    assert launch.leaves_nothing()
    ended = launch.end()
    assert ended.ending is (expected or Ending.INTERRUPTED)
    assert not (ended.heard and ended.ending is FRESH), "what a conversation that is given up was told is owed still"
    if expected is not FRESH:
        # As soon as the model answers again, the conversation goes on where it was.
        server.then(Step(say="Here I am."))
        prompt = (
            AGAIN if ended.heard else f"{PROMPT} {AGAIN}"
        )  # nothing was heard of the first prompt: it is owed still
        again = desk.launch(prompt, ended.session).end()
        if again.ending is FRESH:
            assert not ended.heard
            again = desk.launch(prompt).end()
        assert again.ending is Ending.CLEAN
        # opencode has put a summary in the place of what was too long, and asks with that.
        said = [] if (program, error) == ("opencode", "too long") else [PROMPT]
        assert server.turns[-1].has(*said, AGAIN)
