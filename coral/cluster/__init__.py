"""Grades on a Ray cluster: the process that speaks to it, what runs on its nodes, and the local process of a grade."""
