"""One launch of an agent on a node: keeps the mirror of the agent's part of the run, has a guard run the program, and
reports what the program prints and changes. Ray runs this as an actor of its own; a node has Coral for that.

Orders come numbered, so that one that is sent again changes nothing; events are kept until they were received. The
orders are the messages of `coral.cluster.mirror` and of `coral.cluster.knowledge_sync`, `start`, `signal` and `sync`.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from coral.cluster import launch_guard
from coral.cluster.growing import Growing
from coral.cluster.guard import started_at
from coral.cluster.knowledge_sync import MirroredKnowledge, take_there
from coral.cluster.mirror import (
    Entries,
    Receiver,
    file_messages,
    hold_folder,
    kept,
    lies_in,
    make_folder,
    messages,
    remove,
    remove_unused,
    scan,
    unless_of_machine,
)
from coral.cluster.node import own_folder
from coral.cluster.remote_launch import HOST_NAMES

POLL_SECONDS = 0.02
KNOWLEDGE_SECONDS = 0.5
LIFE_SECONDS = 5.0
KNOWLEDGE = "knowledge.json"  # see `MirroredKnowledge`
UNSENT = "unsent"  # a file with the number of a launch whose work was not all received
BUSY = 0.05  # of a core: an agent program that only waits for its model uses less
HELD = 32 << 20  # bytes of events that wait for their receiver; then this side waits
MOST_AT_ONCE = 4 << 20  # bytes of events that one call returns
TAIL = 1 << 20  # bytes of output in one event
_GUARD = "import sys; from coral.cluster.launch_guard import main; main(sys.argv[1], *map(int, sys.argv[2:]))"

Event = dict[str, Any]


class Host:
    """`areas`: by name, the paths in the run of what the mirror holds, see `coral.agent_setup.remote`."""

    def __init__(self, asked: dict[str, Any], lease: float) -> None:
        """Make the mirror ready. `asked`: of the spec of the launch, see `coral.agent_setup.remote`; `lease`: seconds
        after which all ends here if nobody has asked for events."""
        import coral

        areas: dict[str, Any] = asked["areas"]
        version = asked["version"]
        self._number: int = asked["number"]
        self._areas, self._lease = areas, lease
        self._events, self._held = deque[tuple[int, Event]](), 0  # with their sizes, and the sum of these
        self._first, self._next = 0, 0  # the number of the first event that is kept, and of the order that comes next
        self._changed, self._taking = threading.Condition(), threading.Lock()
        self._asked = time.monotonic()
        self._signals, self._alive, self._early = -1, -1, 0
        self._wants_sync = threading.Event()
        self._had: Entries = {}  # what the run's folder has of the agent's own folders
        self._place: Path = own_folder() / "agents" / asked["run"] / asked["agent"]
        self._root: Path = self._place / "runs" / str(areas["run"])
        threading.Thread(target=self._end_without_word, daemon=True).start()
        if coral.__version__ != version:
            self._emit({"ended": {"problem": f"the node has Coral {coral.__version__}, and the run has {version}"}})
            return
        self._prepare(asked["before"])
        self._asked = time.monotonic()  # nobody could ask before
        self._emit({"ready": {
            "root": str(self._root), "python": sys.executable, "pid": os.getpid(),
            "env": {
                "CUDA_VISIBLE_DEVICES": "",  # Ray leaves it out for a launch without one, which then sees all
                **{name: os.environ[name] for name in HOST_NAMES if name in os.environ},
            },
            "has": {
                **scan(self._root, [*areas["own"], *areas["given"]]),
                **Growing(self._root, areas["growing"], areas["flat"]).scan(),
            },
            "knowledge": self._knowledge.known, "keeps": self._keeps,
        }})  # fmt: skip

    def _prepare(self, before: int) -> None:
        """`before`: the number of the agent's last launch that has begun on any node. If it was here, and was cut off
        before all of its work was sent, then the mirror is newer than the run's folder."""
        self._lock = hold_folder(self._place.parent)  # until this process ends
        self._place.mkdir(mode=0o700, exist_ok=True)
        remove_unused(self._place.parent.parent)
        _end_orphans(self._place, self._root)
        launch_guard.wait_for_lock(self._place)
        areas, unsent = self._areas, self._place / UNSENT
        self._keeps = unsent.exists() and str(before) in unsent.read_text().split()
        if self._keeps:  # this launch has begun, or has not, when its hand-over is cut off
            unsent.write_text(f"{before} {self._number}")
        received = (*areas["growing"], *areas["flat"], *areas["answers"])
        for name in (*areas["up"], areas["knowledge"], *areas["folders"], *received):
            make_folder(self._root, name)
        for name in () if self._keeps else areas["up"]:  # the run's own state is newer
            for leftover in (self._root / name).iterdir():
                remove(self._root, f"{name}/{leftover.name}")
        for name in (launch_guard.STATUS, launch_guard.GUARD, launch_guard.ORDER):
            (self._place / name).unlink(missing_ok=True)
        os.utime(self._place.parent)
        below = [name for kind in ("own", "given", "growing", "flat", "up", "answers", "logs") for name in areas[kind]]
        self._receiver = Receiver(self._root, self._place / "aside", below)
        shared = self._root / areas["knowledge"]
        self._knowledge = MirroredKnowledge(shared, self._place / KNOWLEDGE, goes_on=self._keeps)

    def close(self) -> None:
        """End the program and all that it has started: what the guard does when this process ends."""
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1

    # Called by the bridge.

    def exchange(self, received: int, wanted: int, seconds: float) -> dict[str, Any]:
        """Return the events from number `wanted` on, as soon as there is one; none after `seconds`. Those before
        `received` are forgotten."""
        until = time.monotonic() + seconds
        with self._changed:
            self._asked = time.monotonic()
            while self._first < received and self._events:
                self._held -= self._events.popleft()[0]
                self._first += 1
            self._changed.notify_all()
            at = max(wanted, self._first)
            while len(self._events) <= at - self._first and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            found, size = list[Event](), 0
            for bytes_of, event in islice(self._events, at - self._first, None):
                if found and size + bytes_of > MOST_AT_ONCE:
                    break
                found.append(event)
                size += bytes_of
            return {"at": at, "events": found}

    def take(self, first: int, orders: list[Event]) -> int:
        """Take orders, the first of which has this number; return the number of the order that is wanted next."""
        with self._taking:
            for number, order in enumerate(orders, first):
                if number == self._next:
                    self._next += 1
                    try:
                        self._obey(order)
                    except (OSError, ValueError) as error:  # without this order the mirror is not what it should be
                        self._emit({"ended": {"problem": f"its node cannot keep its files: {error}"}})
                        self.close()
            return self._next

    def _obey(self, order: Event) -> None:
        if "signal" in order:
            self._signal(order["signal"])
        elif "start" in order:
            threading.Thread(target=self._run, args=(order["start"],), daemon=True).start()
        elif "sync" in order:
            self._wants_sync.set()
        elif "apply" in order:
            needed = [*self._areas["growing"], *self._areas["answers"]]
            if left := [name for name in self._receiver.apply() if "/.git/" in name or lies_in(name, needed)]:
                raise OSError(f"{left[0]} cannot be written")
            self._knowledge.keep()
        elif "had" in order:  # by the run's folder, which gets what the mirror has instead: at the start
            self._had = order["had"]
        elif "received" in order:
            (self._place / UNSENT).unlink(missing_ok=True)
        elif "knowledge" in order:
            with unless_of_machine():  # the agent has laid something else there
                take_there(self._knowledge, order)
        else:
            self._receiver.take(order)

    def _signal(self, number: int) -> None:
        if self._signals < 0:
            self._early = number
        else:
            with contextlib.suppress(OSError):  # the program has ended
                os.write(self._signals, bytes([number]))

    # The program.

    def _run(self, start: dict[str, Any]) -> None:
        """Run the program and report everything, `ended` last: else the launch would be waited for without end."""
        status: dict[str, Any] = {"problem": "the node's side of the launch has failed"}
        try:
            status = self._run_guarded(start)
        except (OSError, subprocess.SubprocessError) as error:
            status = {"problem": str(error)}
        finally:
            self._emit({"ended": status})

    def _run_guarded(self, start: dict[str, Any]) -> dict[str, Any]:
        if self._keeps:
            self.sync()
        else:
            self._had = scan(self._root, self._areas["own"])
        (self._place / UNSENT).write_text(str(self._number))
        streams = {1: Path(start["stdout"]), 2: Path(start["stderr"])}
        for path in streams.values():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        alive_there, self._alive = os.pipe()
        signals_there, signals = os.pipe()
        done, done_there = os.pipe()
        (self._place / launch_guard.ORDER).write_text(json.dumps(start), encoding="utf-8")
        given = (alive_there, signals_there, done_there)
        line = [sys.executable, "-P", "-c", _GUARD, str(self._place), *map(str, given)]
        with (self._place / "guard.err").open("wb") as errors:
            subprocess.run(
                line, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=given, env=_without_ray(),
                check=True,
            )  # fmt: skip
        for pipe in given:
            os.close(pipe)
        with self._taking:
            self._signals = signals
            if self._early:
                self._signal(self._early)
        self._emit({"started": platform.node()})
        watches = Watches(self, streams)
        while not select.select([done], [], [], POLL_SECONDS)[0]:
            watches.look()
        watches.look(last=True)
        self.close()
        os.close(done)
        try:
            status: dict[str, Any] = json.loads((self._place / launch_guard.STATUS).read_text("utf-8"))
        except OSError:
            launch_guard.kill_all(self._place, self._root)
            status = {"problem": f"its guard has ended: {(self._place / 'guard.err').read_text()[-500:]}"}
        return status

    def sync(self) -> None:
        """Report what has changed in the agent's own folders. OSError where this machine cannot read all of it."""
        unread = set[str]()
        found = scan(self._root, self._areas["own"], unread)
        now = {**kept(self._had, unread), **found}
        if now != self._had:
            self.emit_all(messages(self._root, self._had, now))
            self._emit({"apply": True})
            self._had = now

    @property
    def root(self) -> Path:
        return self._root

    @property
    def areas(self) -> dict[str, Any]:
        return self._areas

    def send_knowledge(self) -> bool:
        """Report what has changed in the shared knowledge; return whether there may be more."""
        with self._taking:  # what comes from the run changes it too
            news = self._knowledge.changed()
        self.emit_all(news)
        return bool(news)

    @property
    def guard(self) -> Path:
        return self._place / launch_guard.GUARD

    def takes_sync(self) -> bool:
        """Return whether a sync was ordered since the last call."""
        wanted = self._wants_sync.is_set()
        self._wants_sync.clear()
        return wanted

    def emit_all(self, events: Iterable[Event]) -> None:
        for event in events:
            self._emit(event)

    def _emit(self, event: Event) -> None:
        size = 200 + sum(len(value) for value in event.values() if isinstance(value, bytes))
        with self._changed:
            while self._held > HELD and "ended" not in event:
                self._changed.wait(1)
            self._held += size
            self._events.append((size, event))
            self._changed.notify_all()

    def _end_without_word(self) -> None:
        while time.monotonic() < self._asked + self._lease:
            time.sleep(1)
        os._exit(1)


