"""The local process of a grade that runs on a cluster: to the supervisor it is a grader like any other.

It has the bridge of the run submit the grade, writes what the grader prints, its beats, its artifacts and its result to
where a local grader writes them, and ends as the grader did. When this process is ended, so is the grade. When the
bridge ends, it waits for the next one. Standard library only, and of that what is quick to import; nothing of Ray.
"""

from __future__ import annotations

import binascii
import os
import time

from coral.cluster import light_json, wire
from coral.cluster.program_end import end_as
from coral.grading import handover

TYPE_CHECKING = False  # as in typing: each import here is paid by every grade on a cluster
if TYPE_CHECKING:
    import _socket
    from typing import Any

RETRY_SECONDS = 0.1  # until the next try to connect to the bridge
REASON = 300  # characters


def wait(group: str) -> None:
    """Wait for an order, see `coral.grading.handover`, and run the grade."""
    handover.wait(group, main, light_json.loads)


def main(spec_path: str, memory: int, notices: int) -> None:
    """Run one grade on the cluster. `spec_path`: a JSON file, see `coral.grading.remote`; `memory`, `notices`: the
    descriptors of a result channel."""
    with open(spec_path, encoding="utf-8") as file:
        spec = light_json.loads(file.read())
    result = _Result(f"{spec['folder']}/{spec['order']['result']}", memory)
    try:
        ended = _Remote(spec).ended()
    except _NotGradedError as error:
        result.write({"void": str(error), "again": error.again})
        os._exit(0)
    _hand_over(spec, ended, result, notices)


class _Result:
    def __init__(self, path: str, memory: int) -> None:
        self._path, self._memory = path, memory

    def write(self, data: dict[str, Any]) -> None:
        self.write_bytes(light_json.dumps(data).encode())

    def write_bytes(self, raw: bytes) -> None:
        handover.hand_over(self._path, self._memory, raw)


class _NotGradedError(Exception):
    """The grade has no result, and the candidate is not to blame. The message says why. `again`: the attempt is to be
    queued again."""

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


class _LostError(Exception):
    """The connection to the bridge has ended."""


