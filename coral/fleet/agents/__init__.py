"""Decisions about agents: when one starts, is interrupted, waits or retires."""
