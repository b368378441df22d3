"""Starts a Python interpreter before it is known what it will run: when that is known, its imports are done.

It is used once. Like every child it is blocked on a pipe until the supervisor has recorded it, and exits when the pipe
is closed.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from coral.processes import rlimit_tag
from coral.processes.process import HeldChild, Program, open_output
from coral.processes.process_tree import TAG, identify


class PrestartedInterpreter:
    def __init__(self, argv: Sequence[str], env: Mapping[str, str], tag: str) -> None:
        """`argv`: what reads from standard input, as JSON, how to continue (see `coral.grading.runner.wait`). `tag`
        names the launch that it is for. OSError where it cannot be started."""
        self.tag = tag
        self._env = {**env, TAG: tag}
        reading, self._pipe = os.pipe()
        null = subprocess.DEVNULL
        try:
            self._child = subprocess.Popen(
                argv, stdin=reading, stdout=null, stderr=null, cwd="/", env=self._env, start_new_session=True
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(reading)
        rlimit_tag.put(self._child.pid, tag)

    def is_ready(self) -> bool:
        return self._child.poll() is None

    def hold(self, program: Program) -> HeldChild:
        """As `process.start`: the child runs the program, which has the same tag, when it is released. Of its arguments
        it gets the last one."""
        with open_output(program.stdout), open_output(program.stderr):
            pass
        identity = identify(self._child.pid)
        if identity is None:
            self.close()
            raise OSError("it ended before it could be identified")
        env = {**program.env, TAG: self.tag, "PWD": str(program.cwd)}
        order = {
            "argument": program.argv[-1],
            "env": {name: value for name, value in env.items() if self._env.get(name) != value},
            "cwd": str(program.cwd),
            "streams": [str(program.stdin), str(program.stdout), str(program.stderr)],
        }
        pipe, self._pipe = self._pipe, -1
        return HeldChild(self._child, pipe, identity, json.dumps(order))

    def close(self) -> None:
        """End the interpreter, unless `hold` has handed it over."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
            self._child.wait()
