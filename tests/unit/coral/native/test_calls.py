"""Which calls chain into the next step unless the brain says otherwise: those whose result it has to act on."""

from typing import get_args

from coral.native.calls import AwaitResult, Call, Search, Submit, ToolError


def test_searches_and_submissions_chain_and_nothing_else():
    chaining = {kind for kind in get_args(Call) if kind.__dataclass_fields__["request_heartbeat"].default}
    assert chaining == {Search, Submit, AwaitResult}


def test_an_error_is_final_unless_it_says_otherwise():
    assert not ToolError("no").transient
