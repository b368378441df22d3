"""Runs the tests that come with skills, each sealed and limited, on a copy of the skill's folder.

A test is `test.sh`, or a file `test_*.py`: a program that must succeed, and whose functions `test_*` are then called.
The result is kept for the operator, and is valid until the folder changes.
"""

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from attempts.files import write_json
from coral.errors import CoralError
from coral.reading import lenient_json, visibility
from coral.types import Fail
from coral.views import format
from workspace.knowledge import Skill
from workspace.layout import Layout, can_see_private
from workspace.plain_file import read_below, walk, write_below

SECONDS = 60.0  # for one test
MEMORY = 4_000_000_000  # bytes of address space
_FILES, _DEEP, _LARGEST = 200, 3, 4_000_000  # most that is copied of a skill: files, levels of folders, bytes of a file
_RUN = """
import runpy, sys
sys.path.insert(0, ".")
found = runpy.run_path(sys.argv[1], run_name="__main__")
for name, test in list(found.items()):
    if name.startswith("test_") and callable(test):
        test()
"""


@dataclass(frozen=True, slots=True)
class SkillTest:
    """The result of a skill's tests. `tests`: how many there are; `why`: why the first failed, if one failed."""

    passed: bool
    tests: int
    why: str = ""


def run_tests(layout: Layout, skill: Skill) -> SkillTest | None:
    """Run a skill's tests and keep the result; None if it has none. CoralError if no sandbox works on this machine."""
    folder = skill.path.parent
    found = tests_of(folder)
    if not found:
        return None
    with tempfile.TemporaryDirectory(prefix="coral-skill-") as copy:
        if os.geteuid() == 0:  # then a user of its own may be the only sandbox, and must reach the copy
            Path(copy).chmod(0o755)
        _copy(folder, Path(copy))
        # Of the copy: an agent may change the folder while the tests run.
        digest = _digest(Path(copy))
        outcome = _run(Path(copy), sorted({*found, *tests_of(Path(copy))}))
    _keep(layout, folder, outcome, digest)
    return outcome


def last_test(layout: Layout, skill: Skill) -> tuple[str, bool]:
    """Return what is known of a skill's tests in words, and whether one fails: `2 tests passed`, why one fails, or that
    they were not run on the skill as it is now; empty if it has none."""
    found = tests_of(skill.path.parent)
    if not found:
        return "", False
    kept = lenient_json.read(layout.skill_tests).inner(_key(layout, skill.path.parent))
    if not kept:
        return f"{format.plural(len(found), 'test')}, not run", False
    if kept.text("digest") != _digest(skill.path.parent):
        return "changed since its test", False
    test = SkillTest(kept.data.get("passed") is True, kept.integer("tests") or 0, kept.text("why"))
    return as_text(test), not test.passed


def as_text(test: SkillTest) -> str:
    return f"{format.plural(test.tests, 'test')} passed" if test.passed else f"FAILS: {test.why}"


def tests_of(folder: Path) -> list[str]:
    """Return the names of the tests in a skill's folder."""
    files = [entry.name for entry in walk(folder, 0, _FILES)]
    return [name for name in files if name == "test.sh" or (name.startswith("test_") and name.endswith(".py"))]


def _run(copy: Path, tests: list[str]) -> SkillTest:
    from coral.grader.candidate import run_candidate
    from coral.grader.sandbox import SEALED

    for name in tests:
        program = ["/bin/sh", name] if name == "test.sh" else [sys.executable, "-c", _RUN, name]
        try:
            run_candidate(copy, program, seconds=SECONDS, memory=MEMORY, seal=SEALED)
        except Fail as failure:
            return SkillTest(passed=False, tests=len(tests), why=format.line(f"{name}: {failure}"))
        except OSError as error:
            hint = "a skill is a stranger's program, which is not run without a sandbox: see docs/trust.md"
            raise CoralError(f"cannot test skills here: {error}", hint) from error
    return SkillTest(passed=True, tests=len(tests))


def _copy(folder: Path, to: Path) -> None:
    for name, content in contents(folder):
        write_below(to, name, content)


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the regular files in a skill's folder; files that are too large or too many are left
    out."""
    for count, entry in enumerate(walk(folder, _DEEP, _FILES)):
        name = str(Path(entry.path).relative_to(folder))
        content = read_below(folder, name, _LARGEST + 1)
        if count < _FILES and content is not None and len(content) <= _LARGEST:
            yield name, content


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for name, content in contents(folder):
        found.update(f"{name}\0{len(content)}\0".encode("utf-8", "replace") + content)
    return found.hexdigest()


def _key(layout: Layout, folder: Path) -> str:
    return str(folder.relative_to(layout.root.resolve()))


def _keep(layout: Layout, folder: Path, outcome: SkillTest, digest: str) -> None:
    """Keep the result where no agent can write. Does nothing if an agent ran the tests."""
    if not can_see_private(layout) or visibility.is_agent():
        return
    known: Mapping[str, object] = lenient_json.read(layout.skill_tests).data
    test = {"passed": outcome.passed, "tests": outcome.tests, "why": outcome.why, "digest": digest}
    with contextlib.suppress(OSError):
        write_json(layout.skill_tests, {**known, _key(layout, folder): test}, durable=False)
