"""Notices code of a candidate that gets into a grader's process: from then on the result may be the candidate's own.

Python tells a hook, which nobody can remove, of all code that is about to run. The first notice is written into a pipe
before that code runs, and cannot be taken back. What a library of the grader does in machine code is not seen.

The grader's module is loaded before the grader learns of the candidate. Until then, what counts as the candidate's is
code from files that are neither the grader's nor a library's, and a text that no library executes. Once the grader's
function is called, any text that is executed and any data that is unpickled counts as well.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # as in typing, which takes as long to import as a small grader to run
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

_STARTS = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "pty.spawn"})
_FORK_EXEC = "_posixsubprocess.fork_exec"  # by which libraries start their workers; Python raises no audit event for it
_SPAWNS = frozenset({"multiprocessing.popen_spawn_posix", "multiprocessing.forkserver"})  # without the hook
_WATCHED = _STARTS | {"exec", "import", "open", "marshal.loads", "ctypes.dlopen", "pickle.find_class"}
_WATCHED |= {"sqlite3.load_extension", _FORK_EXEC}
# Modules of Python that execute a text of their own making, for a class or a function that a program defines.
_MAKERS = ("dataclasses.py", "collections/__init__.py", "enum.py", "functools.py")
_POOLS = "multiprocessing/"  # unpickles what forks of the grader send, which have the hook too
_TRACKER = "resource_tracker.py"  # of multiprocessing: starts a program of Python's own, which cleans up
_STARTERS = frozenset({"start_sealed", "start_as_user"})  # of coral.grader.candidate
_HERE = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - pathlib is slow to import
_STARTS_AT = os.path.join(_HERE, "grader", "candidate.py")  # noqa: PTH118


class _Watch:
    def __init__(self, own: str, workspace: str, notices: int) -> None:
        self._own = _folder(own)
        self._own_files = _listed(own)
        self._libraries = tuple(_folder(path) for path in (*sys.path, sys.prefix, sys.base_prefix) if path)
        library = _folder(os.path.dirname(os.__file__))  # noqa: PTH120
        self._makers = tuple(library + name for name in _MAKERS)
        self._pools = library + _POOLS
        self._workspace = _folder(workspace)
        self._notices = notices
        self._real: dict[str, str] = {}  # resolved folders, by the folder of a path
        self._opened: object = None  # the last file that was opened
        self._is_called = False  # whether the grader's function was
        self._is_noticed = False
        os.set_blocking(notices, False)

    def call(self) -> None:
        self._is_called = True

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event not in _WATCHED or self._is_noticed:
            return
        if event == "open":
            self._opened = arguments[0]
        elif what := self._problem(event, arguments):
            self._is_noticed = True
            try:
                os.write(self._notices, f"{what}{self._place()}\n".encode("utf-8", "replace"))
            except OSError:  # the pipe is full of notices of forks, or was closed by the grader
                return

    def _problem(self, event: str, arguments: tuple[object, ...]) -> str:
        match event:
            case "exec":
                return self._of_code(arguments[0])  # type: ignore[arg-type]
            case "marshal.loads":
                caller = sys._getframe(2).f_code.co_filename
                is_import = caller.startswith(("<frozen importlib", "<frozen zipimport"))
                is_right = is_import if self._is_called else True
                return "" if is_right and self._is_trusted(self._opened) else f"it loads {_name(self._opened)}"
            case "import" if arguments[0] in _SPAWNS:
                return "it starts another Python"
            case "import" | "ctypes.dlopen":
                library = arguments[event == "import"]
                is_path = "/" in _text(library)
                return f"it loads {_name(library)}" if is_path and not self._is_trusted(library) else ""
            case "pickle.find_class":
                caller = self._resolved(sys._getframe(2).f_code.co_filename)
                return "it unpickles" if self._is_called and not caller.startswith(self._pools) else ""
            case "sqlite3.load_extension":
                return "it loads a library"
        return "" if self._is_sealed() or self._is_tracker() else f"it starts a program ({event})"

    def _of_code(self, code: CodeType) -> str:
        if not code.co_filename.startswith("<"):
            return "" if self._is_trusted(code.co_filename) else f"it runs {_name(code.co_filename)}"
        caller = sys._getframe(3).f_code.co_filename
        # Compiled code that is loaded from a file was looked at when it was read: its name may say anything.
        if code.co_filename.startswith("<frozen ") and caller.startswith("<frozen importlib"):
            return ""
        if self._is_called:
            is_right = self._resolved(caller) in self._makers
        else:
            is_right = self._is_trusted(caller) and not self._is_own(caller)
        by = "" if self._is_own(caller) else f", by {_name(caller)}"
        return "" if is_right else f"it runs a text as code{by}"

    def _place(self) -> str:
        """Return where the grader's own files called what was noticed, as `, grade.py line 4`; empty if they did
        not."""
        frame = _find(lambda frame: self._is_own(frame.f_code.co_filename))
        return "" if frame is None else f", {_name(frame.f_code.co_filename)} line {frame.f_lineno}"

    def _is_sealed(self) -> bool:
        """Return whether `run_candidate` is starting a program in a sandbox."""

        def starts(frame: FrameType) -> bool:
            return frame.f_code.co_name in _STARTERS and frame.f_code.co_filename == _STARTS_AT

        return _find(starts) is not None

    def _is_tracker(self) -> bool:
        return _find(lambda frame: frame.f_code.co_filename == self._pools + _TRACKER) is not None

    def _is_trusted(self, path: object) -> bool:
        resolved = self._resolved(_text(path))
        if resolved.startswith(self._own):
            return self._is_own(resolved)
        return resolved.startswith(self._libraries) and not resolved.startswith(self._workspace)

    def _is_own(self, path: str) -> bool:
        """Return whether a path is a file that the grader had from the beginning, or what Python has compiled of one.
        Other files in its folder may be the candidate's: the grader may have copied them there."""
        resolved = self._resolved(path)
        if not resolved.startswith(self._own):
            return False
        folder, name = os.path.split(resolved)
        if os.path.basename(folder) == "__pycache__":  # noqa: PTH119
            resolved = os.path.join(os.path.dirname(folder), name.partition(".")[0] + ".py")  # noqa: PTH118, PTH120
        return self._own_files is None or resolved.removeprefix(self._own) in self._own_files

    def _resolved(self, path: str) -> str:
        """Resolve a path, each folder once: a library opens hundreds of paths, and resolving each takes
        milliseconds."""
        folder, name = os.path.split(path)
        if not folder.startswith("/"):
            return os.path.realpath(path)
        if folder not in self._real:
            self._real[folder] = _folder(folder)
        return self._real[folder] + name


