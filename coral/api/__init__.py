"""What `import coral` gives to programs: docs/python.md. Everything here is public and stays as it is."""