class Watches:
    """What a host reads again and again while the program runs."""

    def __init__(self, host: Host, streams: dict[int, Path]) -> None:
        self._host, self._streams = host, streams
        self._read = dict.fromkeys(streams, 0)
        self._sent: set[str] = set()
        self._knowledge_at = self._life_at = time.monotonic()
        self._used, self._pulses = 0.0, self._read_pulses()

    def look(self, *, last: bool = False) -> None:
        now = time.monotonic()
        self._output(last=last)
        with contextlib.nullcontext() if last else contextlib.suppress(OSError):  # it is looked at again
            self._changes(now, last=last)
        if now >= self._life_at + LIFE_SECONDS:
            self.look_for_life(now)

    def _changes(self, now: float, *, last: bool) -> None:
        host = self._host
        if host.takes_sync() or last:
            host.sync()
        self._files()
        if last or now >= self._knowledge_at + KNOWLEDGE_SECONDS:
            self._knowledge_at = now
            while host.send_knowledge() and last:
                pass

    def _output(self, *, last: bool) -> None:
        for number, path in self._streams.items():
            while data := _read(path, self._read[number]):
                self._read[number] += len(data)
                self._host.emit_all([{"output": number, "data": data}])
                if not last:
                    break

    def _files(self) -> None:
        """Report what the agent has put into its inbox and its requests. What it has submitted comes after the work."""
        found, unread = [], set[str]()
        for folder in self._host.areas["up"]:
            with unless_of_machine(folder, unread), os.scandir(self._host.root / folder) as inside:
                names = [entry.name for entry in inside]
                found += [f"{folder}/{name}" for name in names if name.endswith(".json") and not name.startswith(".")]
        found += [name for name in self._sent if lies_in(name, unread)]
        if new := sorted(set(found) - self._sent):
            self._host.sync()
            self._host.send_knowledge()
            for name in new:
                for message in file_messages(self._host.root, name):
                    self._host.emit_all([{"file": name, **message}])
        self._sent = set(found)

    def look_for_life(self, now: float) -> None:
        used = 0.0
        with contextlib.suppress(OSError, ValueError):
            guard = json.loads(self._host.guard.read_text("utf-8"))["pid"]
            used = sum(map(_seconds_of, launch_guard.descendants(guard)))
        pulses = self._read_pulses()
        if pulses != self._pulses or used - self._used >= BUSY * (now - self._life_at):
            self._host.emit_all([{"life": True}])
        self._used, self._pulses, self._life_at = used, pulses, now

    def _read_pulses(self) -> Entries:
        with contextlib.suppress(OSError):  # it is read again
            return scan(self._host.root, [self._host.areas["pulses"]])
        return {}


def _read(path: Path, offset: int) -> bytes:
    with contextlib.suppress(OSError), path.open("rb") as file:
        return os.pread(file.fileno(), TAIL, offset)
    return b""


def _seconds_of(pid: int) -> float:
    """Return the processor seconds of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _without_ray() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


def _end_orphans(place: Path, root: Path) -> None:
    """Kill what a launch has left here whose guard was killed."""
    try:
        guard = json.loads((place / launch_guard.GUARD).read_text("utf-8"))
    except (OSError, ValueError):
        return
    if started_at(guard["pid"]) == guard["started"]:
        return  # it is about to end all by itself
    launch_guard.kill_all(place, root)
