"""Finds and checks runtimes by the name that a task gives them."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from attempts.files import expanded
from coral.errors import CoralError
from coral.own_code import find_own, in_words
from coral.runtimes.model import Runtime

T = TypeVar("T")

# Each module is imported when its runtime is looked up: a start needs one of them.
RUNTIMES = {
    "native": "coral.runtimes.native:native",
    "claude": "coral.runtimes.claude:Claude",
    "codex": "coral.runtimes.codex:Codex",
    "opencode": "coral.runtimes.opencode:Opencode",
    "gemini": "coral.runtimes.gemini:Gemini",
    "qwen": "coral.runtimes.qwen:Qwen",
    "copilot": "coral.runtimes.copilot:Copilot",
    "pi": "coral.runtimes.pi:Pi",
    "cursor": "coral.runtimes.cursor:Cursor",
    "kiro": "coral.runtimes.kiro:Kiro",
    "acp": "coral.runtimes.acp.runtime:Acp",
    "command": "coral.runtimes.command:AnyProgram",
    "scripted": "coral.runtimes.scripted.runtime:Scripted",
}
# The `instruction_file` of all runtimes: a seed may hold one for a program that does not drive its agents here.
INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")


def find(name: str, options: Mapping[str, object]) -> Runtime:
    """Return the runtime of that name with its options: ours, or `module.path:object`, called with the options.

    CoralError if there is none. The options are not checked: `check` of the runtime says what is wrong with them.
    """
    spec, problem = RUNTIMES.get(name, name), f"cannot use the runtime {name!r}"
    if ":" not in spec:
        raise CoralError(f"{problem}: there is none of that name", _known(name))
    try:
        factory = find_own("runtime", spec)
    except ValueError as error:
        raise CoralError(str(error), "a runtime of your own is module.path:object") from error
    if not callable(factory):
        raise CoralError(f"{problem}: {spec.partition(':')[2]} cannot be called", "it takes the options")
    hint = "coral.runtimes.model.Runtime says what a runtime has"
    if missing := sorted(getattr(factory, "__abstractmethods__", ())):
        raise CoralError(f"{problem}: it has no {', '.join(missing)}", hint)
    try:
        runtime = factory(options)
    except CoralError:
        raise
    except (Exception, SystemExit) as error:  # a task's own may raise anything
        if name in RUNTIMES:
            raise
        raise CoralError(f"{problem}: {in_words(error)}", "it is called with the options, a mapping") from error
    if not isinstance(runtime, Runtime):
        raise CoralError(f"{problem}: it is no subclass of Runtime", hint)
    return runtime


def with_paths(name: str, options: dict[str, T], folder: Path) -> dict[str, T | str]:
    """Return the options of a runtime with absolute paths. `folder`: where relative ones begin; `~` is the home."""
    texts = {option: value for option, value in options.items() if isinstance(value, str) and value}
    try:  # a runtime that is not ours is imported only if one of its options can be a path
        paths = find(name, options).path_options if texts else ()
    except CoralError:  # `Roster` refuses it
        return {**options}
    given = {option: expanded(texts[option]) for option in paths if option in texts}
    return {**options, **{option: str(folder / path) for option, path in given.items()}}


def check(name: str, options: Mapping[str, object], model: str = "") -> list[str]:
    """Return all that would keep an agent of this runtime from starting here, in words."""
    try:
        return problems(find(name, options), model)
    except CoralError as error:
        return [f"{error}: {error.hint}" if error.hint else str(error)]


def problems(runtime: Runtime, model: str) -> list[str]:
    """Return what the runtime says of its options; and a problem for a model that it would silently leave unused."""
    found = runtime.check()
    if model and not found and not runtime.uses_model:
        return [f"{runtime.name} uses no model; agents.model is {model!r}"]
    return found


def _known(name: str) -> str:
    close = get_close_matches(name, RUNTIMES, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(RUNTIMES)}; your own is module.path:object"
