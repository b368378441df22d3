"""Programs that run as users of their own: what they may, and how all that they leave is found and ended."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from levels import params
from real_runs import wait_until

from coral.processes import end_users, own_user, process
from coral.processes.own_user import Places, end_user, problem_of_places, user_line
from coral.processes.process import HeldChild, Program
from coral.processes.process_tree import ProcessTable, identify
from coral.processes.seal import Sandbox, seal
from workspace.owner import User
from workspace.plain_file import OWN_USERS
from workspace.seal import Level

# Of this process alone: all that runs as one of them is ended after each test.
FIRST = 1000 + 4 * os.getpid()
ANN, BOB = (User(number, (OWN_USERS[9],), 0o077) for number in OWN_USERS[FIRST : FIRST + 4 : 2])
TAG, JOB_TAG = (f"run-{os.getpid()}/{name}/1" for name in ("ann", "ann job"))
# Gives up its session, parent, mark and environment; its mark only where it may.
DAEMON = """
unmarked="prlimit --locks=unlimited"; $unmarked true || unmarked=
setsid env -i $unmarked /bin/sh -c 'sh -c "echo \\$\\$ >{sign}; exec sleep 600" &' &
"""
needs_users = pytest.mark.parametrize("level", params(Level.USER))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    for user in (ANN, BOB):
        if os.geteuid() == 0:
            end_user(user.number)


def output(script: str, network: bool = True) -> str:
    line = user_line(["/bin/sh", "-c", script], ANN, network=network)
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False).stdout


@needs_users
def test_a_program_is_its_user_alone_for_good(level: Level) -> None:
    assert output("id -u; id -G; umask").split() == [str(ANN.number), f"{ANN.number}", str(OWN_USERS[9]), "0077"]
    status = dict(line.split(":\t") for line in output("cat /proc/self/status").splitlines() if ":\t" in line)
    assert {status[f"Cap{name}"].strip("0") for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {""}
    assert status["NoNewPrivs"] == "1"


@needs_users
def test_it_is_not_started_where_its_user_could_not_go(level: Level, tmp_path: Path) -> None:
    """An agent chooses the folder of its job, and may lay a link in its place once that was looked at."""
    inside = tmp_path / "task" / "hidden"
    inside.mkdir(parents=True)
    (inside / "data").write_text("secret")
    for path, mode in ((inside / "data", 0o644), (inside, 0o755), (inside.parent, 0o700)):
        path.chmod(mode)
    line = user_line(["/bin/sh", "-c", "cat data"], ANN, network=False)
    started = subprocess.run(line, cwd=inside, capture_output=True, text=True, timeout=120, check=False)
    assert (started.stdout, started.returncode != 0) == ("", True)


@needs_users
def test_it_reaches_no_process_but_its_own(level: Level) -> None:
    pid = os.getpid()
    for line in (f"kill -0 {pid}", f"cat /proc/{pid}/environ", f"ls /proc/{pid}/fd", f"prlimit --pid {pid} --nofile=9"):
        assert output(f"({line}) >/dev/null 2>&1 && echo done") == "", line


@needs_users
@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_there_if_it_is_given(level: Level, network: bool) -> None:
    code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print(1)"
    assert output(f"{sys.executable} -S -c '{code}'", network) == ("1\n" if network else "")


def held(user: User, script: str, folder: Path, tag: str) -> HeldChild:
    plain = Program(("/bin/sh", "-c", script), dict(os.environ), folder, *[Path(os.devnull)] * 3, tag=tag)
    child = process.start(seal(plain, Sandbox(Level.USER, {}, network=True, user=user)))
    child.release()
    return child


def written(sign: Path) -> int:
    return int(wait_until(lambda: sign.exists() and sign.read_text().strip(), what=sign.name))


@needs_users
def test_what_sheds_every_mark_is_of_its_users_launch_and_ends_with_it(tmp_path: Path, level: Level) -> None:
    tmp_path.chmod(0o777)
    launch = held(ANN, DAEMON.format(sign=tmp_path / "daemon"), tmp_path, TAG)
    daemon = written(tmp_path / "daemon")
    assert launch.child.wait(60) == 0
    table = ProcessTable()

    def left() -> list[int]:
        table.scan()
        return [found.pid for found in table.members(launch.identity, TAG)]

    wait_until(lambda: left() == [daemon], what="the end of all but the daemon")
    process.kill(launch.identity, TAG, table)
    wait_until(lambda: identify(daemon) is None, what="the end of the daemon")


@needs_users
def test_a_job_outlives_the_launch_of_the_same_user_and_a_foreign_tag_is_not_believed(
    tmp_path: Path, level: Level
) -> None:
    tmp_path.chmod(0o777)
    loop = "echo $$ >{}; exec sleep 600"
    launch = held(ANN, DAEMON.format(sign=tmp_path / "daemon") + "sleep 600", tmp_path, TAG)
    job = held(ANN, loop.format(tmp_path / "job"), tmp_path, JOB_TAG)
    forger = held(BOB, loop.format(tmp_path / "bob"), tmp_path, TAG)  # as if it had given itself the tag
    daemon, worker, other = (written(tmp_path / name) for name in ("daemon", "job", "bob"))
    table = ProcessTable()
    table.add_launch("ann", launch.identity, TAG)
    table.add_launch("job", job.identity, JOB_TAG)
    table.scan()
    found = {member.pid for member in table.members(launch.identity, TAG)}
    assert daemon in found
    assert not {worker, other} & found
    process.kill(launch.identity, TAG, table)
    wait_until(lambda: identify(daemon) is None, what="the end of the daemon")
    assert identify(worker)
    assert identify(other)
    table.remove_launch("ann")
    for child, tag in ((job, JOB_TAG), (forger, TAG)):
        process.kill(child.identity, tag, table)
    for child in (launch, job, forger):
        child.child.wait(60)


# Ends who would end it, and is another process each time that somebody looks; not for ever, whatever we do.
FORKING = """
import os, time
end = time.monotonic() + 120
open("{sign}", "w").write(str(os.getpid()))
while time.monotonic() < end:
    for _ in range(3000):
        try: os.kill(-1, 9)
        except OSError: pass
    if os.fork(): os._exit(0)
