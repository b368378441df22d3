"""How output looks: tables, plots, progress, formats."""
