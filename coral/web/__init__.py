"""The dashboard: a process of its own that reads what a run publishes, and shows it in a browser."""
