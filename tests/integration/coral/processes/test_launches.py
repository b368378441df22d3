"""A launch ends with every process it started: also a daemon that gave up its parent, session and environment, which is
found by its control group or by its resource limit, one without the other. No other process is touched."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import strangers
from real_runs import wait_until
from shortages import no_more_descriptors

from coral.processes import cgroup, process, process_tree, rlimit_tag
from coral.processes.launch_tags import LaunchTags
from coral.processes.launches import Launches, LaunchState
from coral.processes.process import Program
from coral.processes.wakeup import Wakeup

# Forked twice, the second time in a session of its own, and with nothing of what its launch was started with.
DAEMON = "env -i setsid sh -c 'sh {name}.sh & ' </dev/null >/dev/null 2>&1"
WAYS = ("group", "mark")
NO_TAG = "nobody's"


def can_make_groups() -> bool:
    groups = cgroup.Groups(f"test-{os.getpid()}")
    group = groups.make("try")
    entered = group and subprocess.run(["/bin/sh", "-c", cgroup.ENTER, "sh", group], check=False).returncode == 0
    cgroup.remove(group)
    return bool(entered)


@pytest.fixture(params=WAYS)
def way(request, monkeypatch) -> str:
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


class FolderLaunches:
    """A supervisor's launches, of programs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = f"test-{os.getpid()}-{folder.name}"
        self.wakeup = Wakeup()
        self.tags = LaunchTags(self.run, b"secret")
        self.launches = Launches(self.tags, self.wakeup)
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

    def daemon(self, name: str) -> process_tree.Identity:
        """The daemon that wrote its pid into the file of that name."""
        wait_until((self.folder / name).exists)
        return process_tree.identify(int((self.folder / name).read_text()))

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
        for held in self.held:
            process.kill(held.identity, NO_TAG)
            held.child.wait(120)
        self.launches.close()
        self.wakeup.close()


@pytest.fixture
def mine(tmp_path) -> Iterator[FolderLaunches]:
    made = FolderLaunches(tmp_path)
    yield made
    for path in (path for path in tmp_path.glob("left*") if not path.suffix):
        found = process_tree.identify(int(path.read_text()))
        if found is not None:
            process._signal_all([found], process.signal.SIGKILL)
    made.ends()


def test_a_daemon_ends_with_its_launch_and_no_other_is_touched(way: str, mine: FolderLaunches) -> None:
    others = mine.start("agent-2", f"{mine.daemonizing('left-2')}; exec sleep 300")
    mine.start("agent-1", mine.daemonizing("left-1", "trap '' TERM"))
    left, theirs = mine.daemon("left-1"), mine.daemon("left-2")
    assert mine.next_state() == ("agent-1", LaunchState.LEFT_PROCESSES)
    launch = mine.launches.find("agent-1", 1)
    process.terminate(launch.identity, launch.tag)
    assert mine.next_state() == ("agent-1", LaunchState.LEFT_PROCESSES)
    process.kill(launch.identity, launch.tag)
    wait_until(lambda: mine.next_state()[1] is LaunchState.GONE)
    assert not process_tree.is_alive(left)
    assert process_tree.is_alive(theirs)
    assert others.child.poll() is None
    assert not launch.identity.group or not Path(launch.identity.group).exists()


def test_sigterm_ends_a_daemon_too(way: str, mine: FolderLaunches) -> None:
    mine.start("agent-1", f"{mine.daemonizing('left')}; exit 7")
    left = mine.daemon("left")
    woken: set[str] = set()
    wait_until(lambda: bool(woken.update(mine.wakeup.wait(0.05)) or woken))
    mine.launches.suspect(woken)
    ((launch, state),) = mine.launches.ended()
    assert (launch.who, launch.code, state) == ("agent-1", 7, LaunchState.LEFT_PROCESSES)
    assert mine.launches.seconds_to_check is not None
    process.terminate(launch.identity, launch.tag)
    wait_until(lambda: not process_tree.is_alive(left))
    assert mine.next_state() == ("agent-1", LaunchState.GONE)
    assert mine.launches.find("agent-1", 1) is None
    assert mine.launches.seconds_to_check is None


