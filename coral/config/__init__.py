"""Reads task.yaml with line and column of every key, checks it as a whole, and freezes it into the run that it
starts."""
