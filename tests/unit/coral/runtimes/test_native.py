"""The runtime of the built-in agent: its command line and its options."""

import json
import sys

from launch_specs import launch_spec

from coral.runtimes.native import Native


def test_the_native_command_line_holds_the_session_and_the_task() -> None:
    editable = ("*.py", "data/*.json")
    spec = launch_spec(editable=editable, check="check.py:check", direction="minimize", seed=7)
    new = Native({"brain": "search"}).command(spec)
    assert new.argv[:6] == (sys.executable, "-P", "-m", "coral.native", "--session", new.session)
    assert "--resume" not in new.argv
    words = list(new.argv)
    assert words[words.index("--editable") + 1 :][:2] == ["*.py", "data/*.json"]
    assert words[words.index("--check") + 1] == "check.py:check"
    assert words[words.index("--direction") + 1] == "minimize"
    assert words[words.index("--seed") + 1] == "7"
    assert words[words.index("--state") + 1] == str(spec.state)
    assert json.loads(words[words.index("--options") + 1]) == {"brain": "search"}
    resumed = Native({}).command(launch_spec("abc"))
    assert resumed.argv[4:7] == ("--session", "abc", "--resume")


def test_an_unknown_brain_or_option_of_native_is_refused() -> None:
    assert Native({}).check() == []
    assert Native({"brain": "search"}).check() == []
    assert Native({"brain": "big"}).check() == ["brain must be search; got 'big'"]
    assert Native({"brian": "search"}).check() == ["there is no option 'brian'; did you mean brain?"]