"""


@needs_users
def test_processes_that_fork_and_end_others_all_the_time_are_ended(tmp_path: Path, level: Level) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "forking.py").write_text(FORKING.format(sign=tmp_path / "sign"))

    def are_ended() -> bool:
        end_user(ANN.number)  # its rounds are few: on a busy machine, a new process may be missed in each
        return not end_users._is_left([ANN.number])

    for _ in range(4):  # who can be ended is not ended each time
        launch = held(ANN, f"exec {sys.executable} -S {tmp_path}/forking.py", tmp_path, TAG)
        written(tmp_path / "sign")
        launch.child.wait(60)
        wait_until(lambda: end_users._is_left([ANN.number]), what="a process")
        wait_until(are_ended, seconds=60, what="their end")
        (tmp_path / "sign").unlink()


def test_only_a_user_of_our_own_is_ended() -> None:
    with pytest.raises(ValueError, match="not a user of our own"):
        end_user(0)


@pytest.mark.parametrize(
    ("mapped", "works"),
    [("0 0 4294967295", True), ("0 1000 1\n1 100000 65536", False), ("0 0 1\n1 1 4294967294", True)],
)
def test_the_machine_must_map_our_users(mapped: str, works: bool) -> None:
    assert own_user._maps_ours(mapped) == works


def test_without_root_there_are_no_users(monkeypatch: pytest.MonkeyPatch) -> None:
    status = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"
    texts = {"status": status, "uid_map": "0 0 4294967295", "gid_map": "0 0 4294967295"}
    monkeypatch.setattr(Path, "read_text", lambda path: texts[path.name])
    assert own_user._rights_problem() == "users of their own need root"
    texts["status"] = "Uid:\t0\t0\t0\t0\nCapEff:\t00000000000000fd\n"  # without 1, with 0 and 2 to 7
    assert own_user._rights_problem().endswith("it lacks DAC_OVERRIDE")


def test_the_places_decide_as_well(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o011)
    runs, task = tmp_path / "runs", tmp_path / "task"
    for folder in (runs, task):
        folder.mkdir()
    places = Places(hidden=(task,), reached=(runs,))
    assert problem_of_places(places) == f"everybody on this machine can read {task}: try `chmod o-rwx {task}`"
    task.chmod(0o700)
    assert problem_of_places(places) == ""
    runs.chmod(0o700)
    assert problem_of_places(places) == (
        f"{runs} is closed to other users, who could not reach {runs}: try `chmod o+x {runs}`"
    )
