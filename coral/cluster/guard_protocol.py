"""What a guard and the worker that starts it agree on: names of files in the folder of a grade, a byte, and times.

It imports nothing: a guard has it from the files of its grade, and the worker's copy is sent with `spare_guard`.
"""

START, ORDER, STATUS, GUARD = "start.json", "order.json", "status.json", "guard.json"
BEGUN = b"b"  # a guard was forked
TAKEN = b"t"  # a grade has the guard: its order comes once the files are unpacked
IDLE_SECONDS = 600.0  # for which a guard waits for a grade
FRESH_SECONDS = IDLE_SECONDS / 2  # for which one that waits is used, so that it does not end while it is taken
