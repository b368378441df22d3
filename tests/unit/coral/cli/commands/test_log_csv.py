"""`coral log --csv`: the records of `--json`, one a row, in the same order."""

import csv
import io
import json
from collections.abc import Callable

from sample import attempt

from attempts.store import Store
from workspace.layout import Layout

Shown = Callable[..., str]


def test_a_row_for_each_record_with_the_values_of_its_json(layout: Layout, coral) -> None:
    text = 'a "quoted", title'
    Store(layout.attempts).publish(attempt(5, 1.75, title=text, feedback="two\nlines", metrics={"b": 2, "a": "x,y"}))
    for words in (("log",), ("log", "--recent", "-n", "0")):
        records = json.loads(coral(*words, "--json")[1])
        rows = list(csv.DictReader(io.StringIO(coral(*words, "--csv")[1])))
        assert len(rows) == len(records) > 3
        for row, record in zip(rows, records, strict=True):
            plain = {name: value for name, value in record.items() if name not in ("metrics", "measured")}
            assert {name: row[name] for name in plain} == {
                name: "" if value is None else str(value) for name, value in plain.items()
            }
        mine = next(row for row in rows if row["number"] == "5")
        assert (mine["title"], mine["feedback"]) == (text, "two\nlines")
        assert (mine["metrics.a"], mine["metrics.b"]) == ("x,y", "2")
        assert {row["metrics.a"] for row in rows} == {"", "x,y"}
        assert list(rows[0])[-2:] == ["metrics.a", "metrics.b"]


def test_nothing_to_list_is_a_header_alone(layout: Layout, coral) -> None:
    said = coral("log", "--search", "nobody wrote this", "--csv")[1]
    assert said.startswith("number,agent,kind,")
    assert said.count("\n") == 1


def test_failures_are_no_table_of_records(layout: Layout, shown: Shown) -> None:
    assert "cannot print failures as CSV" in shown("log", "--failures", "--csv", code=1)
    assert "not allowed with argument" in shown("log", "--json", "--csv", code=1)
