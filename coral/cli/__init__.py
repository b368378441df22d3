"""The command line: a table of all commands; only the module of the chosen command is imported.

Agents run `coral eval` thousands of times, so nothing but the standard library is imported before the command is known.
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
    from types import ModuleType
    from typing import NoReturn

    from coral.cli.parser import Parser

# name -> (group, one line, what follows the name in an example)
# coral/cli/commands/<name>.py has add_arguments(parser) and run(args) -> int
COMMANDS = {
    "init": ("task", "make the skeleton of a task that works", "my-task"),
    "import": ("task", "make a task from one of another system: docs/import.md", "their-task my-task"),
    "examples": ("task", "list the tasks that come along, or copy one", "copy min_max_distance my-points"),
    "validate": ("task", "check a task and grade its seed, without spending anything", "my-task"),
    "audit": ("task", "attack a task's grader, and say what got through", "my-task"),
    "doctor": ("task", "what this machine has for a fleet, and what is missing", "my-task"),
    "start": ("run", "start a run of a task and watch it", "my-task agents.count=4 budget.hours=2"),
    "attach": ("run", "watch a run that another process supervises", "--plain"),
    "stop": ("run", "stop a run and everything it started; or its supervisor alone", "--reason 'new grader'"),
    "resume": ("run", "continue a run that was stopped or killed", "budget.hours=4"),
    "tell": ("run", "send the agents a message", "'try fewer restarts' --agent agent-1"),
    "heartbeat": (
        "run",
        "when agents are interrupted and what they are asked: see, change",
        "set redirect --stagnant 3",
    ),
    "set": ("run", "change a budget of the running run", "budget.hours=12"),
    "agent": ("run", "pause, restart, retire, add and change agents", "pause agent-2"),
    "grading": ("run", "hold the queue of attempts, release it, cancel one of them", "cancel 17"),
    "alerts": ("run", "what needs a person: list, acknowledge", "ack"),
    "notify": ("task", "send a test message to everybody whom a task tells of alerts", "test my-task"),
    "chat": ("run", "talk to an agent of a run that stands still, or of a task", "agent-1"),
    "answer": ("run", "answer a question of an agent", "2 'yes, but at most 4 GB'"),
    "status": ("look", "where a run stands: its agents, its best attempt, its budget", "--task my-task"),
    "ui": ("look", "a run in a browser: see it live, and steer it", "--port 8000"),
    "health": ("look", "whether a run is well, as an exit code for cron and containers", "--strict"),
    "cluster": ("look", "the cluster of grades and agents: what it has, what waits why", "--nodes"),
    "watch": ("look", "the signs of life of any long work that uses heartbeats.Pulse", "train.beats"),
    "runs": ("look", "list the runs", "--task my-task"),
    "log": ("look", "list attempts, best first or newest first", "--recent --agent agent-1"),
    "show": ("look", "one attempt: its score, feedback and change", "17 --diff"),
    "lineage": ("look", "who built on whom, as a tree", "17"),
    "compare": ("look", "runs side by side: settings, results, curves", "RUN RUN"),
    "transcript": ("look", "what an agent was told, said and did, launch by launch", "agent-1"),
    "replay": ("look", "repeat every decision and compare; or see the fleet as it was", "--at 1h30m"),
    "notes": ("look", "what the agents concluded and wrote down", "--search gradient"),
    "skills": ("look", "what the agents distilled for reuse", "--read line-search"),
    "report": ("look", "the run as one HTML file, to read, print or send", "-o report.html"),
    "plot": ("look", "the score over time as a picture", "-o curve.svg"),
    "knowledge": ("look", "publish what a run has learned, for later runs", "publish --to team-knowledge"),
    "verify": ("look", "grade an attempt again, strictly, and compare", "17"),
    "export": ("look", "bring an attempt to a branch of your repository, or to a patch", "17"),
    "eval": ("agent", "submit the workspace as it is and wait for its grade", "-m 'a smaller step'"),
    "check": ("agent", "run the task's public check here, without submitting", ""),
    "wait": ("agent", "wait for the grade of an earlier submission", "17"),
    "ask": ("agent", "ask the operator something, and go on meanwhile", "'may I use data/extra.csv?'"),
    "alert": ("agent", "tell the operator what needs a person", "'the data in train/ is truncated'"),
    "job": (
        "agent",
        "long work that survives interrupts: start, list, log, stop, wait",
        "start -m 'a long training' python train.py --epochs 50",
    ),
    "diff": ("agent", "what changed in this workspace since the last submission", ""),
    "revert": ("agent", "undo everything since the last submission", ""),
    "checkout": ("agent", "put this workspace on the state of an attempt", "17"),
    "help": ("help", "a page on a topic: graders, heartbeats, budgets, trust ...", "graders"),
    "completion": ("help", "the completion of these commands for a shell", "bash"),
}
GROUPS = {"task": "Tasks", "run": "Runs", "look": "Looking", "agent": "In an agent's workspace", "help": "Help"}
EXIT_USER_ERROR, EXIT_PENDING, EXIT_INTERNAL_ERROR, EXIT_INTERRUPTED = 1, 2, 3, 130
EXIT_CODES = {
    0: "done",
    EXIT_USER_ERROR: "refused, wrong or not found; two lines say what and why",
    EXIT_PENDING: "not finished (eval, wait, job wait, stop, watch)",
    EXIT_INTERNAL_ERROR: "an error of Coral's own",
    EXIT_INTERRUPTED: "interrupted",
}


def program() -> NoReturn:
    """Run `main` and exit at once: this is the program `coral`. The interpreter is not shut down in order, which would
    cost every eval ten milliseconds: whatever must be closed has been closed by then."""
    # The objects of modules stay for ever, but by default Python stops often to collect garbage while it imports them;
    # one collection among the 110,000 objects that a start imports takes 16 ms.
    gc.set_threshold(200_000)
    _replace_unprintable()
    try:
        code = main()
        with contextlib.suppress(OSError, ValueError):  # a failed write was reported before
            _flush()
        os._exit(code)
    except KeyboardInterrupt:  # the first signal came when the command was over
        os._exit(EXIT_INTERRUPTED)


def _replace_unprintable() -> None:
    """Print a question mark for a character that the encoding of the output lacks, rather than fail in the middle of a
    table."""
    for stream in (sys.stdout, sys.stderr):
        # UTF-8 lacks only the halves of surrogate pairs, and some locales print those as they are.
        if isinstance(stream, io.TextIOWrapper) and (stream.errors == "strict" or stream.encoding != "utf-8"):
            stream.reconfigure(errors="replace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. This is the one place where an exception becomes a message and an exit
    code."""
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
        from coral.errors import hint_of

        if (hint := hint_of(error)) is not None:
            return complain(str(error), hint)
        from workspace.disk import is_disk_problem

        if isinstance(error, OSError) and is_disk_problem(error):
            return complain(f"cannot continue: {error}", "see the disk: free some space, or make it writable")
        return _report(error)


