"""`python -m coral` is the command `coral`."""

from coral.cli import program

if __name__ == "__main__":
    program()
