"""A report: whole, self-contained, and deaf to whatever agents wrote into it."""

import json
import re
import shutil
from html.parser import HTMLParser

import pytest
from journal_recorder import FOLDER, RULES, JournalRecorder, moment
from sample import attempt, make_run, write_status

from attempts.record import Kind, Verdict
from attempts.store import Store
from coral import __version__
from coral.cli.report.page import page
from coral.cli.report.results import lineage
from coral.journal import writer
from coral.reading.run_view import RunView
from workspace.layout import Layout

VOID = {"meta", "br", "hr"}
# The elements that a report is made of.
ALLOWED = """
html head meta title style body main header footer section h1 h2 h3 h4 h5 h6 p div span dl dt dd ul ol li details
summary figure figcaption svg desc g line text path circle table caption thead tbody tr th td a strong em code pre bdi
blockquote
"""


class Page(HTMLParser):
    """The elements of a page, and whether each is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def test_the_line_of_the_best_has_medians(tmp_path) -> None:
    """#4 got 2.0, and now 3.0; #3 got 1.25."""
    layout = make_run(tmp_path / "runs")
    Store(layout.attempts).publish(attempt(5, 3.0, kind=Kind.CONFIRM, of=4, verdict=Verdict.TIED))
    write_status(layout)
    found = Page(str(lineage(RunView(layout)))).text
    at = found.index("#4")
    assert found[at : at + 3] == ["#4", "2.5", "+1.25"]


def test_hostile_content_stays_text(hostile: Layout) -> None:
    found = Page(page(RunView(hostile)))
    assert found.open == []
    assert {tag for tag, _ in found.elements} <= set(ALLOWED.split())
    assert len(found.of("style")) == 1
    for tag, attributes in found.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset", "action")
        ]
        link = attributes.get("href")
        assert tag == "a" or link is None
        assert link is None or link.startswith(("https://example.org/", "#"))
    text = "".join(found.text)
    assert "<script>" in text, "what they wrote is shown"
    assert "\x1b" not in text


def test_the_policy_forbids_everything_but_our_own_style(hostile: Layout) -> None:
    found = Page(page(RunView(hostile)))
    metas = found.of("meta")
    place = [attributes.get("http-equiv") for attributes in metas].index("Content-Security-Policy")
    policy = metas[place]["content"] or ""
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", parts["style-src"])
    assert set(parts) == {"default-src", "style-src", "base-uri", "form-action"}
    assert [tag for tag, _ in found.elements].index("style") > place, "it holds for the style, too"


def test_a_huge_note_makes_no_huge_page(hostile: Layout) -> None:
    (hostile.shared / "notes" / "synthesis-2.md").write_text("---\nkind: synthesis\n---\n# Big\n\n" + "- x " * 40_000)
    assert len(page(RunView(hostile))) < 400_000


def test_a_page_says_what_came_of_the_run(finished: Layout) -> None:
    found = Page(page(RunView(finished)))
    text = " ".join(" ".join(found.text).split())
    for part in (
        "#4 by agent-1, +1 against the seed's 1",
        "It stopped: the budget of 4 attempts is used up.",
        "From the seed's 1 to 2 (#4) in 2 steps, the last after 40 s of 10 min; 4 attempts.",
        "1.0k tokens, $2.50 by the models",
        "two circles overlap",
        "-one +two",
    ):
        assert part in text
    assert re.search(r"Messages of each heartbeat.*reflect 3 2 1", text)


def test_a_page_says_why_a_budget_has_counted_more_attempts(finished: Layout) -> None:
    write_status(finished, failed=1, budgets=[{"key": "attempts", "limit": 6, "used": 6}])
    text = " ".join(" ".join(Page(page(RunView(finished))).text).split())
    assert "Attempts 4 1 failed, 2 trials of numbers beside them" in text


