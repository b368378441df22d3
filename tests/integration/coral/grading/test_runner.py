"""A function grader, run as the supervisor runs it: a process of its own, a result at a path."""

import functools
import json
import os
import py_compile
import re
import socket
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from files import write_files
from grade_places import place_in

from attempts.record import Kind
from coral.config.model import GraderSection
from coral.grading import runner
from coral.grading.command import prepare_folder
from coral.grading.kinds import kind_of
from coral.grading.once import run_grader
from coral.grading.result import GradeResult
from heartbeats.beat import from_dict

UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH  # Python does not compare it with the source


def grade(folder: Path, code: str, args: Mapping[str, object] | None = None, kind: Kind = Kind.REAL) -> GradeResult:
    private, workspace = folder / "private", folder / "checkout"
    private.mkdir(exist_ok=True)
    workspace.mkdir(exist_ok=True)
    (private / "grade.py").write_text(textwrap.dedent(code))
    section = GraderSection(entry="grade.py:grade", args=dict(args or {}))
    place = place_in(folder, kind=kind)
    command = kind_of(section).command(section, place)
    prepare_folder(command)
    return run_grader(command, 20)


@pytest.mark.parametrize(
    ("returned", "score", "metrics", "feedback"),
    [
        ("3", 3.0, {}, ""),
        ("0.25", 0.25, {}, ""),
        ("Fraction(1, 4)", 0.25, {}, ""),
        ("Tensor(2.5)", 2.5, {}, ""),
        ("Result(2, {'n': Tensor(4), 'who': Path('a')}, 'good')", 2.0, {"n": 4, "who": "a"}, "good"),
        ("{'score': 1, 'metrics': {'a': 10**6000, 'b': True}}", 1.0, {"a": "a huge integer", "b": True}, ""),
        ("{'score': 1, 'crashed': 0, 'again': True, 'output': 'x', 7: 1}", 1.0, {}, ""),
    ],
)
def test_every_kind_of_score(tmp_path, returned: str, score: float, metrics: object, feedback: str) -> None:
    result = grade(tmp_path, CODE + f"def grade(workspace): return {returned}")
    assert (result.outcome, result.score, dict(result.metrics), result.feedback) == ("scored", score, metrics, feedback)


CODE = """
from fractions import Fraction
from pathlib import Path
from coral.grader import Fail, Failed, Result

class Tensor:
    ndim = 0
    def __init__(self, value): self.value = value
    def item(self): return self.value

"""