class _Remote:
    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec, self._folder = spec, spec["folder"]
        self._order, self._key = spec["order"], os.environ["CORAL_LAUNCH"]
        passed = {name: os.environ[name] for name in spec["passed"] if name in os.environ}
        self._order["env"] = {**passed, **self._order["env"]}
        self._tries, self._seen, self._submitted = 0, 0, ""
        self._uncounted = 0  # tries that were lost and do not count for `max_retries`
        self._began: float | None = None  # when the present try began on a node
        self._place: dict[str, Any] = {}  # that node
        self._checked = time.monotonic()
        self._until = self._checked + spec["wait"]  # when it is lost, or given up if it has not begun
        self._left = 0.0  # how long it may still wait if it has begun and is lost
        self._why = ""  # what the grade waits for, as the bridge says
        self._is_behind = False  # whether other grades of the run are on nodes
        self._last_note = ""

    def ended(self) -> dict[str, Any]:
        """Wait until the grade has ended on a node; return the event that says how. Raises _NotGradedError."""
        while True:
            try:
                connection = wire.connect_lightly(self._spec["bridge"], seconds=5)
                try:
                    return self._graded(connection)
                finally:
                    connection.close()
            except (OSError, _LostError):
                self._check(is_away=True)
                time.sleep(RETRY_SECONDS)

    def _graded(self, connection: _socket.socket) -> dict[str, Any]:
        self._submit(connection)
        connection.settimeout(1)
        lines = _Lines(connection)
        while True:
            message = lines.next()
            if message is None and self._began is not None and time.monotonic() > self._until:
                self._lost("its node told of no end", connection)
            self._check(has_news=message is not None)
            if message is None:
                continue
            if "refused" in message:
                raise _NotGradedError(f"cannot grade on the cluster: {message['refused']}")
            self._why = message.get("waits", self._why)
            self._is_behind = message.get("behind", self._is_behind)
            of = self._tried
            for event in message.get("events", ()):
                if message["of"] != of or self._tried != of:
                    break  # it is of a try that was given up before
                self._seen, self._why = self._seen + 1, ""
                if (ended := self._event(event, connection)) is not None:
                    return ended

    @property
    def _tried(self) -> str:
        """The key under which the grade is submitted now: its launch, and the number of the try."""
        return f"{self._key}/{self._tries + 1}"

    def _submit(self, connection: _socket.socket) -> None:
        spec, self._is_behind = self._spec, False
        message = {
            "submit": self._tried,
            "again": self._submitted == self._tried,
            "seen": self._seen,
            "order": self._order,
            "resources": spec["resources"],
            "began": {**self._place, "ago": time.monotonic() - self._began} if self._began is not None else {},
        }
        self._submitted = self._tried
        connection.sendall(wire.encoded(message))

    def _event(self, event: dict[str, Any], connection: _socket.socket) -> dict[str, Any] | None:
        if "started" in event and self._began is None:
            self._began = time.monotonic()
            self._left = max(self._until - self._began, 0.0)
            self._until = self._began + self._order["timeout"] + wire.SILENT_SECONDS  # the node enforces the timeout
            self._place = {name: event[name] for name in ("started", "node")}
        for name, data in (*event.get("output", {}).items(), *event.get("tails", {}).items()):
            try:
                self._append(name, data)
            except OSError:
                continue  # the disk is full: the event may be the end of the grade
        if "started" in event:
            self._note(f"runs on {event['started']}, process {event['pid']}")
        if "refused" in event:
            raise _NotGradedError(f"cannot grade on the cluster: {event['refused']}")
        if "message" in event:
            self._note(f"Ray says: {event['message']}")
        if "unmade" in event and self._spec["impatient"]:
            raise _NotGradedError(f"cannot grade on the cluster: {_short(event['lost'])}")
        if "lost" in event:
            self._lost(event["lost"], connection, counts=event.get("counts", True))
        ended: dict[str, Any] | None = event.get("ended")
        return ended

    def _append(self, name: str, data: bytes) -> None:
        if name not in (*self._order["streams"], self._order["beats"]):
            return  # the node is not to be trusted with other files of the supervisor's user
        number = self._order["streams"].index(name) + 1 if name in self._order["streams"] else None
        if number is not None:  # a stream that the supervisor has opened, as for a local grader
            view = memoryview(data)
            while view:
                view = view[os.write(number, view) :]
            return
        with open(f"{self._folder}/{name}", "ab") as file:
            file.write(data)

    def _lost(self, reason: str, connection: _socket.socket | None, *, counts: bool = True) -> None:
        """Submit the grade again, under the key of the next try; without a connection, once there is one. Raises
        _NotGradedError after `max_retries` tries. One that does not count took its time from that for waiting, so that
        all ends in time."""
        self._tries += 1
        self._uncounted += not counts
        self._note(f"try {self._tries} was lost: {reason}")
        if self._tries - self._uncounted > self._spec["max_retries"]:
            last = f"{self._tries} times; the last time: {_short(reason)}"
            raise _NotGradedError(f"the cluster lost its grade {last}")
        if self._began is not None:
            self._until = (time.monotonic() if counts else self._began) + self._left
        self._seen, self._began = 0, None
        if connection is not None:
            self._submit(connection)

    def _check(self, *, has_news: bool = False, is_away: bool = False) -> None:
        """Raise _NotGradedError if the time for waiting is over, or if the spec is `impatient` and the grade waits for
        the cluster, or for a node that nobody adds. Time in which the cluster cannot be used does not count: the
        supervisor waits as well. `is_away`: there is no bridge now, and a grade that has begun waits for the next one,
        AWAY_SECONDS at most; then its try is lost."""
        now = time.monotonic()
        passed, self._checked = now - self._checked, now
        if trouble := wire.trouble(self._spec["bridge"]):
            self._until += passed
        if why := trouble or self._why:
            self._note(f"waits: {why}")
        if is_away and self._began is not None and now > self._until + wire.AWAY_SECONDS:
            self._lost("its node told of no end", None)
        vain = trouble if self._spec["grows"] else why
        # The news may be of its end, and so may those of the next bridge.
        is_over = now > self._until and not ((has_news or is_away) and self._began is not None)
        if (vain and self._spec["impatient"]) or is_over:
            again = self._is_behind and self._began is None  # it waited for its turn, and may do so once more
            raise _NotGradedError(f"cannot grade on the cluster: {why or self._not_begun()}", again=again)

    def _not_begun(self) -> str:
        """Return why it has not begun where the bridge gives no reason. Ray does not say whether a grade waits for room
        or for its environment."""
        made = ", or its environment was not made in time" if self._order["environment"] else ""
        return f"no node had room for it in time{made}"

    def _note(self, text: str) -> None:
        """Append a line to GRADE_LOG, which the operator finds beside what the grader prints."""
        if text != self._last_note:
            try:
                with open(f"{self._folder}/{wire.GRADE_LOG}", "a", encoding="utf-8") as file:
                    file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
            except OSError:
                return  # the disk is full, which must not end the grade
            self._last_note = text


def _short(reason: str) -> str:
    """Cut a reason to one line of REASON characters: its beginning, and its end, where programs say what failed."""
    line = " ".join(reason.split())
    half = (REASON - 5) // 2
    return line if len(line) <= REASON else f"{line[:half]} ... {line[-half:]}"


class _Lines:
    def __init__(self, connection: _socket.socket) -> None:
        self._connection, self._held = connection, b""

    def next(self) -> dict[str, Any] | None:
        """Return the next message; None while there is none. Raises _LostError when the connection has ended."""
        while b"\n" not in self._held:
            try:
                piece = self._connection.recv(1 << 20)
            except TimeoutError:
                return None
            if not piece:
                raise _LostError
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        return wire.decoded(line)


def _hand_over(spec: dict[str, Any], ended: dict[str, Any], result: _Result, notices: int) -> None:
    """Write the artifacts and the result, then end this process with the exit code or signal of the grader."""
    for name, data in ended["artifacts"].items():
        if "/" not in name and not name.startswith("."):
            try:
                with open(f"{spec['folder']}/artifacts/{name}", "wb") as file:
                    file.write(data)
            except OSError:
                continue
    try:  # noqa: SIM105 - contextlib is slow to import
        # A command answers by a file, which a candidate may have written: its channel is open, as on this machine.
        os.write(notices, (ended["notices"] if spec["order"]["spec"] else "a command").encode())
    except OSError:
        pass
    code = ended["code"]
    if code is None:
        result.write({"failed": f"the grader took longer than {spec['order']['timeout']:g} seconds"})
        os._exit(0)
    if ended["result"] is not None:
        result.write_bytes(binascii.a2b_base64(ended["result"]))
    end_as(code)
