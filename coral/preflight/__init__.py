"""Checks before money is spent: of this machine, of a task, of a login, of a run to be resumed."""
