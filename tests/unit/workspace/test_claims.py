"""What agents have taken up: the last claiming note of each counts, until it claims nothing or is superseded."""

from pathlib import Path

from workspace.claims import LATEST, Claim, claims_of
from workspace.knowledge import create, write_note
from workspace.notes import recent_notes


def note(shared: Path, name: str, author: str, minute: int, **front: str) -> None:
    write_note(shared, name, {"author": author, "created": f"2030-01-01T12:{minute:02}:00.000Z", **front}, "x")


def claims(shared: Path) -> list[Claim]:
    return claims_of(recent_notes(shared, LATEST))


def test_the_last_claim_of_each_agent_holds_and_the_oldest_comes_first(tmp_path: Path) -> None:
    create(tmp_path)
    assert claims(tmp_path) == []
    note(tmp_path, "a", "ann", 1, claims="rows")
    note(tmp_path, "b", "ben", 2, claims="corners\nof 0.1")
    note(tmp_path, "c", "ann", 3)  # of something else: the claim holds
    created = "2030-01-01T12:01:00.000Z"
    assert claims(tmp_path)[0] == Claim(agent="ann", gap="rows", note="a", created=created)
    assert [(claim.agent, claim.gap) for claim in claims(tmp_path)] == [("ann", "rows"), ("ben", "corners of 0.1")]
    note(tmp_path, "d", "ann", 4, claims="rings")
    assert [(claim.agent, claim.gap) for claim in claims(tmp_path)] == [("ben", "corners of 0.1"), ("ann", "rings")]


def test_a_claim_ends_when_its_agent_claims_nothing_or_its_note_is_superseded(tmp_path: Path) -> None:
    create(tmp_path)
    note(tmp_path, "a", "ann", 1, claims="rows")
    note(tmp_path, "b", "ben", 2, claims="corners", superseded_by="a")
    note(tmp_path, "c", "", 3, claims="of nobody")
    assert [claim.agent for claim in claims(tmp_path)] == ["ann"]
    note(tmp_path, "d", "ann", 4, claims="")
    assert claims(tmp_path) == []


def test_what_was_claimed_long_ago_is_taken_for_done(tmp_path: Path) -> None:
    create(tmp_path)
    note(tmp_path, "a", "ann", 0, claims="rows")
    for number in range(LATEST):
        assert len(claims_of(recent_notes(tmp_path, 1000))) == 1
        note(tmp_path, f"b{number}", "ben", 1 + number // 2)
    assert claims_of(recent_notes(tmp_path, 1000)) == []
