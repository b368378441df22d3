"""Sends alerts to people who do not watch the terminal: lines of the timeline go to the targets of `alerts` in
task.yaml, each at least once. Threads send them, and the supervisor's loop never waits for these."""
