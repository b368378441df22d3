"""The benchmarks say what was measured and no more: their statistics, their page, and what they leave behind."""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given, strategies as st
from real_runs import wait_until

from benchmarks import cluster, dashboard, history, native, packing, packing_page, page, prompts, tabs
from benchmarks.__main__ import ALL, PAGE, RESULTS, _arguments
from benchmarks.arena import agents_run, arena
from benchmarks.benchmark import Ask
from benchmarks.figure import Target, check, median, percentile, summarize
from benchmarks.problems.problems import PROBLEMS, strict_score
from benchmarks.results import Machine, Result, read, read_all, write
from benchmarks.table import origin
from coral.reading.timeline import PublishedClocks

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MACHINE = Machine(cores=2, system="Linux", python="3.11.7", git="2.39.5", load=0.5, disk="ext4")
VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=300)


def result(name: str, **series: list[float]) -> Result:
    return Result(name, "2030-01-02", MACHINE, {"seconds": 120.0}, series)


def test_percentiles_are_measured_values_of_nearest_rank() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, percent) for percent in (10, 50, 90, 99, 100)] == [10, 50, 90, 99, 100]
    assert percentile([3.0, 1.0, 2.0], 99) == 3.0
    assert percentile([5.0], 10) == 5.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 50)
    with pytest.raises(ValueError, match="nothing"):
        median([])


@given(VALUES)
def test_summaries_are_in_order(values: list[float]) -> None:
    found = summarize(values)
    assert found.least <= found.p10 <= found.p90 <= found.p99 <= found.most
    assert found.least <= found.median <= found.most
    assert {found.p10, found.p90, found.p99} <= set(values)
    assert found.count == len(values)


def test_a_missed_target_says_by_how_much() -> None:
    met = check("it", [10.0, 20.0], Target(median=15, p99=20), "ms")
    assert (met.met, met.targets) == (True, ("median 15 ms: met", "p99 20 ms: met"))
    missed = check("it", [10.0, 30.0], Target(median=20, p99=20), "ms", why="a slow disk")
    assert not missed.met
    assert missed.targets == ("median 20 ms: met", "p99 20 ms: **missed by 50 %**")
    text = page._glance([met, missed])
    assert "- Why it misses it: a slow disk" in text
    assert "misses" not in "".join(page._glance([met]))


def test_results_are_read_as_they_were_written(tmp_path) -> None:
    kept = result("help", **{"python -c pass": [9.123456789012, 10.0]})
    found = read(write(kept, tmp_path / "results"))
    assert found.machine == MACHINE
    assert found.series == {"python -c pass": [9.123456789, 10.0]}
    assert read_all(tmp_path / "results") == {"help": found}
    assert origin(found).endswith("load average 0.5 before, Linux, Python 3.11.7, git 2.39.5, ext4.")
    path = tmp_path / "results" / "help.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(ValueError, match="measure it again"):
        read(path)


def test_the_page_is_current_with_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == page.text(ALL, read_all(RESULTS)), "run `python -m benchmarks --page`"


@pytest.mark.parametrize("name", [name for benchmark in ALL for name in benchmark.full()])
def test_what_is_kept_was_measured_as_it_would_be_now(name: str) -> None:
    (full,) = [benchmark.full()[name] for benchmark in ALL if name in benchmark.full()]
    if not (RESULTS / f"{name}.json").exists():
        missing = f"- `python -m benchmarks {name.partition('-')[0]}`\n"
        assert missing in PAGE.read_text(encoding="utf-8").partition("## Not measured yet")[2]
        return
    kept = read(RESULTS / f"{name}.json")
    again = f"measure it again: python -m benchmarks {name.partition('-')[0]}"
    assert full.settings.items() <= kept.settings.items(), again
    counts = {key: len(values) for key, values in kept.series.items()}
    assert counts == {key: counts.get(key) if count is None else count for key, count in full.series.items()}, again


def test_the_sizes_of_prompts_are_those_of_today() -> None:
    """They depend on nothing but the templates."""
    (now,) = prompts.measure(Ask())
    assert read(RESULTS / f"{prompts.NAME}.json").series == now.series, (
        "measure them again: python -m benchmarks prompts"
    )


def test_nothing_is_kept_that_no_benchmark_measures() -> None:
    assert set(read_all(RESULTS)) <= {name for benchmark in ALL for name in benchmark.full()}


