"""task.yaml: read with line and column of every value, checked whole, and frozen into the run that it started."""
