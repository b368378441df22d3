"""What `import coral` promises: every name is there, and the reference tells of every part of it."""

import coral
from coral.cli.help.python_reference import python_reference

# A name or a part may be added here. To remove or rename one breaks programs of users.
PROMISED = {
    "AgentUsage": "agent runtime model attempts best best_number money tokens input cached output",
    "Attempt": "number agent kind commit tree parent title submission submitted_at published_at order verdict score "
    "reason feedback metrics of against delta seconds channel seal epoch",
    "BestStep": "at number value",
    "CoralError": "",
    "Direction": "maximize minimize",
    "Evidence": "agreeing disputed stale elsewhere state",
    "JudgedNote": "note evidence superseded_by state",
    "Kind": "real tune confirm baseline",
    "MeasuredAttempt": "attempt scores is_seed median mean deviation count",
    "Note": "path name title author created kind attempts body number superseded_by claims about confidence supersedes "
    "contradicts decided_by is_synthesis is_dead_end is_earlier section",
    "Point": "at number agent verdict score improved",
    "Rows": "data to_pandas",
    "RunCurve": "direction steps own points end best to_best gap data to_pandas",
    "RunData": "path name task state is_running reason direction epoch baseline noise best lead attempts leaderboard "
    "attempt notes curve usage holdout settings status problems refresh",
    "RunHandle": "path run wait stop",
    "RunUsage": "seconds money tokens input cached output unknown_of agents data to_pandas",
    "Verdict": "tied worse failed void",
    "open_run": "run",
    "run": "task overrides knowledge yes sections",
}


def test_every_promised_name_is_there_and_no_other() -> None:
    assert sorted(coral.__all__) == sorted(PROMISED)
    assert all(getattr(coral, name) is not None for name in PROMISED)
    assert set(PROMISED) <= set(dir(coral))
    assert not hasattr(coral, "nothing")


def test_the_reference_tells_of_every_part() -> None:
    entries = {part.split()[0].partition("(")[0]: part for part in python_reference().split("### coral.")[1:]}
    assert entries.keys() == PROMISED.keys()
    for name, parts in PROMISED.items():
        lacking = [
            part for part in parts.split() if f"`{part}" not in entries[name] and f"{part}:" not in entries[name]
        ]
        assert lacking == [], name


def test_the_reference_has_no_module_and_no_quote_in_its_types() -> None:
    text = python_reference()
    assert "open_run(run: str or Path) -> RunData" in text
    assert "`stop(reason: str = '', timeout: float = 120.0) -> RunData`" in text
    assert "Enum where members" not in text
