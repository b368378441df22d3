"""Forks the guards of a worker on a node: each begins with its modules loaded, which takes longer than a small grade.

A forked guard differs from one that is started in its command line alone: this process has one thread, sets no signal
handler, has the environment that a guard gets, and closes for a guard what is its own. It ends with its worker, and
removes the modules of Coral, which all guards of that have used.
"""

import os
import signal
import socket
from pathlib import Path

from coral.cluster import guard
from coral.cluster.guard_protocol import BEGUN, GUARD
from coral.grader.remove_tree import remove_tree

MOST = 1 << 16  # bytes of a path, which is far shorter


def main(modules: str) -> None:
    """Fork a guard for each message on standard input, a socket, until the worker has closed its end. A message is the
    folder of a grade, with three descriptors: the file of the guard's errors, and its two pipes, see `guard.main`. Each
    is answered by BEGUN, or by another byte if the guard could not begin. `modules`: in a folder of this process, which
    other workers remove like that of a guard if this process is killed with its worker."""
    own = Path(modules).parent
    guard.write(own / GUARD, guard.own_identity())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody learns how a grader has ended
    worker = socket.socket(fileno=0)
    while True:
        place, given, _, _ = socket.recv_fds(worker, MOST, 3, socket.MSG_CMSG_CLOEXEC)
        if not place:
            remove_tree(own)
            return
        try:
            starter = os.fork()
        except OSError:  # there are too many processes
            worker.send(b"-")
            return
        if starter == 0:
            break
        for descriptor in given:
            os.close(descriptor)
        _, status = os.waitpid(starter, 0)
        worker.send(b"-" if status else BEGUN)
    worker.detach()
    errors, alive, done = given
    _take_streams(errors)
    guard.main(os.fsdecode(place), alive, done)
    os._exit(0)  # else Python frees all it has loaded: in a fork that copies the memory first, for 10 ms


def _take_streams(errors: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for descriptor, stream in ((null, 0), (errors, 1), (errors, 2)):
        os.dup2(descriptor, stream)
    os.close(null)
    os.close(errors)
