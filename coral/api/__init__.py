"""What `import coral` gives to programs, described in docs/python.md. Every name here is public, so it must not
change."""
