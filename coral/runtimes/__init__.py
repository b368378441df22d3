"""The runtimes, one for each agent program. A runtime describes its program and never starts a process."""
