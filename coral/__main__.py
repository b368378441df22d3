"""`python -m coral` is the command `coral`."""

import sys

from coral.cli import program

if __name__ == "__main__":
    sys.exit(program())
