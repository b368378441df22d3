"""Every example: its grader holds, its seed grades, a reference solution is within its reach, a fleet improves it."""

import json
import shlex
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from files import load_module
from real_runs import coral_process

from attempts.record import Direction
from attempts.store import Store
from coral.config.load import load
from coral.grader import Fail, Void
from coral.grading.once import grade_once
from workspace.layout import runs_under

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
REFERENCES = ROOT / "tests" / "fixtures" / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/task.yaml"))

# example: the seed's score, the file that agents change, the reference in its place, what that scores at least
SCORES = {
    "circle_packing": (1.82, "circles.json", "circle_packing.json", 2.63598308),
    "min_max_distance": (18.0, "points.json", "min_max_distance.json", 12.8892300),
    "erdos_overlap": (0.40731, "heights.json", "erdos_overlap.json", 0.380953),
    "faster_function": (None, "nearest.py", "faster_function.py", 1.0),
    "tabular_model": (2.47238, "settings.json", "tabular_model.json", 1.1),
    "ticket_prompt": (0.0, "prompt.md", "ticket_prompt.md", 1.0),
}
ATTACKS = {"min_max_distance": 13, "erdos_overlap": 13, "faster_function": 20, "tabular_model": 31, "ticket_prompt": 3}
LITTLE = {"faster_function": ["grader.args={rounds: 1, words: 60, queries: 3}"]}  # a grade of a tenth of a second
SEARCHED = {"min_max_distance": 13.1, "erdos_overlap": 0.40, "tabular_model": 2.3}  # by numbers; what is soon reached


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("runs", "__pycache__")))


def module(name: str, path: str = "grade.py"):
    return load_module(EXAMPLES / name / path)


def test_every_example_is_tested() -> None:
    assert sorted(SCORES) == NAMES
    assert sorted([*ATTACKS, "circle_packing"]) == NAMES  # that one is audited with the graders of ours


