"""Nothing that a grader leaves as its result raises, and only a finite real number scores."""

import json
import math
import os
import signal
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from coral.grading.command import BEATS
from coral.grading.finite_score import finite_score
from coral.grading.result import FEEDBACK, LARGEST, GradeResult, progress_of, read_result
from coral.grading.runner import ResultWriter
from coral.processes.result_channel import ResultChannel
from workspace.layout import Layout


def judge(folder: Path, text: str | bytes | None, code: int | None = 0) -> GradeResult:
    """What is made of this result; `code` is None for a timeout."""
    if text is not None:
        (folder / "result.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_result(folder, code)


@pytest.mark.parametrize(
    ("text", "score"), [("1.5", 1.5), ('{"score": 2}', 2.0), ('{"score": 1e-300, "more": []}', 1e-300)]
)
def test_a_finite_number_scores(tmp_path: Path, text: str, score: float) -> None:
    result = judge(tmp_path, text)
    assert (result.outcome, result.score, result.reason) == ("scored", score, "")


CRASHES = {
    None: "wrote no result",
    **dict.fromkeys(("", "score: 3", '{"score": 3'), "not JSON"),
    "1" * 5000: "not JSON that can be read",
    b'{"score": "\xff"}': "not UTF-8",
    **dict.fromkeys(("[" * 200_000, '{"a":' * 100_000), "nested"),
    "{}": "its result has no score; it has no keys",
    '{"points": 3, "a": 1}': "its result has no score; it has points, a",
    '{"error": "no sum"}': 'it has error; say {"failed": "why"} of a candidate that fails',
    " " * (LARGEST + 1): "bytes",
    '{"crashed": "KeyError: 3"}': "KeyError: 3",
}


@pytest.mark.parametrize("text", CRASHES, ids=range(len(CRASHES)))
def test_an_unreadable_result_is_a_crash(tmp_path: Path, text: str | bytes | None) -> None:
    result = judge(tmp_path, text)
    assert (result.outcome, result.score) == ("crashed", None)
    assert CRASHES[text] in result.reason


@pytest.mark.parametrize(
    ("says", "notice", "is_remote", "outcome"),
    [
        ({}, "", True, "void"),
        ({"again": True}, "", True, "lost"),
        ({"again": True}, "", False, "void"),
        ({"again": False}, "", True, "void"),
        ({"again": "yes"}, "", True, "void"),
        ({"again": True}, "a command", True, "crashed"),
    ],
)
def test_nobody_is_at_fault_or_it_is_graded_again_if_no_candidate_can_have_said_so(
    tmp_path: Path, says: dict[str, object], notice: str, is_remote: bool, outcome: str
) -> None:
    channel = ResultChannel()
    ResultWriter(tmp_path / "result.json", channel.given[0]).write({"void": "no node", **says})
    os.write(channel.given[1], notice.encode())
    channel.close_given()
    result = read_result(tmp_path, 0, channel, is_remote=is_remote)
    assert (result.outcome, "no node" in result.reason) == (outcome, True)


FAILURES = {
    **dict.fromkeys(
        ("NaN", *(f'{{"score": {value}}}' for value in ("NaN", "Infinity", "-Infinity", "1e400"))), "finite"
    ),
    '{"score": 1' + "0" * 400 + "}": "too large",
    **dict.fromkeys(('{"score": "3"}', '"3"'), "'3'"),
    '{"score": true}': "True",
    **dict.fromkeys(('{"score": null}', "null"), "no score"),
    **dict.fromkeys(('{"score": [1]}', "[1, 2]"), "list"),
    '{"score": {"score": 1}}': "dict",
    '{"failed": "circle 3 leaves the square"}': "circle 3 leaves the square",
    '{"failed": "it lies", "score": 7}': "it lies",
    '{"failed": true}': "without a reason",
}


@pytest.mark.parametrize("text", FAILURES, ids=range(len(FAILURES)))
def test_an_invalid_score_fails_with_the_reason(tmp_path: Path, text: str) -> None:
    result = judge(tmp_path, text)
    assert (result.outcome, result.score) == ("failed", None)
    assert FAILURES[text] in result.reason


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("real"), Path.mkdir])
def test_only_a_regular_file_is_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "real").write_text("3")
    make(tmp_path / "result.json")
    result = judge(tmp_path, None)
    assert (result.outcome, result.score) == ("crashed", None)
    assert "its result cannot be read" in result.reason


def test_a_score_counts_only_when_the_grader_ended_well(tmp_path: Path) -> None:
    assert judge(tmp_path, "3", code=1).reason == "the grader crashed: it ended with exit code 1"
    assert judge(tmp_path, "3", code=-signal.SIGKILL).reason == "the grader crashed: it was ended by SIGKILL"
    assert judge(tmp_path, "3", code=-200).reason == "the grader crashed: it was ended by signal 200"
    assert judge(tmp_path, '{"crashed": "KeyError: 3"}', code=None).reason == "the grader crashed: KeyError: 3"
    for text in ("3", '{"failed": "x"}', "no JSON"):
        result = judge(tmp_path, text, code=None)
        assert result.outcome == "crashed"
        assert (
            result.reason
            == "the grader crashed: it did not finish within its timeout: raise grader.timeout, or do less"
        )
    # A grader may refuse with an exit code.
    assert judge(tmp_path, '{"failed": "does not compile"}', code=1).outcome == "failed"


