"""What the commands read of a run."""
