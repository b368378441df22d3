"""What was published, as the supervisor knows it: kept where agents cannot reach, and compared with what they can."""
