"""Where agents work: paths of a run, git, shared knowledge."""
