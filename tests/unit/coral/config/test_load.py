"""A task is read whole: what is right has its value, what is wrong has its place, and all of it is told at once."""

from pathlib import Path

import pytest

from attempts.record import Direction
from coral.config.load import Config, load
from coral.errors import CoralError
from heartbeats.heartbeat import BUILT_IN, Delivery, Scope
from heartbeats.trigger import Elapsed, Every, Stagnant

MINIMAL = """\
task:
  name: My Task!
  description: Make it larger.
grader:
  entry: grade.py:grade
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed" / "check.py").write_text("def check(folder): return 1\n")
    (tmp_path / "grade.py").write_text("def grade(workspace): return 1\n")
    (tmp_path / "task.yaml").write_text(MINIMAL)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    (folder / "task.yaml").write_text(text)
    return folder


def problems(folder: Path, text: str | None = None, *overrides: str) -> list[str]:
    """The lines of the one error that loading must give, without the folder's path."""
    if text is not None:
        write(folder, text)
    with pytest.raises(CoralError) as caught:
        load(folder, overrides)
    assert caught.value.hint
    return [line.strip().replace(f"{folder}/", "") for line in str(caught.value).splitlines()[1:]]


def test_a_small_task_and_an_empty_section_have_every_default(folder: Path) -> None:
    config = load(folder)
    assert (config.task.name, config.slug, config.task.editable, config.task.check) == ("My Task!", "my-task", (), "")
    assert (config.grader.timeout, config.grader.direction, config.grader.noise) == (300.0, Direction.MAXIMIZE, "auto")
    assert (config.agents.count, config.agents.runtime, config.agents.stall) == (1, "native", 1200.0)
    assert (config.run.poll_seconds, config.run.watch, config.run.interrupt_grace) == (5.0, True, 10.0)
    assert config.budget.attempts is config.budget.hours is config.budget.target is None
    assert config.heartbeats == BUILT_IN
    assert (config.path, config.folder, config.seed) == (folder / "task.yaml", folder, folder / "seed")
    config = load(write(folder, MINIMAL + "budget:\n  # hours: 2\nheartbeats:\n"))
    assert config.budget.hours is None
    assert config.heartbeats == BUILT_IN
    config: Config = load(folder)
    with pytest.raises(ValueError, match="frozen"):
        config.agents.count = 3  # type: ignore[misc]


def test_a_task_is_loaded_by_its_file_or_its_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert load(Path()) == load(folder) == load(Path("task.yaml"))
    with pytest.raises(CoralError, match="no file") as caught:
        load(folder / "nowhere")
    assert "coral init" in caught.value.hint


