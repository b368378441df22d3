"""Programs that run as users of their own: whether this machine can do that, how one is started, and how all processes
of such a user are ended."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from coral.grader.sandbox import starter_rules, user_rules
from coral.processes import end_users
from coral.processes.restricted import restricted
from workspace.owner import User, candidate_of, closed_to_others, open_to_others
from workspace.plain_file import OWN_USERS, number_of_candidates

PROBE_SECONDS, END_SECONDS = 20.0, 5.0
_ENDER_BIT = 1 << 27  # by which a user differs from the one that ends it: no grade or agent is likely to have that
# What root needs for it: to change owners and modes, to pass closed folders, to signal, to become another user.
_CAPABILITIES = {0: "CHOWN", 1: "DAC_OVERRIDE", 3: "FOWNER", 4: "FSETID", 5: "KILL", 6: "SETGID", 7: "SETUID"}
_SHELL = "/bin/sh"
_TRY = '"$0" -P -c "import coral.cli, workspace.submit" && git --version'


@dataclass(frozen=True, slots=True)
class Places:
    """The folders that decide whether users of their own are safe here. `hidden`: folders that these users must not
    read, except the way to one of the `reached`; `reached`: folders that they must reach."""

    hidden: tuple[Path, ...] = ()
    reached: tuple[Path, ...] = ()


def user_line(argv: Sequence[str], user: User, *, network: bool, candidates: Path | None = None) -> list[str]:
    """Return the arguments with which root starts a program as this user. `candidates`: given for a grader, the folder
    for the temporary files of candidates; a process that starts these as `candidate_of` the user is then started beside
    the grader."""
    rules = user_rules(user.number, user.groups, user.umask, network)
    if candidates is not None:
        other = candidate_of(user)
        rules["starter"] = starter_rules(other.number, other.groups, str(candidates))
    return restricted(rules, argv)


def end_user(number: int) -> None:
    """Send SIGKILL to every process of one of our users and of its candidates' user, all at once: none can escape by a
    fork, or by ending who ends it. ValueError if the number is not one of OWN_USERS."""
    if number not in OWN_USERS:
        raise ValueError(f"{number} is not a user of our own")
    users = (number, number_of_candidates(number))
    line = [sys.executable, "-I", "-S", "-B", str(Path(end_users.__file__))]
    line += map(str, (number ^ _ENDER_BIT, *users))
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        null = subprocess.DEVNULL
        subprocess.run(line, cwd="/", stdin=null, stdout=null, stderr=null, timeout=END_SECONDS, check=False)


def problem_of_places(places: Places) -> str:
    """Return why users of their own could read too much or reach too little in these places; "" if they could not."""
    for path in places.reached:
        if closed := closed_to_others(path):
            return f"{closed} is closed to other users, who could not reach {path}: try `chmod o+x {closed}`"
    for folder in places.hidden:
        if found := open_to_others(folder, places.reached):
            return f"everybody on this machine can read {found}: try `chmod o-rwx {found}`"
    return ""


def problem(needed: Iterable[Path]) -> str:
    """Return why this machine cannot run a program as a user of its own; "" if it can. `needed`: paths that every
    program must reach. It is tried once, which takes some 200 ms."""
    return _problem(tuple(needed))


@cache
def _problem(needed: tuple[Path, ...]) -> str:
    if text := _rights_problem():
        return text
    git = shutil.which("git")
    for path in (*needed, *([Path(git)] if git else [])):
        if closed := closed_to_others(path):
            return f"{closed} is closed to other users, who need {path}"
    user = User(OWN_USERS[0], (), 0o077)
    try:
        done = subprocess.run(
            user_line([_SHELL, "-c", _TRY, sys.executable], user, network=False),
            capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"a program of another user cannot be started: {error}"
    words = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
    return f"another user cannot run Python, Coral and git here: {words}" if done.returncode else ""


def _rights_problem() -> str:
    """Return why this process lacks the rights to become another user; "" if it has them."""
    try:
        status = Path("/proc/self/status").read_text()
        maps = [Path(f"/proc/self/{kind}_map").read_text() for kind in ("uid", "gid")]
    except OSError as error:
        return f"there are no users of their own: {error}"
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in status.splitlines())}
    if fields["Uid"][1] != "0":
        return "users of their own need root"
    had = int(fields["CapEff"][0], 16)
    if missing := [name for number, name in _CAPABILITIES.items() if not had >> number & 1]:
        return f"this root must not do what users of their own need: it lacks {', '.join(missing)}"
    return "" if all(map(_maps_ours, maps)) else "this machine maps too few users"


def _maps_ours(text: str) -> bool:
    ranges = [tuple(map(int, line.split())) for line in text.splitlines()]
    return any(first <= OWN_USERS.start and OWN_USERS.stop <= first + count for first, _, count in ranges)
