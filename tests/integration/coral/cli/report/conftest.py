"""A run whose agents, grader and files say whatever could run or break a page."""

import json
from pathlib import Path

import pytest
from sample import attempt, make_run, stamp, write_events, write_status

from attempts.record import Verdict, to_dict
from coral.fleet.reasons import Budget, BudgetKey, RunEnd, RunEndKind
from coral.views.reasons import reason_data
from workspace.hub import create, take_in_seed
from workspace.layout import Layout

SCRIPT = "<script>document.title='RAN'</script>"
IMAGE = "<img src=x onerror=\"document.title='RAN'\">"
HOSTILE = (
    f"{SCRIPT}{IMAGE}\"'><svg onload=document.title='RAN'></title></style><!-- ]]> \x1b[2J\x1b]0;RAN\x07 \u202egnp.exe"
)
NOTE = f"""\
---
title: "</h3>{SCRIPT.replace('"', "")}"
author: "agent-1<b>"
kind: synthesis
attempts: [1, 4]
---
# Findings {IMAGE}

{SCRIPT}

[press me](javascript:document.title='RAN') and [data](data:text/html,{SCRIPT}) and [web](https://example.org/a?b=1&c=<d>)
and ![picture](https://example.org/spy.png) and <javascript:alert(1)> and [vb](VBScript:x) [tab](java\tscript:x)

<iframe src="https://example.org"></iframe>
<style>* {{ display: none }}</style>

| a | b |
|---|---|
| **bold** | `{IMAGE}` |

```html
{SCRIPT}
```

#4 scores 2 and #1 scores 1.75.
"""


def with_files(layout: Layout, before: str, after: str, **fields: object) -> None:
    """Give the seed and attempt 4 commits with these texts in `x.txt`; `fields`: of attempt 4."""
    commits = []
    for name, text in (("seed", before), ("best", after)):
        folder = layout.root.parent.parent.parent / name
        folder.mkdir()
        (folder / "x.txt").write_text(text, encoding="utf-8")
        commits.append(take_in_seed(layout.hub, folder) if commits else create(layout.hub, folder))
    for number, score, commit in ((0, 1.0, commits[0]), (4, 2.0, commits[1])):
        given = {"commit": commit, "verdict": Verdict.NEW_BEST, **(fields if number else {"parent": ""})}
        record = to_dict(attempt(number, score, **given))
        (layout.attempts / f"{number:06d}.json").write_text(json.dumps(record), encoding="utf-8")


@pytest.fixture
def hostile(operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.chdir(tmp_path)
    layout = make_run(tmp_path / "runs", scores=(1.0, 1.5, None, 1.25, 2.0))
    failed = to_dict(attempt(2, None, reason=HOSTILE, title=HOSTILE))
    (layout.attempts / "000002.json").write_text(json.dumps(failed), encoding="utf-8")
    with_files(layout, "one\n", f"{HOSTILE}\n" + "y" * 1_500_000, title=HOSTILE, feedback=HOSTILE)
    (layout.shared / "notes" / "synthesis.md").write_text(NOTE, encoding="utf-8")
    (layout.shared / "notes" / "broken.md").write_bytes(
        b"# \xff\xfe broken \x1b[31m" + b"\xed\xa0\x80" * 10 + b"x" * 3_000_000
    )
    end = RunEnd(RunEndKind.REQUEST, detail=HOSTILE)
    agents = [
        {"name": name, "attempts": 2, "best": 2.0, "best_number": 4, "pending": [HOSTILE]}
        for name in (HOSTILE, "agent-2")
    ]
    write_status(layout, "stopped", task=HOSTILE, reason=reason_data(end), agents=agents, seal=HOSTILE)
    message = {"name": HOSTILE, "id": "h1", "attempt": 1}
    write_events(layout, {"at": stamp(1), "clock": 1.0, "type": "heartbeat", "agent": "agent-1", "messages": [message]})
    return layout


@pytest.fixture
def finished(operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A plain run that has stopped, with a timeline."""
    monkeypatch.chdir(tmp_path)
    layout = make_run(tmp_path / "runs")
    with_files(layout, "one\n", "two\n")
    reason = reason_data(RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4)))
    write_status(layout, "stopped", reason=reason, spent={"tokens": 1000, "money": 2.5}, failed=1)
    clocks = {0: 0.0, 1: 10.0, 2: 20.0, 3: 30.0, 4: 40.0}
    for number, clock in clocks.items():
        write_events(layout, {"clock": clock, "type": "published", "agent": "agent-1", "text": "x", "attempt": number})
    for kind, count in (("heartbeat", 3), ("withdrawn", 2), ("skipped", 1)):
        for number in range(count):
            message = {"name": "reflect", "id": f"h{number}", "attempt": number}
            write_events(layout, {"clock": 50.0, "type": kind, "agent": "agent-1", "text": "x", "messages": [message]})
    return layout
