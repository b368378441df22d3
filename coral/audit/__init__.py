"""`coral audit`: attacks a task's grader with what is known to work elsewhere, before money is spent on it."""
