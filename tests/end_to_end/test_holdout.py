"""A run with a hold-out: its scores are the operator's, beside those of the agents, and reach no file of an agent's."""

import json
from pathlib import Path

from files import write_files
from real_runs import coral_process, tries, wait_until, write_task

from workspace.layout import Layout, runs_under

# The score rewards the number, the hold-out what is near to one: as with a metric that agents overfit.
HOLD = """\
def grade(workspace, kind, attempt, args):
    value = float((workspace / 'x.txt').read_text())
    assert kind == 'holdout' and args['split'] == 'test' and args['own'], (kind, args)
    return 0.12345678 * (3 - abs(value - 1))
"""
EXTRA = "holdout: {entry: hold.py:grade, args: {split: test}}\n"


def task_with_hold_out(folder: Path, *values: object) -> Path:
    made = write_task(folder, tries(*values), extra=EXTRA)
    text = (made / "task.yaml").read_text().replace("  noise: 0\n", "  noise: 0\n  args: {own: true, split: train}\n")
    return write_files(made, {"task.yaml": text, "hold.py": HOLD})


def started(tmp_path: Path, *values: object) -> tuple[Layout, str]:
    task = task_with_hold_out(tmp_path / "task", *values)
    done = coral_process("start", str(task), "--plain", f"budget.attempts={len(values)}", cwd=tmp_path, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    (layout,) = runs_under(tmp_path / "runs")
    return layout, done.stdout


def held_out(value: float) -> float:
    return 0.12345678 * (3 - abs(value - 1))


def test_the_seed_and_each_best_stand_beside_their_scores_on_it_with_what_it_contradicts(tmp_path) -> None:
    _, said = started(tmp_path, 1, 0.5, 1.5, 4, 3)
    table = said.partition("The hold-out, which agents never saw")[2].partition("Best score over time")[0]
    lines = {line.split()[0]: line for line in table.splitlines() if line.strip()[:1].isdigit()}
    assert list(lines)[:4] == ["0", "1", "3", "4"]
    assert "the seed" in lines["0"]
    assert "is better" not in lines["1"]
    assert "#1 is better on the hold-out" in lines["3"]
    assert "no gain over the seed on the hold-out" in lines["4"]
    status = json.loads(coral_process("status", "--json", cwd=tmp_path).stdout)
    assert [
        (row["number"], row["score"], row["holdout"], row["divergence"], row["by"]) for row in status["holdout"]
    ] == [
        (0, 0.0, held_out(0), None, None),
        (1, 1.0, held_out(1), None, None),
        (3, 1.5, held_out(1.5), "overtaken", 1),
        (4, 4.0, held_out(4), "no_gain", None),
    ]
    screen = coral_process("status", cwd=tmp_path, COLUMNS="200").stdout
    assert "hold-out #4 0, the seed 0.24691356: no gain over the seed on the hold-out" in screen
    assert "hold-out" in coral_process("show", "3", cwd=tmp_path).stdout
    assert "hold-out" not in coral_process("show", "2", cwd=tmp_path).stdout
    assert coral_process("replay", cwd=tmp_path).returncode == 0


def test_no_score_on_it_is_where_an_agent_reads(tmp_path) -> None:
    layout, _ = started(tmp_path, 1, 2)
    secret = "0.24691356"
    for path in layout.root.rglob("*"):
        if path.is_file() and not path.is_relative_to(layout.private):
            assert secret.encode() not in path.read_bytes(), path
    assert secret in layout.holdout_scores.read_text()
    for words in (["status"], ["status", "--json"], ["show", "1"], ["log", "--json"]):
        for where, env in ((layout.clone("agent-1"), {}), (tmp_path, {"CORAL_AGENT": "agent-1"})):
            done = coral_process(*words, "--run", str(layout.root), cwd=where, **env)
            assert done.returncode == 0
            assert "hold-out " not in done.stdout
            assert secret not in done.stdout
    prompts = [path.read_text() for path in layout.logs("agent-1").glob("*.prompt.md")]
    assert not any("hold-out" in text or "holdout" in text for text in prompts)


def test_a_supervisor_that_dies_while_grading_on_it_leaves_it_to_the_next(start, tmp_path) -> None:
    slow = HOLD.replace("def", "import os\nimport time\n\n\ndef", 1).replace(
        "    return", f"    while value and not os.path.exists('{tmp_path}/go'):\n        time.sleep(0.05)\n    return"
    )
    task = task_with_hold_out(tmp_path / "task", 1)
    (task / "hold.py").write_text(slow)
    run = start(task)
    wait_until(lambda: run.status().get("grading", {}).get("holdout") == [1], what="the grade on the hold-out")
    wait_until(lambda: (run.layout.grading(-2) / "spec.json").exists(), what="its start")
    run.kill()
    run.supervise()
    wait_until(lambda: run.fleet().run.id and -2 in run.fleet().pending, what="the new supervisor")
    (tmp_path / "go").touch()
    wait_until(lambda: 1 in run.fleet().holdouts, what="the score")
    assert run.fleet().holdouts[1].score == held_out(1)
    run.stop()
    assert [attempt.number for attempt in run.attempts()] == [1]
