"""Code of a candidate that gets into the grader's process is noticed before it runs, and that stays; without
it nobody but the grader can write the result."""

import importlib.util
import json
import marshal
import textwrap
from pathlib import Path

import pytest
from files import write_files
from grade_places import place_in

from coral.config.model import GraderSection
from coral.grading.command import prepare_folder
from coral.grading.kinds import kind_of, list_of
from coral.grading.once import run_grader
from coral.grading.result import GradeResult

HONEST = "def solve():\n    return 3\n"
HELPER = "import dataclasses, collections, enum\nPoint = collections.namedtuple('Point', 'x y')\n"


def graded(folder: Path, grader: str, candidate: str = HONEST, **private: str) -> GradeResult:
    files = {"grade.py": textwrap.dedent(grader), "helper.py": HELPER, **private}
    write_files(folder / "private", files)
    list_of(folder / "private").write_text(json.dumps({"files": list(files), "data": []}))
    write_files(folder / "checkout", {"solution.py": candidate, "data.json": "[1, 2]", "x.txt": "2 + 1"})
    section = GraderSection(entry="grade.py:grade")
    place = place_in(folder, attempt=3)
    command = kind_of(section).command(section, place)
    prepare_folder(command)
    return run_grader(command, 60)


CLOSED = {
    "reads data": "import json\ndef grade(w): return sum(json.loads((w / 'data.json').read_text()))",
    "uses its helpers": "import helper\ndef grade(w): return helper.Point(3, 4).x",
    "a library, late": "def grade(w):\n    import numpy as np\n    return np.ones(3).sum()",
    "makes classes": """
        def grade(w):
            (w / 'data.json').read_text()
            import dataclasses, collections
            made = dataclasses.make_dataclass('Made', ['x'])
            return made(3).x + collections.namedtuple('N', 'a')(0).a
    """,
    "pickles of its own": """
        import fractions, pickle
        own = pickle.loads(pickle.dumps(fractions.Fraction(1, 2)))
        def grade(w):
            return len((w / 'data.json').read_text()) + own
    """,
    "run_candidate": """
        from coral.grader import run_candidate
        def grade(w): return run_candidate(w, 'solution.py:solve', returns=float).value
    """,
    "processes of its own": """
        import multiprocessing
        def twice(x): return 2 * x
        def grade(w):
            with multiprocessing.get_context('fork').Pool(1) as pool:
                return sum(pool.map(twice, [1, 2]))
    """,
    "shared memory of its own": """
        from multiprocessing.shared_memory import SharedMemory
        def grade(w):
            block = SharedMemory(create=True, size=8)
            block.close()
            block.unlink()
            return 1
    """,
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_grader_that_runs_nothing_of_the_candidate_is_closed(tmp_path: Path, name: str) -> None:
    result = graded(tmp_path, CLOSED[name])
    assert (result.score is not None, result.reason, result.channel, result.opened) == (True, "", "closed", "")


OPEN = {
    "import": (
        "import sys\ndef grade(w):\n    sys.path.insert(0, str(w))\n    import solution\n    return solution.solve()",
        "it runs solution.py, grade.py line 4",
    ),
    "by a copy": (
        """
        import shutil, sys
        def grade(w):
            shutil.copy(w / 'solution.py', 'copied.py')
            sys.path.insert(0, '.')
            import copied
            return copied.solve()
        """,
        "it runs copied.py, grade.py line 6",
    ),
    "by a copy among its own files": (
        """
        import shutil
        def grade(w, private):
            shutil.copy(w / 'solution.py', private / 'copied.py')
            import copied
            return copied.solve()
        """,
        "it runs copied.py, grade.py line 5",
    ),
    "marshalled": (
        """
        import marshal, types
        def grade(w, private):
            (private / 'helper.py').read_text()
            code = marshal.loads(marshal.dumps(compile((w / 'solution.py').read_text(), __file__, 'exec')))
            found = {}
            types.FunctionType(code, found)()
            return found['solve']()
        """,
        "it loads solution.py, grade.py line 5",
    ),
    "runpy": (
        "import runpy\ndef grade(w): return runpy.run_path(str(w / 'solution.py'))['solve']()",
        "it runs solution.py, grade.py line 2",
    ),
    "exec": (
        "def grade(w):\n    found = {}\n    exec((w / 'solution.py').read_text(), found)\n    return found['solve']()",
        "it runs a text as code, grade.py line 3",
    ),
    "eval": ("def grade(w): return eval((w / 'x.txt').read_text())", "it runs a text as code, grade.py line 1"),
    "timeit": (
        "import timeit\ndef grade(w): return timeit.timeit((w / 'x.txt').read_text(), number=1) and 3",
        "it runs a text as code, by timeit.py, grade.py line 2",
    ),
    "a helper's": (
        "import helper\ndef grade(w): return helper.run(w)",
        "it runs a text as code, helper.py line 1",
    ),
    "subprocess": (
        "import subprocess\ndef grade(w): return float(subprocess.check_output(['echo', '3']))",
        "it starts a program (subprocess.Popen), grade.py line 2",
    ),
    "os.system": (
        "import os\ndef grade(w): return os.system('exit 0')",
        "it starts a program (os.system), grade.py line 2",
    ),
    "spawned": (
        """
        import multiprocessing
        def grade(w):
            with multiprocessing.get_context('spawn').Pool(1) as pool:
                return sum(pool.map(abs, [1, 2]))
        """,
        "it starts another Python, grade.py line 4",
    ),
    "pickle": (
        """
        import pickle
        def grade(w):
            (w / 'x.txt').read_bytes()
            return pickle.loads(b'cbuiltins\\nabs\\n(I-3\\ntR.')
        """,
        "it unpickles, grade.py line 5",
    ),
    "a library": (
        "import ctypes\ndef grade(w):\n    try: ctypes.CDLL(str(w / 'x.so'))\n    except OSError: return 3",
        "it loads x.so, grade.py line 3",
    ),
    "a library that executes a text": (
        """
        import typing
        def grade(w):
            def f(x: (w / 'x.txt').read_text()): pass
            return typing.get_type_hints(f) and 3
        """,
        "it runs a text as code, by typing.py, grade.py line 5",
    ),
    "a library by a path": (
        "import ctypes\ndef grade(w):\n    try: ctypes.CDLL(w / 'x.so')\n    except Exception: return 3",
        "it loads x.so, grade.py line 3",
    ),
    "compiled, under another name": (
        """
        import sys
        def grade(w):
            sys.path.insert(0, str(w))
            import compiled
            return compiled.solve()
        """,
        "it loads compiled.pyc, grade.py line 5",
    ),
    "compiled, of a package": (
        """
        import sys
        def grade(w):
            sys.path.insert(0, str(w))
            import package
            return package.solve()
        """,
        "it loads __init__.pyc, grade.py line 5",
    ),
    "an answer that is a pickle": (
        """
        import pickle
        from coral.grader import run_candidate
        def grade(w):
            return pickle.loads(run_candidate(w, ['printf', r'cbuiltins\\nabs\\n(I-3\\ntR.']).value)
        """,
        "it unpickles, grade.py line 5",
    ),
    "in a fork": (
        """
        import multiprocessing
        def evaluate(path): return eval(open(path).read())
        def grade(w):
            with multiprocessing.get_context('fork').Pool(1) as pool:
                return sum(pool.map(evaluate, [str(w / 'x.txt')]))
        """,
        "it runs a text as code, grade.py line 3",
    ),
    "by what libraries start their workers": (
        """
        import multiprocessing.util, os
        def grade(w):
            reading, writing = os.pipe()
            words = [b'sh', b'-c', b'echo 3 >&%d' % writing]
            started = multiprocessing.util.spawnv_passfds(b'/bin/sh', words, [writing])
            os.waitpid(started, 0)
            return float(os.read(reading, 10))
        """,
        "it starts a program (_posixsubprocess.fork_exec), grade.py line 6",
    ),
    "without a sandbox": (
        """
        from coral.grader import run_candidate
        def grade(w): return run_candidate(w, 'solution.py:solve', returns=float, seal=['none']).value
        """,
        "it starts a program (subprocess.Popen), grade.py line 3",
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_code_of_the_candidate_in_the_graders_process_is_noticed_and_placed(tmp_path: Path, name: str) -> None:
    grader, opened = OPEN[name]
    helper = {"helper.py": "def run(w): return eval((w / 'x.txt').read_text())\n"} if name == "a helper's" else {}
    for name in ("compiled.pyc", "package/__init__.pyc"):
        code = marshal.dumps(compile(HONEST, "<frozen importlib._bootstrap>", "exec"))
        (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkout" / name).write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + code)
    result = graded(tmp_path, grader, **helper)
    assert (result.score is not None, result.reason, result.channel, result.opened) == (True, "", "open", opened)


# What a candidate tried in the place of an answer. In the grader's process, it may get its way; it is never unnoticed.
FORGERIES = {
    "writes the file and leaves": """
        import json, os, pathlib
        (pathlib.Path.cwd().parent / 'result.json').write_text(json.dumps({'score': 999}))
        os._exit(0)
    """,
    "patches json": "import json\njson.dumps = lambda *_, **__: '{\"score\": 999}'",
    "registers an end": """
        import atexit, pathlib
        atexit.register(lambda: (pathlib.Path.cwd().parent / 'result.json').write_text('999'))
    """,
    "a child, later": """
        import os, pathlib, time
        path = pathlib.Path.cwd().parent / 'result.json'
        if os.fork() == 0:
            os.setsid()
            for _ in range(400):
                path.write_text('999')
                time.sleep(0.005)
            os._exit(0)
    """,
    "descriptors": """
        import os
        for fd in range(3, 64):
            try: os.write(fd, b'{"score": 999}')
            except OSError: pass
    """,
    "takes the notice back": """
        import os, sys
        for fd in range(3, 64):
            try: os.ftruncate(fd, 0)
            except OSError: pass
            try: os.close(fd)
            except OSError: pass
    """,
}
IMPORTS = "import sys\ndef grade(w):\n    sys.path.insert(0, str(w))\n    import solution\n    return solution.solve()"


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_in_the_graders_process_is_marked_and_outside_of_it_fails(tmp_path: Path, name: str) -> None:
    candidate = f"{textwrap.dedent(FORGERIES[name])}\n{HONEST}"
    inside = graded(tmp_path / "inside", IMPORTS, candidate)
    assert (inside.channel, inside.opened) == ("open", "it runs solution.py, grade.py line 4")
    if name not in ("patches json", "takes the notice back"):
        assert inside.score in (3.0, None)
    outside = graded(tmp_path / "outside", textwrap.dedent(CLOSED["run_candidate"]), candidate)
    assert (outside.score in (3.0, None), outside.channel) == (True, "closed")


def test_thousands_of_forks_that_notice_it_hold_nobody_up(tmp_path: Path) -> None:
    grader = """
        import os
        def grade(w):
            for _ in range(2500):
                if os.fork() == 0:
                    eval("1")
                    os._exit(0)
                os.wait()
            return 3
    """
    assert graded(tmp_path, grader).score == 3.0
