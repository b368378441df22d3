"""The agent that follows a list of steps."""
