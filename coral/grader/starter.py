"""Starts candidates as a user of their own, for a grader that runs as another user.

The starter runs beside the grader, which sends it messages by a socket. It has the rights of the candidates and no
others: a candidate that harms it harms only the later calls of its own grade. Other processes of its user cannot look
into it: it was root, and has become this user without executing another program. Standard library only;
`coral.grader.landlock` executes this text.

A message is a program's arguments, folder and environment, marshalled, with five descriptors: those that the program
gets as 0 to 3, and a socket on which its exit code is answered, as Popen gives it. Closing that socket ends the
program.
"""

from __future__ import annotations

# What `signal` and `socket` are made of, which take 9 ms to import.
import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this to run
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LARGEST = 1 << 17  # bytes of a message
_DESCRIPTORS, _FIRST_UNUSED = 5, 4


def serve(number: int, place: str) -> None:
    """Answer on the socket of this number until the grader closes it. `place`: a folder of this user's, in which each
    program gets a folder for its temporary files."""
    import select

    poll, starter = select.poll(), _Starter(number, place)
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    _signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGCHLD, lambda *_: None)
    for descriptor in (number, wake):
        poll.register(descriptor, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == wake:
                os.read(wake, 4096)
            elif descriptor != number:
                starter.end(descriptor)
                poll.modify(descriptor, 0)
            elif answer := starter.start():
                poll.register(answer, select.POLLIN)
            else:
                _end_all()
                return
        for answer in starter.answer():
            poll.unregister(answer)
            os.close(answer)


class _Starter:
    def __init__(self, number: int, place: str) -> None:
        self._grader, self._place, self._count = _socket.socket(fileno=number), place, 0
        self._running: dict[int, tuple[int, str]] = {}  # by pid: the socket for its exit code, and its folder

    def start(self) -> int:
        """Start the program of the next message. Returns the socket for its exit code; 0 if the grader has ended."""
        space = _socket.CMSG_SPACE(4 * _DESCRIPTORS)
        message, given, _, _ = self._grader.recvmsg(LARGEST, space, _socket.MSG_CMSG_CLOEXEC)
        if not message:
            return 0
        self._count += 1
        folder = f"{self._place}/{self._count}"
        os.mkdir(folder, 0o700)  # noqa: PTH102 - pathlib is slow to import
        *streams, answer = memoryview(given[0][2]).cast("i")
        pid = os.fork()
        if pid == 0:
            _become(marshal.loads(message), streams, folder)
        self._running[pid] = answer, folder
        for descriptor in streams:
            os.close(descriptor)
        return answer

    def end(self, answer: int) -> None:
        """End the program whose exit code is answered on the socket `answer`, which the grader has closed."""
        for pid, (channel, _) in self._running.items():
            if channel == answer:
                _kill(pid)

    def answer(self) -> Iterator[int]:
        """Answer the exit codes of the programs that have ended. If no other program runs, first end all processes that
        they have left. Yields the sockets, which are not needed any longer."""
        for pid, code in _ended():
            if pid not in self._running:
                continue
            answer, folder = self._running.pop(pid)
            if not self._running:
                _end_all()
            _write(answer, code)
            yield answer
            os.spawnv(os.P_WAIT, "/bin/rm", ["rm", "-rf", "--", folder])


def _become(asked: tuple[list[str], str, dict[str, str]], streams: Sequence[int], folder: str) -> None:
    argv, cwd, env = asked
    try:
        os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.closerange(_FIRST_UNUSED, os.sysconf("SC_OPEN_MAX"))
        for signal in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and a program would inherit that
            _signal.signal(signal, _signal.SIG_DFL)
        os.chdir(cwd)
        os.execve(argv[0], argv, {**env, "HOME": folder, "TMPDIR": folder})
    except OSError as error:
        os.write(2, f"cannot start {argv[0]}: {error}\n".encode())
    finally:
        os._exit(126)


def _ended() -> Iterator[tuple[int, int]]:
    """Yield the children that have ended, with their exit codes."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, os.waitstatus_to_exitcode(status)


def _kill(pid: int) -> None:
    os.kill(pid, _signal.SIGKILL)  # it may have no group yet
    try:
        os.killpg(pid, _signal.SIGKILL)
    except OSError:
        return


def _end_all() -> None:
    """Send SIGKILL to all other processes of this user: no program that the grader waits for is running."""
    try:
        os.kill(-1, _signal.SIGKILL)
    except OSError:  # there is nothing else
        return


def _write(answer: int, code: int) -> None:
    try:
        os.write(answer, b"%d\n" % code)
    except OSError:  # the grader waits no longer
        return