def test_the_end_of_what_is_left_wakes_the_loop(way: str, mine: FolderLaunches) -> None:
    mine.start("agent-1", f"{mine.daemonizing('left')}; exit 7")
    mine.daemon("left")
    assert mine.next_state() == ("agent-1", LaunchState.LEFT_PROCESSES)
    launch = mine.launches.find("agent-1", 1)
    launch.check_at = float("inf")  # no time is a reason to look
    assert "agent-1" not in mine.wakeup.wait(0.1)
    process.kill(launch.identity, launch.tag)
    wait_until(lambda: "agent-1" in mine.wakeup.wait(0.05))
    mine.launches.suspect({"agent-1"})
    assert [state for _, state in mine.launches.ended()] == [LaunchState.GONE]


def test_a_new_supervisor_adopts_a_launch_by_its_leftovers(way: str, mine: FolderLaunches) -> None:
    held = mine.start("agent-1", mine.daemonizing("left"))
    left = mine.daemon("left")
    held.child.wait(120)
    after = Launches(mine.tags, mine.wakeup)
    assert after.adopt("agent-1", 1, held.identity, 0.0)
    assert [(launch.who, state) for launch, state in after.ended()] == [("agent-1", LaunchState.LEFT_PROCESSES)]
    process.kill(held.identity, after.tag("agent-1", 1))
    wait_until(lambda: not process_tree.is_alive(left))
    again = Launches(mine.tags, mine.wakeup)
    assert not again.adopt("agent-1", 1, held.identity, 0.0)
    assert not held.identity.group or not Path(held.identity.group).exists()


def test_a_daemon_started_after_the_scan_is_found(way: str, mine: FolderLaunches) -> None:
    """A new supervisor looks at all processes when it finds the first launch gone. The second one ends after that."""
    first = mine.start("agent-1", "exec true")
    first.child.wait(60)
    os.mkfifo(mine.folder / "go")
    second = mine.start("agent-2", f"touch begun; read go <go; {mine.daemonizing('left')}")
    wait_until((mine.folder / "begun").exists)
    after = Launches(mine.tags, mine.wakeup)
    assert not after.adopt("agent-1", 1, first.identity, 0.0)
    (mine.folder / "go").write_text("go\n")
    left = mine.daemon("left")
    second.child.wait(60)
    assert after.adopt("agent-2", 1, second.identity, 0.0)
    process.kill(second.identity, after.tag("agent-2", 1))
    wait_until(lambda: not process_tree.is_alive(left))


@pytest.mark.parametrize("way", ["group"], indirect=True)
def test_a_process_in_a_nested_group_belongs_to_its_launch(way: str, mine: FolderLaunches) -> None:
    folder = f"{cgroup.own_group()}/coral-{mine.run}/agent-1.1/inner"
    inner = f"mkdir {folder}; echo 0 >{folder}/cgroup.procs"
    held = mine.start("agent-1", mine.daemonizing("left", inner))
    left = mine.daemon("left")
    held.child.wait(120)
    assert str(left.pid) in (Path(folder) / "cgroup.procs").read_text().split()
    assert [member.pid for member in process_tree.members(held.identity, NO_TAG)] == [left.pid]
    process.kill(held.identity, NO_TAG)
    wait_until(lambda: not process_tree.is_alive(left))
    assert mine.next_state() == ("agent-1", LaunchState.GONE)
    assert not Path(folder).parent.parent.exists()


@pytest.mark.parametrize("way", ["group"], indirect=True)
def test_empty_groups_are_removed_and_others_stay(way: str, mine: FolderLaunches) -> None:
    folder = Path(f"{cgroup.own_group()}/coral-{mine.run}")
    absent, out = mine.folder / "absent", mine.folder / "out"
    with pytest.raises(OSError):
        mine.launches.hold("agent-1", 1, Program(["true"], {}, absent, Path(os.devnull), out, out, "t"), 0.0)
    assert not folder.exists()
    mine.start("agent-1", "exec sleep 300")
    wait_until(lambda: cgroup.members(str(folder)))
    (folder / "agent-2.7").mkdir()  # of a supervisor that was killed
    mine.launches.close()
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["agent-1.1"]
    (folder / "agent-2.7").mkdir()
    Launches(mine.tags, mine.wakeup)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["agent-1.1"]


