"""A beat is small and sound, whoever wrote it."""

from dataclasses import replace

import pytest

from heartbeats.beat import Beat, Status, clean, from_dict, to_dict

BEAT = Beat(
    run="20300101-120000-a1b2",
    agent="agent-1",
    launch=3,
    status=Status.RUNNING,
    phase="tool",
    progress=0.4,
    message="fold 3 of 7",
    timestamp="2030-01-01T12:00:00Z",
    ttl=300.0,
)


@pytest.mark.parametrize(
    "beat", [BEAT, replace(BEAT, progress=None, message=""), replace(BEAT, status=Status.ERROR, progress=1.0)]
)
def test_a_beat_survives_plain_data(beat: Beat) -> None:
    assert from_dict(to_dict(beat)) == beat


WRONG = {
    "launch": [-1, True],
    "status": ["dead", None],
    "phase": [3],
    "progress": [1.1, -0.1, float("nan"), "half"],
    "ttl": [float("inf"), None],
    "agent": [None],
    "message": [["x"]],
    "mood": ["good"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_a_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^'?{field}"):
        from_dict({**to_dict(BEAT), field: value})


def test_texts_are_short_single_lines_in_and_out() -> None:
    wild = replace(BEAT, message="a\nb\x1b[2J" + "x" * 9_000, phase="p\n" * 99)
    for beat in (from_dict(to_dict(wild)), from_dict({**to_dict(BEAT), "message": wild.message, "phase": wild.phase})):
        assert beat.message.startswith("a b[2Jxxx")
        assert len(beat.message) == 300
        assert len(beat.phase) == 60
    assert clean("  fold\t3 of 7 ") == "fold 3 of 7"
