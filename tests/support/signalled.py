"""Commands that get a signal in the middle of something. Run as a program: it has everything loaded, and forks.

A line on standard input is one command, a JSON object: its words `argv`, its folder `cwd`, its variables `env`; `at`,
the place at which it gets the signal `number`, alone or (`group`) with its whole process group, as a terminal does it;
`again`, after how many seconds it gets another one, if at all. A place is a call to the system, before or after it, by
the function of ours that makes it. When the command has ended, a line tells its exit status, and the places it came to.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import coral.cli.commands.eval
import coral.cli.commands.resume
import coral.cli.commands.start
import coral.cli.commands.stop
import coral.cli.commands.wait
import coral.cli.ui.live
import coral.cli.ui.summary
import coral.runs.create
import coral.runs.detach
import coral.supervisor.loop
from coral.cli import program
from heartbeats.render import PROMPTS, _shipped
from workspace.git import load

HOME = str(Path(coral.cli.commands.eval.__file__).parents[3])
# What only asks, and of which there is a lot.
IDLE = {"fspath", "get_ident", "allocate_lock", "_path_normpath", "text_encoding", "stat", "lstat", "getpid", "getcwd"}
IDLE |= {"fileno", "fstat", "isatty", "get_terminal_size", "is_dir", "monotonic", "time_ns", "geteuid", "statvfs"}
IDLE |= {"seek", "WIFSTOPPED", "waitstatus_to_exitcode", "acquire", "release", "open_code", "access"}
SYSTEM = ("posix", "_posixsubprocess", "fcntl", "select", "_io", "io", "time", "_thread", "_sqlite3", "_signal")


def trace(reach: Callable[[str], None]) -> Callable[[FrameType, str, Any], None]:
    """Return a profile function that reports each place when it is reached for the first time."""
    seen = set()

    def look(frame: FrameType, event: str, what: Any) -> None:
        if not event.startswith("c_"):
            return
        module = getattr(what, "__module__", None) or type(getattr(what, "__self__", None)).__module__
        if module not in SYSTEM or what.__name__ in IDLE:
            return
        caller: FrameType | None = frame
        while caller is not None and not caller.f_code.co_filename.startswith(HOME):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename == __file__:
            return
        side = "before" if event == "c_call" else "after"
        place = f"{side} {what.__name__} in {Path(caller.f_code.co_filename).stem}.{caller.f_code.co_name}"
        if place not in seen:
            seen.add(place)
            reach(place)

    return look


def run(order: dict[str, Any], tell: int) -> NoReturn:
    """Run the command in this process, which was forked for it."""
    os.setpgid(0, 0)
    os.chdir(order["cwd"])
    os.environ.update(order["env"])
    os.environ["PWD"] = order["cwd"]
    said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for number, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(target, number)

    def reach(place: str) -> None:
        os.write(tell, f"{place}\n".encode())
        if place == order["at"]:
            os.write(tell, b"!\n")
            if order["group"]:
                os.killpg(0, order["number"])
            else:
                os.kill(os.getpid(), order["number"])

    def leave() -> None:
        """A supervisor that the command detaches is another process: who waits for the command's end does without."""
        sys.setprofile(None)
        os.close(tell)

    os.register_at_fork(after_in_child=leave)
    sys.setprofile(trace(reach))
    sys.argv = ["coral", *order["argv"]]
    program()


def fork(order: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        run(order, writing)
    os.close(writing)
    heard = b""
    again = order["again"]
    while piece := os.read(reading, 65536):
        heard += piece
        if again is not None and b"!\n" in heard:
            time.sleep(again)  # the second signal comes at a moment of its own
            os.killpg(pid, order["number"]) if order["group"] else os.kill(pid, order["number"])
            again = None
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    return {"status": os.waitstatus_to_exitcode(status), "places": heard.decode().splitlines()}


def serve() -> None:
    load()
    for path in PROMPTS.glob("*.j2"):
        _shipped().get_template(path.name)  # compiled once, and not in every command
    for line in sys.stdin:
        done = fork(json.loads(line))
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    serve()
