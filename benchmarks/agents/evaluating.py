"""An agent that submits again and again and notes how long each `coral eval` took.

Started as `python -P evaluating.py COUNT`. A note is a line `title began ended code`, times in nanoseconds of the
wall clock, which the supervisor's own notes can be compared with. A heartbeat that interrupts it costs the value that
was being measured; the next launch goes on.
"""

import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    notes = Path(os.environ["BENCH_NOTES"])
    launch = os.environ["CORAL_LAUNCH"].rpartition("/")[2]
    print("at work", flush=True)
    with (notes / "evals").open("a+", encoding="utf-8") as file:
        file.seek(0)
        done = sum(1 for _ in file)
        for number in range(done, int(sys.argv[1])):
            title = f"trial-{launch}-{number}"
            Path("trial.txt").write_text(title)
            began = time.time_ns()
            code = subprocess.run(["coral", "eval", "-m", title], stdout=subprocess.DEVNULL, check=False).returncode
            print(title, began, time.time_ns(), code, file=file, flush=True)
    (notes / "done").touch()
    time.sleep(3600)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
