"""Starts an interpreter before it is known what it will run. By then it has done its imports and is in its control
group, which the kernel may take ten milliseconds to let it into.

An interpreter runs one program. Like every child it is blocked on a pipe until the supervisor has recorded it, and
exits when the pipe is closed.
"""

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coral.processes import cgroup, rlimit_tag, usage
from coral.processes.call_filter import filtered
from coral.processes.process import HeldChild, Program, open_output
from coral.processes.process_tree import TAG, identify
from coral.processes.result_channel import ResultChannel
from coral.processes.seal import UNSEALED, Sandbox


@dataclass(frozen=True, slots=True)
class Interpreter:
    """How to start an interpreter in advance. `argv`: the command that waits for an order on its standard input; one
    argument is added, the control group to enter or "". `order`: makes the text that tells it which program to run, and
    which variables to set besides those it was started with. `hands_over`: whether it returns its result by a result
    channel."""

    argv: tuple[str, ...]
    order: Callable[[Program, Mapping[str, str], ResultChannel | None], str]
    hands_over: bool = False


def python_order(program: Program, env: Mapping[str, str], channel: ResultChannel | None) -> str:
    """Return the order for `coral.grading.runner.wait`, as JSON. Of the program's arguments it holds only the last."""
    streams = [str(program.stdin), str(program.stdout), str(program.stderr)]
    given = [] if channel is None else list(channel.given)
    order = {"argument": program.argv[-1], "env": env, "cwd": str(program.cwd), "streams": streams, "channel": given}
    return json.dumps(order)


def shell_order(program: Program, env: Mapping[str, str], _: ResultChannel | None) -> str:
    """Return the order for a shell: a script in braces, so that a shell that receives only its beginning runs
    nothing."""
    variables = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    stdin, stdout, stderr = (shlex.quote(str(path)) for path in (program.stdin, program.stdout, program.stderr))
    start = f"exec {shlex.join(program.argv)} <{stdin} >>{stdout} 2>>{stderr}"
    return "\n".join(("{", *variables, f"cd {shlex.quote(str(program.cwd))} || exit", "unset OLDPWD", start, "}"))


# It reads its order from the descriptor that it has: another user may not open the pipe again by a path.
SHELL = Interpreter(
    ("/bin/sh", "-c", f'if [ "$1" ]; then {cgroup.ENTER}; fi 2>/dev/null; exec /bin/sh', "sh"), shell_order
)


# Enters the control group before the sandbox begins: nothing inside may write to the group.
_ENTER_FIRST = f'if [ "$1" ]; then {cgroup.ENTER}; fi 2>/dev/null; shift; exec "$@"'


class PrestartedInterpreter:
    def __init__(
        self, interpreter: Interpreter, env: Mapping[str, str], tag: str, group: str = "", sandbox: Sandbox = UNSEALED
    ) -> None:
        """Start the interpreter. `tag` and `group`: those of the launch that will use it. OSError if that fails."""
        self._sandbox = sandbox
        self.tag = tag
        self.group = group
        self._order = interpreter.order
        self._env = {**env, TAG: tag}
        reading, self._pipe = os.pipe()
        try:
            self._channel = ResultChannel() if interpreter.hands_over else None
        except OSError:
            os.close(reading)
            os.close(self._pipe)
            raise
        null = subprocess.DEVNULL
        try:
            with self._line(interpreter.argv) as (line, given):
                self._child = subprocess.Popen(
                    line,
                    stdin=reading,
                    stdout=null,
                    stderr=null,
                    cwd="/",
                    env=self._env,
                    start_new_session=True,
                    pass_fds=(*given, *(self._channel.given if self._channel else ())),
                )
        except BaseException:
            os.close(self._pipe)
            if self._channel is not None:
                self._channel.close()
            raise
        finally:
            os.close(reading)
            if self._channel is not None:
                self._channel.close_given()
        rlimit_tag.put(self._child.pid, tag)
        usage.end_first(self._child.pid, usage.GRADE)

    @contextlib.contextmanager
    def _line(self, argv: Sequence[str]) -> Iterator[tuple[list[str], tuple[int, ...]]]:
        """Yield the command line to start, and the descriptors that the process needs."""
        if self._sandbox is UNSEALED:
            yield [*argv, self.group], ()  # it enters its group while it is doing its imports
            return
        sealed = self._sandbox.line([*argv, ""], Path("/"))
        with filtered(sealed, self._sandbox.calls) as (line, given):
            yield ["/bin/sh", "-c", _ENTER_FIRST, "sh", self.group, *line], given

    def is_ready(self) -> bool:
        return self._child.poll() is None

    def hold(self, program: Program) -> HeldChild:
        """Have the interpreter run this program once the child is released, as `process.start`. The program must have
        the same tag. OSError where the interpreter has ended; it is closed then."""
        try:
            with open_output(program.stdout), open_output(program.stderr):
                pass
            identity = identify(self._child.pid)
            if identity is None:
                raise OSError("it ended before it could be identified")
        except OSError:
            self.close()
            raise
        env = {**program.env, TAG: self.tag, "PWD": str(program.cwd)}
        changed = {name: value for name, value in env.items() if self._env.get(name) != value}
        order = self._order(program, changed, self._channel)
        pipe, self._pipe = self._pipe, -1
        channel, self._channel = self._channel, None
        user = 0 if self._sandbox.user is None else self._sandbox.user.number
        identity = replace(identity, group=self.group, sealed=self._sandbox.has_namespace, user=user)
        return HeldChild(self._child, pipe, identity, order, channel)

    def close(self) -> None:
        """End the interpreter, unless `hold` has handed it over."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
            self._child.wait()
            cgroup.remove(self.group)
            if self._channel is not None:
                self._channel.close()
