"""An agent that submits once per launch, is interrupted while it waits, and notes when the interrupt came.

Started as `python -P interrupted.py SECONDS`: it sleeps for so long before it submits.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn


def main() -> None:
    launch = os.environ["CORAL_LAUNCH"].rpartition("/")[2]
    title = f"{os.environ['CORAL_AGENT']}-{launch}"
    note = Path(os.environ["BENCH_NOTES"], f"interrupted-{title}")

    def interrupted(_: int, __: FrameType | None) -> NoReturn:
        moment = time.time_ns()
        note.write_text(str(moment))
        raise SystemExit(130)

    signal.signal(signal.SIGINT, interrupted)
    print("at work", flush=True)
    Path("trial.txt").write_text(title)
    time.sleep(float(sys.argv[1]))
    subprocess.run(["coral", "eval", "-m", title], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    main()
