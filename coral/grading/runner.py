"""`main(SPEC.json)` calls a Python grader, in a process of its own, and writes what it returned to a file.

It starts in milliseconds, and what the grader prints cannot be mistaken for its result. What it imports is paid by
every grade: what only some graders need is imported where they need it. It never imports `attempts`, `heartbeats` or
`workspace`: a grader may have modules of these names, and would get ours.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import machinery
from pathlib import Path

from coral.grading import handover
from coral.grading.finite_score import finite_score
from coral.grading.foreign_code import watch
from coral.grading.handover import hand_over

TYPE_CHECKING = False  # as in typing, which takes as long to import as a small grader to run
if TYPE_CHECKING:
    from importlib.abc import PathEntryFinder
    from types import CodeType, ModuleType, TracebackType
    from typing import Any

STARTER_SECONDS = 1.0
_NEXT_TO_SCORE = ("metrics", "feedback")
_VARIADIC, _KEYWORDS = 0x04, 0x08  # flags of a function's code: it takes *args, **kwargs


def main(spec_path: str, memory: int, notices: int) -> None:
    """Grade once, then end this process. `spec_path`: a JSON file with `entry` (a path, or the name of a module),
    `function`, `workspace`, `private`, `args`, `kind`, `attempt`, `result` (path); for a grader that is a class,
    `section` and `task`, see `coral.grader.task_grader`. `memory`, `notices`: the descriptors of a result channel."""
    spec = json.loads(Path(spec_path).read_text(encoding="utf-8"))
    result = ResultWriter(Path(spec["result"]), memory)
    sys.excepthook = _crash_report(result, spec["entry"])
    called = watch(spec["private"], spec["workspace"], notices)
    grade = _load(spec["entry"], spec["function"], spec["private"])
    called()
    result.write(_outcome(grade, spec))
    _leave()


class ResultWriter:
    """Writes the result: into memory for the supervisor, and into a file for another that takes over from it."""

    def __init__(self, path: Path, memory: int) -> None:
        self._path, self._memory = path, memory

    def write(self, data: Mapping[str, object]) -> None:
        """Write the result as JSON. OSError if somebody else has sealed the memory."""
        self.write_bytes(json.dumps(_plain(data)).encode())

    def write_bytes(self, raw: bytes) -> None:
        """Write a result that is JSON already, or was meant to be, likewise."""
        hand_over(str(self._path), self._memory, raw)


def wait(group: str) -> None:
    """Wait for an order, see `coral.grading.handover`, and grade."""
    handover.wait(group, main, json.loads)


class _OfSource(machinery.SourceFileLoader):
    """Compiles what it loads, and neither reads nor writes compiled files: a candidate that can write beside the
    grader's files could have put them there."""

    def path_stats(self, path: str) -> Mapping[str, object]:
        raise OSError(f"no compiled {path} is wanted")


