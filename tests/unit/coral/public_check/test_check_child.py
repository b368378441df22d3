"""What the child of the public check reads from a check, without a process of its own."""

import math
from array import array
from fractions import Fraction

import numpy as np
import pytest

from coral.grading.finite_score import finite_score
from coral.public_check.check_child import ANSWER, LONGEST_ERROR, CandidateFiles, answer, read_result


def test_a_check_returns_a_number_or_a_score_with_slack():
    assert read_result(3) == (3.0, [])
    assert read_result({"score": 1.5, "slack": (1, -2)}) == (1.5, [1.0, -2.0])


@pytest.mark.parametrize("number", [np.int64(3), np.float32(3.0), Fraction(3)])
def test_a_score_is_whatever_number_a_grader_may_return(number):
    assert read_result(number) == read_result({"score": number}) == (finite_score(number), [])


@pytest.mark.parametrize(
    "wrong", ["text", None, True, np.True_, math.nan, {"score": 1.0, "slack": [math.nan]}, {"slack": []}]
)
def test_anything_else_is_an_error(wrong):
    with pytest.raises((TypeError, ValueError, KeyError)):
        read_result(wrong)


def test_an_answer_holds_the_slack_or_the_words_of_the_error():
    said = answer(lambda folder: {"score": 2, "slack": [0.5]}, "")
    assert ANSWER.unpack_from(said) == (1, 2.0, 1)
    assert array("d", said[ANSWER.size :]).tolist() == [0.5]

    def fails(folder):
        raise OSError("x" * 9999)

    said = answer(fails, "")
    assert ANSWER.unpack_from(said) == (0, 0.0, LONGEST_ERROR)
    assert said[ANSWER.size :].startswith(b"OSError: xxx")


def test_a_shorter_text_leaves_nothing_of_the_longer_one(tmp_path):
    files = CandidateFiles(str(tmp_path))
    for text in ("long text", "short"):
        files.write({"p.json": text})
        assert (tmp_path / "p.json").read_text() == text
