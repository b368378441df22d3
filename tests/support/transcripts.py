"""Recorded outputs of agent programs, and what their runtimes read in them, as plain data.

`python tests/support/transcripts.py` writes the golden files anew; look at what changed before you keep it.
"""

import json
from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from coral.runtimes import registry
from coral.runtimes.line_tail import LineTail
from coral.runtimes.model import OutputEvent, Runtime, Usage, total
from coral.supervisor.output_monitor import OutputMonitor

FOLDER = Path(__file__).parents[1] / "fixtures" / "agent-clis"
NOW = 1795231800.0  # 2026-11-21 03:30 UTC, shortly before the resets that the transcripts speak of
CASES = sorted(path.name.removesuffix(".meta.json") for path in FOLDER.glob("*.meta.json"))


def runtime_of(case: str) -> Runtime:
    runtime = registry.find(case.partition("-")[0], {})
    runtime.now = lambda: NOW  # type: ignore[attr-defined]
    return runtime


def meta(case: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{case}.meta.json").read_text()))


def lines(case: str) -> list[bytes]:
    return (FOLDER / f"{case}.jsonl").read_bytes().splitlines()


def golden(case: str) -> Path:
    return FOLDER / f"{case}.events.json"


def read(case: str, scratch: Path) -> dict[str, Any]:
    """Return everything that the product reads in a transcript: the events of each line, and the end of the launch."""
    runtime, about = runtime_of(case), meta(case)
    errors = scratch / "err"
    errors.write_text("\n".join(about["stderr"]))
    monitor = OutputMonitor("agent-1", 1, runtime, LineTail(FOLDER / f"{case}.jsonl"), errors, None)
    monitor.read(0.0)
    monitor.read(1.0, ended=True)
    said, unknown = monitor.summary(), Counter[str]()
    figure: Usage | None = None
    for sign in (sign for line in lines(case) for sign in runtime.read(line)):
        unknown.update([sign.unknown] if sign.unknown else [])
        if sign.usage is not None:
            figure = total(figure, sign.usage)
    end = {"ending": runtime.judge(about["exit_code"], said), "session": said.session, "error": said.error}
    end |= {"limit_until": said.limit_until, "usage": used(figure), "unknown": dict(unknown)}
    events = [[number, plain(sign)] for number, line in enumerate(lines(case), 1) for sign in runtime.read(line)]
    return {"events": events, "end": {name: value for name, value in end.items() if value}}


def used(figure: Usage | None) -> dict[str, Any]:
    return {name: value for name, value in plain(figure).items() if name != "counted"} if figure is not None else {}


def plain(value: Any) -> dict[str, Any]:
    """Return a dataclass as a dict, without the fields that have their default."""
    defaults = {field.name: field.default for field in fields(value)}
    shown = {name: value for name, value in asdict(value).items() if value != defaults[name]}
    for name in shown.keys() & {"tool", "usage", "retry"} if isinstance(value, OutputEvent) else ():
        shown[name] = plain(getattr(value, name))
    return shown


def text(found: dict[str, Any]) -> str:
    """Return one event a line."""
    events = ",\n  ".join(json.dumps(event, ensure_ascii=False) for event in found["events"])
    return f'{{\n "events": [\n  {events}\n ],\n "end": {json.dumps(found["end"], ensure_ascii=False)}\n}}\n'


if __name__ == "__main__":
    import tempfile

    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            golden(case).write_text(text(read(case, Path(folder))))