@pytest.mark.parametrize(
    ("verification", "said"),
    [
        ({"recorded": 2.0, "score": 2.0, "is_same": True}, "the seed's 1, graded again with the same score Attempts"),
        ({"recorded": 2.0, "score": 2.1, "is_same": True}, "the seed's 1, graded again with 2.1, within the noise A"),
        ({"recorded": 2.0, "score": 1.5, "is_same": False}, ", NOT verified: graded again, it scored 1.5 Attempts"),
        ({"score": None, "reason": "a crash", "is_same": False}, ", NOT verified: graded again, a crash Attempts"),
        ([], "the seed's 1 Attempts"),
    ],
)
def test_a_page_says_what_grading_the_best_again_has_shown(verification: object, said: str, finished: Layout) -> None:
    finished.verified.parent.mkdir(exist_ok=True)
    finished.verified.write_text(json.dumps({"4": verification}))
    assert said in " ".join(" ".join(Page(page(RunView(finished))).text).split())


def test_tables_and_pictures_can_be_listened_to(finished: Layout) -> None:
    found = Page(page(RunView(finished)))
    assert found.of("table")
    assert len(found.of("caption")) == len(found.of("table"))
    assert all(attributes.get("scope") in ("col", "row") for attributes in found.of("th"))
    assert len(found.of("desc")) == len(found.of("svg")) > 0
    assert all(attributes.get("role") == "img" for attributes in found.of("svg"))
    assert found.of("html")[0]["lang"] == "en"


@pytest.mark.parametrize("harm", ["status", "timeline", "task", "records", "hub", "shapes"])
def test_a_damaged_run_has_a_report(harm: str, finished: Layout) -> None:
    match harm:
        case "status":
            finished.status.write_bytes(b"\x00\xff{")
        case "timeline":
            finished.events.write_bytes(b"\xff" * 3_000_000 + b'\n{"type": "published", "attempt": "x"}\n')
        case "task":
            finished.task_file.write_bytes(b"\x00")
        case "records":
            (finished.attempts / "000003.json").write_text("{")
        case "hub":
            shutil.rmtree(finished.hub)
        case "shapes":
            write_status(finished, wall="yesterday", clock="soon", spent=[], agents="none")
    found = Page(page(RunView(finished)))
    assert found.open == []
    assert "Score over time" in "".join(found.text)


def test_a_report_without_status_counts_the_records_and_says_at_least(finished: Layout) -> None:
    Store(finished.attempts).publish(attempt(5, None, verdict=Verdict.VOID))
    finished.status.unlink()
    text = " ".join(" ".join(Page(page(RunView(finished))).text).split())
    for part in ("Attempts 4 1 failed", "Time at least ", "Use use not known"):
        assert part in text


def test_a_run_without_an_attempt(finished: Layout) -> None:
    for path in finished.attempts.glob("*.json"):
        path.unlink()
    text = "".join(Page(page(RunView(finished))).text)
    assert "There is no score yet." in text
    assert "No attempt has a score." in text


def test_without_status_trials_of_numbers_are_no_attempts_either(tmp_path) -> None:
    layout = make_run(tmp_path / "runs")
    Store(layout.attempts).publish(attempt(5, 3.0, kind=Kind.TUNE, verdict=Verdict.TIED))
    found = Page(page(RunView(layout))).text
    assert found[found.index("Attempts") + 1] == "4"


def test_a_run_whose_seed_has_failed(tmp_path) -> None:
    layout = make_run(tmp_path / "runs", scores=(None, -50.0, 2.62, 2.63, 2.64))
    write_status(layout, baseline=None)
    found = Page(page(RunView(layout)))
    text = "".join(found.text)
    assert "#4 by agent-1, the seed has no score" in text
    assert "The axis begins at #2, 2.62; #1, -50, lies below it." in text
    assert ("in 4 steps" in text, "the seed's" in text) == (True, False)
    for number in range(1, 5):
        (layout.attempts / f"{number:06}.json").unlink()
    layout.status.unlink()
    assert "no attempt has a score" in "".join(Page(page(RunView(layout))).text)


def test_each_version_that_supervised_the_run_is_named(finished: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(finished.journal, ignore_errors=True)
    recorder = JournalRecorder(finished.journal)
    recorder.play()
    monkeypatch.setattr(writer, "_FORMAT", {**writer._FORMAT, "version": "99.1"})
    recorder.journal.open_supervision(RULES, moment(60), FOLDER)  # goes on in the same file
    recorder.decide(61)
    recorder.journal.close()
    assert f"coral {__version__}, coral 99.1" in page(RunView(finished))