def test_all_problems_are_listed_at_once_with_line_and_column(folder: Path) -> None:
    text = MINIMAL + "  timeout: -3\nagents:\n  cout: 4\n  stall: soon\nbudgets:\n  hours: 1\nbudget: {target: .nan}\n"
    assert problems(folder, text) == [
        "task.yaml:6:3: grader.timeout: must be more than 0; got -3",
        'task.yaml:8:3: agents.cout: unknown key (with 4); did you mean "count"?',
        'task.yaml:9:3: agents.stall: must be a number; got "soon"',
        "task.yaml:10:1: budgets: unknown key (with {'hours': 1}); did you mean \"budget\"?",
        "task.yaml:12:10: budget.target: must be a finite number; got nan",
    ]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("agents: {count: 0}", "6:10: agents.count: must be at least 1; got 0"),
        ("agents: {count: 1001}", "6:10: agents.count: must be at most 1000; got 1001"),
        ("agents: {count: 2.5}", "6:10: agents.count: must be a whole number; got 2.5"),
        ('agents: {count: "4"}', '6:10: agents.count: must be a whole number; got "4"'),
        ("agents: {count: true}", "6:10: agents.count: must be a whole number; got true"),
        ("agents: {count: ~}", "6:10: agents.count: must be a whole number; got nothing"),
        ("agents: {model: 5}", "6:10: agents.model: must be text; got 5 (put it in quotes)"),
        ("agents: [1]", "6:1: agents: must be a section of keys and values; got [1]"),
        ("agents: {timeout: 5}", "unknown key (with 5); write stall: the seconds of silence"),
        ("agents: {slots: 5}", "6:10: agents.slots: unknown key (with 5); it belongs under grader"),
        ("run: {watch: on}", '6:7: run.watch: must be true or false; got "on"'),
        ("run: {backoff: .inf}", "6:7: run.backoff: must be a finite number; got inf"),
        ("workspace: {setup: make}", '6:13: workspace.setup: must be a list; got "make"'),
        ("workspace: {setup: [a, 2]}", "6:24: workspace.setup[1]: must be text; got 2 (put it in quotes)"),
        ("sharing: {notes: false}", "write workspace.share: true or false"),
        ("heartbeats: {name: x}", "6:1: heartbeats: must be a list of entries, each with a name; got {'name': 'x'}"),
        ("heartbeats: [{every: 3}]", "6:14: heartbeats[0].name: is missing: reflect, consolidate"),
        ("heartbeats: [{name: x, every: 0, prompt: hi}]", "6:24: heartbeats[0].every: must be at least 1; got 0"),
        ("  noise: some", '6:3: grader.noise: must be auto, a number from 0, or a share such as 2%; got "some"'),
        ("heartbeats: [{name: x, every: 5x, prompt: hi}]", "must be a number of attempts, or a time such as 30m"),
        ("heartbeats: [{name: x, every: 1.5, prompt: hi}]", "heartbeats[0].every: must be a whole number; got 1.5"),
        ("heartbeats: [{name: x, every: 1, minutes: 2, prompt: hi}]", "6:34: heartbeats[0].minutes: gives both every"),
        ("heartbeats: [{name: x, global: true}]", "heartbeats[0].global: unknown key (with true); write scope: fleet"),
        ("heartbeats: [{name: reflect, every: 50}]", "cannot change reflect: it is protected"),
        ("heartbeats: [{name: x, every: 2, prompt: ' '}]", "cannot set x: its prompt says nothing"),
        ("heartbeats: [{name: land, every: 2, prompt: hi}]", "cannot name a heartbeat land: that is what Coral sends"),
        ("heartbeats: [{name: redirect}, {name: redirect}]", '6:33: heartbeats[1].name: "redirect" has an entry'),
        ("agents: {count: 1}\nagents: {count: 2}", "7:1: agents: given twice (first on line 6)"),
        ("run: {watch: !!python/name:os.system x}", "6:7: run.watch: the tag !!python/name:os.system is not supported"),
        ("<<: {a: 1}", "6:1: a key must be plain text"),
        ("agents: {count: [[[[[1]]]]]}", "6:10: agents.count: must be a whole number; got [[[[[1]]]]]"),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(folder: Path, more: str, told: str) -> None:
    found = problems(folder, f"{MINIMAL}{more}\n")
    assert len(found) == 1
    assert told in found[0]
    assert found[0].startswith("task.yaml:")


def test_a_grader_needs_exactly_one_of_entry_and_command(folder: Path) -> None:
    assert problems(folder, MINIMAL + "  command: ./grade.sh\n") == [
        "task.yaml:4:1: grader: gives both entry and command; one of them grades"
    ]
    assert problems(folder, MINIMAL.replace("entry: grade.py:grade", "slots: 2")) == [
        "task.yaml:4:1: grader: needs entry or command"
    ]
    assert problems(folder, MINIMAL + "  entrypoint: a:B\n")[0].startswith(
        'task.yaml:6:3: grader.entrypoint: unknown key (with "a:B"); write entry: package.module:Class'
    )


def test_an_entry_may_be_a_module_that_is_installed_or_will_be(folder: Path) -> None:
    installed = MINIMAL.replace("entry: grade.py:grade", "entry: json.tool:main")
    assert load(write(folder, installed)).grader.entry == "json.tool:main"
    text = MINIMAL.replace("entry: grade.py:grade", "entry: not_there.grade:Judge")
    assert NO_ENTRY in problems(folder, text)[0]
    assert load(write(folder, text + "  setup: [pip install not-there]\n")).grader.setup == ("pip install not-there",)


ENTRY = "entry: grade.py:grade"
NO_ENTRY = "must be file.py:function, relative to the task's folder"
CHANGES = {
    (ENTRY, "command: '  '"): "task.yaml:5:3: grader.command: is blank",
    (ENTRY, "command: ['', x]"): "task.yaml:5:3: grader.command: is blank",
    **{
        ("grade.py:grade", entry): NO_ENTRY
        for entry in ("grade.py", "grade:grade", "/grade.py:grade", "../grade.py:grade", "grade.py:a-b")
    },
    **{("My Task!", f'"{name}"'): "task.name" for name in ("", "   ", "数学")},  # it names a folder
    # A text that cannot be a path is not looked up.
    ("task:", f"task:\n  seed: {'9' * 300}"): "task.seed: must be text",
    **{("task:", f"task:\n  seed: {seed}"): "task.seed: is no path" for seed in ("a/" * 3000, '"a\\0b"')},
    ("task:", "task:\n  seed: ~nobody-has-this-name/seed"): 'task.seed: "~nobody-has-this-name/seed" does not exist',
}


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=range(len(CHANGES)))
def test_a_changed_task_is_refused_in_one_line(folder: Path, old: str, new: str) -> None:
    (line,) = problems(folder, MINIMAL.replace(old, new))
    assert CHANGES[old, new] in line