def test_neither_results_nor_page_name_a_machine() -> None:
    files = [PAGE, *RESULTS.glob("*")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in files}
    folder = re.compile(r"(^|[\s\"'(=])/[a-z]+/|\b[A-Z]:\\")
    assert [name for name, text in texts.items() if folder.search(text)] == []
    assert [name for name, text in texts.items() if os.uname().nodename in re.findall(r"[\w.-]+", text)] == []
    assert all(name.endswith((".md", ".json")) for name in texts)


def test_a_history_that_was_made_up_is_in_every_place_and_the_run_goes_on() -> None:
    with arena() as place:
        run = place.start(place.small_task(), "agents.runtime=command", agents_run("up.sh"), "agents.count=2")
        place.stop(run)
        history.fill(run, 60, agents=2)
        history.index(run)
        clocks = PublishedClocks(run.layout)
        clocks.update()
        assert [clocks.of(number) is not None for number in range(62)] == [True] * 61 + [False]
        place.call("resume", "--detach", "--run", str(run.layout.root))
        wait_until(lambda: json.loads(run.layout.status.read_text())["attempts"] == 60, what="its supervisor")
        place.stop(run)
        assert [attempt.number for attempt in run.attempts()] == list(range(1, 61))


@pytest.mark.parametrize("benchmark", [dashboard, tabs])
def test_the_dashboard_is_told_by_pages_and_tabs(benchmark) -> None:
    results = {
        name: Result(
            name,
            "2030-01-02",
            MACHINE,
            full.settings,
            {key: [7.0] * (count or 3) for key, count in full.series.items()},
        )
        for name, full in benchmark.full().items()
    }
    assert all(check.met for check in benchmark.checks(results))
    text = "\n".join(benchmark.section(results))
    assert all(
        f"| {row} | 7 |" in text for row in (dashboard.PAGES if benchmark is dashboard else ("20 tabs", "after them"))
    )


def test_grades_on_a_cluster_are_told_by_what_they_take_more_and_by_the_share_of_four_nodes() -> None:
    results = {}
    for name, full in cluster.full().items():
        series = {key: [50.0] * (count or 1) for key, count in full.series.items()}
        results[name] = Result(name, "2030-01-02", MACHINE, full.settings, series)
    results["cluster-empty"].series["cluster: whole"] = [80.0] * 60
    results["cluster-many"].series.update({"one node": [400.0], "four nodes": [104.0], "joined": [4.0, 12.0, 5.0]})
    more, share, join = cluster.checks(results)
    assert (more.measured, more.met) == ("median 30 ms", False)
    assert (share.measured, share.met) == ("median 0.26 of the time", True)
    assert (join.measured, join.met) == ("median 5 s", True)
    text = "\n".join(cluster.section(results))
    assert "| **cluster** | 80 |" in text
    assert "| 400 grades, four nodes | 104 |" in text


def test_what_is_tried_with_other_numbers_is_not_kept(monkeypatch) -> None:
    def arguments(*words: str) -> argparse.Namespace:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        return _arguments()

    assert not arguments("tabs").tried
    assert all(arguments("tabs", *words).tried for words in (("--quick",), ("--tabs", "20"), ("--minutes", "60")))


def test_what_is_not_measured_is_said() -> None:
    text = page.text(ALL, {})
    for benchmark in ALL:
        assert f"- `python -m benchmarks {benchmark.NAME}`" in text


def packed(name: str, seed: int, *points: tuple[float, float]) -> dict[str, Result]:
    full = f"packing-{name}-{seed}"
    settings = {"seconds": 120.0, "attempts": 40.0, "notes": 5.0, "skills": 1.0}
    series = {"seconds": [second for second, _ in points], "best": [score for _, score in points]}
    return {full: Result(full, "2030-01-02", MACHINE, settings, series)}


def test_packing_is_told_by_moments_and_medians() -> None:
    results = packed("shared", 1, (0, 1.82), (10, 2.5), (50, 2.61)) | packed("shared", 2, (0, 1.82), (20, 2.55))
    results |= packed("shared", 3, (0, 1.82), (29, 2.58), (31, 2.62)) | packed("alone", 1, (0, 1.82), (60, 2.5))
    run = results["packing-shared-1"]
    assert [packing_page.at(run, moment) for moment in (0, 9, 10, 120)] == [1.82, 1.82, 2.5, 2.61]
    lines = packing.section(results)
    row = next(line for line in lines if line.startswith("| 4 agents, sharing") and "2.5" in line)
    assert "| 1.82000 (1.82000 to 2.50000) | 2.55000 (2.50000 to 2.58000) |" in row
    assert row.endswith("| 2.61000 (2.55000 to 2.62000) | 3 |")
    (found,) = packing.checks(results)
    assert (found.met, found.measured) == (True, "2.61000 after 120 s")
    assert not any("each for itself" in line for line in lines)
    worse = packed("shared", 1, (0, 1.82), (10, 2.57))
    assert packing.checks(worse)[0].targets == ("2.54: met", "2.60: **missed by 0.0300**")


