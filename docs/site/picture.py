"""Draws docs/images/run.svg: the live view of a real run of the demo, after some time. `make picture` calls it."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from coral.cli.ui.live_frame import frame
from coral.cli.ui.run_follower import RunFollower
from workspace.layout import Layout

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs/images/run.svg"
WIDTH, HEIGHT = 118, 30
AFTER = 45.0  # seconds of the run
PATIENCE = 180.0  # seconds


def main() -> None:
    coral, task = Path(sys.executable).parent / "coral", ROOT / "examples/circle_packing"
    with tempfile.TemporaryDirectory() as folder:
        start = [coral, "start", task, "agents.count=4", "budget.hours=0.025", "--detach"]
        subprocess.run(start, cwd=folder, check=True)
        try:
            (run,) = Path(folder, "runs", task.name.replace("_", "-")).iterdir()
            PICTURE.write_text(drawn(watched(Layout(run))), encoding="utf-8")
        finally:
            subprocess.run([coral, "stop"], cwd=folder, check=True)


def watched(layout: Layout) -> RunFollower:
    """The run, once it is old enough to show something."""
    watch, until = RunFollower(layout), time.monotonic() + PATIENCE
    while (watch.view.status.number("clock") or 0.0) < AFTER and time.monotonic() < until:
        time.sleep(0.2)
        watch.update()
    return watch


def drawn(watch: RunFollower) -> str:
    """The view as an SVG that loads no font from elsewhere."""
    with open(os.devnull, "w") as nowhere:
        out = Console(record=True, width=WIDTH, height=HEIGHT, file=nowhere, force_terminal=True, highlight=False)
        out.print(frame(watch, out, "Ctrl-C stops the run"))
    without_fonts = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return out.export_svg(title="coral start", code_format=without_fonts, unique_id="run")


if __name__ == "__main__":
    main()