@pytest.mark.parametrize("command", ["./grade.sh --fast | tee x", ["python3", "grade.py"]])
def test_a_command_is_a_line_or_a_list(folder: Path, command: str | list[str]) -> None:
    config = load(write(folder, MINIMAL.replace("entry: grade.py:grade", f"command: {command}")))
    assert config.grader.command == (command if isinstance(command, str) else tuple(command))


def test_prices_are_a_section_of_their_own(folder: Path) -> None:
    text = MINIMAL + "agents:\n  prices: {input: 3, output: 15}\n"
    prices = load(write(folder, text)).agents.prices
    assert prices is not None
    assert (prices.input, prices.cached, prices.output) == (3.0, None, 15.0)
    text = MINIMAL + "agents:\n  prices: {inptu: 3, output: -1}\n"
    assert problems(folder, text) == [
        "task.yaml:7:3: agents.prices.input: is missing: What the model reads",
        'task.yaml:7:12: agents.prices.inptu: unknown key (with 3); did you mean "input"?',
        "task.yaml:7:22: agents.prices.output: must be at least 0; got -1",
    ]
    assert load(write(folder, MINIMAL), ["agents.prices.input=1", "agents.prices.output=2"]).agents.prices is not None


def test_missing_files_are_named(folder: Path) -> None:
    text = MINIMAL.replace("grade.py:", "grad.py:").replace("larger.", "larger.\n  seed: sed\n  editable: [../x]")
    assert problems(folder, text + "  private: [data, ../other]\n") == [
        f'task.yaml:4:3: task.seed: "sed" does not exist (looked at {folder}/sed)'.replace(f"{folder}/", ""),
        'task.yaml:5:14: task.editable[0]: must be a glob inside the seed; got "../x"',
        f'task.yaml:7:3: grader.entry: "grad.py" does not exist (looked in {folder})',
        f'task.yaml:8:13: grader.private[0]: "data" does not exist (looked in {folder})',
        'task.yaml:8:19: grader.private[1]: must be inside the task\'s folder; got "../other"',
    ]


def test_the_grader_must_not_lie_in_the_seed(folder: Path) -> None:
    (folder / "seed" / "grade.py").write_text("")
    told = problems(folder, MINIMAL.replace("grade.py", "seed/grade.py") + "  private: [seed]\n")
    assert [line.endswith("agents would see the grader") for line in told] == [True, True]
    assert "grader.entry" in problems(folder, MINIMAL.replace("larger.", "larger.\n  seed: ."))[0]


def test_the_public_check_must_exist(folder: Path) -> None:
    text = MINIMAL.replace("larger.", "larger.\n  check: check.py:check")
    assert load(write(folder, text)).task.check == "check.py:check"
    assert problems(folder, text.replace("check.py", "chek.py")) == [
        'task.yaml:4:3: task.check: "chek.py" does not exist (looked in seed)'
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1:1: is empty"),
        ("# nothing\n", "1:1: is empty"),
        ("- a\n- b\n", "1:1: must hold sections"),
        ("hello\n", "1:1: must hold sections"),
        ("task:\n\tname: x\n", "2:1: is not YAML: a tab; indent with spaces"),
        ("task: [1, 2\n", "is not YAML: expected ',' or ']'"),
        ("task: a: b\n", "1:8: is not YAML: a second `:` on the line"),
        ("task: 1\n---\ntask: 2\n", "2:1: is not one YAML document"),
        ("task: *nobody\n", "1:7: is not YAML: found undefined alias"),
        ("task: &a [*a]\n", "is nested too deeply, or too large"),
        ("task: " + "[" * 700, "is nested too deeply"),
        ("task: " + "[" * 60 + "]" * 60, "is nested too deeply"),
        ("task: \x01\n", "is not YAML: unacceptable character"),
    ],
)
def test_a_file_that_is_not_a_task_is_refused(folder: Path, text: str, told: str) -> None:
    found = problems(folder, text)
    assert len(found) == 1
    assert told in found[0]


def test_an_alias_bomb_and_a_number_of_ten_thousand_digits_end_early(folder: Path) -> None:
    layers = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert "too large" in problems(folder, f"task:\n  l0: &l0 [x]\n{layers}")[0]
    assert "is not a value of its type" in problems(folder, f"{MINIMAL}budget: {{attempts: {'9' * 10_000}}}\n")[0]


