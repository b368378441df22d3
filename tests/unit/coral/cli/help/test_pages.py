"""Pages of the documentation in a terminal: found by topic, whole, with what only code knows."""

import re

import pytest
from pages import ROOT

from coral.cli import EXIT_CODES
from coral.cli.help.made import MADE
from coral.cli.help.pages import MADE_HERE, as_words, page_of, pages
from coral.errors import CoralError
from heartbeats.example import CONTEXT_NAMES
from heartbeats.heartbeat import BUILT_IN

TOPICS = ("graders", "heartbeats", "budgets", "trust", "exit-codes", "task-yaml", "results")


def test_every_page_is_a_topic_with_a_title() -> None:
    assert {page.path.name for page in pages().values()} == {path.name for path in (ROOT / "docs").glob("*.md")}
    assert set(TOPICS) <= pages().keys()
    assert all(page.title != page.topic or page.topic == "task-yaml" for page in pages().values())


def test_what_code_makes_is_used_by_a_page_and_is_there() -> None:
    named = [name for path in (ROOT / "docs").rglob("*.md") for name in MADE_HERE.findall(path.read_text())]
    assert sorted(named) == sorted(MADE)
    assert not any(MADE_HERE.search(page.markdown()) for page in pages().values())


@pytest.mark.parametrize("asked", ["task.yaml", "Task YAML", "task-yaml"])
def test_a_topic_is_found_however_it_is_written(asked: str) -> None:
    assert page_of(asked).topic == "task-yaml"


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("grader", "did you mean `coral help graders`?"),
        ("noise", "did you mean `coral help noisy-graders`?"),
        ("zzz", "`coral help --topics` lists the topics"),
    ],
)
def test_an_unknown_topic_gets_a_hint(asked: str, hint: str) -> None:
    with pytest.raises(CoralError, match="there is no such topic") as refused:
        page_of(asked)
    assert refused.value.hint == hint


def test_a_page_says_what_code_knows() -> None:
    heartbeats, codes = page_of("heartbeats").markdown(), page_of("exit-codes").markdown()
    assert all(f"| `{one.name}` | {one.when} |" in heartbeats for one in BUILT_IN)
    assert all(re.search(rf"^\| `{name}[`.]", heartbeats, re.MULTILINE) for name in CONTEXT_NAMES)
    assert all(f"| {code} | {meaning} |" in codes for code, meaning in EXIT_CODES.items())
    assert "| `coral job wait` | 4 | " in codes


def test_links_to_pages_become_topics_and_others_words() -> None:
    said = page_of("your-repository").plain()
    assert "Budgets and limits (`coral help budgets`)" in said
    assert not re.search(r"\]\((?!https?:)", said)
    assert "<!--" not in said


def test_code_that_looks_like_a_link_stays_as_it_is() -> None:
    text = "`a[0](b.md)` and [b](trust.md)\n\n```python\nx[0](y)\n```\n[c](../x.py) [d](#e)\n"
    shown = "`a[0](b.md)` and b (`coral help trust`)\n\n```python\nx[0](y)\n```\nc d\n"
    assert as_words(text) == shown
