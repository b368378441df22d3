"""Heartbeats, notes and skills, fuzzed through the commands: a clear error or a clean result."""

import contextlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import trying
from hypothesis import example, given, strategies as st
from sample import make_run, write_heartbeats, write_status
from stage import Stage

from coral.cli import EXIT_INTERNAL_ERROR, main
from coral.fleet import actions as do, events as on
from coral.fleet.run_state import FLEET
from coral.supervisor.inbox import Inbox
from coral.views.fleet_view import HeartbeatFiles
from heartbeats.folder import Folder
from heartbeats.render import render
from workspace.layout import OPERATOR, Layout

AGENT = "ann"


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Layout:
    made = make_run(tmp_path_factory.mktemp("words") / "runs")
    write_status(made)
    write_heartbeats(made)
    return made


@pytest.fixture
def layout(template: Layout, tmp_path, monkeypatch) -> Layout:
    monkeypatch.delenv("CORAL_AGENT", raising=False)
    root = tmp_path / "runs" / "toy" / template.root.name
    shutil.copytree(template.root, root, symlinks=True)
    return Layout(root)


def coral(layout: Layout, *words: str) -> str:
    """What a command says, which is no traceback and nothing that a terminal would obey."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([words[0], "--run", str(layout.root), *words[1:]])
    printed = out.getvalue() + err.getvalue()
    assert code in (0, 1, 2), printed
    assert code != EXIT_INTERNAL_ERROR
    assert not code or err.getvalue().startswith("coral: "), printed
    assert "\x1b" not in printed
    assert "\0" not in printed
    printed.encode("utf-8")
    return printed


def emptied(folder: Path) -> Path:
    """So that each example begins with nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
FILES = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")),
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["name", "every", "seconds", "minutes", "scope", "prompt", "when", "next", "by", "protected"]
            ),
            st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=20), st.lists(st.integers(), max_size=3)),
        ),
        max_size=3,
    ).map(lambda rows: json.dumps(rows).encode()),
)


@trying("requests", "files of heartbeats")
@given(content=FILES)
@example(content=b"- " + b"[" * 30_000)
@example(content=b"- " * 20_000 + b"x")
@example(content=b"- {name: x}\n" * 5_000)
@example(content=b"- {a: " * 2_000)
@example(content=BOMB.encode())
@example(
    content=(
        "- name: reflect\n  prompt: &a [x,x,x,x,x,x,x,x,x]\n" + BOMB.replace("a: &a [x,x,x,x,x,x,x,x,x]\n", "")
    ).encode()
)
@example(content=b"- &a {name: *a, next: *a}\n")
@example(content=b"- {name: !!python/object/apply:os.system [ls], every: 1}\n")
@example(content=b"- {name: 2001-01-01, every: .nan, next: 0x10, ? [1, 2]: 3}\n")
@example(content=b"- {1: 2, null: 3, [a]: 4}\n")
@example(content=b"\xff\xfe" * 100)
def test_any_file_of_heartbeats_is_shown_or_ignored(layout: Layout, content: bytes) -> None:
    (layout.heartbeats / f"{FLEET}.yaml").write_bytes(content)
    coral(layout, "heartbeat")
    json.loads(coral(layout, "heartbeat", "--json"))
    assert isinstance(Folder(layout.heartbeats).read(FLEET), list)


def test_a_file_of_heartbeats_that_expands_without_end_is_ignored(layout: Layout) -> None:
    bomb = "- &a {name: x, prompt: y}\n- &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
    for before, name in zip("bcdefghi", "cdefghij", strict=True):
        bomb += f"- &{name} {{name: z, prompt: [{','.join(['*' + before] * 9)}]}}\n"
    (layout.heartbeats / f"{FLEET}.yaml").write_text(bomb)
    assert len(coral(layout, "heartbeat", "--json")) < 1_000_000
    coral(layout, "heartbeat")


TEXTS = st.one_of(st.text(max_size=60), st.text(alphabet="{}%# \nab'\"[]|().", max_size=60))
NUMBERS = st.one_of(st.integers().map(str), st.floats().map(str), st.text(max_size=8), st.just("1e999"))