@pytest.mark.parametrize("raw", [b"\x89PNG\r\n\x1a\n\0", b"task: \xff\xfe", b"a: " + b"x" * 200_001])
def test_a_file_that_is_not_text_is_refused(folder: Path, raw: bytes) -> None:
    (folder / "task.yaml").write_bytes(raw)
    with pytest.raises(CoralError, match="is not a text in UTF-8"):
        load(folder)


def test_values_are_read_by_yaml_1_2_whatever_the_file_s_lines_anchors_braces_and_escapes(folder: Path) -> None:
    args = "{a: 1e-3, b: on, c: 010, d: 12:30:00, e: 2024-01-01, f: 0x1F, g: ~, h: -.inf}"
    read = load(write(folder, f"{MINIMAL}  args: {args}\n")).grader.args
    dates = {"d": "12:30:00", "e": "2024-01-01"}
    assert read == {"a": 0.001, "b": "on", "c": 10, **dates, "f": 31, "g": None, "h": -float("inf")}
    (folder / "task.yaml").write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert load(folder).task.description == "Make it larger."
    assert load(write(folder, f"{MINIMAL}budget: {{attempts: &a 1, target: &a 2, hours: *a}}\n")).budget.hours == 2
    config = load(write(folder, MINIMAL.replace("Make it larger.", "Use ${HOME} and ${task.name}, {x} and {{ y }}.")))
    assert config.task.description == "Use ${HOME} and ${task.name}, {x} and {{ y }}."
    text = MINIMAL.replace("Make it larger.", r'"\ud83e\udeb8"')
    assert load(write(folder, text)).task.description == "\U0001fab8"
    assert "half a character" in problems(folder, text.replace(r"\udeb8", ""))[0]


@pytest.mark.parametrize("off", ["enabled: false", "every: 0m", "minutes: 0", "seconds: 0"])
def test_a_heartbeat_that_is_not_protected_is_switched_off(folder: Path, off: str) -> None:
    text = MINIMAL + f"heartbeats: [{{name: checkpoint, {off}}}]\n"
    assert [beat.name for beat in load(write(folder, text)).heartbeats] == ["reflect", "consolidate", "redirect"]
    (problem,) = problems(folder, text.replace("checkpoint", "reflect"))
    assert "cannot remove reflect: it is protected" in problem
    on = load(write(folder, MINIMAL + "heartbeats: [{name: checkpoint, enabled: true, every: 45m}]\n")).heartbeats
    assert on[-1].trigger == Elapsed(2700.0)


def test_entries_of_heartbeats_change_the_built_in_ones(folder: Path) -> None:
    text = """\
heartbeats:
  - {name: reflect, every: 3}
  - {name: redirect, stagnant: 8, scope: fleet, delivery: inline}
  - {name: checkpoint, minutes: 5, prompt: "Where are you?"}
  - name: tidy
    seconds: 90
    prompt: |
      Tidy up, {{ agent.name }}.
"""
    beats = {beat.name: beat for beat in load(write(folder, MINIMAL + text)).heartbeats}
    assert list(beats) == ["reflect", "consolidate", "redirect", "checkpoint", "tidy"]
    assert beats["reflect"].trigger == Every(3)
    assert beats["reflect"].protected
    assert beats["redirect"].trigger == Stagnant(8)
    assert (beats["redirect"].scope, beats["redirect"].delivery) == (Scope.FLEET, Delivery.INLINE)
    assert (beats["checkpoint"].trigger, beats["checkpoint"].prompt) == (Elapsed(300.0), "Where are you?")
    assert (beats["tidy"].trigger, beats["tidy"].by) == (Elapsed(90.0), "task")


# --- overrides on the command line: typed like YAML, checked like the file, and blamed by their own words ---


def test_the_hint_depends_on_whether_the_file_or_an_override_is_wrong(folder: Path) -> None:
    def advice(*overrides: str) -> str:
        with pytest.raises(CoralError) as caught:
            load(folder, overrides)
        return caught.value.hint

    assert advice("agent.count=4").startswith("correct it where you typed it")
    write(folder, MINIMAL + "budgets: {}\n")
    both = "correct these lines; `coral validate` checks the task again and costs nothing"
    assert advice("agent.count=4") == advice() == both


