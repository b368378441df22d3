"""How output looks: tables, the live view, progress, Markdown."""
