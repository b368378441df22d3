"""The command line: one literal table, and only the chosen command's module is imported.

Agents run `coral eval` thousands of times: nothing but the standard library is imported before the command is known.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import sys

from coral import __version__

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

# name -> (group, one line); the module of that name in this package has add_arguments(parser) and run(args) -> int
COMMANDS = {
    "init": ("task", "make the skeleton of a task that works"),
    "validate": ("task", "check a task and grade its seed, without spending anything"),
    "doctor": ("task", "what this machine has for a fleet, and what is missing"),
    "start": ("run", "start a run of a task and watch it"),
    "attach": ("run", "watch a run that is going on"),
    "stop": ("run", "stop a run and everything it started; or its supervisor alone"),
    "resume": ("run", "go on with a run that was stopped or killed"),
    "tell": ("run", "say something to the agents, at the next good moment"),
    "heartbeat": ("run", "when agents are interrupted and what they are asked: see, change"),
    "status": ("look", "where a run stands: its agents, its best attempt, its budget"),
    "runs": ("look", "list the runs"),
    "log": ("look", "list attempts, best first or newest first"),
    "show": ("look", "one attempt: its score, feedback and change"),
    "transcript": ("look", "what an agent was told, said and did, launch by launch"),
    "replay": ("look", "decide it all again and compare; or see the fleet as it was"),
    "notes": ("look", "what the agents concluded and wrote down"),
    "skills": ("look", "what the agents distilled for reuse"),
    "export": ("look", "bring an attempt to a branch of your repository, or to a patch"),
    "eval": ("agent", "submit the workspace as it is and wait for its grade"),
    "wait": ("agent", "wait for the grade of an earlier submission"),
    "job": ("agent", "long work that survives interrupts: start, list, log, stop, wait"),
    "diff": ("agent", "what changed in this workspace since the last submission"),
    "revert": ("agent", "undo everything since the last submission"),
    "checkout": ("agent", "put this workspace on the state of an attempt"),
}
GROUPS = {
    "task": "Tasks",
    "run": "Runs",
    "look": "Looking",
    "agent": "In an agent's workspace",
}
EXIT_USER_ERROR, EXIT_INTERNAL_ERROR, EXIT_INTERRUPTED = 1, 3, 130


def program() -> NoReturn:
    """The command `coral`: `main`, and an end without ceremony. To take an interpreter apart costs ten milliseconds of
    every eval, and there is nothing in it that its owner has not closed."""
    gc.set_threshold(50_000)  # what modules are made of is no garbage: by default, loading them stops often to look
    _say_it_somehow()
    code = main()
    with contextlib.suppress(OSError, ValueError):  # what cannot be written was said
        _flush()
    os._exit(code)


def _say_it_somehow() -> None:
    """Where the terminal's encoding lacks a letter, half a table is worse than a question mark in it."""
    for stream in (sys.stdout, sys.stderr):
        # In UTF-8 only half a name that is no text is lacking, and some locales print that as it is.
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or stream.encoding != "utf-8"):
            stream.reconfigure(errors="replace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the one place where an exception becomes a message and an exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        _let_all_signals_interrupt()
        code = _dispatch(words)
        _flush()
        return code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader left (`coral log | head`). Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:  # noqa: BLE001 - the handler at the top of the command line
        if hasattr(error, "hint"):
            return complain(str(error), str(error.hint))
        from workspace.disk import is_disk_problem

        if isinstance(error, OSError) and is_disk_problem(error):
            return complain(f"cannot go on: {error}", "see the disk: free some space, or make it writable")
        from coral.cli.crash import report

        return report(error)


def complain(message: str, hint: str) -> int:
    """Print a user's mistake: what cannot be done and why, then what to do about it. Whatever that quotes, a terminal
    finds nothing in it to obey."""
    controls = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))
    print(f"coral: {message.translate(controls)}", file=sys.stderr)
    if hint:
        print(f"  {hint.translate(controls)}", file=sys.stderr)
    return EXIT_USER_ERROR


def _dispatch(words: list[str]) -> int:
    _check_packages()
    # Inside a git hook GIT_DIR redirects every git we start to the wrong repository.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"coral {__version__}")
        return 0
    name = words.pop(0)
    if name not in COMMANDS:
        return complain(f"cannot run {name!r}: no such command", _nearest(name))
    module = importlib.import_module(f"coral.cli.commands.{name}")
    from coral.cli.parser import Parser

    parser = Parser(prog=f"coral {name}", description=f"{COMMANDS[name][1].capitalize()}.")
    module.add_arguments(parser)
    try:
        args = parser.read(words)
    except SystemExit:
        return 0  # argparse has printed a help; all that it complains of is a CoralError
    code: int = module.run(args)
    return code


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as it is where whoever started us had closed it
            stream.flush()


def _let_all_signals_interrupt() -> None:
    """SIGTERM and a closed terminal end a command as Ctrl-C does, which cleans up what it had begun to write; and a
    second of them does not interrupt that."""
    import signal

    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = tuple(each for each in ends if signal.getsignal(each) in (signal.SIG_DFL, signal.default_int_handler))

    def ignore(*_: object) -> None:
        pass  # with a handler: an ignored one would be inherited

    def interrupt(*_: object) -> None:
        for each in numbers:
            signal.signal(each, ignore)
        raise KeyboardInterrupt

    for number in numbers:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(number, interrupt)


def _overview() -> str:
    lines = ["coral: a supervisor for fleets of coding agents on one optimization problem", ""]
    lines += ["usage: coral COMMAND ...      coral COMMAND --help", ""]
    for group, title in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {name:<11} {text}" for name, (of, text) in COMMANDS.items() if of == group]
        lines.append("")
    return "\n".join(lines).rstrip()


def _nearest(name: str) -> str:
    import difflib

    near = [each for each in COMMANDS if each.startswith(name)] or difflib.get_close_matches(name, COMMANDS, n=1)
    return f"did you mean `coral {near[0]}`?" if near else "`coral --help` lists the commands"


def _check_packages() -> None:
    """Refuse to start when a folder of the user's is found in the place of one of our packages.

    find_spec names the intruder without executing it.
    """
    from importlib.util import find_spec

    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    for room in ("attempts", "heartbeats", "workspace"):
        spec = find_spec(room)
        found = (spec.origin or "a folder without code") if spec else "nothing"
        if found != os.path.join(home, room, "__init__.py"):  # noqa: PTH118
            from coral.errors import CoralError

            raise CoralError(
                f"cannot start: the package {room!r} is not Coral's own, but {found}",
                "start `coral` from another folder, or take that folder out of PYTHONPATH",
            )
