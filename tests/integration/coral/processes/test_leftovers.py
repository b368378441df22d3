"""Whatever a launch leaves is gone with it: a daemon that gave up its parent, its session and its environment, found by
its control group or by its mark, each where there is not the other. Nobody else is touched."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from coral.processes import cgroup, process, process_table, rlimit_tag
from coral.processes.launches import Launches, LaunchState
from coral.processes.process import Program
from coral.processes.wakeup import Wakeup

# Forked twice, the second time in a session of its own, and with nothing of what its launch was started with.
DAEMON = "env -i setsid sh -c 'sh {name}.sh & ' </dev/null >/dev/null 2>&1"
WAYS = ("group", "mark")
NO_TAG = "nobody's"


def wait_until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def can_make_groups() -> bool:
    groups = cgroup.Groups(f"test-{os.getpid()}")
    group = groups.make("try")
    entered = group and subprocess.run(["/bin/sh", "-c", cgroup.ENTER, "sh", group], check=False).returncode == 0
    cgroup.remove(group)
    return bool(entered)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What tells whose a process is; the other way is closed."""
    if request.param == "mark":
        monkeypatch.setattr(cgroup, "own_group", lambda: None)
        if not Path("/proc/self/limits").exists():
            pytest.skip("no marks on this system")
    else:
        monkeypatch.setattr(rlimit_tag, "put", lambda pid, tag: False)
        if not can_make_groups():
            pytest.skip("no control group may be made here")
    return str(request.param)


