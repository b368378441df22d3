"""The real agent programs that the tests drive: their pinned versions, and how they get into a folder of this clone.

Run as a program it installs what is missing and says what cannot be had; a test of that is then skipped, by name.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".programs"
COMPILED = FOLDER / "compiled"  # what node keeps of the scripts that it has read before
UNPACKED = "unpacked"  # below a program's folder: what copilot unpacks, hundreds of megabytes, before it starts
INSTALL_SECONDS = 600.0  # of one program
ASK_SECONDS, TRY_SECONDS = 60.0, 120.0
_CODES = (["code"], ["syscall"], ["errno"])  # lines of npm's that say less than the one after them


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
    pinned.name: pinned
    for pinned in (
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
    new = FOLDER / f"{pinned.name}.new"
    for folder in (new, pinned.home):
        shutil.rmtree(folder, ignore_errors=True)
    reason = _npm_install(pinned, new) or _does_not_start(pinned, new)
    if reason:
        shutil.rmtree(new, ignore_errors=True)
    else:
        new.rename(pinned.home)
    return reason


def out_of_reach() -> str:
    """Return why nothing at all can be installed here: there is no npm, or no package index answers it."""
    if shutil.which("npm") is None:
        return "there is no npm on PATH"
    asked = ["npm", "view", f"{NODE.package}@{NODE.version}", "version", "--fetch-retries=0", "--fetch-timeout=20000"]
    said = _run(asked, ASK_SECONDS)
    return f"npm reaches no package index: {said}" if said else ""


def _npm_install(pinned: Pinned, folder: Path) -> str:
    npm = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
    if said := _run([*npm, f"{pinned.package}@{pinned.version}"], INSTALL_SECONDS):
        return f"npm cannot install it: {said}"
    found = _version(folder, pinned.package)
    return "" if found == pinned.version else f"npm installed version {found or 'none'} in place of {pinned.version}"


def _does_not_start(pinned: Pinned, folder: Path) -> str:
    """Return why what is installed does not start here: it may not be made for this machine."""
    program = folder / "node_modules" / ".bin" / pinned.name
    with tempfile.TemporaryDirectory() as home:
        said = _run([str(program), "--version"], TRY_SECONDS, HOME=home, COPILOT_PKG_CACHE_HOME=str(folder / UNPACKED))
    return f"it does not start on this machine: {said}" if said else ""


def _run(words: list[str], seconds: float, **env: str) -> str:
    """Run a command; return what went wrong in a line, empty if nothing did."""
    # node's own folder first: npm refuses, or silently replaces, what the machine's node is too old for.
    path = os.pathsep.join((str(NODE.commands), os.environ.get("PATH", os.defpath)))
    try:
        done = subprocess.run(
            words,
            env={**os.environ, "PATH": path, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("npm error") and line.split()[2:3] not in _CODES]
    return (said or lines or [f"exit code {done.returncode}"])[0]


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    wanted = [
        pinned for pinned in (NODE, *PROGRAMS.values()) if _version(pinned.home, pinned.package) != pinned.version
    ]
    common = out_of_reach() if wanted else ""
    for pinned in wanted:
        failed = FOLDER / f"{pinned.name}.failed"
        failed.unlink(missing_ok=True)
        if not common:
            print(f"installing {pinned.package} {pinned.version}", flush=True)
        if reason := common or install(pinned):
            failed.write_text(reason)
            print(f"NOT RUN: {pinned.name}: {reason}", flush=True)
            common = common or (f"node cannot be had: {reason}" if pinned is NODE else "")
    return 0  # a program that cannot be had is reported by its tests


if __name__ == "__main__":
    sys.exit(main())
