"""The real agent programs that the tests drive: their pinned versions, and how they get into a folder of this clone.

Run as a program it installs what is missing and says what cannot be had; a test of that is then skipped, by name.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".programs"
INSTALL_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Pinned:
    """An npm package. The version is exact: a newer one may behave otherwise, and then these tests should say so."""

    name: str
    package: str
    version: str

    @property
    def home(self) -> Path:
        return FOLDER / self.name

    @property
    def commands(self) -> Path:
        """What to put on PATH."""
        return self.home / "node_modules" / ".bin"

    @property
    def missing(self) -> str:
        """Why it cannot be driven here; empty where it can."""
        if _version(self.home, self.package) == self.version:
            return ""
        try:
            return (FOLDER / f"{self.name}.failed").read_text().strip()
        except OSError:
            return "it is not installed; make test-agents installs it"


# Several of the programs need a newer node than machines have; npm brings one.
NODE = Pinned("node", "node", "22.23.3")
PROGRAMS = {
    each.name: each
    for each in (
        Pinned("claude", "@anthropic-ai/claude-code", "2.1.329"),
        Pinned("codex", "@openai/codex", "0.169.0"),
        Pinned("opencode", "opencode-ai", "1.18.33"),
        Pinned("gemini", "@google/gemini-cli", "0.61.0"),
        Pinned("qwen", "@qwen-code/qwen-code", "0.24.4"),
        Pinned("copilot", "@github/copilot", "1.0.102"),
        Pinned("pi", "@mariozechner/pi-coding-agent", "0.73.1"),
    )
}


def _version(home: Path, package: str) -> str:
    try:
        return str(json.loads((home / "node_modules" / package / "package.json").read_bytes())["version"])
    except (OSError, ValueError, KeyError):
        return ""


def install(pinned: Pinned) -> str:
    """Install it beside its place and move it there whole. Returns what kept it from that, if anything did."""
    failed, new = FOLDER / f"{pinned.name}.failed", FOLDER / f"{pinned.name}.new"
    for each in (new, pinned.home):
        shutil.rmtree(each, ignore_errors=True)
    failed.unlink(missing_ok=True)
    reason = _npm(pinned, new)
    if reason:
        shutil.rmtree(new, ignore_errors=True)
        failed.write_text(reason)
    else:
        new.rename(pinned.home)
    return reason


def _npm(pinned: Pinned, folder: Path) -> str:
    # node's own folder first: npm refuses, or silently replaces, what the machine's node is too old for.
    path = os.pathsep.join((str(NODE.commands), os.environ.get("PATH", os.defpath)))
    npm = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
    try:
        done = subprocess.run(
            [*npm, f"{pinned.package}@{pinned.version}"],
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"npm cannot install it: {error}"
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        return f"npm cannot install it: {(said or ['no reason given'])[0]}"
    found = _version(folder, pinned.package)
    return "" if found == pinned.version else f"npm installed version {found or 'none'} in place of {pinned.version}"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for each in (NODE, *PROGRAMS.values()):
        if not each.missing:
            continue
        print(f"installing {each.package} {each.version}", flush=True)
        if reason := install(each):
            print(f"  {each.name} will not be run: {reason}", flush=True)
    return 0  # a program that cannot be had is reported by its tests


if __name__ == "__main__":
    sys.exit(main())
