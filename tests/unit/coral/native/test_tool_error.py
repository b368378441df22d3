"""The error of a tool."""

from coral.native.tool_error import ToolError


def test_an_error_is_final_unless_it_says_otherwise():
    assert not ToolError("no").transient
