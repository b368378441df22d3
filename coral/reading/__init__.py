"""Reads a run as data. The command line, the dashboard and `import coral` use it, so all of them show the same
figures."""
