"""The `scripted` runtime, whose agent follows a list of steps."""
