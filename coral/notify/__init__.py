"""Tells people who do not watch the terminal: what the timeline says that concerns them goes to the targets of `alerts`
in task.yaml, at least once each, by threads that the loop never waits for."""
