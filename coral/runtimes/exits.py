"""The exit codes of our own agent programs. They stand here so that a program starts without its runtime."""

USAGE = 2  # the command line or the options are wrong: another launch would fail as well
UNKNOWN_SESSION = 4  # the conversation to resume does not exist
INTERRUPTED = 130  # it has saved its state after SIGINT; as shells report a death by SIGINT
