"""Whether the tests of the decisions notice a fault: `coral/fleet` with one small fault at a time, and what they say.

Run by `make mutants`; `tests/mutants.py coral/fleet/jobs.py` takes that module alone. Each mutant lives in a child of
this process and is never written to a file. The tests are the transcripts, chosen by the functions they reach. A line
that ends with `# mutants: equivalent, <reason>` may hide what no test could see; one that hides nothing is reported,
too.
"""

import ast
import contextlib
import importlib
import os
import resource
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from mutations import Mutation, mutations_of  # noqa: E402 - found only there

PACKAGE = ROOT / "coral" / "fleet"
MODULES = [Path(path).resolve() for path in sys.argv[1:]] or sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests" / "decisions").glob("test_*.py"))
MARK = "# mutants: equivalent, "
WORKERS = 2
MEMORY = 2 << 30
# A mutant may go round in circles; ten times the CPU that the test takes is long enough to say so.
SLOWNESS, LEAST_SECONDS = 10, 1
ALIVE, KILLED = 1, 0


@dataclass
class Test:
    name: str
    run: Callable[[], None]
    seconds: float = 0.0
    lines: set[tuple[str, int]] = field(default_factory=set)


@dataclass(frozen=True)
class Mutant:
    path: Path
    tree: ast.Module
    mutation: Mutation

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.mutation.line}"


class Collector:
    """Takes the tests that pytest finds, without running them in its way."""

    def __init__(self) -> None:
        self.tests: list[Test] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for item in session.items:
            assert isinstance(item, pytest.Function)
            if hasattr(item.obj, "hypothesis"):
                continue  # every mutant would pay for it, and what it says a transcript says in a millisecond
            given = item.callspec.params if hasattr(item, "callspec") else {}
            missing = set(item.fixturenames) - set(given) - {"request"}
            assert not missing, f"{item.nodeid} needs {missing}: tests of the decisions have no fixtures"
            self.tests.append(Test(item.nodeid, _call(item.obj, given)))
        return True


def main() -> int:
    started = time.monotonic()
    tests = collect()
    for test in tests:
        watch(test)
    mutants = [Mutant(path, tree, mutation) for path in MODULES for tree, mutation in find_in(path)]
    alive = examine(mutants, tests)
    excused = [mutant for mutant in alive if is_marked(mutant)]
    needless = sorted(marks() - {mutant.place for mutant in excused})
    alive = [mutant for mutant in alive if not is_marked(mutant)]
    for mutant in alive:
        print(f"\n{mutant.place}: {mutant.mutation.kind}\n{mutant.mutation.shown()}")
    for place in needless:
        print(f"\n{place}: marked as hiding an equivalent mutant, and hides none")
    counted = len(mutants) - len(excused)
    print(
        f"\n{counted} mutants, {counted - len(alive)} killed, {len(alive)} alive "
        f"({len(excused)} equivalent; {len(tests)} tests; {time.monotonic() - started:.0f} s)"
    )
    return 1 if alive or needless else 0


def collect() -> list[Test]:
    collector = Collector()
    arguments = ["-qq", "-c", os.devnull, "--rootdir", str(ROOT), "--import-mode=importlib", "-p", "no:cacheprovider"]
    arguments += ["-p", "no:warnings"]  # without our settings the marks are unknown
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main([*arguments, *map(str, TESTS)], plugins=[collector])
    assert collector.tests, "no tests were found"
    return collector.tests


def _call(function: Callable[..., None], given: dict[str, Any]) -> Callable[[], None]:
    return lambda: function(**given)


def watch(test: Test) -> None:
    """Run a test once as it is, and see which lines of the package it reaches and how long it takes."""
    inside = str(PACKAGE)

    def trace(frame: types.FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(inside):
            return None
        test.lines.add((name, frame.f_lineno))
        return trace

    sys.settrace(trace)
    try:
        test.run()
    finally:
        sys.settrace(None)
    begun = time.perf_counter()
    test.run()
    test.seconds = time.perf_counter() - begun


def find_in(path: Path) -> Iterator[tuple[ast.Module, Mutation]]:
    tree = ast.parse(path.read_text())
    for mutation in mutations_of(tree):
        yield tree, mutation


def is_marked(mutant: Mutant) -> bool:
    return MARK in mutant.path.read_text().splitlines()[mutant.mutation.line - 1]


def marks() -> set[str]:
    return {
        f"{path.relative_to(ROOT)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MARK in line
    }


def examine(mutants: list[Mutant], tests: list[Test]) -> list[Mutant]:
    """Those that no test kills, with as many children at work as there are cores."""
    waiting, running, alive = list(reversed(mutants)), dict[int, Mutant](), list[Mutant]()
    while waiting or running:
        while waiting and len(running) < WORKERS:
            mutant = waiting.pop()
            running[start(mutant, chosen(mutant, tests))] = mutant
        pid, status = os.wait()
        mutant = running.pop(pid)
        if os.waitstatus_to_exitcode(status) == ALIVE:
            alive.append(mutant)
        if sys.stderr.isatty():
            print(f"\r{len(mutants) - len(waiting)} of {len(mutants)}", end="", file=sys.stderr)
    return alive


def chosen(mutant: Mutant, tests: list[Test]) -> list[Test]:
    """The tests that reach the function with the fault: first those that reach its line, the fastest first."""
    name, line = str(mutant.path), mutant.mutation.line
    if mutant.mutation.function is None:
        return sorted(tests, key=lambda test: test.seconds)
    places = {(name, number) for number in mutant.mutation.function}
    reaching = [test for test in tests if not places.isdisjoint(test.lines)]
    return sorted(reaching, key=lambda test: ((name, line) not in test.lines, test.seconds))


def start(mutant: Mutant, tests: list[Test]) -> int:
    """A child with the mutant in place; its exit code says whether it is alive."""
    pid = os.fork()
    if pid:
        return pid
    result = KILLED
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            put_in_place(mutant)
            for test in tests:
                signal.setitimer(signal.ITIMER_PROF, test.seconds * SLOWNESS + LEAST_SECONDS)
                test.run()
        result = ALIVE
    except BaseException:  # noqa: BLE001 - whatever a test or the mutant says, it was noticed
        pass
    finally:
        os._exit(result)


def put_in_place(mutant: Mutant) -> None:
    """Replace what the module defines: the code of its functions, the defaults of its records, its constants."""
    module = importlib.import_module(".".join(mutant.path.relative_to(ROOT).with_suffix("").parts))
    mutant.mutation.make()
    made: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(ast.fix_missing_locations(mutant.tree), str(mutant.path), "exec"), made)
    for name, new in made.items():
        old = vars(module).get(name)
        if isinstance(old, types.FunctionType) and old.__module__ == module.__name__:
            _recode(old, new)
        elif isinstance(old, type) and old.__module__ == module.__name__:
            for attribute, method in vars(new).items():
                _recode(_function(vars(old).get(attribute)), _function(method))
        elif not name.startswith("__") and old != new and not isinstance(old, type | types.ModuleType):
            _rebind(name, old, new)


def _function(found: object) -> object:
    return found.fget if isinstance(found, property) else found


def _recode(old: object, new: object) -> None:
    if isinstance(old, types.FunctionType) and isinstance(new, types.FunctionType):
        if old.__code__ != new.__code__:
            old.__code__ = new.__code__
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__


def _rebind(name: str, old: object, new: object) -> None:
    """A constant, wherever it was imported by its name."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name) is old:
            setattr(module, name, new)


if __name__ == "__main__":
    assert threading.active_count() == 1, "a fork in the midst of threads is no fair trial"
    sys.exit(main())
