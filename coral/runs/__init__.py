"""How a run is made from a task, and how a supervisor is detached from the terminal."""
