"""Damaged JSON is read for what it holds."""

from hypothesis import given
from hypothesis import strategies as st

from coral.cli.run_data import lenient_json


@given(st.binary(max_size=300))
def test_a_damaged_file_reads_as_something(data: bytes) -> None:
    for read in lenient_json._objects(data.split(b"\n")):
        for name in read.data:
            read.text(name), read.number(name), read.integer(name), read.objects(name), read.texts(name)
