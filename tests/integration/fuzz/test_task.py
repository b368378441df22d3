"""Whatever stands in task.yaml: a task that a run can keep, or one error with the place of every problem."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import trying
from hypothesis import assume, example, given, strategies as st

from coral.agent_setup.roster import Roster
from coral.codec import decode, encode
from coral.config import load as loading
from coral.config.load import Config, load, load_frozen
from coral.errors import CoralError
from coral.fleet.rules import Rules
from coral.runs.rules import rules_of

TASK: dict[str, Any] = {
    "task": {"name": "t", "description": "d", "seed": "seed", "editable": ["*.txt"], "check": "", "tips": "x"},
    "grader": {"entry": "grade.py:grade", "timeout": 5, "args": {"k": [1, {"a": None}]}, "private": [], "noise": 0.5},
    "agents": {"count": 2, "runtime": "native", "model": "", "options": {"a": 1}, "stall": 60},
    "heartbeats": [{"name": "reflect", "every": 2}, {"name": "mine", "minutes": 3, "prompt": "go {{ on }}"}],
    "workspace": {"runs": "runs", "share": True, "setup": ["true"]},
    "budget": {"attempts": 5, "hours": 1.5, "target": 2},
    "run": {"poll_seconds": 1, "watch": False, "backoff": 1},
}
NUMBERS = ["true", "null", "off", ".inf", "-.nan", "0x1F", "0o17", "0b1", "1_000", "1e400", "-0", "1:30", "2024-01-01"]
SIGNS = [
    "~",
    "<<",
    "=",
    "!",
    "&a",
    "*a",
    "[]",
    "{}",
    "[[]]",
    "{a:}",
    "''",
    r'"\ud800"',
    "|",
    ">",
    "-",
    "?",
    "@",
    "`",
    "%",
]
WORDS = [*NUMBERS, *SIGNS, "!!python/object:os.system", "!!binary", "../../x", "/etc/passwd", "${HOME}"]
bare = st.sampled_from([*WORDS, "9" * 400, "9" * 5000, "0x" + "f" * 5000, "[" * 300, "'" * 3, "\U0001f41a", "\x85"])
value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
special = st.text(" \t\n\r:#-?&*!|>'\"%@`{}[],\\~<=/.0aé\u2028\ufeff\x00\x07\U0001f600\ud800", max_size=12)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in plain data."""
    yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, below in inner:
        yield from places(below, (*path, key))


def put(node: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = put(copy[path[0]], path[1:], new)
    return copy


PLACES = [path for path in places(TASK) if path]
VALID = json.dumps(TASK, indent=1)


@st.composite
def one_value_wrong(draw: Any) -> str:
    """A task in which one or two values are something else."""
    data = TASK
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(PLACES))
        assume(path in places(data))
        data = put(data, path, draw(value))
    return json.dumps(data)


@st.composite
def one_token_wrong(draw: Any) -> str:
    """A task in which one value is written in a way that only YAML has."""
    path = draw(st.sampled_from(PLACES))
    return json.dumps(put(TASK, path, "HERE"), indent=1).replace('"HERE"', draw(bare))