@pytest.mark.parametrize("way", ["group"], indirect=True)
def test_old_groups_of_other_runs_are_removed(way: str, mine: FolderLaunches) -> None:
    other = Path(f"{cgroup.own_group()}/coral-{mine.run}-other")
    try:
        for name in ("old", "new"):
            (other / name).mkdir(parents=True)
        os.utime(other / "old", (0, 0))
        Launches(mine.tags, mine.wakeup)
        assert [path.name for path in other.iterdir() if path.is_dir()] == ["new"]
        os.utime(other / "new", (0, 0))
        os.utime(other, (0, 0))
        Launches(mine.tags, mine.wakeup)
        assert not (other / "new").exists()
    finally:
        cgroup.remove(str(other / "new"))
        cgroup.remove(str(other / "old"))


def test_a_program_starts_even_if_its_group_cannot_be_entered(monkeypatch, mine: FolderLaunches) -> None:
    monkeypatch.setattr(cgroup.Groups, "make", lambda self, name: "/nowhere/at all")
    held = mine.start("agent-1", "echo started; exec sleep 300")
    wait_until(lambda: (mine.folder / "out").read_text() == "started\n")
    assert (mine.folder / "err").read_text() == ""
    assert [member.pid for member in process_tree.members(held.identity, NO_TAG)] == [held.identity.pid]


def test_no_group_is_made_where_that_is_impossible(monkeypatch) -> None:
    monkeypatch.setattr(cgroup, "own_group", lambda: Path("/proc/self/nothing"))
    assert cgroup.Groups("run").make("agent-1.1") == ""


# Without a look at PATH: nobody else may read where Python lies.
STRANGER = f"import os; input(); os.setuid(65534); os.execv({shutil.which('sleep')!r}, ['sleep', '300'])"