def _from_source(private: str) -> None:
    """Have all modules in this folder, and in those below it, loaded by `_OfSource`."""
    loaders = (
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (_OfSource, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )
    others = machinery.FileFinder.path_hook(*loaders)

    def finder(folder: str) -> PathEntryFinder:
        if not os.path.join(folder, "").startswith(os.path.join(private, "")):  # noqa: PTH118
            raise ImportError(f"{folder} is not the grader's")
        return others(folder)

    sys.path_hooks.insert(0, finder)


def _load(entry: str, function: str, private: str) -> Callable[..., object]:
    """Return the function of the file or module. The file's folder comes first on the path, as for a script, then the
    grader's other files."""
    _from_source(private)
    path = Path(entry)
    if not path.is_absolute():
        sys.path[:0] = [private]
        __import__(entry)
        return _function(sys.modules[entry], function)
    sys.path[:0] = dict.fromkeys((str(path.parent), private))
    if path.suffix != ".py":
        raise ImportError(f"cannot load the grader: {path} is not a Python file")
    name = path.stem if path.stem not in sys.modules else f"coral_grader_{path.stem}"
    # What importlib.util would make of it, without importing that.
    loader = _OfSource(name, str(path))
    module = type(sys)(name)
    module.__spec__ = machinery.ModuleSpec(name, loader, origin=str(path))
    module.__loader__, module.__file__ = loader, str(path)
    sys.modules[name] = module  # a grader that uses multiprocessing pickles functions by this name
    loader.exec_module(module)
    return _function(module, function)


def _function(module: ModuleType, name: str) -> Callable[..., object]:
    found: object = getattr(module, name, None)
    if not callable(found):
        own = [var for var, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        what = f"it has {', '.join(own[:8])}" if own else "it has none"
        raise ImportError(f"cannot grade: {os.path.basename(str(module.__file__))} has no function {name}; {what}")  # noqa: PTH119
    return found


def _outcome(grade: Callable[..., object], spec: Mapping[str, object]) -> dict[str, object]:
    offered = {
        "args": spec["args"],
        "private": Path(str(spec["private"])),
        "kind": spec["kind"],
        "attempt": spec["attempt"],
        "deadline": float(os.environ["CORAL_DEADLINE"]),
        "seed": int(os.environ["CORAL_SEED"]),
        "artifacts": Path(os.environ["CORAL_ARTIFACTS"]),
    }
    try:
        if (classes := sys.modules.get("coral.grader.task_grader")) and _is_class_of(grade, classes.TaskGrader):
            return _record(classes.grade(grade, spec))
        return _record(grade(Path(str(spec["workspace"])), **_wanted(grade, offered)))
    except (*_types("Fail"), *_types("Void")) as verdict:
        return _record(verdict)


def _wanted(grade: Callable[..., object], offered: Mapping[str, object]) -> dict[str, object]:
    """Return the values of `offered` that the signature names; all of them for `**kwargs`. TypeError if the grader
    needs any other."""
    plain = type(grade) is type(_wanted) and not vars(grade)  # else its signature may differ from its code's
    named, everything = (_of_code if plain else _of_signature)(grade)
    if everything:
        return dict(offered)
    for name, optional in named.items():
        if name not in offered and not optional:
            raise TypeError(f"the grader asks for {name!r}; after the workspace it can have {', '.join(offered)}")
    return {name: offered[name] for name in named if name in offered}


def _of_code(grade: Callable[..., object]) -> tuple[dict[str, bool], bool]:
    """Return the parameters after the first that can be given by name, each with whether it is optional; and whether
    any name is accepted."""
    code: CodeType = getattr(grade, "__code__")  # noqa: B009 - it is a function
    count = code.co_argcount
    defaults = getattr(grade, "__defaults__", None) or ()
    names = code.co_varnames
    named = {names[at]: at >= count - len(defaults) for at in range(max(code.co_posonlyargcount, 1), count)}
    only = names[count : count + code.co_kwonlyargcount]
    given = getattr(grade, "__kwdefaults__", None) or {}
    named |= {name: name in given for name in only[0 if count or code.co_flags & _VARIADIC else 1 :]}
    return named, bool(code.co_flags & _KEYWORDS)


def _of_signature(grade: Callable[..., object]) -> tuple[dict[str, bool], bool]:
    """Return the same as `_of_code`, for any callable. It needs inspect, which takes longer to import than all else."""
    import inspect

    parameters = list(inspect.signature(grade).parameters.values())
    named = [
        parameter
        for parameter in parameters[1:]
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    return {parameter.name: parameter.default is not parameter.empty for parameter in named}, any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters
    )


def _types(name: str) -> tuple[type[Any], ...]:
    """Return the type of that name in `coral.types`, in a tuple; none if the module is not imported, for then no value
    of the type can exist."""
    types = sys.modules.get("coral.types")
    return () if types is None else (getattr(types, name),)


def _is_class_of(grade: object, kind: type[Any]) -> bool:
    return isinstance(grade, type) and issubclass(grade, kind)


def _record(value: object) -> dict[str, object]:
    if isinstance(value, _types("Fail")):
        return {"failed": value.reason, "feedback": value.feedback}
    if isinstance(value, _types("Void")):
        return {"void": value.reason}
    if isinstance(value, _types("Result")):
        value = {"score": value.score, "metrics": value.metrics, "feedback": value.feedback}
    if not isinstance(value, Mapping):
        return _scored({"score": value})
    if "failed" in value:
        return {"failed": value["failed"], "feedback": value.get("feedback", "")}
    if "void" in value:
        return {"void": value["void"]}
    if "score" not in value:
        raise TypeError(f"the grader returned a dict without a score; it has {', '.join(map(str, value)) or 'no keys'}")
    return _scored(value)


def _scored(value: Mapping[object, object]) -> dict[str, object]:
    beside = {name: value[name] for name in _NEXT_TO_SCORE if name in value}
    if unread := [str(name) for name in value if name not in ("score", *_NEXT_TO_SCORE)]:
        beside["unread"] = dict.fromkeys(unread)  # the names alone: `coral validate` shows them
    try:
        return {"score": finite_score(_scalar(value["score"])), **beside}
    except ValueError as error:
        return {"failed": str(error), **beside}


def _scalar(value: object) -> object:
    """Unwrap the number of a numerical library (a tensor of one element)."""
    unwrap = getattr(value, "item", None)
    return unwrap() if callable(unwrap) and getattr(value, "ndim", 0) == 0 else value


def _plain(value: object, depth: int = 0) -> object:
    """Convert any value of a grader to one that JSON can hold; the reader decides what to keep."""
    if isinstance(value, Mapping) and depth < 2:
        return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
    value = _scalar(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() < 64 else "a huge integer"
    if isinstance(value, Collection) and depth == 2:
        return []  # no metric has many values, and there may be millions
    return float(value) if isinstance(value, float) else str(value)


def _crash_report(
    result: ResultWriter, entry: str
) -> Callable[[type[BaseException], BaseException, TracebackType | None], None]:
    """Return an exception hook that writes what ended the grader to stderr, for people, and to the result."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        import traceback

        text = "".join(traceback.format_exception(kind, error, _from_grader(error, trace, entry)))
        sys.stderr.write(text)
        line = "".join(traceback.format_exception_only(kind, error)).strip()
        result.write({"crashed": line[:2000], "output": text[-10_000:]})

    return hook


def _from_grader(error: BaseException, trace: TracebackType | None, entry: str) -> TracebackType | None:
    """Return the traceback from the grader's own file on; all of it if that file is not in it: the fault may be
    ours."""
    last = trace
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if isinstance(error, ImportError | TypeError) and last and last.tb_frame.f_code.co_filename == __file__:
        return None  # what we find wrong with a grader ourselves, or with how it can be called, says all
    if isinstance(error, SyntaxError) and error.filename == entry:
        return None  # its text names the line
    own = trace
    while own is not None and own.tb_frame.f_code.co_filename != entry:
        own = own.tb_next
    return own or trace


def _leave() -> None:
    """End now: a thread that a candidate left in this process would hold it until the timeout and cost the result."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # a candidate may have closed or replaced them
            continue
    if number := os.environ.get("CORAL_STARTER"):
        _end_starter(number)
    os._exit(0)


def _end_starter(number: str) -> None:
    """Have the starter of candidates end before this process: otherwise it is left of the grade, and has to be found
    and killed before the grade is over. `number`: the descriptor by which `coral.grader.as_user` sends it messages."""
    import _socket

    try:
        starter = _socket.socket(fileno=int(number))
        starter.settimeout(STARTER_SECONDS)
        starter.shutdown(_socket.SHUT_WR)
        starter.recv(1)  # it closes its end when it ends
    except (OSError, ValueError, OverflowError):  # a candidate may have named another number
        return