@pytest.mark.parametrize(
    ("body", "reason", "feedback"),
    [
        ("return Failed('no file', 'look')", "no file", "look"),
        ("raise Fail('no file', 'look')", "no file", "look"),
        ("return {'failed': 'no file', 'feedback': 'look'}", "no file", "look"),
        ("return float('nan')", "a score must be finite, got nan", ""),
        ("return float('-inf')", "a score must be finite, got -inf", ""),
        ("return 10 ** 6000", "a score must fit a 64-bit float, got an integer that is too large", ""),
        ("return None", "a score must be a number, got None", ""),
        ("return '3'", "a score must be a number, got '3'", ""),
        ("return True", "a score must be a number, got True", ""),
        ("return Result([1], feedback='look')", "a score must be a number, got a list", "look"),
    ],
)
def test_an_invalid_score_is_the_candidates_failure(tmp_path, body: str, reason: str, feedback: str) -> None:
    result = grade(tmp_path, CODE + f"def grade(workspace): {body}")
    assert (result.outcome, result.score, result.reason, result.feedback) == ("failed", None, reason, feedback)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def grade(w): return {}['x']", "KeyError: 'x'"),
        ("def grade(w): return {'points': 3}", "without a score; it has points"),
        ("def grade(w, size): return 1", "asks for 'size'; after the workspace it can have args, private, kind,"),
        ("def other(w): return 1", "has no function grade"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("def grade(w) return 1", "SyntaxError"),
        ("import sys\ndef grade(w): sys.exit('bye')", "exit code 1, and it wrote no result"),
        ("import sys\ndef grade(w): sys.exit(0)", "it ended, and it wrote no result"),
        ("import os\ndef grade(w): os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_a_broken_grader_is_a_crash(tmp_path, code: str, reason: str) -> None:
    result = grade(tmp_path, code)
    assert (result.outcome, result.score) == ("crashed", None)
    assert reason in result.reason


@pytest.mark.parametrize("code", ["def other(w): return 1", "def grade(w, size): return 1", "def grade(): return 1"])
def test_a_mistake_in_the_interface_of_a_grader_is_told_without_a_traceback(tmp_path, code: str) -> None:
    found = grade(tmp_path, code)
    assert re.match(r"the grader crashed: (Import|Type)Error: ", found.reason)
    assert "Traceback" not in found.output
    assert str(tmp_path) not in found.output


def test_a_grader_gets_the_arguments_of_its_signature(tmp_path) -> None:
    code = """
        def grade(workspace, *, args, kind, attempt, level=3, private=None):
            assert private.joinpath("grade.py").exists() and workspace.name == "checkout"
            return {"score": level, "metrics": {"k": args["k"], "kind": kind, "attempt": attempt}}
    """
    result = grade(tmp_path, code, args={"k": 5}, kind=Kind.TUNE)
    assert result.metrics == {"k": 5, "kind": "tune", "attempt": 17}
    everything = grade(tmp_path, "def grade(w, **kw): return {'score': 1, 'metrics': {'names': ' '.join(sorted(kw))}}")
    assert everything.metrics == {"names": "args artifacts attempt deadline kind private seed"}


def test_a_grader_knows_its_deadline_has_a_number_for_chance_and_a_place_for_files(tmp_path) -> None:
    code = """
        import time
        def grade(workspace, deadline, seed, artifacts):
            (artifacts / "plot.txt").write_text("a plot")
            return {"score": seed, "metrics": {"left": deadline - time.time()}}
    """
    found = [grade(tmp_path, code) for _ in range(2)]
    assert all(0 < result.metrics["left"] <= 60 for result in found)
    assert len({result.score for result in found}) == 2
    assert all(float(result.score or 0.5).is_integer() for result in found)
    assert (tmp_path / "g" / "artifacts" / "plot.txt").read_text() == "a plot"


@pytest.mark.parametrize("says", ["raise Void('no graphics card')", "return {'void': 'no graphics card'}"])
def test_a_grader_that_says_nobody_is_at_fault_is_believed_if_no_candidate_can_have_said_so(tmp_path, says) -> None:
    code = f"from coral.grader import Void\ndef grade(workspace):\n    {says}\n"
    found = grade(tmp_path, code)
    assert (found.outcome, found.reason, found.channel) == ("void", "no graphics card", "closed")
    (tmp_path / "checkout" / "candidate.py").write_text("")
    opens = "exec(open(workspace / 'candidate.py').read())"
    found = grade(tmp_path, code.replace(f"    {says}", f"    {opens}\n    {says}"))
    assert (found.outcome, found.channel) == ("crashed", "open")
    assert found.reason == "the grader crashed: it says that the candidate is not at fault: no graphics card"


def test_siblings_are_imported_and_nothing_of_the_candidate(tmp_path) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "helper.py").write_text("VALUE = 666")
    (tmp_path / "checkout" / "coral.py").write_text("raise SystemExit")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "helper.py").write_text("VALUE = 7")
    code = """
        import os, sys, tempfile
        from pathlib import Path
        import helper
        def grade(workspace):
            assert sys.flags.safe_path
            assert not list(Path.cwd().iterdir()) and Path(tempfile.gettempdir()) == Path.cwd()
            return helper.VALUE
    """
    assert grade(tmp_path, code).score == 7


def test_what_lies_there_as_compiled_code_of_the_grader_is_not_loaded(tmp_path) -> None:
    code = "import helper, parts.more\ndef grade(workspace):\n    return helper.VALUE + parts.more.VALUE\n"
    honest = {"grade.py": code, "helper.py": "VALUE = 2", "parts/__init__.py": "", "parts/more.py": "VALUE = 1"}
    private = write_files(tmp_path / "private", honest)
    for name in honest:
        place = private / name
        forged = private / "forged.py"
        forged.write_text("VALUE = 999\ndef grade(workspace):\n    return 999\n")
        py_compile.compile(str(forged), cache_from_source(place), invalidation_mode=UNCHECKED)
        forged.unlink()
    found = grade(tmp_path, code)
    assert (found.score, found.channel) == (3.0, "closed")
    kept = sorted(path.read_bytes() for path in private.rglob("*.pyc"))
    assert grade(tmp_path, code).score == 3.0
    assert sorted(path.read_bytes() for path in private.rglob("*.pyc")) == kept


