"""The exit codes of our own agent programs: the program and its runtime must mean the same by a number."""

USAGE = 2  # the command line or the options are wrong: another try ends the same way
UNKNOWN_SESSION = 4  # there is no such conversation to resume
INTERRUPTED = 130  # saved after SIGINT; what a shell says of a program that SIGINT ended
