"""How an attempt is graded: how to start a grader, and how to read what it wrote."""
