"""Grades an attempt: says how its grader is started, and reads what the grader wrote."""
