"""What `coral eval` and `coral wait` printed, as a result, as a wait, or as an error."""

import pytest
from sample import attempt

from attempts.record import to_dict
from coral.native.coral_command import EXIT_PENDING, read_result
from coral.native.prompt import HeartbeatSection
from coral.native.tool_error import ToolError

RECORD = attempt(7, 2.0, title="rows from #3")


def test_a_published_record_is_the_result_and_carries_its_heartbeats():
    inline = [{"name": "reflect", "id": "h1", "text": "Think."}, "no heartbeat"]
    result = read_result({"state": "published", "record": to_dict(RECORD), "inline": inline}, None, "")
    assert result == (RECORD, (HeartbeatSection("reflect", "h1", "Think."),))


def test_what_is_not_graded_yet_is_waited_for():
    assert read_result({"state": "pending"}, None, "") is None
    assert read_result(None, EXIT_PENDING, "") is None


@pytest.mark.parametrize(
    ("data", "errors", "message"),
    [
        ({"state": "refused", "refused": "too large"}, "", "refused: too large"),
        ({"record": {"title": "no number"}}, "", "cannot read the result: verdict"),
        (None, "coral: cannot submit: no space\nhint", "^cannot submit: no space$"),
        (None, "", "exit code 1"),
    ],
)
def test_anything_else_is_an_error_with_the_words_of_the_command(data, errors, message):
    with pytest.raises(ToolError, match=message):
        read_result(data, 1, errors)
