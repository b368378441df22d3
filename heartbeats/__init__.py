"""When to step in and what to say; signs of life."""