def test_the_picture_of_packing_has_a_line_for_each_setting() -> None:
    results = packed("shared", 1, (0, 1.82), (10, 2.62)) | packed("alone", 1, (0, 1.82), (100, 2.5))
    lines = packing.section(results)
    picture = lines[lines.index("```text") + 1 : len(lines) - 1 - lines[::-1].index("```")]
    drawn = [line[10:] for line in picture if "|" in line]
    assert max(len(line) for line in drawn) <= packing_page.WIDTH
    assert sum(line.count("*") for line in drawn) == 6  # as long as both have the seed only
    # Each column of a setting has one mark; where both lie in one place there is a star.
    for column in range(packing_page.WIDTH):
        marks = "".join(line[column : column + 1].strip() for line in drawn)
        assert marks in ("s1", "1s", "*")


def test_runs_of_packing_that_are_kept_are_not_measured_again() -> None:
    every = frozenset(f"packing-{name}-{seed}" for name in packing.SETTINGS for seed in packing.SEEDS)
    assert list(packing.measure(Ask(kept=every))) == []
    assert list(packing.measure(Ask(only="nothing"))) == []


def run_benchmarks(*words: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=180, check=False)


def test_a_quick_benchmark_runs_and_keeps_nothing(tmp_path) -> None:
    before = {path: path.read_bytes() for path in (PAGE, *RESULTS.glob("*"))}
    done = run_benchmarks("help", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: len(values) for name, values in found["series"].items()} == {
        "python -c pass": 10,
        "coral eval --help": 10,
    }
    assert {path: path.read_bytes() for path in (PAGE, *RESULTS.glob("*"))} == before


def test_the_page_is_written_anew_from_what_is_kept(tmp_path) -> None:
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    done = run_benchmarks("--page", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "wrote docs/benchmarks.md\n")
    assert (tmp_path / "docs" / "benchmarks.md").read_bytes() == PAGE.read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_a_benchmark_leaves_nothing_running(tmp_path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "benchmarks", "interrupt", "--quick", "--results", str(tmp_path / "results")]
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: list(tmp_path.glob("coral-bench-*/runs/*/*/attempts/000001.json")), what="an attempt")
        child.send_signal(number)
        _, said = child.communicate(timeout=180)
    finally:
        child.kill()
        child.wait()
        left = started_in(tmp_path)
        for process in left:
            process.kill()
    assert left == []
    assert child.returncode == 130
    assert "nothing was left running" in said
    assert list(tmp_path.glob("coral-bench-*")) == []


def started_in(folder: Path) -> list[psutil.Process]:
    """The processes that a benchmark started with this folder for what is temporary."""
    return [
        process
        for process in psutil.process_iter(["environ", "status"])
        if (process.info["environ"] or {}).get("BENCH_NOTES", "").startswith(str(folder))
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_a_task_that_its_own_check_and_grader_score_alike(name, tmp_path):
    task = native.write_task(tmp_path / name, name, 1)
    assert "check.py:check" in (task / "task.yaml").read_text()
    data = json.loads((task / "seed" / "candidate.json").read_text())
    said = PROBLEMS[name].score(data)
    assert strict_score(name, data) == (said["score"] if isinstance(said, dict) else said)


def test_the_scripts_find_better_candidates_until_their_time_is_over():
    points = native._script("assignment", 1, 5.0)
    assert points == sorted(points)
    assert points[-1][0] < 60
    best = min(score for _, score in points)
    assert best < strict_score("assignment", PROBLEMS["assignment"].start(random.Random(1)))
    assert native.at(points, 5.0, native._direction("assignment")) == best


def test_a_fleet_is_compared_with_a_script_by_medians():
    def outcome(fleet: list[float], script: list[float], name: str = "waves") -> int:
        return native.compare(result(f"native-{name}", **{"fleet 30": fleet, "script 30": script}), name, 30.0)

    assert outcome([1.0, 9.0, 2.0], [3.0, 3.0, 3.0]) == 1
    assert outcome([1.0, 9.0, 2.0], [3.0, 3.0, 3.0], "points") == -1
    assert outcome([1.0, 2.0, 3.0], [2.0 + 1e-9, 0.0, 9.0]) == 0
