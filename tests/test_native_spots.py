"""What may be varied in a file, and that everything else stays as it was, byte for byte."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coral.native.search.numeric.find_variables import read
from coral.native.search.numeric.space import MOST_VARIABLES, Page, Space, editable_texts
from coral.native.search.numeric.variables import Kind, Spot


def shown(name: str, text: str) -> list[str]:
    return [text[spot.start : spot.end] for spot in read(name, text)]


def test_json_numbers_and_booleans_are_found_by_structure():
    rows = '[{"x": 1, "y": 2}, {"x": 3.5, "y": 4}]'
    text = f'{{"name": "1.5", "on": true, "none": null, "list": [1, -2.5e-3], "rows": {rows}}}'
    assert shown("a.json", text) == ["true", "1", "-2.5e-3", "1", "2", "3.5", "4"]
    spots = {spot.name: spot for spot in read("a.json", text)}
    assert spots["rows[0].x"].column == spots["rows[1].x"].column != spots["rows[0].y"].column
    assert spots["rows[0].x"].row == spots["rows[0].y"].row != spots["rows[1].x"].row
    # One real in a column makes the column real: 1 was merely written without a point.
    assert spots["rows[0].x"].kind is Kind.REAL
    assert spots["rows[0].y"].kind is Kind.INTEGER


def test_lists_side_by_side_are_one_table():
    spots = {spot.name: spot for spot in read("a.json", '{"xs": [1.5, 2.5], "ys": [3.5, 4.5], "z": [5.5]}')}
    assert spots["xs[1]"].row == spots["ys[1]"].row != spots["xs[0]"].row
    assert spots["z[0]"].row not in (spots["xs[0]"].row, spots["xs[1]"].row)


def test_python_is_read_by_tokens():
    text = '"""Doc 1.5"""\n# 2.5\nx = [-1.5, 2, 3-4, f(-2)]\ny = 0x10; z = 3j; w = 1_000\n'
    text += 'on = True\nwhile True:\n    s = "7"\n'
    assert shown("a.py", text) == ["-1.5", "2", "3", "4", "-2", "1_000", "True"]
    assert read("a.py", "def broken(:\n  1") == []


def test_comments_fix_bound_and_offer():
    text = (
        "a = 1  # fixed\nb = 0.5  # range: 0.1..0.9\nc = -3  # range: -5 .. 5\n"
        'm = "adam"  # choices: "adam", "sgd"\nn = fast  # choices: slow, fast, faster\n'
    )
    spots = read("a.cfg", text)
    assert [text[s.start : s.end] for s in spots] == ["0.5", "-3", '"adam"', "fast"]
    assert (spots[0].low, spots[0].high) == (0.1, 0.9)
    assert (spots[1].low, spots[1].high) == (-5, 5)
    assert spots[2].words == ('"adam"', '"sgd"')
    assert [spots[3].write(k) for k in (0, 1, 2, 7)] == ["slow", "fast", "faster", "faster"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("lr = 0.5 # was 0.3", ["0.5"]),
        ('version = "1.2.3"', []),
        ("1.2.3", []),
        ('n = "0.25"', ["0.25"]),
        ("2024-01-02 12:30", []),
        ("x1 = 3x 007 a-1", []),
        ("4, -5,6.5", ["4", "-5", "6.5"]),
        ("f(-.5) = 2e-3", ["-.5", "2e-3"]),
        ("3 - 4", ["3", "4"]),
        ("#define N 3", ["3"]),
        ('puts("take 5")', []),
    ],
)
def test_any_other_text_is_read_with_care(line, found):
    assert shown("a.txt", line) == found


def test_what_is_not_varied_keeps_its_characters():
    text = '{ "a": 1.50,\n\t"b":2.0e0 , "c": [ 3,4 ]}\r\n'
    page = Page("a.json", text)
    values = [spot.value for spot in page.spots]
    assert page.write(values) == text
    values[1] = 0.1
    assert page.write(values) == text.replace("2.0e0", "0.1")
    values[1] = 2.0
    assert page.write(values) == text


@pytest.mark.slow
@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(1.7976931348623157e308)
@example(-0.0)
def test_a_real_reads_back_as_it_was_written(value):
    page = Page("a.json", '{"x": 0.5}')
    assert json.loads(page.write([value]))["x"] == value
    if math.isfinite(value):
        assert page.values(page.write([value])) == [value]


@pytest.mark.slow
@given(
    st.text(alphabet="{}[]\",:0123456789.eE+-truefalsn \n#_x'()", max_size=80), st.sampled_from(["json", "py", "txt"])
)
def test_no_text_is_an_error_and_none_is_changed_by_reading(text, suffix):
    page = Page(f"a.{suffix}", text)
    assert page.write([spot.value for spot in page.spots]) == text
    assert [spot.start for spot in page.spots] == sorted(spot.start for spot in page.spots)


def test_a_point_is_read_from_another_version_of_the_same_form():
    space = Space({"a.json": '{"x": 1.5, "n": 2}', "b.cfg": "k = 3.5\n"})
    assert len(space) == 3
    assert space.vector({"a.json": '{"x": 7.25, "n": -4}', "b.cfg": "k = 0.5\n", "c": "?"}) == [7.25, -4, 0.5]
    assert space.vector({"a.json": '{"y": 7.25, "n": -4}', "b.cfg": "k = 0.5\n"}) is None
    assert space.vector({"a.json": '{"x": 7.25, "n": -4}'}) is None
    assert space.texts([7.25, 2.0, 0.5]) == {"a.json": '{"x": 7.25, "n": 2}', "b.cfg": "k = 0.5\n"}


def test_clipping_respects_kinds_and_bounds():
    space = Space({"a.cfg": "a = 0.5 # range: 0..1\nb = 3\nm = x # choices: x, y\n"})
    assert space.clip([7.0, 2.4, 9.0]) == [1.0, 2.0, 1.0]
    assert space.clip([-7.0, 2.6, -9.0]) == [0.0, 3.0, 0.0]


def test_tables_and_their_scales():
    rows = ",\n".join(f'{{"x": {k / 10}, "r": 0.07}}' for k in range(1, 5))
    space = Space({"t.json": f'{{"rows": [{rows}], "lone": 5.0}}'})
    assert [len(table) for table in space.tables] == [4]
    scales = space.scales([space.start])
    assert scales[0] == pytest.approx(0.3)
    assert scales[1] == pytest.approx(0.07)
    assert scales[-1] == 5.0


def test_a_run_of_like_lines_is_a_table():
    spots = read("p.csv", "x,y\n1.5,2\n3.5,4\n5.5,6\n")
    assert len({spot.row for spot in spots}) == 3
    assert len({spot.column for spot in spots}) == 2


def test_editable_files_are_plain_text_below_the_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "n.json").write_text("1")
    (tmp_path / "a.json").write_text("1")
    (tmp_path / "sub" / "b.json").write_text("2")
    (tmp_path / "bin.json").write_bytes(b"\xff\xfe\0")
    (tmp_path / "nul.json").write_bytes(b"1\0")
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    assert editable_texts(tmp_path, ["**/*.json", "a.json"]) == {"a.json": "1", "sub/b.json": "2"}


def test_what_lies_behind_a_link_is_no_editable_file(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table.json").write_text("1")
    here = tmp_path / "here"
    here.symlink_to(tmp_path / "real")
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "real" / "sub" / "own.json").write_text("2")
    (tmp_path / "real" / "mounted").symlink_to(tmp_path / "data")
    for globs in (["*/*.json"], ["mounted/table.json", "sub/own.json"], ["**/*.json"]):
        assert editable_texts(here, globs) == {"sub/own.json": "2"}


def test_a_huge_list_is_counted_not_searched():
    space = Space({"a.json": json.dumps([0.5] * (MOST_VARIABLES + 1))})
    assert len(space) == MOST_VARIABLES + 1


def test_an_integer_is_no_identifier():
    assert read("a.json", "[123456789012345678901234567890, 17]")[0].value == 17
    assert Spot(start=0, end=1, kind=Kind.INTEGER, value=1).write(2.6) == "3"
