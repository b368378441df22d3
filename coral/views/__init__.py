"""Texts and data about a run for agents, people and programs. Nothing here is ever read back to decide by."""
