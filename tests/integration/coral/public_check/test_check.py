"""The public check in a child process: fast, and replaced whatever a check does to its process."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from coral.public_check.check import CheckBroken, PublicCheck, copy_workspace

PLAIN = "import json, os\ndef check(folder):\n    return json.load(open(os.path.join(folder, 'p.json')))['x']\n"


@pytest.fixture
def make_check(tmp_path):
    made = []

    def make(source, spec="check.py:check", seconds=5.0, **files):
        seed = tmp_path / f"seed{len(made)}"
        seed.mkdir()
        (seed / "check.py").write_text(source)
        (seed / "p.json").write_text('{"x": 1.5}')
        for name, text in files.items():
            (seed / f"{name}.py").write_text(text)
        made.append(PublicCheck(seed, spec, tmp_path / f"scratch{len(made)}", seconds))
        return made[-1]

    yield make
    for check in made:
        check.close()


def candidate(value: object) -> dict[str, str]:
    return {"p.json": f'{{"x": {value}}}'}


def test_measured_come_in_order(make_check):
    check = make_check(PLAIN)
    measured = check.measure([candidate(k) for k in range(300)])
    assert [measurement.score for measurement in measured] == list(range(300))
    assert check.measure([{}])[0].score == 299


def test_thousands_of_candidates_are_measured_by_one_process(make_check):
    """That is what makes a thousand a second: no process is started for one, and none waits for the one before."""
    check = make_check("import os\ndef check(folder):\n    return os.getpid()\n")
    check.measure([candidate(0)])
    batches = []
    check._exchange = lambda batch, exchange=check._exchange: batches.append(len(batch)) or exchange(batch)
    measured = check.measure([candidate(k) for k in range(2000)])
    assert len({measurement.score for measurement in measured}) == 1
    assert batches == [2000]


@pytest.mark.parametrize(("environment", "threads"), [(None, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)])
def test_it_has_the_environment_that_it_is_given(make_check, monkeypatch, environment, threads):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    check = make_check("import os\ndef check(folder):\n    return int(os.environ['OPENBLAS_NUM_THREADS'])\n")
    check.environment = environment
    assert check.measure([{}])[0].score == threads


def test_it_is_warm_after_one_measurement(make_check):
    check = make_check("calls = []\ndef check(folder):\n    calls.append(0)\n    return len(calls)\n")
    check.warm_up()
    check.warm_up()
    assert check.measure([candidate(0)])[0].score == 2


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        ("'text'", "TypeError"),
        ("None", "TypeError"),
        ("True", "TypeError"),
        ("float('nan')", "ValueError"),
        ("10**400", "OverflowError"),
        ("{'slack': [1.0]}", "KeyError"),
        ("{'score': 1.0, 'slack': [float('nan')]}", "ValueError"),
        ("1 / 0", "ZeroDivisionError"),
        ("exit()", "SystemExit"),
    ],
)
def test_what_is_no_score_is_an_error_of_the_candidate(make_check, returned, error):
    check = make_check(f"def check(folder):\n    return {returned}\n")
    measured = check.measure([candidate(1), candidate(2)])
    assert [error in measurement.error or "ended its process" in measurement.error for measurement in measured] == [
        True,
        True,
    ]
    assert not measured[0].feasible


def test_slack_decides_what_is_feasible(make_check):
    text = "import json\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n"
    check = make_check(text + "    return {'score': x, 'slack': [x, 1 - x]}\n")
    low, inside, edge = check.measure([candidate(-0.5), candidate(0.25), candidate(1)])
    assert (low.feasible, inside.feasible, edge.feasible) == (False, True, True)
    assert list(inside.slack) == [0.25, 0.75]


def test_a_check_that_kills_its_process_costs_one_candidate(make_check):
    crash = "    if x == 7:\n        os._exit(3)\n    return x\n"
    check = make_check(
        "import json, os\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n" + crash
    )
    measured = check.measure([candidate(k) for k in range(20)])
    assert [k for k, measurement in enumerate(measured) if measurement.error] == [7]
    assert [measurement.score for k, measurement in enumerate(measured) if k != 7] == [k for k in range(20) if k != 7]


def test_a_check_whose_process_was_killed_meanwhile_is_started_again(make_check):
    """The request stays in the pipe of the first process."""
    check = make_check(PLAIN)
    check.measure([candidate(1)])
    os.killpg(check._child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, check._child.pid, os.WEXITED | os.WNOWAIT)
    assert [measurement.score for measurement in check.measure([candidate(k) for k in (2, 3)])] == [2, 3]


def test_a_check_that_hangs_costs_one_candidate(make_check):
    hang = "    while x == 2:\n        pass\n    return x\n"
    source = "import json\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n" + hang
    check = make_check(source, seconds=5)
    measured = check.measure([candidate(k) for k in range(4)])
    assert "no answer" in measured[2].error
    assert [measurement.score for k, measurement in enumerate(measured) if k != 2] == [0, 1, 3]


@pytest.mark.parametrize("answers", [True, False])
def test_a_check_that_never_answers_in_time_is_of_no_use(make_check, answers):
    """One that has answered may be measuring where it takes long."""
    sleep = "    time.sleep(json.load(open(folder + '/p.json'))['x'])\n    return 1\n"
    check = make_check("import json, time\ndef check(folder):\n" + sleep, seconds=0.3)
    if answers:
        check.measure([candidate(0)])
    assert all("no answer" in check.measure([candidate(9)])[0].error for _ in range(3))
    if answers:
        assert "no answer" in check.measure([candidate(9)])[0].error
    else:
        with pytest.raises(CheckBroken, match=r"within 0\.3 s, 4 times"):
            check.measure([candidate(9)])


def test_what_a_check_prints_or_reads_disturbs_nothing(make_check):
    noise = "    print('x' * 100000)\n    os.write(1, b'noise')\n    assert not sys.stdin.read()\n    return 4\n"
    check = make_check("import os, sys\ndef check(folder):\n" + noise)
    assert check.measure([candidate(1)] * 3)[2].score == 4


def test_modules_of_the_candidate_are_read_afresh(make_check):
    check = make_check("def check(folder):\n    import solution\n    return solution.X\n", solution="X = 1\n")
    measured = check.measure([{"solution.py": f"X = {k}\n"} for k in (1, 2, 3, 2)])
    assert [measurement.score for measurement in measured] == [1, 2, 3, 2]


@pytest.mark.parametrize(
    ("source", "spec", "message"),
    [
        ("def check(:", "check.py:check", "SyntaxError"),
        ("x = 1", "check.py:check", "AttributeError"),
        ("x = 1", "check.py:x", "not a function"),
        ("x = 1", "missing.py:check", "missing.py"),
        ("import os\nos._exit(1)", "check.py:check", "did not start"),
        ("class Odd(Exception): pass\nraise Odd('half \\ud800')", "check.py:check", "cannot load .* Odd: half"),
    ],
)
def test_a_check_that_cannot_be_loaded_says_why(make_check, source, spec, message):
    with pytest.raises(CheckBroken, match=message):
        make_check(source, spec).measure([candidate(1)])


def test_whatever_a_check_raises_is_its_answer_and_the_next_candidate_is_measured(make_check):
    odd = "class Odd(Exception):\n    pass\n\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n"
    check = make_check("import json\n" + odd + "    if x == 2:\n        raise Odd('half \\ud800')\n    return x\n")
    measured = check.measure([candidate(k) for k in (1, 2, 3)])
    assert [(measurement.score, measurement.error) for measurement in measured] == [
        (1, ""),
        (0, "Odd: half ?"),
        (3, ""),
    ]


def test_nothing_is_left_behind(make_check):
    check = make_check("import time\ndef check(folder):\n    time.sleep(60)\n", seconds=0.2)
    check.measure([candidate(1)])
    check.measure([candidate(1)])
    check.close()
    assert [child for child in psutil.Process(os.getpid()).children(recursive=True) if runs_check_child(child)] == []


def runs_check_child(process: psutil.Process) -> bool:
    """A process that has ended, of this test or of another, runs nothing any more."""
    try:
        return "check_child" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # a zombie, too
        return False


def test_the_scratch_copy_holds_the_files_and_no_links(tmp_path):
    seed = tmp_path / "seed"
    (seed / "sub").mkdir(parents=True)
    (seed / ".git").mkdir()
    (seed / "sub" / "a.txt").write_text("a")
    (seed / ".shared").symlink_to(tmp_path)
    (seed / "link").symlink_to("/etc/passwd")
    os.mkfifo(seed / "pipe")
    scratch = tmp_path / "scratch"
    (scratch / "old").mkdir(parents=True)
    copy_workspace(seed, scratch)
    assert sorted(p.relative_to(scratch) for p in scratch.rglob("*")) == [Path("sub"), Path("sub/a.txt")]
