"""What runs on a small disk of its own ends with us, whatever it is at."""

import sys

from real_runs import is_alive, wait_until
from small_disk import run_bounded

HANGS = """\
import subprocess, sys, time
more = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print(more.pid, flush=True)
time.sleep(300)
"""


def test_what_hangs_is_ended_with_all_that_it_started() -> None:
    code, said = run_bounded([sys.executable, "-c", HANGS], 3)
    assert code is None
    wait_until(lambda: not [pid for pid in said.split() if is_alive(int(pid))], what="its end")


def test_what_ends_has_said_what_it_said() -> None:
    assert run_bounded([sys.executable, "-c", "print('here'); raise SystemExit(3)"], 60) == (3, "here\n")
