"""What agents, people and programs are told of a run. Nothing here is ever read back to decide by."""
