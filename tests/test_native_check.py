"""The public check as a service: fast, and alive whatever a check does to its process."""

import os
from pathlib import Path

import psutil
import pytest

from coral.native.search.check import Check, CheckBroken, copy_workspace

pytestmark = pytest.mark.slow
PLAIN = "import json, os\ndef check(folder):\n    return json.load(open(os.path.join(folder, 'p.json')))['x']\n"


@pytest.fixture
def service(tmp_path):
    made = []

    def make(source, spec="check.py:check", seconds=5.0, **files):
        seed = tmp_path / f"seed{len(made)}"
        seed.mkdir()
        (seed / "check.py").write_text(source)
        (seed / "p.json").write_text('{"x": 1.5}')
        for name, text in files.items():
            (seed / f"{name}.py").write_text(text)
        made.append(Check(seed, spec, tmp_path / f"scratch{len(made)}", seconds))
        return made[-1]

    yield make
    for each in made:
        each.close()


def candidate(value: object) -> dict[str, str]:
    return {"p.json": f'{{"x": {value}}}'}


def test_outcomes_come_in_order(service):
    check = service(PLAIN)
    outcomes = check.measure([candidate(k) for k in range(300)])
    assert [outcome.score for outcome in outcomes] == list(range(300))
    assert check.measure([{}])[0].score == 299


def test_thousands_of_candidates_are_measured_by_one_process(service):
    """What makes a thousand of them a second: no process is started for each, and nobody waits for the one before."""
    check = service("import os\ndef check(folder):\n    return os.getpid()\n")
    check.measure([candidate(0)])
    handed = []
    check._exchange = lambda batch, exchange=check._exchange: handed.append(len(batch)) or exchange(batch)
    outcomes = check.measure([candidate(k) for k in range(2000)])
    assert len({outcome.score for outcome in outcomes}) == 1
    assert handed == [2000]


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
def test_what_is_no_score_is_an_error_of_the_candidate(service, returned, error):
    check = service(f"def check(folder):\n    return {returned}\n")
    outcomes = check.measure([candidate(1), candidate(2)])
    assert [error in outcome.error or "ended its process" in outcome.error for outcome in outcomes] == [True, True]
    assert not outcomes[0].feasible


def test_slack_decides_what_is_feasible(service):
    check = service(PLAIN.replace("['x']", "") + "\ninner = check\ndef check(folder):\n    return inner(folder)['x']\n")
    text = "import json\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n"
    check = service(text + "    return {'score': x, 'slack': [x, 1 - x]}\n")
    low, inside, edge = check.measure([candidate(-0.5), candidate(0.25), candidate(1)])
    assert (low.feasible, inside.feasible, edge.feasible) == (False, True, True)
    assert list(inside.slack) == [0.25, 0.75]


def test_a_check_that_kills_its_process_costs_one_candidate(service):
    crash = "    if x == 7:\n        os._exit(3)\n    return x\n"
    check = service("import json, os\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n" + crash)
    outcomes = check.measure([candidate(k) for k in range(20)])
    assert [k for k, outcome in enumerate(outcomes) if outcome.error] == [7]
    assert [outcome.score for k, outcome in enumerate(outcomes) if k != 7] == [k for k in range(20) if k != 7]


def test_a_check_that_hangs_costs_one_candidate(service):
    hang = "    while x == 2:\n        pass\n    return x\n"
    source = "import json\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n" + hang
    check = service(source, seconds=0.5)
    outcomes = check.measure([candidate(k) for k in range(4)])
    assert "no answer" in outcomes[2].error
    assert [outcome.score for k, outcome in enumerate(outcomes) if k != 2] == [0, 1, 3]


def test_what_a_check_prints_or_reads_disturbs_nothing(service):
    noise = "    print('x' * 100000)\n    os.write(1, b'noise')\n    assert not sys.stdin.read()\n    return 4\n"
    check = service("import os, sys\ndef check(folder):\n" + noise)
    assert check.measure([candidate(1)] * 3)[2].score == 4


def test_modules_of_the_candidate_are_read_afresh(service):
    check = service("def check(folder):\n    import solution\n    return solution.X\n", solution="X = 1\n")
    outcomes = check.measure([{"solution.py": f"X = {k}\n"} for k in (1, 2, 3, 2)])
    assert [outcome.score for outcome in outcomes] == [1, 2, 3, 2]


@pytest.mark.parametrize(
    ("source", "spec", "said"),
    [
        ("def check(:", "check.py:check", "SyntaxError"),
        ("x = 1", "check.py:check", "AttributeError"),
        ("x = 1", "check.py:x", "not a function"),
        ("x = 1", "missing.py:check", "missing.py"),
        ("import os\nos._exit(1)", "check.py:check", "did not start"),
        ("class Odd(Exception): pass\nraise Odd('half \\ud800')", "check.py:check", "cannot load .* Odd: half"),
    ],
)
def test_a_check_that_cannot_be_loaded_says_why(service, source, spec, said):
    with pytest.raises(CheckBroken, match=said):
        service(source, spec).measure([candidate(1)])


def test_whatever_a_check_raises_is_its_answer_and_the_next_candidate_is_measured(service):
    odd = "class Odd(Exception):\n    pass\n\ndef check(folder):\n    x = json.load(open(folder + '/p.json'))['x']\n"
    check = service("import json\n" + odd + "    if x == 2:\n        raise Odd('half \\ud800')\n    return x\n")
    outcomes = check.measure([candidate(k) for k in (1, 2, 3)])
    assert [(each.score, each.error) for each in outcomes] == [(1, ""), (0, "Odd: half ?"), (3, "")]


def test_nothing_is_left_behind(service):
    check = service("import time\ndef check(folder):\n    time.sleep(60)\n", seconds=0.2)
    check.measure([candidate(1)])
    check.measure([candidate(1)])
    check.close()
    mine = psutil.Process(os.getpid()).children(recursive=True)
    assert [child for child in mine if "check_child" in " ".join(child.cmdline())] == []


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
