"""An agent that submits again and again, as often as the benchmark says, and notes how long each `coral eval` took.

The file `goal` in the folder of notes says how often. A note is a line `title began ended code`, with times in
nanoseconds of the wall clock, which those of the supervisor can be compared with. If a heartbeat interrupts the agent,
the value that was being measured is lost, and the next launch goes on.
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
        while True:
            while done >= int((notes / "goal").read_text()):
                time.sleep(0.1)
            title = f"trial-{launch}-{done}"
            Path("trial.txt").write_text(title)
            began = time.time_ns()
            code = subprocess.run(["coral", "eval", "-m", title], stdout=subprocess.DEVNULL, check=False).returncode
            print(title, began, time.time_ns(), code, file=file, flush=True)
            done += 1


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