@pytest.mark.parametrize("name", SCORES)
def test_the_seed_has_a_score_and_a_reference_a_better_one(tmp_path: Path, name: str) -> None:
    seed, file, reference, reached = SCORES[name]
    config = load(EXAMPLES / name, ())
    if seed is not None:  # else it is noisy; the audit grades it
        assert grade_once(config, tmp_path / "seed").score == pytest.approx(seed, rel=1e-5)
    better = copied(name, tmp_path)
    shutil.copy(REFERENCES / reference, better / "seed" / file)
    found = grade_once(load(better, ()), tmp_path / "better")
    assert found.score is not None, found.reason
    is_reached = found.score >= reached if config.grader.direction is Direction.MAXIMIZE else found.score <= reached
    assert is_reached, found


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_gets_through(tmp_path: Path, name: str) -> None:
    done = coral_process("audit", str(EXAMPLES / name), *LITTLE.get(name, ()), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"None of {ATTACKS[name]} attacks got through" in done.stdout
    assert "✗" not in done.stdout


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", SEARCHED)
def test_a_built_in_agent_improves_it(tmp_path: Path, name: str) -> None:
    overrides = [
        f"budget.target={SEARCHED[name]}",
        "agents.count=1",
        "agents.options={seconds: 1}",
        "budget.hours=0.05",
    ]
    done = coral_process("start", str(EXAMPLES / name), *overrides, "--plain", cwd=tmp_path, seconds=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (layout,) = runs_under(tmp_path / "runs")
    scores = [Store(layout.attempts).read(number).score for number in Store(layout.attempts).numbers()]
    assert min(score for score in scores if score is not None) <= SEARCHED[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_its_page_are_about_it(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in text.partition("```sh\n")[2].partition("```")[0].splitlines()]
    assert len(commands) == 2
    assert {words[0] for words in commands} == {"coral"}
    assert {words[2] for words in commands} == {f"examples/{name}"}
    files = [line.split("`")[1] for line in text.partition("| file |")[2].splitlines() if line.startswith("| `")]
    assert files
    assert [file for file in files if not (EXAMPLES / name / file).is_file()] == []


def refused(grade, *arguments: object) -> str:
    with pytest.raises(Fail) as fail:
        grade(*arguments)
    return fail.value.reason


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([[0.0, 0.0]] * 16, "points 0 and 1 are the same"),
        ([[float(k), 0.0] for k in range(15)], "there are 15 points"),
        ([[float(k), 2e6] for k in range(16)], "y of point 0 is not a number"),
        ([[str(k), 0.0] for k in range(16)], "x of point 0 is not a number"),
    ],
)
def test_points_that_are_none_are_refused(tmp_path: Path, points: list[list[object]], said: str) -> None:
    rows = [{"x": x, "y": y} for x, y in points]
    (tmp_path / "points.json").write_text(json.dumps({"points": rows, "bound": 1.0}))
    assert said in refused(module("min_max_distance").grade, tmp_path)


def test_the_ratio_comes_from_the_points_alone(tmp_path: Path) -> None:
    """A row of 16 points has 15 steps; a bound that lies changes nothing, nor does the scale."""
    for step in (1e-300, 1.0, 0.1):
        rows = [{"x": k * step if step != 0.1 else k / 16, "y": 0} for k in range(16)]
        (tmp_path / "points.json").write_text(json.dumps({"points": rows, "bound": 1.0}))
        assert module("min_max_distance").grade(tmp_path).score == pytest.approx(225.0)


@pytest.mark.parametrize("name", ["min_max_distance", "erdos_overlap"])
def test_the_check_agrees_with_the_grader_about_a_bound(tmp_path: Path, name: str) -> None:
    """A bound a hair above what the grader says holds; one a hair below is broken."""
    file = SCORES[name][1]
    data = json.loads((REFERENCES / f"{name}.json").read_text())
    (tmp_path / file).write_text(json.dumps(data))
    exact, check = module(name).grade(tmp_path).score, module(name, "seed/check.py")
    if "points" in data:  # the check wants the smallest distance to be 1
        closest = min(check.squared_distances(data["points"]))
        data["points"] = [{axis: row[axis] * (1 + 1e-13) / closest**0.5 for axis in "xy"} for row in data["points"]]
    for change, holds in ((1 + 1e-9, True), (1 - 1e-9, False)):
        (tmp_path / file).write_text(json.dumps({**data, "bound": exact * change}))
        found = check.check(str(tmp_path))
        assert found["score"] == exact * change
        assert (min(found["slack"]) > -1e-12) == holds


def test_the_overlap_is_the_integral_at_every_shift() -> None:
    """Against the definition: the product of f(x + k) and 1 - f(x), integrated piece by piece, between whole shifts
    too."""
    grade = module("erdos_overlap")
    heights = grade.normalised([Fraction(k * k % 7, 3) + Fraction(1, 5) for k in range(6)])
    count, exact = len(heights), grade.overlaps_of(heights)
    for thirds in range(-3 * count, 3 * count + 1):
        shift = Fraction(thirds, 3)  # in pieces
        total, step = Fraction(0), Fraction(1, 3)
        for k in range(3 * count):
            place, other = Fraction(k, 3), Fraction(k, 3) + shift
            if 0 <= other < count:
                total += heights[int(other)] * (1 - heights[int(place)]) * step
        total *= Fraction(2, count)
        assert total <= max(exact)
        if shift.denominator == 1 and abs(shift) < count:
            assert total == exact[int(shift) + count - 1]


@pytest.mark.parametrize(
    ("heights", "said"),
    [
        ([1, 0, 0, 0], "piece 0 is 2 high"),
        ([1, 1 - 2**-50, 0, 0], "piece 0 is 1 high once the area is 1; no piece may be above 1"),
        ([0, 0], "all heights are 0"),
        ([1], "there are 1 heights"),
        ([1, -1e-9, 1], "height 1 is neither 0 nor"),
        ([1, 1e-300, 1], "height 1 is neither 0 nor"),
        ([1, True, 1], "height 1 is neither 0 nor"),
        ([1] * 1001, "there are 1001 heights"),
    ],
)
def test_heights_that_are_none_are_refused(tmp_path: Path, heights: list[float], said: str) -> None:
    (tmp_path / "heights.json").write_text(json.dumps({"heights": heights}))
    assert said in refused(module("erdos_overlap").grade, tmp_path)


def test_a_thousand_pieces_are_graded_in_time(tmp_path: Path) -> None:
    heights = [1 + (k * 7919 % 1000) / 3001 for k in range(1000)]
    (tmp_path / "heights.json").write_text(json.dumps({"heights": heights}))
    assert 0.4 < module("erdos_overlap").grade(tmp_path).score < 0.6


def test_a_fast_function_that_is_wrong_fails(tmp_path: Path) -> None:
    folder = EXAMPLES / "faster_function"
    assert (folder / "reference.py").read_bytes() == (folder / "seed" / "nearest.py").read_bytes()
    args = {"rounds": 1, "words": 40, "queries": 3}
    text = (folder / "seed" / "nearest.py").read_text()
    for change, said in (
        (text.replace("range(len(words))", "reversed(range(len(words)))"), "answers are wrong"),
        (text.replace("for query in queries", "for query in queries[1:]"), "12 answers to 13 queries"),
    ):
        assert change != text
        (tmp_path / "nearest.py").write_text(change)
        assert said in refused(module("faster_function").grade, tmp_path, folder, args)
        with pytest.raises(ValueError):
            module("faster_function", "seed/check.py").check(str(tmp_path))


def test_the_tables_are_made_again_and_the_holdout_is_another_one(tmp_path: Path) -> None:
    make, folder = module("tabular_model", "make_data.py"), EXAMPLES / "tabular_model"
    make.make(tmp_path)
    assert [name for name in make.FILES if (tmp_path / name).read_bytes() != (folder / name).read_bytes()] == []
    config = load(folder, ())
    assert config.holdout_grader is not None
    grade = module("tabular_model").grade
    seen, hidden = (grade(folder / "seed", folder, part.args) for part in (config.grader, config.holdout_grader))
    assert (seen.score, hidden.score) == (pytest.approx(2.47238, rel=1e-5), pytest.approx(2.43403, rel=1e-5))


def test_the_prompts_of_the_page_score_what_it_says() -> None:
    folder = EXAMPLES / "ticket_prompt"
    answer = module("ticket_prompt", "ticket_model.py").answer
    hidden, known = (json.loads((folder / name).read_text()) for name in ("hidden.json", "seed/messages.json"))
    assert {message for message, _ in hidden} & {message for message, _ in known} == set()
    asked = "Answer with the label alone.\nLabels: billing, delivery, returns, technical\n"

    def examples(count: int) -> str:
        return "\n".join(f"{message} => {label}" for k, (message, label) in enumerate(known) if k % 6 < count)

    prompts = [(folder / "seed" / "prompt.md").read_text(), asked, asked + examples(1), asked + examples(5)]
    prompts += [asked + examples(6), f"{examples(6)}\n{asked}", (REFERENCES / "ticket_prompt.md").read_text()]
    right = [sum(answer(prompt, message) == label for message, label in hidden) for prompt in prompts]
    rows = (folder / "README.md").read_text().partition("| right, of 32 |")[2].splitlines()[2:9]
    assert right == [int(row.split("|")[2]) for row in rows]


def test_a_prompt_that_is_too_long_fails_and_a_model_that_is_away_is_not_its_fault(tmp_path: Path, monkeypatch) -> None:
    folder = EXAMPLES / "ticket_prompt"
    monkeypatch.syspath_prepend(str(folder))
    grade = module("ticket_prompt").grade
    (tmp_path / "prompt.md").write_text("x" * 1501)
    assert "1501 characters, more than 1500" in refused(grade, tmp_path, folder)
    (tmp_path / "prompt.md").write_text("Just the label.")
    monkeypatch.setenv("MODEL_URL", "http://127.0.0.1:9/v1/chat/completions")
    with pytest.raises(Void, match="cannot ask the model"):
        grade(tmp_path, folder)


def test_the_model_is_a_program_that_can_be_asked(monkeypatch) -> None:
    folder = EXAMPLES / "ticket_prompt"
    monkeypatch.syspath_prepend(str(folder))
    command = [sys.executable, "ticket_model.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip()
            said, tokens = module("ticket_prompt").ask(address, "Only the label.\nhammer => tools", "A hammer fell")
        finally:
            server.kill()
    assert said == "tools"
    assert tokens > 0