@pytest.mark.parametrize("sign", ["tag", "mark"])
def test_a_process_of_another_user_belongs_to_no_launch(mine: FolderLaunches, sign: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start a process of somebody else")
    tag = mine.launches.tag("agent-1", 1)
    held = mine.start("agent-1", "exec sleep 300")
    env = {**os.environ, process_tree.TAG: tag if sign == "tag" else "another"}
    scripts = (STRANGER, STRANGER.replace("os.setuid(65534); ", ""))
    both = [
        subprocess.Popen([sys.executable, "-c", script], env=env, stdin=subprocess.PIPE, start_new_session=True)
        for script in scripts
    ]
    try:
        for child in both:
            assert sign == "tag" or rlimit_tag.put(child.pid, tag)
            child.stdin.write(b"\n")
            child.stdin.close()
            comm = Path(f"/proc/{child.pid}/comm")
            wait_until(lambda comm=comm: comm.read_text() == "sleep\n")
        stranger, own = both
        if sign == "mark":
            assert str(rlimit_tag.value_of(tag)) in Path(f"/proc/{stranger.pid}/limits").read_text()
        assert {member.pid for member in process_tree.members(held.identity, tag)} == {held.identity.pid, own.pid}
    finally:
        for child in both:
            child.kill()
            child.wait(120)


@pytest.mark.parametrize("sign", ["tag", "mark"])
def test_a_process_with_what_everybody_knows_of_a_launch_does_not_belong_to_it(mine: FolderLaunches, sign: str) -> None:
    """An agent names its own processes as it likes: those of another would be ended, or fail its grade, for them."""
    guessed = f"{mine.run}/#7/1"
    env = {**os.environ, process_tree.TAG: guessed if sign == "tag" else "another"}
    held = mine.start("#7", "exec sleep 300")
    child = subprocess.Popen(["sleep", "300"], env=env, start_new_session=True)
    try:
        if sign == "mark" and not rlimit_tag.put(child.pid, guessed):
            pytest.skip("no marks on this system")
        wait_until(lambda: Path(f"/proc/{child.pid}/comm").read_text() == "sleep\n")
        found = process_tree.members(held.identity, mine.launches.tag("#7", 1))
        assert [member.pid for member in found] == [held.identity.pid]
    finally:
        child.kill()
        child.wait(120)


def test_a_launch_that_replaces_its_process_at_every_scan_has_not_ended() -> None:
    tag = f"run-{os.getpid()}/agent-1/1"  # tests at the same time have others
    lived: list[subprocess.Popen[bytes]] = []

    def next_one() -> None:
        lived.append(
            subprocess.Popen(["sleep", "600"], env={**os.environ, process_tree.TAG: tag}, start_new_session=True)
        )
        for child in lived[:-1]:
            child.kill()
            child.wait(120)

    class Late(process_tree.ProcessTable):
        def scan(self) -> None:
            super().scan()
            self._related(identity, tag, set())  # whose they are is read while they live
            next_one()

    try:
        next_one()
        first = process_tree.identify(lived[0].pid)
        identity = first
        next_one()
        late = Late()
        late.scan()
        assert late.members(identity, tag) != []
    finally:
        for child in lived:
            child.kill()
            child.wait(120)


def test_an_empty_tag_matches_no_process(mine: FolderLaunches) -> None:
    held = mine.start("agent-1", "exec sleep 300")
    plain = subprocess.Popen(["env", "-i", "sleep", "300"], start_new_session=True)
    try:
        assert [member.pid for member in process_tree.members(held.identity, "")] == [held.identity.pid]
    finally:
        plain.kill()
        plain.wait(120)


def test_what_has_shed_its_mark_since_it_was_seen_is_ended_by_the_table_that_has_seen_it(
    monkeypatch, mine: FolderLaunches
) -> None:
    if not Path("/proc/self/limits").exists():
        pytest.skip("no marks on this system")
    monkeypatch.setattr(cgroup.Groups, "make", lambda self, name: "")
    python = "import os, resource; resource.prlimit(os.getppid(), 10, (-1, -1))"
    before = (
        f"echo $$ >seen.new; mv seen.new seen; while [ ! -e go ]; do sleep 0.01; done; {sys.executable} -c '{python}'"
    )
    held = mine.start("#7", mine.daemonizing("left", before))
    mine.daemon("seen")
    assert mine.next_state() == ("#7", LaunchState.LEFT_PROCESSES)
    (mine.folder / "go").touch()
    left = mine.daemon("left")
    assert process_tree.members(held.identity, mine.launches.tag("#7", 1)) == []
    mine.launches.kill(mine.launches.find("#7", 1))
    wait_until(lambda: not process_tree.is_alive(left), what="its end")


def test_the_process_group_of_an_ended_leader_proves_nothing() -> None:
    """Its number may have been another's since, who left somebody and ended as well: a daemon of anybody's."""
    script = "env -i sleep 300 </dev/null >/dev/null 2>&1 & echo $! $$"
    told = subprocess.run(["sh", "-c", script], start_new_session=True, capture_output=True, text=True, check=True)
    daemon, leader = map(int, told.stdout.split())
    found = process_tree.identify(daemon)
    try:
        assert os.getpgid(daemon) == leader
        earlier = replace(found, pid=leader)
        assert process_tree.members(earlier, "run/agent-1/7") == []
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_a_child_inherits_its_tag_until_it_gets_another(tmp_path) -> None:
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


def test_a_process_that_nobody_may_look_into_keeps_its_mark(tmp_path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start a process of somebody else")
    # To become another user has that effect.
    line = f"import os; os.setuid({strangers.NOBODY}); print(flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert rlimit_tag.put(child.pid, "one")
        assert child.stdout is not None
        child.stdout.readline()
        assert Path(f"/proc/{child.pid}/limits").stat().st_uid == 0
        with strangers.owning(tmp_path):
            assert rlimit_tag.read(child.pid) == rlimit_tag.value_of("one")
    finally:
        child.communicate(b"\n")


def test_a_launch_that_was_taken_over_lives_on_where_no_file_can_be_opened_for_a_moment(mine: FolderLaunches) -> None:
    """Its process is looked up in /proc: what cannot be read there has not ended."""
    program = subprocess.Popen(["/bin/sh", "-c", "sleep 600"], start_new_session=True)
    identity = process_tree.identify(program.pid)
    assert identity is not None
    launches = mine.launches
    try:
        assert launches.adopt("ann", 1, identity, 0.0)
        with no_more_descriptors(), pytest.raises(OSError, match="Too many open files"):
            list(launches.ended())
        launches.suspect_all()
        assert list(launches.ended()) == []
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
    launches.suspect_all()
    assert [(launch.who, state) for launch, state in launches.ended()] == [("ann", LaunchState.GONE)]
