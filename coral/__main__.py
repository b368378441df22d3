"""`python -m coral` is the command `coral`."""

import sys

from coral.cli import main

if __name__ == "__main__":
    sys.exit(main())
