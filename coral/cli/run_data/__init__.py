"""What the commands do for a run: find it, send requests, follow submissions, compare runs."""
