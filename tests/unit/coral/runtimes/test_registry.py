"""The runtimes by their names, and what each says about itself."""

from pathlib import Path

import pytest

from coral.errors import CoralError
from coral.runtimes import registry

READ = {"claude": "CLAUDE.md", "gemini": "GEMINI.md"}  # where they look for instructions


def test_every_runtime_has_the_name_that_finds_it() -> None:
    for name in registry.RUNTIMES:
        runtime = registry.find(name, {"start": "true", "script": ["hang"]})
        assert runtime.name == name
        assert runtime.instruction_file == READ.get(name, "AGENTS.md")
    found = [registry.find(name, {"start": "true", "script": ["hang"]}) for name in registry.RUNTIMES]
    assert {runtime.instruction_file for runtime in found} == set(registry.INSTRUCTION_FILES)


def test_every_runtime_says_what_it_reports_and_what_it_was_tried_with() -> None:
    found = {name: registry.find(name, {"start": "true", "script": ["hang"]}) for name in registry.RUNTIMES}
    assert {name for name, runtime in found.items() if not runtime.reports} == {
        *("native", "command", "acp", "cursor", "kiro")
    }
    assert {runtime.reports for runtime in found.values()} == {"money", "tokens", ""}
    no_one_program = {"native", "command", "scripted", "acp"}
    assert {name for name, runtime in found.items() if runtime.verified_version is None} == no_one_program
    assert {name for name, runtime in found.items() if runtime.verified_version == ""} == {"cursor", "kiro"}
    assert {name for name, runtime in found.items() if not runtime.account} == {"native", "scripted"}
    assert {name for name, runtime in found.items() if not runtime.can_research} == {"native"}
    assert {name for name, runtime in found.items() if not runtime.uses_model} == {"native", "scripted", "command"}


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(CoralError, match="there is none of that name") as error:
        registry.find("nativ", {})
    assert error.value.hint == "did you mean native?"
    assert f"there are {', '.join(registry.RUNTIMES)}; " in registry.check("zzz", {})[0]


def test_a_runtime_of_ones_own_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "from coral.runtimes.native import Native\nclass Mine(Native):\n    name = 'mine'\nclass No:\n    pass\nN = 3\n"
    )
    (tmp_path / "my_runtime_module.py").write_text(
        code + "from coral.runtimes.model import Runtime\nclass Half(Runtime):\n    def read(self, line): return ()\n"
        "class Other:\n    def __init__(self, options): pass\n"
    )
    (tmp_path / "my_broken_module.py").write_text("def (")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert registry.find("my_runtime_module:Mine", {}).name == "mine"
    for name, reason in {
        "my_runtime_module:Yours": "no attribute 'Yours'",
        "no_such_module:Mine": "No module named 'no_such_module'",
        "my_broken_module:Mine": "invalid syntax",
        "my_runtime_module:No": "takes no arguments",
        "my_runtime_module:N": "cannot be called",
        "my_runtime_module:Half": "it has no command, judge, name",
        "my_runtime_module:Other": "it is no subclass of Runtime",
        ":Mine": "it must be module:name",
    }.items():
        assert reason in registry.check(name, {})[0]


def test_options_that_are_paths_are_made_absolute_where_a_runtime_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {"script": "a/b.json"}
    assert registry.with_paths("scripted", script, tmp_path) == {"script": f"{tmp_path}/a/b.json"}
    assert registry.with_paths("scripted", {"script": "/b.json"}, tmp_path) == {"script": "/b.json"}
    monkeypatch.setenv("HOME", "/home/ann")
    assert registry.with_paths("scripted", {"script": "~/b.json"}, tmp_path) == {"script": "/home/ann/b.json"}
    nobody = "~nobody-of-that-name/b.json"
    assert registry.with_paths("scripted", {"script": nobody}, tmp_path) == {"script": f"{tmp_path}/{nobody}"}
    assert registry.with_paths("claude", script, tmp_path) == script
    assert registry.with_paths("no_such_module:Mine", script, tmp_path) == script
    assert script == {"script": "a/b.json"}
