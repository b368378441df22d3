"""Writes the report of a run: one HTML file."""
