"""Files of a candidate are read as data: bounded, regular, without a number that passes every comparison."""

import os
from pathlib import Path

import pytest

from coral.grader import Fail, read_json, read_text


def refused(path: Path, most: int = 1000) -> str:
    with pytest.raises(Fail) as fail:
        read_json(path, most)
    return fail.value.reason


def test_every_number_is_a_float(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, 2.5, -3e2], "b": null, "c": "Infinity"}')
    found = read_json(path)
    assert found == {"a": [1.0, 2.5, -300.0], "b": None, "c": "Infinity"}
    assert {type(value) for value in found["a"]} == {float}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" + "0" * 400])
def test_a_number_that_is_not_finite_is_named(tmp_path: Path, value: str) -> None:
    (tmp_path / "a.json").write_text(f"[{value}]")
    assert refused(tmp_path / "a.json") == f"cannot read a.json: {value[:40]} is not a finite number"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "cannot read a.json: Expecting"),
        (b'{"a": 1, "a": 2}', "a name stands twice"),
        (b"\xff", "can't decode"),
        (b" " * 1001, "it has more than 1000 bytes"),
        (b"[" * 1000, "cannot read a.json"),
        (b"", "cannot read a.json"),
    ],
)
def test_what_is_no_json_fails_with_a_reason(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert said in refused(tmp_path / "a.json")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "missing"])
def test_only_a_regular_file_is_read_and_the_checkout_is_not_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.json"
    if kind == "link":
        (tmp_path / "b.json").write_text("[]")
        path.symlink_to("b.json")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(Fail) as fail:
        read_text(path)
    assert fail.value.reason.startswith("cannot read a.json: ")
    assert str(tmp_path) not in fail.value.reason
