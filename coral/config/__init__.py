"""task.yaml: read with line and column of every key, checked as a whole, and frozen into the run that it starts."""
