"""The local process of a launch that runs on a node: to the supervisor it is an agent's program like any other.

It makes the node's mirror as the run's folder is, has the program start there, prints what the program prints, passes
signals on, and ends as the program did. What the agent submits, asks for, writes and changes comes back into the run's
folder while the program runs, and what is published goes to the node. When this process is ended, so is the program.
Standard library only; it imports nothing of Ray.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attempts.files import write_bytes
from coral.cluster import wire
from coral.cluster.bridge import LEASE_SECONDS
from coral.cluster.growing import Given
from coral.cluster.knowledge_sync import MOST_AT_ONCE, KnowledgeFolder, locked, size_of, take_here
from coral.cluster.mirror import Message, Receiver, is_gone, is_of_machine, lies_in, messages, scan, unless_of_machine
from coral.cluster.orders import DisconnectedError, Link, MessageLines, send
from coral.cluster.program_end import end_as

NOT_RUN = 94  # that of one which never began
RETRY_SECONDS = 0.1
DISK_SECONDS = 0.5  # after which an event is handled again that this machine could not keep
ANSWERS_SECONDS, GIVEN_SECONDS = 0.03, 0.5  # between two looks at answers, and at all else that goes to the node
ASKED_SECONDS = 10.0  # after a submission or request: for so long its sender looks for an answer as often as that
IDLE_SECONDS = 0.25  # between two looks at answers afterwards
WAITING_SECONDS = 5.0  # between two signs of life of a launch whose program has not started
_ASKED = ("launch", "number", "before", "run", "agent", "areas", "version", "resources", "labels", "prefers")
REASON = 500  # characters
NAME_BYTES = 100  # longest name of a submission or request, as in `coral.supervisor.inbox`
LOST_SECONDS = 3.0  # from the start of a program until its launch counts as lost
LEASE_MARGIN = 30.0  # seconds after the lease of a launch, until it counts as lost
HOST_NAMES = (  # variables that name places of a machine: a program has those of its node
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "HOSTNAME", "VIRTUAL_ENV"),
    *("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
)


def main(spec_path: str) -> None:
    """Run one launch on the cluster. `spec_path`: a JSON file, see `coral.agent_setup.remote`."""
    launch = RemoteLaunch(json.loads(Path(spec_path).read_text("utf-8")))
    waking, woken = os.pipe()
    for pipe in (waking, woken):
        os.set_blocking(pipe, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    try:
        end_as(launch.run(waking))
    except NotRunError as error:
        os.write(2, f"{error}\n".encode())
        end_as(error.code)


class NotRunError(Exception):
    """The launch did not run to its end on a node."""

    def __init__(self, message: str, code: int = NOT_RUN) -> None:
        super().__init__(message)
        self.code = code


class RemoteLaunch:
    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec, self._areas = spec, spec["areas"]
        self._root, self._bridge = Path(spec["root"]), Path(spec["bridge"])
        self._receiver = Receiver(self._root, Path(spec["aside"]), self._areas["own"], folders=self._areas["own"])
        self._knowledge = KnowledgeFolder(self._root / self._areas["knowledge"])
        self._link = Link()
        self._node = _Node(spec)
        self._state = Given(self._root, self._areas)
        self._seen, self._is_begun, self._asked_until = 0, False, 0.0
        self._until, self._checked = time.monotonic() + spec["wait"], time.monotonic()
        self._heard = time.monotonic()  # when the bridge was last there
        self._started: float | None = None  # when the program was started
        self._why, self._touched, self._place = "", float("-inf"), ""
        self._events, self._failed_at = deque[dict[str, Any]](), float("-inf")  # events that have come, from `_seen` on
        self._due: list[Message] = []  # answers that were not posted yet
        self._taken = set[str]()  # files of the node's inbox and requests that the supervisor has not removed yet

    def run(self, waking: int) -> int:
        """Run the launch; return the exit code of the program, negative for a signal. Raises NotRunError."""
        while True:
            try:
                with _connection(self._bridge) as connection:
                    return self._connected(connection, waking)
            except DisconnectedError:
                self._link.disconnect()
                self._check()
                self._take_signals(waking)
                time.sleep(RETRY_SECONDS)
            except OSError as error:  # the node would not get all that it needs
                raise NotRunError(f"cannot read what its node needs: {error}") from error

    def _connected(self, connection: socket.socket, waking: int) -> int:
        spec = self._spec
        asked = {name: spec[name] for name in _ASKED}
        send(connection, {**asked, "seen": self._seen, "began": self._is_begun})
        self._link.connect(connection)
        lines = MessageLines(connection)
        answers_at = given_at = 0.0
        while True:
            watched: list[Any] = [connection, waking]
            pause = ANSWERS_SECONDS if time.monotonic() < self._asked_until else IDLE_SECONDS
            ready, _, _ = select.select(watched, [], [], pause)
            self._heard = time.monotonic()
            if waking in ready:
                self._take_signals(waking)
            for message in lines.read() if connection in ready else ():
                self._take(message)
            if (code := self._handle_all()) is not None:
                return code
            self._check()
            now = time.monotonic()
            if self._is_begun and now >= answers_at + pause:
                answers_at = now
                is_due = now >= given_at + GIVEN_SECONDS
                given_at = now if is_due else given_at
                with contextlib.suppress(OSError):  # it is looked at again
                    self._give(all_of_it=is_due)
            self._link.pump()

    # What comes.

    def _take(self, message: dict[str, Any]) -> None:
        if "refused" in message:
            raise NotRunError(f"cannot run on the cluster: {message['refused']}")
        if "lost" in message:
            reason = " ".join(message["lost"].split())[:REASON]
            raise self._lost(f"its node was lost: {reason}")
        self._why = message.get("waits", self._why)
        self._place = message.get("node", self._place)
        self._link.taken(message.get("taken", 0))
        for number, event in enumerate(message.get("events", ()), message.get("at", 0)):
            if number == self._seen + len(self._events):  # one before it has come already
                self._events.append(event)

    def _handle_all(self) -> int | None:
        """Handle the events that have come; return the exit code after the last one. One that this machine cannot keep,
        as on a full disk, is handled again later, and all after it waits: the node keeps what it was not told of. One
        that has no place here is left out. OSError where this machine lacks what the launch begins with."""
        seen = self._seen
        while self._events and time.monotonic() >= self._failed_at + DISK_SECONDS:
            try:
                code = self._handle(self._events[0])
            except OSError as error:
                if is_of_machine(error):
                    self._failed_at = time.monotonic()
                    break
                if "ready" in self._events[0]:
                    raise
                code = None
            if code is not None:
                return code
            self._events.popleft()
            self._seen += 1
        if self._seen > seen:
            self._link.received(self._seen)
        return None

    def _lost(self, reason: str) -> NotRunError:
        """Return the error of a launch whose node was lost, and say so in a file: an exit code could be the program's.
        The next begins at once, so one that had only begun waits a little; one that never ran counts as a crash."""
        if self._started is None:
            return NotRunError(f"cannot run on the cluster: {reason}")
        time.sleep(max(self._started + LOST_SECONDS - time.monotonic(), 0.0))
        with contextlib.suppress(OSError):  # then it counts as a crash
            write_bytes(Path(self._spec["lost"]), str(self._spec["number"]).encode(), durable=False)
        return NotRunError(reason)

    def _handle(self, event: dict[str, Any]) -> int | None:
        if "ready" in event:
            self._begin(event["ready"])
        elif event.get("output") in (1, 2):  # the node is not to be trusted with other descriptors of this process
            while data := event["data"]:
                event["data"] = data[os.write(event["output"], data) :]
        elif "file" in event:
            with contextlib.suppress(ValueError):  # its name is none
                self._take_file(event)
        elif "apply" in event:
            self._receiver.apply()
        elif "knowledge" in event:
            # ValueError: it leads elsewhere.
            with unless_of_machine(), contextlib.suppress(ValueError), locked(self._bridge):
                take_here(self._knowledge, event, self._spec["agent"])
        elif "life" in event:
            self._touch()
        elif "ended" in event:
            if "problem" in event["ended"]:  # the next launch is to begin on another node
                _keep_place(self._spec, "", self._spec["number" if self._is_begun else "before"])
            else:  # if there is a problem, the mirror may have what did not come
                self._link.post_first({"received": True})
            return _code(event["ended"])
        elif "started" in event:
            self._started = time.monotonic()
        else:
            with contextlib.suppress(ValueError):  # the node is not to be trusted with other paths
                self._receiver.take(self._node.moved_back(event))
        return None

    def _begin(self, ready: dict[str, Any]) -> None:
        """Make the mirror as the run's folder is, and start the program there."""
        self._node.ready = ready
        self._touch()  # the file is there before all is sent, so both sides have it
        own, prompt = scan(self._root, self._areas["own"]), self._node.prompt()
        start = {"start": self._node.start()}
        _keep_place(self._spec, self._place, self._spec["number"])
        self._knowledge.known = dict(ready["knowledge"])
        has = {name: entry for name, entry in ready["has"].items() if lies_in(name, self._areas["own"])}
        given = {name: entry for name, entry in ready["has"].items() if name not in has}
        work = self._node.messages(messages(self._root, has, own))
        orders: list[Iterable[Message]] = [
            [{"had": own}] if ready["keeps"] else work,
            self._state.all(given),
            [{"apply": True}],
        ]
        while news := self._knowledge.changed():
            orders.append(news)
            if size_of(news) <= MOST_AT_ONCE:
                break  # that was all of it: what has changed since then is sent later
        orders += [self._state.answers(), [prompt, {"apply": True}, start]]
        for some in orders:  # only now: what this machine cannot read for a while is read again from the beginning
            self._link.post(some)
        self._is_begun = True
        self._why = ""

    def _take_file(self, event: dict[str, Any]) -> None:
        """Put a submission or a request into its place, as the agent's own command would, unless it was answered."""
        name = event["file"]
        folder, _, last = name.rpartition("/")
        if "put" not in event or folder not in self._areas["up"] or not _is_plain(last):
            return
        self._asked_until = time.monotonic() + ASKED_SECONDS
        if not (self._root / self._areas["up"][folder] / last).exists():
            with contextlib.suppress(FileExistsError):
                write_bytes(self._root / folder / last, event["data"], durable=True, new=True)
        self._taken.add(name)  # only now: what is not there counts as taken by the supervisor

    # What goes.

    def _give(self, *, all_of_it: bool) -> None:
        """Send the node what is new in the run's folder: answers at each call, after the records that they may refer
        to."""
        self._due += self._answers()
        is_idle = not self._link.has_waiting()
        if self._due or (all_of_it and is_idle):
            self._link.post(self._state.changes())
            if is_idle:  # else versions of a file that changes again and again would be held for a node that is slow
                self._link.post(self._knowledge.changed())
            self._link.post([*self._due, {"apply": True}])
            self._due = []

    def _give_first(self) -> None:
        """Send the node what was published, before all that waits, as far as this machine can read it now."""
        self._due += self._answers()
        changes = self._state.changes()
        try:
            for order in changes:
                self._link.post_first(order)
        finally:
            self._link.post(changes)  # what is left
        self._due.append({"apply": True})
        while self._due:
            self._link.post_first(self._due.pop(0))

    def _answers(self) -> list[Message]:
        """Return the new answers of the supervisor, and what it has taken out of the agent's inbox."""
        answers = self._state.answers()
        gone = {name for name in self._taken if is_gone(self._root / name)}
        self._taken -= gone
        return [*answers, *({"remove": name} for name in sorted(gone))]

    def _take_signals(self, waking: int) -> None:
        with contextlib.suppress(BlockingIOError):
            for number in os.read(waking, 64):
                if not self._is_begun:
                    raise NotRunError("it was ended before it began", -number)
                # As on this machine, `coral eval` sees the record that was published before the signal.
                try:
                    self._give_first()
                except OSError:
                    pass  # this machine is in trouble, and the signal goes on
                finally:
                    self._link.post_first({"signal": number})
                if number != signal.SIGINT:  # it may be killed soon
                    self._link.post([{"sync": True}])

    # Waiting.

    def _check(self) -> None:
        """Raise NotRunError when the time for waiting is over. Time in which the cluster cannot be used counts only
        for a launch that has begun: by then its node has ended it."""
        now = time.monotonic()
        passed, self._checked = now - self._checked, now
        trouble = wire.trouble(self._bridge)
        if self._started is None and now > self._touched + WAITING_SECONDS:
            self._touch()
        if self._is_begun:
            if now > self._heard + LEASE_SECONDS + LEASE_MARGIN:
                raise self._lost(trouble or "nothing was heard of it")
            return
        if trouble:
            self._until += passed
        if now > self._until:
            why = trouble or self._why or "no node had room for it in time"
            raise NotRunError(f"cannot run on the cluster: {why}")

    def _touch(self) -> None:
        """Give a sign of life: the supervisor sees that the file of the agent's beats has changed."""
        self._touched = time.monotonic()
        with contextlib.suppress(OSError):
            handle = os.open(self._spec["beats"], os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            os.utime(handle)
            os.close(handle)


def _connection(bridge: Path) -> socket.socket:
    try:
        return wire.connect(bridge, seconds=5)
    except OSError as error:
        raise DisconnectedError from error


class _Node:
    """Changes what a program is started with: paths of the run and of this machine become paths of the node."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec, self.ready = spec, dict[str, Any]()

    def moved(self, text: str) -> str:
        """Return a text with the paths of the node in place of those of the run and of this Python."""
        return text.replace(self._spec["root"], self.ready["root"]).replace(self._spec["python"], self.ready["python"])

    def messages(self, found: Iterable[Message]) -> Iterator[Message]:
        """Return the messages; links to the user's own files, such as a login, lead to those of the node's user."""
        home = self.ready["env"].get("HOME")

        def moved(message: Message) -> Message:
            if "link" in message and home and message["to"].startswith(f"{self._spec['home']}/"):
                return {**message, "to": home + message["to"].removeprefix(self._spec["home"])}
            return message

        return map(moved, found)  # which goes on after an OSError, as a generator does not

    def moved_back(self, message: Message) -> Message:
        home = self.ready["env"].get("HOME")
        if "link" in message and home and message["to"].startswith(f"{home}/"):
            return {**message, "to": self._spec["home"] + message["to"].removeprefix(home)}
        return message

    def prompt(self) -> Message:
        path = self._spec["stdin"]
        text = Path(self._spec["root"], path).read_text("utf-8")
        return {"put": path, "data": self.moved(text).encode(), "at": 0, "mode": 0o600, "time": time.time_ns()}

    def start(self) -> dict[str, Any]:
        spec, root, own = self._spec, self.ready["root"], self.ready["env"]
        kept = {name for name in os.environ if name not in HOST_NAMES and not name.startswith("RAY_")}
        env = {name: self.moved(os.environ[name]) for name in kept}
        path = os.pathsep.join((str(Path(self.ready["python"]).parent), own.get("PATH", os.defpath)))
        env = {**env, **own, "PATH": path, "PWD": f"{root}/{spec['cwd']}", "CORAL_LAUNCH": spec["tag"]}
        return {
            "argv": [self.moved(word) for word in spec["argv"]],
            "env": env,
            "cwd": f"{root}/{spec['cwd']}",
            **{name: f"{root}/{spec[name]}" for name in ("stdin", "stdout", "stderr")},
        }


def _is_plain(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".") and len(os.fsencode(name)) <= NAME_BYTES


def _keep_place(spec: dict[str, Any], node: str, launch: int) -> None:
    """Keep where the agent's last launch has begun, and its number: the next one is to find its mirror there. `node`:
    empty if the next one is to begin on any node."""
    with contextlib.suppress(OSError):
        write_bytes(Path(spec["kept"]), json.dumps({"node": node, "launch": launch}).encode(), durable=False)


def _code(ended: dict[str, Any]) -> int:
    if "problem" in ended:
        raise NotRunError(f"cannot run on its node: {ended['problem']}")
    return int(ended["code"])
