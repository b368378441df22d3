"""Differences as data: files, numbered lines, colours; what is hostile or huge stays text and has an end."""

import time

import pytest

from coral.web import diff_data

PLAIN = """diff --git a/solve.py b/solve.py
index 111..222 100644
--- a/solve.py
+++ b/solve.py
@@ -3,3 +3,4 @@ def solve():
 import math
-SIZE = 7  # rows
+SIZE = 8  # rows
+NAME = "diff --git a/x b/x"
 def run(): return SIZE
diff --git a/plot.png b/plot.png
new file mode 100644
index 000..333
Binary files /dev/null and b/plot.png differ
diff --git a/old.txt b/new name.txt
similarity index 100%
rename from old.txt
rename to new name.txt
"""


def only(text: str) -> dict:
    (file,) = diff_data.files(text)["files"]
    return file


def part(name: str, lines: list[str]) -> str:
    """A difference that adds these lines to a file."""
    start = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -0,0 +1,{len(lines)} @@\n"
    return start + "".join(f"+{line}\n" for line in lines)


def text_of(line: list) -> str:
    return "".join(text for _, text in line[3])


def test_files_have_their_names_counts_and_what_git_says_of_them() -> None:
    found = diff_data.files(PLAIN)["files"]
    assert [(file["name"], file["added"], file["removed"], file["notes"]) for file in found] == [
        ("solve.py", 2, 1, []),
        ("plot.png", 0, 0, ["new file", "binary"]),
        ("new name.txt", 0, 0, ["renamed from old.txt"]),
    ]


def test_lines_have_their_numbers_on_both_sides() -> None:
    lines = diff_data.files(PLAIN)["files"][0]["lines"]
    assert [(kind, before, after) for kind, before, after, _ in lines] == [
        ("hunk", None, None),
        ("same", 3, 3),
        ("removed", 4, None),
        ("added", None, 4),
        ("added", None, 5),
        ("same", 5, 6),
    ]
    assert text_of(lines[4]) == 'NAME = "diff --git a/x b/x"', "a line of a file is never one of git's"


def test_source_text_is_coloured_by_its_language() -> None:
    lines = diff_data.files(PLAIN)["files"][0]["lines"]
    assert lines[3][3] == [["", "SIZE = "], ["literal", "8"], ["", "  "], ["comment", "# rows"]]
    assert ["keyword", "import"] in lines[1][3]
    assert ["string", '"diff --git a/x b/x"'] in lines[4][3]
    assert only(part("notes.unknown", ["import math"]))["lines"][1][3] == [["", "import math"]]


def test_a_carriage_return_ends_no_line_and_nothing_is_left_for_a_screen_to_obey() -> None:
    (_, *lines) = only(part("a.py", ["one\rtwo\x1b[31m", "three\r", "<script>\u202e"]))["lines"]
    assert [text_of(line) for line in lines] == ["one two[31m", "three", "<script>\\u202e"]


def test_what_is_huge_is_cut_and_says_so() -> None:
    found = diff_data.files(part("a.py", ["x = 1"] * 9000) + part("b.py", ["y = 2"] * 10))["files"]
    assert [(len(file["lines"]), file["left_out"], file["added"]) for file in found] == [
        (4000, 5001, 9000),
        (0, 11, 10),
    ]
    many = diff_data.files("".join(part(f"{number}.txt", ["x"]) for number in range(300)))
    assert (len(many["files"]), many["more_files"]) == (200, True)
    line = only(part("a.json", ["[" * 1_000_000]))["lines"][1]
    assert text_of(line) == "[" * 2000 + " ... 998000 more characters"


@pytest.mark.slow
def test_hostile_text_is_coloured_in_bounded_time_and_no_character_is_lost() -> None:
    hostile = ['"' * 399, "'''" * 130, "\\" * 399, "{[(" * 130, "/*" * 199, "((((a*)*)*)*" * 30, "\u0130" * 399]
    began = time.process_time()
    for ending in diff_data.LANGUAGES:
        (_, *lines) = only(part(f"a.{ending}", hostile * 40))["lines"]
        assert [text_of(line) for line in lines] == hostile * 40, ending
    assert time.process_time() - began < 30


@pytest.mark.slow
def test_colouring_has_an_end_where_each_line_is_harmless() -> None:
    letters = "".join(map(chr, (*range(0x4E00, 0xA000), *range(0xAC00, 0xD7A4), *range(0x20000, 0x2A6E0))))
    texts = {
        "sh": ["".join(f"<<{letter}" for letter in letters[at : at + 130]) for at in range(0, len(letters), 130)],
        "js": ["/* " * 130] * 1500,
        "c": ["int x", *[" " * 399] * 100],
    }
    began = time.process_time()
    for ending, hostile in texts.items():
        (_, *lines) = only(part(f"a.{ending}", hostile))["lines"]
        assert [text_of(line) for line in lines] == hostile, ending
    assert time.process_time() - began < 120


def test_a_difference_that_is_cut_off_within_a_part_shows_what_there_is() -> None:
    text = part("a.py", ["x = 1", "y = 2", "z = 3"])
    for end in range(len(text)):
        found = diff_data.files(text[:end])["files"]
        assert len(found) <= 1
    assert [text_of(line) for line in only(text[:-3])["lines"][1:]] == ["x = 1", "y = 2", "z ="]
