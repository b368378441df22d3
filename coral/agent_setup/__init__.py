"""What an agent needs before a launch: a runtime, a clone, a command."""
