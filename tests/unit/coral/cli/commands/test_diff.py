"""`coral diff`: colours that a difference cannot add to."""

from coral.cli.commands.diff import coloured


def test_a_difference_has_no_escape_sequence_of_its_own() -> None:
    assert coloured("+\x1b[2J") == "\x1b[32m+␛[2J\x1b[0m"
