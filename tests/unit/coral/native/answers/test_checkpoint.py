"""The answer to `checkpoint`: its last line decides whether the operator hears of it."""

from dataclasses import replace

import pytest
from native_situations import OBSERVATION, situation, trial

from coral.native.answers.checkpoint import checkpoint
from heartbeats.reply import AlertReply, OkReply, parse_reply


@pytest.mark.parametrize(
    ("trials", "free_disk", "kind"),
    [
        ((), 0.5, OkReply),
        ((trial(1, "rows", 1.0, 1.2),), 0.5, OkReply),
        (tuple(trial(n, "rows", 1.0, None, reason="it crashed") for n in (1, 2, 3)), 0.5, AlertReply),
        ((), 0.001, AlertReply),
    ],
)
def test_a_checkpoint_ends_with_one_line_that_decides(trials, free_disk, kind):
    observation = replace(OBSERVATION, free_disk=free_disk)
    text = checkpoint(situation(*trials, observation=observation))
    assert isinstance(parse_reply(text), kind)
