"""What cannot be previewed, and why; tests/integration/coral/web/test_start.py previews prompts of a real run."""

import pytest
from sample import make_run, write_status

from coral.errors import CoralError
from coral.web.preview import preview
from coral.web.reading import opened


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([], "cannot find the agent ''"),
        ({"agent": "agent-9", "name": "reflect", "prompt": "x"}, "cannot find the agent 'agent-9'"),
        ({"agent": "agent-1", "name": "mine", "prompt": " "}, "it has no prompt"),
        ({"agent": "agent-1", "name": "reflect"}, "it has not begun"),
        ({"agent": "agent-1", "name": 7, "prompt": "x"}, "it has not begun"),
    ],
)
def test_what_cannot_be_previewed_is_said(tmp_path, given: object, says: str) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    with opened(layout) as view, pytest.raises(CoralError, match=says):
        preview(view, given)
