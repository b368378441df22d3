"""What an agent needs before a launch: its clone, its command line, its settings."""
