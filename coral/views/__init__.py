"""Texts and data about a run, for agents, people and programs. No decision is ever based on what is written here."""
