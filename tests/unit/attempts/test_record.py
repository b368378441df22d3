"""What is read becomes a record only if every field is what it should be."""

import json
from dataclasses import replace

import pytest
import sample
from hypothesis import given, strategies as st

from attempts.record import Attempt, Direction, Kind, attempt_from_dict, submission_from_dict, to_dict

COMMIT, TREE, PARENT = "a" * 40, "b" * 40, "c" * 40
METRICS = {"overlap": 0.0, "circles": 26, "note": "ok", "valid": True, "gap": None}
ATTEMPT = sample.attempt(17, 2.5, commit=COMMIT, tree=TREE, parent=PARENT, metrics=METRICS)
SUBMISSION = sample.submission(commit=COMMIT, tree=TREE, wait=60.0)


def test_better_is_strict_and_follows_the_direction() -> None:
    assert Direction.MAXIMIZE.better(2, 1)
    assert not Direction.MAXIMIZE.better(1, 1)
    assert Direction.MINIMIZE.better(1, 2)
    assert not Direction.MINIMIZE.better(2, 2)


def test_a_record_survives_json_and_can_be_kept_in_sets() -> None:
    assert attempt_from_dict(json.loads(json.dumps(to_dict(ATTEMPT)))) == ATTEMPT
    assert submission_from_dict(json.loads(json.dumps(to_dict(SUBMISSION))), "agent-1") == SUBMISSION
    assert len({ATTEMPT, replace(ATTEMPT, metrics={}), SUBMISSION}) == 3


WRONG = {
    "number": [-1, True, "17", 17.0],
    "agent": [None],
    "kind": ["dream", []],
    "commit": ["HEAD", COMMIT + "\n", "A" * 40],
    "tree": [""],
    "parent": ["abc", None],
    "title": [3],
    "order": [None],
    "verdict": ["won"],
    "score": [None, "2.5", True, float("nan"), 10**400],
    "of": ["3", -1],
    "against": ["3", -1],
    "delta": ["1", float("nan")],
    "seconds": [-1, float("inf"), float("nan")],
    "metrics": [[1], {"a": [1]}, {"a": float("nan")}, {3: 1}],
    "channel": [1],
    "feedback": [None],
    "best_ever": [True],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_a_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^'?{field}"):
        attempt_from_dict({**to_dict(ATTEMPT), field: value})


@pytest.mark.parametrize("field", ["number", "agent", "kind", "commit", "tree", "parent", "title", "verdict", "order"])
def test_a_missing_field_is_named(field: str) -> None:
    data = to_dict(ATTEMPT)
    del data[field]
    with pytest.raises(ValueError, match=f"^{field}: is missing"):
        attempt_from_dict(data)


@pytest.mark.parametrize("data", [None, [], 3, "x"])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match="expected an object"):
        attempt_from_dict(data)  # type: ignore[arg-type]


WRONG_IN_SUBMISSION = {
    "id": ["../../etc/passwd", "1", "٠" * 20, "0" * 20 + "\n"],
    "kind": ["baseline", None],
    "commit": ["--output=x"],
    "wait": [float("nan"), -1, 10**400],
    "submitted_at": [None],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in WRONG_IN_SUBMISSION.items() for value in values]
)
def test_a_wrong_field_of_a_submission_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field}"):
        submission_from_dict({**to_dict(SUBMISSION), field: value}, "agent-1")


@pytest.mark.parametrize("kind", [Kind.CONFIRM, Kind.BASELINE])
def test_what_the_supervisor_measures_cannot_be_submitted(kind: Kind) -> None:
    with pytest.raises(ValueError, match="cannot be submitted"):
        submission_from_dict({**to_dict(SUBMISSION), "kind": kind.value}, "agent-1")


def test_a_submission_is_of_the_agent_in_whose_folder_it_lies() -> None:
    assert submission_from_dict({**to_dict(SUBMISSION), "agent": "agent-2"}, "agent-1").agent == "agent-1"


def test_a_title_is_one_short_line_without_tricks() -> None:
    title = "a\nb\x1b[2J \u202egnp\u200b" + "x" * 600
    read = submission_from_dict({**to_dict(SUBMISSION), "title": title}, "agent-1").title
    assert read.startswith("a b[2J gnp" + "xxx")
    assert len(read) == 500
    assert read.endswith("…")


def test_whatever_a_grader_returned_can_be_written_and_read_again() -> None:
    wild = replace(
        ATTEMPT,
        feedback="half \ud800 \x1b[31m\r\nline",
        metrics={"nan": float("nan"), "inf": float("-inf"), "huge": 10**5000, "big": -(2**70), "half": "\udfff\x00"},
    )
    text = json.dumps(to_dict(wild), ensure_ascii=False, allow_nan=False)
    read = attempt_from_dict(json.loads(text.encode()))
    assert read.feedback == "half ? [31m\nline"
    assert read.metrics == {"nan": "nan", "inf": "-inf", "huge": "a huge integer", "big": "a huge integer", "half": "?"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(st.sampled_from(Attempt.__slots__), JSON)
def test_reading_either_refuses_or_gives_a_sound_record(field: str, value: object) -> None:
    try:
        attempt = attempt_from_dict({**to_dict(ATTEMPT), field: value})
    except ValueError:
        return
    assert attempt.score is None or -1e309 < attempt.score < 1e309
    assert attempt_from_dict(to_dict(attempt)) == attempt


def test_the_edges_of_what_is_sound() -> None:
    first = attempt_from_dict({**to_dict(ATTEMPT), "number": 0, "order": 0, "title": "x" * 500, "seconds": 0})
    assert (first.number, first.order, first.title) == (0, 0, "x" * 500)
    with pytest.raises(ValueError, match=r"^title: expected text, got a huge integer"):
        attempt_from_dict({**to_dict(ATTEMPT), "title": 10**5000})
    with pytest.raises(ValueError, match=r"^title: expected text, got 7$"):
        attempt_from_dict({**to_dict(ATTEMPT), "title": 7})
    with pytest.raises(ValueError, match=r"^score: 2.5 does not go with the verdict failed"):
        attempt_from_dict({**to_dict(ATTEMPT), "verdict": "failed"})
