"""The programs that drive agents: one module a program. A runtime describes its program and never starts a process."""