@st.composite
def spoilt(draw: Any) -> str:
    """The text of a task with something cut out and something put in."""
    start = draw(st.integers(0, len(VALID)))
    end = min(start + draw(st.integers(0, 40)), len(VALID))
    return VALID[:start] + draw(special | bare) + VALID[end:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("task")
    (made / "seed").mkdir()
    (made / "seed" / "a.txt").write_text("0")
    (made / "grade.py").write_text("def grade(workspace): return 1\n")
    return made


def loaded(folder: Path, *overrides: str) -> Config | None:
    refused: CoralError | None = None
    try:
        return load(folder, overrides)
    except CoralError as error:
        refused = error
    assert str(refused).startswith("cannot ")
    assert refused.hint
    str(refused).encode()  # it must be possible to print it
    return None


def judge(folder: Path, raw: bytes) -> None:
    """A run can keep it, decide by it and read it again; or it is refused with a reason and a hint."""
    (folder / "task.yaml").write_bytes(raw)
    config = loaded(folder)
    if config is None:
        return
    (folder / "kept.yaml").write_text(config.text, encoding="utf-8")
    again = load_frozen(folder / "kept.yaml")
    assert again == config  # a start goes on with the one, a resume with the other
    try:
        roster = Roster(again)
    except CoralError:  # a runtime that is not there: the run cannot start
        return
    rules = rules_of(again, roster, "0" * 40)
    assert decode(Rules, json.loads(json.dumps(encode(rules), allow_nan=False))) == rules


@trying("task.yaml", "something wrong")
@example(text=json.dumps(put(TASK, ("task", "editable"), ["9" * 400])))
@given(one_value_wrong() | one_token_wrong() | spoilt())
def test_a_task_with_something_wrong_in_it(folder: Path, text: str) -> None:
    judge(folder, text.encode("utf-8", "surrogatepass"))


@trying("task.yaml", "any text")
@given(special | st.text(max_size=60) | st.lists(bare | special, max_size=8).map(" ".join))
def test_any_text(folder: Path, text: str) -> None:
    judge(folder, text.encode("utf-8", "surrogatepass"))


@trying("task.yaml", "any bytes")
@given(
    st.binary(max_size=60) | st.sampled_from(["utf-16", "utf-32", "latin-1", "utf-7"]).map(lambda e: "é: 1".encode(e))
)
def test_any_bytes(folder: Path, raw: bytes) -> None:
    judge(folder, raw)


@trying("task.yaml", "overrides")
@given(st.sampled_from([".".join(map(str, path)) for path in PLACES]), bare | special | st.text(max_size=20))
def test_any_override(folder: Path, key: str, text: str) -> None:
    (folder / "task.yaml").write_text(VALID)
    loaded(folder, f"{key}={text}")


MANY = loading.LARGEST // 8
LARGE = {
    "a list": "a:\n" + "- x\n" * MANY,
    "keys": "".join(f"k{number}: v\n" for number in range(MANY // 3)),
    "a flow": "a: [" + "x," * MANY + "]",
    "deep": "a: " + "[" * MANY,
    "deeper and deeper": "".join(" " * depth + "a:\n" for depth in range(400)),
    "dashes": "- " * MANY,
    "questions": "? " * MANY,
    "a tag": "a: !" + "x" * MANY,
    "one word": "a: " + "x" * MANY,
    "a number": "run: {poll_seconds: " + "9" * MANY + "}",
    "a number in sixteens": "run: {poll_seconds: 0x" + "f" * MANY + "}",
    "a number in sixties": "a: " + "1:" * MANY + "1",
    "aliases": "a: &a x\n" + "".join(f"b{number}: *a\n" for number in range(MANY // 4)),
    "laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + at)}: &{chr(98 + at)} [{','.join(['*' + chr(97 + at)] * 9)}]\n" for at in range(12)),
    "itself": "task: &a {name: *a, description: [*a]}",
}


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE.keys())
def test_what_grows_without_end_is_refused(folder: Path, text: str) -> None:
    (folder / "task.yaml").write_text(text)
    with pytest.raises(CoralError) as caught:
        load(folder)
    assert len(str(caught.value)) < 20_000


def test_a_pipe_is_not_waited_for(tmp_path) -> None:
    os.mkfifo(tmp_path / "task.yaml")
    with pytest.raises(CoralError, match="not a text"):
        load(tmp_path / "task.yaml")


def test_a_large_task_that_is_allowed_can_be_kept(folder: Path, tmp_path) -> None:
    # Every character of it is written out as an escape.
    task = put(TASK, ("task", "tips"), "\u2028" * 60_000)
    (folder / "task.yaml").write_text(json.dumps(task, ensure_ascii=False))
    (tmp_path / "kept.yaml").write_text(load(folder).text, encoding="utf-8")
    assert load_frozen(tmp_path / "kept.yaml").task.tips == task["task"]["tips"]
