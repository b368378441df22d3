"""Reads a run as data, for the command line and for programs: the same figures for both."""
