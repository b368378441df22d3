"""Checks before money is spent: of this machine, of a task, of a login."""