def test_overrides_are_read_as_yaml_values_and_a_later_one_wins(folder: Path) -> None:
    config = load(
        write(folder, MINIMAL + "  args: {fast: true}\n"),
        ["agents.count=4", "budget.hours=0.025", "run.watch=false", "grader.args.n=[1, {a: x}]", "budget.target=1e-3"],
    )
    assert (config.agents.count, config.budget.hours, config.run.watch) == (4, 0.025, False)
    assert config.grader.args == {"fast": True, "n": [1, {"a": "x"}]}
    assert config.budget.target == 0.001
    assert load(folder, ["agents.count=4", "agents={count: 5}", "agents.count=6"]).agents.count == 6
    assert load(folder, ["grader.args={}"]).grader.args == {}
    assert load(folder, ["task.tips="]).task.tips == ""
    assert load(folder, ["budget.hours=3", "budget.hours=null"]).budget.hours is None
    assert load(folder, ["grader.entry=", "grader.command=[python3, g.py]"]).grader.command == ("python3", "g.py")


@pytest.mark.parametrize(
    "text", ["use: less # now", "a = b", "${HOME}", "- not a list", "two\nlines", "it's", "100%", "*", "!x", "&y"]
)
def test_a_text_that_is_no_plain_yaml_value_is_taken_as_it_is(folder: Path, text: str) -> None:
    assert load(folder, [f"task.tips={text}"]).task.tips == text


def test_a_problem_names_the_override_that_caused_it(folder: Path) -> None:
    assert problems(folder, None, "agents.count=0", "agents.cout=3", "task.name=42", 'task.tips="42"') == [
        "override agents.count=0: agents.count: must be at least 1; got 0",
        'override agents.cout=3: agents.cout: unknown key (with 3); did you mean "count"?',
        "override task.name=42: task.name: must be text; got 42 (put it in quotes)",
    ]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("agents.count", "is not of the form section.key=value"),
        ("=4", "is not of the form section.key=value"),
        ("agents..count=4", "is not of the form section.key=value"),
        ("agents.count=[1", "agents.count: is not YAML"),
        ("agents.count.more=1", "must be a whole number; got {'more': 1}"),
        ("heartbeats.0.every=3", "heartbeats: holds no keys; override it whole"),
        ("nonsense=1", "nonsense: unknown key (with 1)"),
        ("heartbeats=[{name: reflect, every: 99}]", "heartbeats[0]: cannot change reflect: it is protected"),
    ],
)
def test_an_invalid_override_is_refused(folder: Path, override: str, told: str) -> None:
    found = problems(folder, MINIMAL + "heartbeats: [{name: reflect, every: 2}]\n", override)
    assert len(found) == 1
    assert found[0].startswith(f"override {override}: ")
    assert told in found[0]


HOLD = "def grade(workspace): return 2\n"


def test_a_hold_out_is_the_grader_with_what_it_says_in_its_place(folder: Path) -> None:
    (folder / "hold.py").write_text(HOLD)
    (folder / "held").write_text("data")
    (folder / "own").write_text("data")
    own = MINIMAL + "  args: {split: train, n: 3}\n  private: [own]\n  timeout: 20\n"
    assert load(write(folder, own)).holdout_grader is None
    split = load(write(folder, own + "holdout: {args: {split: test}}\n")).holdout_grader
    assert split is not None
    assert (split.entry, split.args, split.timeout) == ("grade.py:grade", {"split": "test", "n": 3}, 20.0)
    other = load(write(folder, own + 'holdout: {entry: "hold.py:grade", private: [held], timeout: 9}\n')).holdout_grader
    assert other is not None
    assert (other.entry, other.command, other.private, other.timeout) == ("hold.py:grade", "", ("own", "held"), 9.0)
    program = load(write(folder, own + "holdout: {command: ./measure}\n")).holdout_grader
    assert program is not None
    assert (program.entry, program.command) == ("", "./measure")


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{timeout: 9}", "holdout: needs entry, command or args: else it is the grader once more"),
        ('{entry: "gone.py:grade"}', 'holdout.entry: "gone.py" does not exist'),
        ('{entry: "grade.py:grade", command: ./x}', "holdout: gives both entry and command; one of them grades"),
        ("{args: {a: 1}, private: [gone]}", 'holdout.private[0]: "gone" does not exist'),
        ("{args: {a: 1}, private: [seed]}", 'holdout.private[0]: "seed" and the seed "seed" overlap'),
        ('{entry: "seed/check.py:check"}', 'holdout.entry: "seed/check.py" and the seed "seed" overlap'),
        ("{direction: minimize}", 'holdout.direction: unknown key (with "minimize"); it belongs under grader'),
    ],
)
def test_a_hold_out_is_checked_like_the_grader(folder: Path, section: str, problem: str) -> None:
    assert any(problem in line for line in problems(folder, MINIMAL + f"holdout: {section}\n"))