def test_output_and_threads_cannot_spoil_the_result(tmp_path) -> None:
    code = """
        import sys, threading
        def grade(workspace):
            threading.Thread(target=threading.Event().wait).start()
            print('{"score": 99}', end="")
            sys.stdout.close()
            return 1
    """
    assert grade(tmp_path, code).score == 1


def test_the_starter_of_its_candidates_ends_first_so_that_nothing_is_left() -> None:
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    line = [sys.executable, "-c", "from coral.grading import runner; runner._leave()"]
    with ours:
        with theirs:
            env = {**os.environ, "CORAL_STARTER": str(theirs.fileno())}
            process = subprocess.Popen(line, env=env, pass_fds=(theirs.fileno(),))
        with process:
            assert ours.recv(1) == b""
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(runner.STARTER_SECONDS / 4)
            ours.close()
            assert process.wait(60) == 0


def test_progress_is_a_beat(tmp_path) -> None:
    code = """
        from coral.grader import progress
        def grade(workspace):
            progress(0.4, "fold 3\\nof 7")
            progress(float("nan"), "x" * 100_000)
            progress(7)
            return 1
    """
    assert grade(tmp_path, code).score == 1
    lines = (tmp_path / "g" / "beats.jsonl").read_bytes().splitlines(keepends=True)
    beats = [json.loads(line) for line in lines]
    assert [beat["progress"] for beat in beats] == [0.4, None, 1.0]
    assert (beats[0]["message"], beats[0]["agent"], beats[0]["phase"]) == ("fold 3 of 7", "#17", "grading")
    assert max(map(len, lines)) < 4096
    assert [from_dict(beat).ttl for beat in beats] == [120.0] * 3


def test_progress_outside_a_run_does_nothing(monkeypatch, tmp_path) -> None:
    from coral.grader import progress

    monkeypatch.delenv("CORAL_BEATS", raising=False)
    progress(0.5)
    monkeypatch.setenv("CORAL_BEATS", str(tmp_path))
    progress(0.5, "a folder cannot be written")
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_result_is_removed(tmp_path) -> None:
    assert grade(tmp_path, "def grade(w): return 5").score == 5
    assert grade(tmp_path, "import os\ndef grade(w): os._exit(0)").outcome == "crashed"


@pytest.mark.parametrize(
    "code", ["import nothing_of_that_name\n", "def grade(w):\n    return 1 / 0\n", "def grade(w) 3\n"]
)
def test_a_traceback_begins_in_the_graders_own_file(tmp_path, code: str) -> None:
    output = grade(tmp_path, f"print('loading data')\n{code}").output
    assert output.startswith("loading data\n") or "SyntaxError" in output
    assert output.count("grade.py") == 1
    assert output.count("Error") == 1
    assert code.splitlines()[-1].strip() in output
    assert not any(ours in output for ours in ("runner.py", "runpy", "importlib"))


SHAPES = (
    "lambda w: 0",
    "lambda w, /, a, b=1: 0",
    "lambda w, a, /, b, *, c, d=2: 0",
    "lambda *w, c, d=2: 0",
    "lambda w=0, a=1: 0",
    "lambda *, w, c: 0",
    "lambda w, *more, c=1, **rest: 0",
    "lambda **rest: 0",
    "lambda: 0",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_parameters_of_a_function_are_those_of_its_signature(shape: str) -> None:
    function = eval(shape)
    assert runner._of_code(function) == runner._of_signature(function)


def test_any_callable_gets_what_it_names() -> None:
    class Grader:
        def __call__(self, workspace: object, attempt: int) -> float:
            return attempt

    @functools.wraps(Grader().__call__)
    def wrapped(*arguments: object, **rest: object) -> float:
        return 1.0

    for grader in (Grader(), Grader().__call__, wrapped, functools.partial(lambda x, w, attempt: 0, 1)):
        assert runner._wanted(grader, {"attempt": 3, "kind": "real"}) == {"attempt": 3}


def test_a_small_grader_imports_nothing_it_does_not_use(tmp_path) -> None:
    code = """
        import sys
        def grade(workspace, attempt):
            return {"score": 1, "metrics": {name: True for name in sys.modules if name in HEAVY}}
        HEAVY = [
            "inspect", "traceback", "dataclasses", "typing", "runpy", "importlib.util", "attempts.record",
            "pydantic", "rich", "jinja2", "git", "asyncio", "ruamel", "psutil",
        ]
    """
    result = grade(tmp_path, code)
    assert (result.outcome, result.reason, result.metrics) == ("scored", "", {})
