"""What a run whose journal is damaged knows of the launches that began."""

from pathlib import Path

from coral.journal.lost_lines import LostLines
from coral.runs.roll_back import _launches
from workspace.layout import Layout


def test_the_launches_in_the_logs_are_found_also_from_the_ten_thousandth_on(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    files = (
        layout.prompt("ann", 7),
        layout.output("ann", 9999),
        layout.errors("ann", 10_000),
        layout.job("ann", 20_000),
    )
    layout.logs("ann").mkdir(parents=True)
    for path in files:
        path.touch()
    assert set(_launches(layout, LostLines(), "ann")) == {7, 9999, 10_000}
