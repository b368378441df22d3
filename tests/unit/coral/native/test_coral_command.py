"""What `coral eval` and `coral wait` printed, as a result, as a wait, or as an error."""

import json

import pytest
from sample import attempt

from attempts.record import to_dict
from coral.native.coral_command import read_result
from coral.native.prompt import HeartbeatSection
from coral.native.tool_error import ToolError

RECORD = attempt(7, 2.0, title="rows from #3")
INLINE = [{"name": "reflect", "id": "h1", "text": "Think."}]
PUBLISHED = json.dumps({"state": "published", "record": to_dict(RECORD), "inline": INLINE}).encode()


def test_a_published_record_is_the_result_and_carries_its_heartbeats():
    assert read_result(PUBLISHED) == (RECORD, (HeartbeatSection("reflect", "h1", "Think."),))


@pytest.mark.parametrize("printed", [b"", PUBLISHED[:-1], b'{"state": "pending"}'])
def test_what_is_not_whole_or_not_graded_yet_is_waited_for(printed: bytes):
    assert read_result(printed) is None


def test_a_refusal_is_an_error():
    with pytest.raises(ToolError, match="refused: too large"):
        read_result(b'{"state": "refused", "refused": "too large"}')