class Shed:
    """A supervisor's launches, of programs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = f"test-{os.getpid()}-{folder.name}"
        self.bell = Wakeup()
        self.launches = Launches(self.run, self.bell)
        self.held: list[process.HeldChild] = []

    def start(self, who: str, script: str) -> process.HeldChild:
        program = Program(
            argv=["/bin/sh", "-c", script],
            env=dict(os.environ),
            cwd=self.folder,
            stdin=Path(os.devnull),
            stdout=self.folder / "out",
            stderr=self.folder / "err",
            tag=self.launches.tag(who, 1),
        )
        self.held.append(self.launches.hold(who, 1, program, 0.0))
        self.held[-1].release()
        return self.held[-1]

    def daemonizing(self, name: str, before: str = "") -> str:
        """A command that leaves a daemon, which does something before it writes down that it is there."""
        told = f"echo $$ >{name}.new; mv {name}.new {name}; exec sleep 300"
        (self.folder / f"{name}.sh").write_text(f"{before}\n{told}\n")
        return DAEMON.format(name=name)

    def daemon(self, name: str) -> process_table.Identity:
        """The daemon that wrote its pid into the file of that name."""
        wait_until((self.folder / name).exists)
        found = process_table.identify(int((self.folder / name).read_text()))
        assert found is not None
        return found

    def next_state(self) -> tuple[str, LaunchState]:
        """What is said next of a launch whose own process has ended."""
        said: list[tuple[str, LaunchState]] = []

        def look() -> bool:
            self.launches.suspect_all()
            said.extend((launch.who, state) for launch, state in self.launches.ended())
            return bool(said)

        wait_until(look)
        assert len(said) == 1
        return said[0]

    def ends(self) -> None:
        for each in self.held:
            process.kill(each.identity, NO_TAG)
            each.child.wait(120)
        self.launches.close()
        self.bell.close()


@pytest.fixture
def shed(tmp_path: Path) -> Iterator[Shed]:
    made = Shed(tmp_path)
    yield made
    for path in (each for each in tmp_path.glob("left*") if not each.suffix):
        found = process_table.identify(int(path.read_text()))
        if found is not None:
            process._signal_all([found], process.signal.SIGKILL)
    made.ends()


def test_a_daemon_is_gone_with_its_launch_and_that_of_another_is_untouched(way: str, shed: Shed) -> None:
    others = shed.start("agent-2", f"{shed.daemonizing('left-2')}; exec sleep 300")
    shed.start("agent-1", shed.daemonizing("left-1", "trap '' TERM"))
    mine, theirs = shed.daemon("left-1"), shed.daemon("left-2")
    assert shed.next_state() == ("agent-1", LaunchState.LINGERS)
    launch = shed.launches.find("agent-1", 1)
    assert launch is not None
    process.terminate(launch.identity, launch.tag)
    assert shed.next_state() == ("agent-1", LaunchState.LINGERS)
    process.kill(launch.identity, launch.tag)
    wait_until(lambda: shed.next_state()[1] is LaunchState.GONE)
    assert not process_table.is_alive(mine)
    assert process_table.is_alive(theirs)
    assert others.child.poll() is None
    assert not launch.identity.group or not Path(launch.identity.group).exists()


def test_a_word_in_time_ends_a_daemon_too(way: str, shed: Shed) -> None:
    shed.start("agent-1", shed.daemonizing("left"))
    left = shed.daemon("left")
    assert shed.next_state() == ("agent-1", LaunchState.LINGERS)
    launch = shed.launches.find("agent-1", 1)
    assert launch is not None
    process.terminate(launch.identity, launch.tag)
    wait_until(lambda: not process_table.is_alive(left))
    assert shed.next_state() == ("agent-1", LaunchState.GONE)
    assert shed.launches.find("agent-1", 1) is None


def test_a_new_supervisor_finds_what_a_launch_of_the_one_before_has_left(way: str, shed: Shed) -> None:
    held = shed.start("agent-1", shed.daemonizing("left"))
    left = shed.daemon("left")
    held.child.wait(120)
    after = Launches(shed.run, shed.bell)
    assert after.adopt("agent-1", 1, held.identity, 0.0)
    assert [(each.who, state) for each, state in after.ended()] == [("agent-1", LaunchState.LINGERS)]
    process.kill(held.identity, after.tag("agent-1", 1))
    wait_until(lambda: not process_table.is_alive(left))
    again = Launches(shed.run, shed.bell)
    assert not again.adopt("agent-1", 1, held.identity, 0.0)
    assert not held.identity.group or not Path(held.identity.group).exists()


def test_what_was_started_after_the_look_by_one_who_has_ended_since_is_found(way: str, shed: Shed) -> None:
    """A new supervisor looks at all processes when it finds the first launch gone. The second one ends after that."""
    first = shed.start("agent-1", "exec true")
    first.child.wait(60)
    os.mkfifo(shed.folder / "go")
    second = shed.start("agent-2", f"touch begun; read go <go; {shed.daemonizing('left')}")
    wait_until((shed.folder / "begun").exists)
    after = Launches(shed.run, shed.bell)
    assert not after.adopt("agent-1", 1, first.identity, 0.0)
    (shed.folder / "go").write_text("go\n")
    left = shed.daemon("left")
    second.child.wait(60)
    assert after.adopt("agent-2", 1, second.identity, 0.0)
    process.kill(second.identity, after.tag("agent-2", 1))
    wait_until(lambda: not process_table.is_alive(left))


@pytest.mark.parametrize("way", ["group"], indirect=True)
def test_who_moves_to_a_group_of_its_own_inside_is_still_there(way: str, shed: Shed) -> None:
    folder = f"{cgroup.own_group()}/coral-{shed.run}/agent-1.1/inner"
    inner = f"mkdir {folder}; echo 0 >{folder}/cgroup.procs"
    held = shed.start("agent-1", shed.daemonizing("left", inner))
    left = shed.daemon("left")
    held.child.wait(120)
    assert str(left.pid) in (Path(folder) / "cgroup.procs").read_text().split()
    assert [each.pid for each in process_table.members(held.identity, NO_TAG)] == [left.pid]
    process.kill(held.identity, NO_TAG)
    wait_until(lambda: not process_table.is_alive(left))
    assert shed.next_state() == ("agent-1", LaunchState.GONE)
    assert not Path(folder).parent.parent.exists()


@pytest.mark.parametrize("way", ["group"], indirect=True)
def test_a_group_goes_with_what_never_started_and_stays_for_who_lives_on(way: str, shed: Shed) -> None:
    folder = Path(f"{cgroup.own_group()}/coral-{shed.run}")
    absent, out = shed.folder / "absent", shed.folder / "out"
    with pytest.raises(OSError):
        shed.launches.hold("agent-1", 1, Program(["true"], {}, absent, Path(os.devnull), out, out, "t"), 0.0)
    assert not folder.exists()
    shed.start("agent-1", "exec sleep 300")
    wait_until(lambda: cgroup.members(str(folder)))
    (folder / "agent-2.7").mkdir()  # of a supervisor that was killed
    shed.launches.close()
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["agent-1.1"]
    (folder / "agent-2.7").mkdir()
    Launches(shed.run, shed.bell)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["agent-1.1"]


@pytest.mark.parametrize("way", ["group"], indirect=True)
def test_what_a_run_has_left_that_nobody_resumed_goes_with_time(way: str, shed: Shed) -> None:
    other = Path(f"{cgroup.own_group()}/coral-{shed.run}-other")
    try:
        for name in ("old", "new"):
            (other / name).mkdir(parents=True)
        os.utime(other / "old", (0, 0))
        Launches(shed.run, shed.bell)
        assert [path.name for path in other.iterdir() if path.is_dir()] == ["new"]
        os.utime(other / "new", (0, 0))
        os.utime(other, (0, 0))
        Launches(shed.run, shed.bell)
        assert not (other / "new").exists()
    finally:
        cgroup.remove(str(other / "new"))
        cgroup.remove(str(other / "old"))


def test_a_program_starts_also_where_its_group_cannot_be_entered(monkeypatch: pytest.MonkeyPatch, shed: Shed) -> None:
    monkeypatch.setattr(cgroup.Groups, "make", lambda self, name: "/nowhere/at all")
    held = shed.start("agent-1", "echo started; exec sleep 300")
    wait_until(lambda: (shed.folder / "out").read_text() == "started\n")
    assert (shed.folder / "err").read_text() == ""
    assert [each.pid for each in process_table.members(held.identity, NO_TAG)] == [held.identity.pid]


def test_where_no_group_may_be_made_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "own_group", lambda: Path("/proc/self/nothing"))
    assert cgroup.Groups("run").make("agent-1.1") == ""


# Without a look at PATH: nobody else may read where Python lies.
STRANGER = f"import os; input(); os.setuid(65534); os.execv({shutil.which('sleep')!r}, ['sleep', '300'])"


@pytest.mark.parametrize("sign", ["tag", "mark"])
def test_somebody_elses_process_is_nobodys_leftover_whatever_it_bears(shed: Shed, sign: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start a process of somebody else")
    tag = shed.launches.tag("agent-1", 1)
    held = shed.start("agent-1", "exec sleep 300")
    env = {**os.environ, process_table.TAG: tag if sign == "tag" else "another"}
    scripts = (STRANGER, STRANGER.replace("os.setuid(65534); ", ""))
    both = [
        subprocess.Popen([sys.executable, "-c", script], env=env, stdin=subprocess.PIPE, start_new_session=True)
        for script in scripts
    ]
    try:
        for each in both:
            assert sign == "tag" or rlimit_tag.put(each.pid, tag)
            assert each.stdin is not None
            each.stdin.write(b"\n")
            each.stdin.close()
            comm = Path(f"/proc/{each.pid}/comm")
            wait_until(lambda comm=comm: comm.read_text() == "sleep\n")
        stranger, own = both
        if sign == "mark":
            assert str(rlimit_tag.value_of(tag)) in Path(f"/proc/{stranger.pid}/limits").read_text()
        assert {each.pid for each in process_table.members(held.identity, tag)} == {held.identity.pid, own.pid}
    finally:
        for each in both:
            each.kill()
            each.wait(120)


def test_a_launch_of_which_somebody_ends_and_starts_another_at_every_look_is_not_over() -> None:
    tag = "run/agent-1/1"
    lived: list[subprocess.Popen[bytes]] = []

    def next_one() -> None:
        lived.append(
            subprocess.Popen(["sleep", "600"], env={**os.environ, process_table.TAG: tag}, start_new_session=True)
        )
        for each in lived[:-1]:
            each.kill()
            each.wait(120)

    class Late(process_table.ProcessTable):
        def scan(self) -> None:
            super().scan()
            self._related(identity, tag, set())  # whose they are is read while they live
            next_one()

    try:
        next_one()
        first = process_table.identify(lived[0].pid)
        assert first is not None
        identity = first
        next_one()
        late = Late()
        late.scan()
        assert late.members(identity, tag) != []
    finally:
        for each in lived:
            each.kill()
            each.wait(120)


def test_without_a_tag_nobody_is_meant(shed: Shed) -> None:
    held = shed.start("agent-1", "exec sleep 300")
    plain = subprocess.Popen(["env", "-i", "sleep", "300"], start_new_session=True)
    try:
        assert [each.pid for each in process_table.members(held.identity, "")] == [held.identity.pid]
    finally:
        plain.kill()
        plain.wait(120)


def test_a_grade_enters_no_group_and_its_daemon_is_found_all_the_same(shed: Shed) -> None:
    held = shed.start("#7", shed.daemonizing("left"))
    left = shed.daemon("left")
    assert held.identity.group == ""
    assert left.pid in {each.pid for each in process_table.members(held.identity, shed.launches.tag("#7", 1))}


def test_the_group_of_a_leader_that_is_gone_is_not_enough() -> None:
    """Its number may have been another's since, who left somebody and ended as well: a daemon of anybody's."""
    script = "env -i sleep 300 </dev/null >/dev/null 2>&1 & echo $! $$"
    told = subprocess.run(["sh", "-c", script], start_new_session=True, capture_output=True, text=True, check=True)
    daemon, leader = map(int, told.stdout.split())
    found = process_table.identify(daemon)
    assert found is not None
    try:
        assert os.getpgid(daemon) == leader
        earlier = replace(found, pid=leader)
        assert process_table.members(earlier, "run/agent-1/7") == []
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_a_mark_is_handed_on_and_another_takes_its_place(tmp_path: Path) -> None:
    """As in a run that an agent of another run has started."""
    line = "import sys; print(sys.stdin.readline())"
    child = subprocess.Popen([sys.executable, "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if not rlimit_tag.put(child.pid, "one"):
            pytest.skip("no marks on this system")
        assert rlimit_tag.read(child.pid) == rlimit_tag.value_of("one") != rlimit_tag.value_of("two")
        assert rlimit_tag.put(child.pid, "two")
        assert rlimit_tag.read(child.pid) == rlimit_tag.value_of("two")
        assert rlimit_tag.read(os.getpid()) not in (rlimit_tag.value_of("one"), rlimit_tag.value_of("two"))
    finally:
        child.communicate(b"\n")


HYBRID = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n"
    "41 31 0:31 / /sys/fs/cgroup/unified rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw\n"
)
PLAIN = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
PART = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    ("own", "mounts", "expected"),
    [
        ("4:memory:/some/where\n0::/\n", HYBRID, "/sys/fs/cgroup/unified"),
        (
            "0::/user.slice/user-1000.slice/app.slice/x.scope\n",
            PLAIN,
            "/sys/fs/cgroup/user.slice/user-1000.slice/app.slice/x.scope",
        ),
        ("0::/docker/abc/inner\n", PART, "/sys/fs/cgroup/inner"),
        ("0::/docker/abcdef\n", PART, None),
        ("0::/../outside\n", PLAIN, None),
        ("4:memory:/some/where\n", HYBRID, None),
        ("0::/\n", HYBRID.rpartition("41")[0], None),
    ],
)
def test_where_our_own_group_is(tmp_path: Path, own: str, mounts: str, expected: str | None) -> None:
    (tmp_path / "own").write_text(own)
    (tmp_path / "mounts").write_text(mounts)
    found = cgroup.own_group(tmp_path / "own", tmp_path / "mounts")
    assert found == (None if expected is None else Path(expected))
    assert cgroup.own_group(tmp_path / "absent", tmp_path / "mounts") is None
