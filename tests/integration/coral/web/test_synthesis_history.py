"""A synthesis that is written anew each time is compared with what it said before, by the history of the notes."""

from sample import make_run, stamp, write_status

from coral.web.reading import opened
from coral.web.synthesis_data import compared
from workspace import history, knowledge


def test_the_earlier_texts_of_one_note_are_syntheses_of_their_own(tmp_path) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    for words in ("first", "second", "third"):
        head = {"title": f"the {words}", "author": "agent-1", "created": stamp(60), "kind": "synthesis"}
        knowledge.write_note(layout.shared, "synthesis", head, f"## Conclusions\n\n- {words}\n")
        history.snapshot(layout.shared, layout.history, words)
    with opened(layout) as view:
        found = compared(view, {})
        ids = [str(one["id"]) for one in found["syntheses"]]  # type: ignore[attr-defined]  # a list, as JSON
        assert [one["title"] for one in found["syntheses"]] == ["the first", "the second", "the third"]  # type: ignore[attr-defined]
        assert found["sections"] == [{"heading": "Conclusions", "gone": ["- second"], "new": ["- third"]}]
        assert compared(view, {"old": ids[0]})["sections"] == [
            {"heading": "Conclusions", "gone": ["- first"], "new": ["- third"]}
        ]
