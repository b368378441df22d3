"""What the browser tests need beside Python: Debian's Chromium, and axe-core by npm, pinned, in `.programs`, once."""

import shutil
import subprocess
import sys
from pathlib import Path

AXE = "axe-core@4.14.1"
FOLDER = Path(__file__).parents[2] / ".programs" / "axe"
SCRIPT = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Return the browser of this machine."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def main() -> int:
    if chromium() is None:
        print("make: no Chromium found; install it (apt-get install chromium)", file=sys.stderr)
        return 1
    if not SCRIPT.is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        words = [npm or "npm", "install", "--prefix", str(FOLDER), "--no-audit", "--no-fund", "--ignore-scripts", AXE]
        if npm is None or subprocess.run(words, check=False, capture_output=True).returncode:
            print(f"make: NOT RUN: the tests of accessibility, for npm cannot install {AXE} here", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