def test_a_crash_keeps_what_was_printed_for_the_operator(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_bytes(b"x" * 50_000)
    (tmp_path / "stderr").write_bytes(b"no such file: \xff\x1b[31mdata.csv\n")
    result = judge(tmp_path, None, code=2)
    assert result.output.endswith("no such file: �[31mdata.csv\n")
    assert len(result.output) < 21_000
    assert "data.csv" not in result.reason + result.feedback
    # What was printed comes before the recorded traceback.
    (tmp_path / "stderr").unlink()
    (tmp_path / "stdout").write_text("loading data")
    recorded = json.dumps({"crashed": "KeyError: 3", "output": "Traceback: KeyError: 3\n"})
    assert judge(tmp_path, recorded, code=1).output == "loading data\nTraceback: KeyError: 3\n"
    (tmp_path / "stderr").write_text("Traceback: KeyError: 3\n")
    assert judge(tmp_path, recorded, code=1).output == "loading data\nTraceback: KeyError: 3\n"


def test_only_the_operator_sees_the_output_of_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("row 3 of the hidden data\n")
    for refused in ('{"failed": "too far"}', '{"score": null}', '{"score": NaN}'):
        result = judge(tmp_path, refused)
        assert (result.outcome, result.output) == ("failed", "row 3 of the hidden data\n")
        assert "hidden" not in result.reason + result.feedback


def test_feedback_is_cut_and_safe_to_print(tmp_path: Path) -> None:
    result = judge(tmp_path, json.dumps({"score": 1, "feedback": "\x1b[2J\ud800é" * 10_000}))
    assert len(result.feedback.encode()) < FEEDBACK + 100
    assert "\x1b" not in result.feedback
    assert result.feedback.endswith("bytes]")
    assert judge(tmp_path, '{"score": 1, "feedback": ["no text"]}').feedback == ""


def test_metrics_are_a_hundred_plain_values(tmp_path: Path) -> None:
    many = {f"m{i}": i for i in range(150)}
    strange = {"list": [1], "x" * 101: 1, "": 1, "nan": math.nan, "huge": 10**30, "text": "t" * 5000, "none": None}
    metrics = judge(tmp_path, json.dumps({"score": 1, "metrics": strange | many})).metrics
    assert len(metrics) == 100
    assert {"list", "x" * 101, ""}.isdisjoint(metrics)
    assert metrics["nan"] == "nan"
    assert metrics["huge"] == "a huge integer"
    assert len(str(metrics["text"])) == 1000
    assert json.dumps(metrics, allow_nan=False)
    assert judge(tmp_path, '{"score": 1, "metrics": [1]}').metrics == {}


keys = st.sampled_from(["score", "failed", "crashed", "metrics", "feedback", "output"]) | st.text()
hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


@given(value=hostile, code=st.sampled_from([0, 1, -9, None]))
def test_no_json_raises_and_only_finite_numbers_score(
    tmp_path_factory: pytest.TempPathFactory, value: object, code: int | None
) -> None:
    folder = tmp_path_factory.getbasetemp()
    result = judge(folder, json.dumps(value), code)
    assert (result.score is not None) == (result.outcome == "scored")
    assert result.score is None or math.isfinite(result.score)
    assert (result.reason == "") == (result.outcome == "scored")
    f"{result.reason}{result.feedback}{result.output}{dict(result.metrics)}".encode()


@given(raw=st.binary(max_size=200))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    judge(tmp_path_factory.getbasetemp(), raw)


@pytest.mark.parametrize("value", [0, 1.5, -3, Fraction(1, 2), 2**53])
def test_a_score_is_any_finite_real_number(value: object) -> None:
    assert finite_score(value) == value
    assert type(finite_score(value)) is float


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, "must be a number, got True"),
        (None, "must be a number, got None"),
        ("2.5", "must be a number, got '2.5'"),
        ([2.5], "must be a number, got a list"),
        (1j, "must be a number, got a complex"),
        (float("nan"), "must be finite, got nan"),
        (float("inf"), "must be finite, got inf"),
        (float("-inf"), "must be finite, got -inf"),
        (10**400, "too large"),
        (Fraction(10**400, 3), "too large"),
    ],
)
def test_what_is_no_score_is_refused_with_the_reason(value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        finite_score(value)


@pytest.mark.parametrize("lay", [os.mkfifo, lambda path: path.write_text("[" * 4000)])
def test_what_is_no_beat_tells_no_progress(tmp_path: Path, lay: Callable[[Path], object]) -> None:
    layout = Layout(tmp_path)
    layout.grading(1).mkdir(parents=True)
    lay(layout.grading(1) / BEATS)
    assert progress_of(layout, 1) is None