def watch(own: str, workspace: str, notices: int) -> Callable[[], None]:
    """Watch this process from now on, and write the first notice into the pipe `notices`. Returns a function, to be
    called right before the grader's function is. `own`: the folder of the grader's files."""
    made = _Watch(own, workspace, notices)
    sys.addaudithook(made)
    _audit_fork_exec()
    return made.call


def _audit_fork_exec() -> None:
    try:
        import _posixsubprocess as starts
    except ImportError:  # a system without it
        return
    start = starts.fork_exec

    def audited(*arguments: object) -> int:
        sys.audit(_FORK_EXEC)
        return start(*arguments)  # type: ignore[arg-type]

    starts.fork_exec = audited


def _listed(own: str) -> frozenset[str] | None:
    """Return the files that were copied into the folder, from the list that `coral.grading.kinds.list_of` names; None
    if there is no list."""
    try:
        with open(f"{os.path.normpath(own)}.files.json", encoding="utf-8") as file:
            return frozenset(json.load(file)["files"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _find(is_wanted: Callable[[FrameType], bool]) -> FrameType | None:
    """Return the innermost calling frame that is wanted; None if none is."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and not is_wanted(frame):
        frame = frame.f_back
    return frame


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")  # noqa: PTH118


def _text(path: object) -> str:
    """Return a path of any kind as text; empty for a descriptor or None."""
    return os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""


def _name(path: object) -> str:
    return os.path.basename(_text(path)) or "compiled code"  # noqa: PTH119
