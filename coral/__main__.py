"""Runs the command `coral` for `python -m coral`."""

from coral.cli import program

if __name__ == "__main__":
    program()
