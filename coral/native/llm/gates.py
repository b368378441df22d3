"""The gates decide which calls of the model are performed: pure functions from a signal and calls to decisions.

A gate is asked before each call, and sees all calls of the answer in their order, also those that were performed. It
returns a decision for each, of which that for the call about to be performed counts: the call itself lets it pass,
`RefusedCall` sends it back with a reason that the model reads as an error, `DeferredCall` holds it back until the
gates, before one of the next steps, let it pass. They then see it alone.
"""

import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile
from pathlib import PurePosixPath
from posixpath import normpath

from coral.native.llm.conversation import ToolCall
from coral.native.llm.json_values import object_of, read_object, text_of
from coral.native.llm.settings import LlmOptions

REPEATED = 3  # failures of one call
NETWORK = frozenset(["curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "telnet", "ftp"])
INSTALLERS = frozenset(["pip", "pip3", "uv", "npm", "npx", "cargo", "gem", "apt", "apt-get", "conda"])
INSTALLS = frozenset(["install", "add", "download"])
GIT_NETWORK = frozenset(["clone", "fetch", "pull", "push", "ls-remote"])
STARTERS = frozenset(["env", "sudo", "time", "nohup", "exec", "if", "then", "else", "do", "while", "until", "!", "{"])
STARTERS |= {"timeout", "xargs", "nice", "setsid", "stdbuf"}
WALKERS = frozenset(["cd", "chmod", "chown", "cp", "du", "find", "ls", "mv", "rm", "tar", "tree"])  # go below a folder
DURATION = re.compile(r"[\d.]+[smhd]?")  # as `timeout` has before its command
ASSIGNMENT = re.compile(r"\w+=")
HOME = re.compile(r"~(?:root)?(?:/|$)|\$(?:HOME\b|\{HOME\})")
OPEN_PLACES = ("/bin", "/usr", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/tmp", "/proc/self", "/opt")
ROOT_FOLDERS = frozenset(["etc", "home", "root", "var", "srv", "mnt", "media", "proc", "sys", "dev", "boot", "Users"])
ALWAYS_ALLOWED = frozenset(("submit", "send_message", "notes", "core_memory_append", "core_memory_replace", "check"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSignal:
    """What gates decide by. `depth`: steps in a row; `steps`, `tokens`, `cost`: since the last attempt. `failures`: the
    calls that failed since the last attempt and the last change of a file, as name and arguments. `checked`: the check
    passed and nothing was changed since."""

    depth: int
    steps: int
    tokens: int
    cost: float
    checked: bool
    failures: tuple[str, ...]
    clone: str
    options: LlmOptions


@dataclass(frozen=True, slots=True)
class RefusedCall:
    call: ToolCall
    reason: str


@dataclass(frozen=True, slots=True)
class DeferredCall:
    call: ToolCall
    reason: str


Decision = ToolCall | RefusedCall | DeferredCall
Gate = Callable[[GateSignal, tuple[ToolCall, ...]], Sequence[Decision]]


def limits(signal: GateSignal, calls: tuple[ToolCall, ...]) -> list[Decision]:
    """Refuse calls once an attempt has used up its steps, tokens or money: the agent may then only submit, or say why
    it does not."""
    options, over = signal.options, ""
    if options.steps_per_attempt and signal.steps > options.steps_per_attempt:
        over = f"{signal.steps} steps of {options.steps_per_attempt}"
    elif options.tokens_per_attempt and signal.tokens > options.tokens_per_attempt:
        over = f"{signal.tokens} tokens of {options.tokens_per_attempt}"
    elif options.money_per_attempt and signal.cost > options.money_per_attempt:
        over = f"{signal.cost:.2f} dollars of {options.money_per_attempt:.2f}"
    reason = f"this attempt has used up its limit, {over}: submit what you have"
    return [RefusedCall(call, reason) if over and call.name not in ALWAYS_ALLOWED else call for call in calls]


def inside(signal: GateSignal, calls: tuple[ToolCall, ...]) -> list[Decision]:
    """Refuse commands that name paths outside of the workspace, or programs that use the network. The gate reads only
    the words of a command, so it helps against mistakes and protects nothing: the run's sandbox does that."""
    decisions: list[Decision] = []
    for call in calls:
        reason = _leaves(text_of(object_of(read_object(call.arguments)).get("command")), signal)
        decisions.append(RefusedCall(call, reason) if call.name in ("run", "job") and reason else call)
    return decisions


def _leaves(command: str, signal: GateSignal) -> str:
    commands = _commands(command)
    if not signal.options.network:
        for words in commands:
            if program := _network_program(words):
                return f"{program} uses the network, which this task does not allow"
    for words in commands:
        if "/" in words and PurePosixPath(words[0]).name in WALKERS:
            return "/ lies outside of the workspace; use paths relative to it"
    for word in chain.from_iterable(commands):
        path = word.rpartition("=")[2] if word != "=~" else ""
        if HOME.match(path) or (path.startswith("/") and not _is_open(path, signal.clone)):
            return f"{path} lies outside of the workspace; use paths relative to it"
        if normpath(path).partition("/")[0] == "..":
            return f"{path} may lead out of the workspace; use paths below it"
    return ""


def _commands(command: str) -> list[list[str]]:
    """Split a shell command into simple commands, each a list of words. Those in `$(...)` and in backquotes are simple
    commands of their own."""
    lexer = shlex.shlex(command.replace("`", ";").replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    commands = list[list[str]]([[]])
    try:
        for word in lexer:
            if word in ("<", ">", ">>", ">&", "<&", "&>"):
                continue
            if word and not word.strip("();<>|&"):
                if word.startswith("(") and commands[-1]:
                    commands[-1][-1] = commands[-1][-1].removesuffix("$")
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:  # a quotation mark that nothing closes, as in a comment, or in a text for a program
        commands += map(str.split, lexer.token.split(";"))
    return commands


def _network_program(words: list[str]) -> str:
    """Return the program that a simple command runs, if it uses the network; else an empty text."""
    rest = list(dropwhile(_starts_another, words))
    if rest[:2] == ["uv", "run"]:
        rest = rest[2:]
    program = PurePosixPath(rest[0]).name if rest else ""
    if program.startswith("python") and rest[1:2] == ["-m"]:
        rest = rest[2:]
        program = rest[0] if rest else ""
    verbs = [word for word in rest[1:] if not word.startswith("-") and not ASSIGNMENT.match(word.rpartition(".")[2])]
    installs = program in INSTALLERS and INSTALLS & set(verbs[:2])
    fetches = program == "git" and GIT_NETWORK & set(verbs[:1])
    return program if program in NETWORK or installs or fetches else ""


def _starts_another(word: str) -> bool:
    """Return whether a word comes before the name of the program in a command: a program that runs another one, such
    as sudo or timeout, an option, a duration, or the assignment of a variable."""
    return word in STARTERS or word.startswith("-") or bool(ASSIGNMENT.match(word) or DURATION.fullmatch(word))


def _is_open(path: str, clone: str) -> bool:
    """Return whether an absolute path may be named. One whose first folder is nowhere is no path: `/api`, or the
    pattern of a program."""
    path = normpath(path).replace("//", "/")
    first = path.strip("/").partition("/")[0]
    if not first or not (first in ROOT_FOLDERS or os.path.exists(f"/{first}")):  # noqa: PTH110 - it raises no error
        return True
    return any(PurePosixPath(path).is_relative_to(place) for place in (*OPEN_PLACES, clone))


def repetition(signal: GateSignal, calls: tuple[ToolCall, ...]) -> list[Decision]:
    """Refuse a call that has failed REPEATED times with the same arguments, while no file was changed."""
    decisions: list[Decision] = []
    for call in calls:
        count = signal.failures.count(f"{call.name} {call.arguments}")
        reason = f"this very call has failed {count} times; change it or a file, or do something else"
        decisions.append(RefusedCall(call, reason) if count >= REPEATED else call)
    return decisions


def check_first(signal: GateSignal, calls: tuple[ToolCall, ...]) -> list[Decision]:
    """Refuse to submit, with the option `check_first`, unless the check has passed on the workspace as it is."""
    reason = "the check has not passed on the workspace as it is; call check first"
    wanted = signal.options.check_first and not signal.checked
    return [RefusedCall(call, reason) if wanted and call.name == "submit" else call for call in calls]


SHIPPED: tuple[Gate, ...] = (limits, inside, repetition, check_first)


def ask(gates: Sequence[Gate], signal: GateSignal, calls: tuple[ToolCall, ...], place: int) -> Decision:
    """Return the first decision that does not let the call at `place` pass; else the call, as the last gate returned
    it. ValueError or TypeError if a gate does not return a decision for each call."""
    decision: Decision = calls[place]
    for gate in gates:
        decision = [answer for _, answer in zip(calls, gate(signal, calls), strict=True)][place]
        if not isinstance(decision, Decision):
            raise TypeError(f"{decision!r:.80} is no decision")
        if not isinstance(decision, ToolCall):
            return decision
        calls = (*calls[:place], decision, *calls[place + 1 :])
    return decision
