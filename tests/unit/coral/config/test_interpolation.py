"""`${section.key}` is the value of that key; what leads nowhere is a problem at its place, and nothing grows huge."""

from pathlib import Path

import pytest
from files import write_files
from hypothesis import given, strategies as st

from coral.config.document import Document, read
from coral.config.interpolation import LONGEST, interpolate
from coral.config.load import load
from coral.errors import CoralError


def made(text: str) -> Document:
    document = read(text)
    interpolate(document)
    return document


def problem(text: str) -> str:
    (found,) = made(text).problems
    return found.text


def test_a_name_in_a_text_is_replaced_and_a_text_that_is_one_name_has_its_type() -> None:
    document = made("""
task: {name: rows, size: 30, on: true, tips: "${task.name} of ${ task.size }: ${task.on}, ${grader.args.deep}"}
grader:
  args: {n: "${task.size}", all: "${task}", deep: "<${task.name}>", list: ["${task.size}", $x, "${oc.env:HOME}"]}
""")
    assert document.problems == []
    assert isinstance(document.data, dict)
    assert document.data["task"]["tips"] == "rows of 30: True, <rows>"
    args = document.data["grader"]["args"]
    assert (args["n"], args["list"]) == (30, [30, "$x", "${oc.env:HOME}"])
    assert args["all"] == document.data["task"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('a: {b: "${a.c}"}', '"${a.c}" names no key of this file'),
        ('a: {b: "x ${a.c.d}", c: 3}', '"${a.c.d}" names no key of this file'),
        ('a: {b: "${a.b}"}', '"${a.b}" leads back to itself'),
        ('a: {b: "x ${a}"}', '"${a}" leads back to itself'),
        ('a: {b: "x ${c}"}\nc: {d: 1}', '"${c}" is a section or a list, which cannot stand inside a text'),
    ],
)
def test_what_leads_nowhere_is_a_problem(text: str, why: str) -> None:
    assert problem(text) == why


def test_a_small_file_never_becomes_a_huge_one() -> None:
    doubling = "\n".join(f'k{n}: ["${{k{n + 1}}}", "${{k{n + 1}}}"]' for n in range(40)) + "\nk40: end"
    found = made(doubling).problems
    assert found
    assert {one.text for one in found} == {"names more than 20000 values"}
    wide = f'a: "{"${b}" * 300}"\nb: {"x" * 1000}'
    assert problem(wide) == f"has more than {LONGEST} characters with what it names"


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from(["${a}", "${b} x", "x${c}", "1", "$", "${", "${}"])))
def test_any_file_is_read_or_has_problems(texts: dict[str, str]) -> None:
    document = Document(data=dict(texts))
    interpolate(document)
    assert isinstance(document.data, dict)
    left = [text for text in document.data.values() if any(f"${{{name}}}" in text for name in "abc")]
    assert len(left) == len(document.problems)


def test_a_task_of_the_other_coral_has_them_and_one_of_ours_has_not(tmp_path: Path) -> None:
    task = 'task: {name: rows, description: "Make ${grader.args.what} larger; ${task.name}."}\n'
    files = {"seed/a.py": "1\n", "eval/grader.py": "x = 1\n"}
    write_files(tmp_path, {**files, "task.yaml": task + "grader: {args: {what: sums}, timeout: '${agents.timeout}'}\n"})
    with pytest.raises(CoralError, match=r'task\.yaml:2:\d+: grader\.timeout: "\$\{agents\.timeout\}" names no key'):
        load(tmp_path)
    (tmp_path / "task.yaml").write_text(task + "grader: {args: {what: sums}}\n")
    assert load(tmp_path).task.description == "Make sums larger; rows."
    ours = {"grade.py": "def grade(workspace): return 1\n", "task.yaml": task + "grader: {entry: 'grade.py:grade'}\n"}
    write_files(tmp_path, ours)
    assert "${grader.args.what}" in load(tmp_path).task.description
