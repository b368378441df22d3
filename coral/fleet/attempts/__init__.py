"""Decisions about attempts, from a submission to a published record."""
