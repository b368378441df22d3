"""Grades and agents on a cluster: the processes that speak to it, what runs on its nodes, and the local process of each
grade and launch."""