def complain(message: str, hint: str) -> int:
    """Print a user's mistake: what cannot be done and why, then what to do about it. Control characters are left out,
    because the message may quote foreign text and a terminal would obey them."""
    controls = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))
    print(f"coral: {message.translate(controls)}", file=sys.stderr)
    if hint:
        print(f"  {hint.translate(controls)}", file=sys.stderr)
    return EXIT_USER_ERROR


def _report(error: Exception) -> int:
    """Print an error of Coral's own in one line and keep its traceback in a file; CORAL_DEBUG=1 prints it in full."""
    import traceback

    text = "".join(traceback.format_exception(error))
    if os.environ.get("CORAL_DEBUG"):
        print(text, file=sys.stderr, end="")
    else:
        line = str(error).partition("\n")[0]
        print(f"coral: internal error: {type(error).__name__}: {line}"[:300], file=sys.stderr)
        print(f"  {_keep(text)}", file=sys.stderr)
    return EXIT_INTERNAL_ERROR


def _keep(traceback: str) -> str:
    import tempfile

    try:
        handle, path = tempfile.mkstemp(prefix="coral-traceback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(f"coral {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n{traceback}")
    except OSError:
        return "CORAL_DEBUG=1 shows the traceback"
    return f"the traceback is in {path}"


def _dispatch(words: list[str]) -> int:
    _check_packages()
    # Inside a git hook GIT_DIR redirects every git we start to the wrong repository.
    for variable in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[variable]
    if not words or words[0] in ("-h", "--help") or words == ["help"]:
        print(_overview())
        return 0
    if words[0] in ("-V", "--version"):
        print(f"coral {__version__}")
        return 0
    name = words.pop(0)
    if name not in COMMANDS:
        return complain(f"cannot run {name!r}: no such command", _nearest(name))
    module, parser = load(name), parser_of(name)
    try:
        args = parser.read(words)
    except SystemExit:
        return 0  # argparse has printed a help; its errors are CoralErrors
    code: int = module.run(args)
    return code


def load(name: str) -> ModuleType:
    """Import the module of a command. It has `add_arguments(parser)` and `run(args)`."""
    return importlib.import_module(f"coral.cli.commands.{name}")


def parser_of(name: str) -> Parser:
    """Return the parser of a command's arguments."""
    from coral.cli.parser import Parser

    _, description, example = COMMANDS[name]
    parser = Parser(prog=f"coral {name}", description=f"{description[0].upper()}{description[1:]}.", example=example)
    load(name).add_arguments(parser)
    return parser


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # None if our parent had closed it
            stream.flush()


def _let_all_signals_interrupt() -> None:
    """Let SIGTERM and SIGHUP (a closed terminal) interrupt a command as Ctrl-C does, so that it cleans up what it had
    begun; further signals do not interrupt the cleaning up. Python drops an exception that is raised in a finalizer or
    in a callback, such as those of imports: then the interrupt is raised once more, a little later."""
    import signal

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, nobody learns how a child has ended
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handled = tuple(end for end in ends if signal.getsignal(end) in (signal.SIG_DFL, signal.default_int_handler))

    def ignore(*_: object) -> None:
        pass  # a handler instead of SIG_IGN, which children would inherit

    def interrupt(*_: object) -> None:
        for number in handled:
            signal.signal(number, ignore)
        raise KeyboardInterrupt

    report = sys.unraisablehook

    def again(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        else:
            report(dropped)

    if handled:
        sys.unraisablehook = again
    for number in handled:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(number, interrupt)


def _overview() -> str:
    lines = ["coral: a supervisor for fleets of coding agents on one optimization problem", ""]
    lines += ["usage: coral COMMAND ...      coral COMMAND --help      coral help TOPIC", ""]
    for group, title in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {name:<11} {text}" for name, (of, text, _) in COMMANDS.items() if of == group]
        lines.append("")
    lines.append("Exit codes:")
    lines += [f"  {code:<11} {text}" for code, text in EXIT_CODES.items()]
    return "\n".join(lines)


def _nearest(name: str) -> str:
    import difflib

    near = [known for known in COMMANDS if known.startswith(name)] or difflib.get_close_matches(
        name, COMMANDS, n=1, cutoff=0.7
    )
    return f"did you mean `coral {near[0]}`?" if near else "`coral --help` lists the commands"


def _check_packages() -> None:
    """Refuse to start if one of our packages would be imported from another folder, such as one of the user's with the
    same name. find_spec finds that folder without running its code."""
    from importlib.util import find_spec

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    for package in ("attempts", "heartbeats", "workspace"):
        spec = find_spec(package)
        found = (spec.origin or "a folder without code") if spec else "nothing"
        if found != os.path.join(root, package, "__init__.py"):  # noqa: PTH118
            from coral.errors import CoralError

            hint = "start `coral` from another folder, or take that folder out of PYTHONPATH"
            raise CoralError(f"cannot start: the package {package!r} is not Coral's own, but {found}", hint)