@trying("requests", "wishes for heartbeats")
@given(
    name=st.one_of(st.sampled_from(["reflect", "redirect", "mine", "checkpoint"]), TEXTS),
    when=st.one_of(st.none(), st.tuples(st.sampled_from(["every", "stagnant", "minutes"]), NUMBERS)),
    prompt=st.one_of(st.none(), TEXTS),
    by_agent=st.booleans(),
)
@example(name="mine", when=("every", "5"), prompt="look", by_agent=True)
@example(name="\0\x1b", when=None, prompt=None, by_agent=False)
@example(name="mine", when=("minutes", "nan"), prompt="look", by_agent=False)
@example(name="mine", when=("minutes", "inf"), prompt="look", by_agent=True)
@example(name="mine", when=("every", "9" * 5000), prompt="look", by_agent=True)
@example(name="mine", when=("every", "5"), prompt="{{" * 3000, by_agent=True)
@example(name="mine", when=("every", "5"), prompt="{% for a in range(9**9) %}{% endfor %}", by_agent=True)
@example(name="mine", when=("every", "5"), prompt="x\0y\ud800", by_agent=True)
@example(name="mine", when=("every", "5"), prompt="@/dev/null", by_agent=True)
@example(name="mine", when=("every", "5"), prompt="@" + "x" * 5000, by_agent=True)
@example(name="mine", when=("every", "5"), prompt="@a\0b", by_agent=True)
@example(name="mine", when=("every", "5"), prompt="{{ 'x' * 10**9 }}", by_agent=True)
def test_any_request_for_a_heartbeat_is_refused_or_carried_out_and_can_be_shown(
    layout, name, when, prompt, by_agent
) -> None:
    sender = AGENT if by_agent else OPERATOR
    emptied(layout.requests_of(OPERATOR))
    emptied(layout.requests_of(sender))
    emptied(layout.replies_to(OPERATOR))
    words = ["heartbeat", "set", f"--prompt={prompt}"] if prompt is not None else ["heartbeat", "set"]
    coral(layout, *words, *([f"--{when[0]}={when[1]}"] if when else []), "--agent=agent-1", "--", name)
    for path in layout.requests_of(OPERATOR).glob("*.json"):
        # As the supervisor takes it up: from whoever asked, for itself.
        data = json.loads(path.read_bytes())
        path.unlink()
        (layout.requests_of(sender) / path.name).write_text(json.dumps({**data, "owner": AGENT}))
    stage = Stage()
    asked = [event for event in Inbox(layout, stage.names).collect(0, {}) if isinstance(event, on.Requested)]
    stage.at(2, *asked)
    if (name, when, prompt) == ("mine", ("every", "5"), "look"):
        assert [action.ok for action in stage.actions if isinstance(action, do.Answer)] == [True]
    assert len([action for action in stage.actions if isinstance(action, do.Answer)]) == len(asked)
    HeartbeatFiles(layout.heartbeats).write(stage.fleet, AGENT, 2.0)
    shown = Folder(layout.heartbeats).read(AGENT)
    assert [row["name"] for row in shown] == [heartbeat.name for heartbeat in stage.fleet.heartbeats[AGENT]]
    for heartbeat in stage.fleet.heartbeats[AGENT]:
        printed = render(heartbeat.prompt, {"agent": "ann", "n": 3})
        assert len(printed.text) < 200_000
        printed.text.encode()


NAMES = st.one_of(
    st.sampled_from(
        ["a.md", "a\nb.md", "\U0001f300.md", "-rf.md", "#1.md", "SKILL.md", "x" * 250 + ".md", "a\x1b[31m.md"]
    ),
    st.text(max_size=20).map(lambda text: text.replace("/", "-").replace("\0", "0") + ".md"),
    st.binary(min_size=1, max_size=9).map(
        lambda raw: os.fsdecode(raw.replace(b"/", b"-").replace(b"\0", b"0")) + ".md"
    ),
)
HEADS = st.one_of(
    st.just(BOMB),
    st.text(max_size=200),
    st.lists(
        st.tuples(
            st.sampled_from(["title", "created", "attempts", "kind", "author", "name", "description", "tags"]),
            st.one_of(TEXTS, st.integers().map(str), st.just("[" * 300), st.just("|\n  a\n  b"), st.just("*a")),
        ),
        max_size=5,
    ).map(lambda rows: "".join(f"{key}: {value}\n" for key, value in rows)),
)
CONTENTS = st.one_of(
    st.binary(max_size=200),
    st.tuples(HEADS, st.text(max_size=200)).map(
        lambda parts: f"---\n{parts[0]}\n---\n{parts[1]}".encode("utf-8", "replace")
    ),
)


@trying("requests", "notes and skills")
@given(files=st.lists(st.tuples(NAMES, CONTENTS), max_size=3), link=st.booleans())
def test_any_notes_and_skills_are_listed_read_and_searched(layout, files, link) -> None:
    notes = emptied(layout.shared / "notes")
    skills = emptied(layout.shared / "skills")
    secret = layout.private / "answers.md"
    secret.write_text("---\ntitle: hidden answers\n---\nhidden answers\n")
    for place, (name, content) in enumerate(files):
        for path in (notes / name, skills / f"s{place}" / "SKILL.md"):
            path.parent.mkdir(exist_ok=True)
            with contextlib.suppress(OSError):  # a name that the file system refuses
                path.write_bytes(content)
    if link:
        (notes / "link.md").symlink_to(secret)
        (notes / "folder").symlink_to(layout.private)
        (skills / "linked").symlink_to(layout.private)
    printed = [coral(layout, *words) for words in COMMANDS]
    assert "hidden answers" not in "".join(printed)
    for listed in (printed[1], printed[-1]):
        json.loads(listed)


COMMANDS = (
    ["notes"], ["notes", "--json"], ["notes", "--search", "a b"], ["notes", "--read", "1"], ["notes", "--read", "a"],
    ["skills"], ["skills", "--read", "a"], ["skills", "--json"],
)  # fmt: skip


def test_notes_of_every_size_and_depth_are_read_in_bounds(layout: Layout) -> None:
    notes = emptied(layout.shared / "notes")
    with (notes / "sparse.md").open("wb") as file:
        file.truncate(1 << 30)
    deep = notes
    for number in range(60):
        deep = deep / f"d{number}"
    deep.mkdir(parents=True)
    (deep / "deep.md").write_text("# deep")
    os.mkfifo(notes / "pipe.md")
    (notes / "nested.md").write_text("> " * 20_000 + "x\n" + "- " * 5_000 + "y\n" + "*" * 20_000)
    (notes / "head.md").write_text("---\n" + "a: [" * 5_000 + "\n---\n")
    for words in COMMANDS:
        assert len(coral(layout, *words)) < 5_000_000
    everything: Iterator[str] = (coral(layout, "notes", "--read", str(number)) for number in range(1, 4))
    assert all(len(text) < 5_000_000 for text in everything)
