"""Coral: a supervisor for fleets of coding agents on one optimization problem."""

__version__ = "0.1.0"
