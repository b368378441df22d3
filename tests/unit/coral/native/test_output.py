"""What the agent prints: whole lines, and no error when the reader is gone."""

import json
import os

from coral.native.output import Output


def test_an_answer_is_one_whole_line(tmp_path):
    with (tmp_path / "out").open("w+b") as file:
        Output(file.fileno()).text("line\nbreak \ud800 " + "x" * 50_000)
        file.seek(0)
        (line,) = file.read().splitlines()
        assert json.loads(line)["reply"].startswith("line\nbreak")


def test_a_reader_that_is_gone_is_no_error():
    read, write = os.pipe()
    os.close(read)
    Output(write).beat("search", "x")
    os.close(write)
