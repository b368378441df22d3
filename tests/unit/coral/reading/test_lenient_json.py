"""What is read from a file of any content has the type that was asked for."""

import math
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from coral.reading.lenient_json import LenientJson, read

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANY = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=8)


@given(st.dictionaries(st.text(max_size=5), ANY))
@example({"score": 10**400})
@example({"score": -math.inf})
def test_every_value_is_read_with_a_type(data: dict[str, object]) -> None:
    found = LenientJson(data)
    for name in found.data:
        assert type(found.text(name)) is str
        number = found.number(name)
        assert number is None or (type(number) is float and math.isfinite(number))
        assert type(found.integer(name)) in (int, type(None))
        assert all(type(item) is LenientJson for item in (found.inner(name), *found.objects(name)))
        assert all(type(item) is str for item in found.texts(name))
        assert all(type(item) is int for item in found.integers(name))


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{", b"[1]", b"7", b"[" * 100_000])
def test_a_damaged_file_is_read_as_an_empty_object(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "status.json").write_bytes(content)
    assert not read(tmp_path / "status.json")
    assert not read(tmp_path / "gone.json")
