"""The reasons why our client of the Agent Client Protocol gives up by itself: `kind` of the error that it prints."""

from enum import StrEnum


class RefusalKind(StrEnum):
    NOT_OFFERED = "not_offered"  # a choice that the session does not have: no other try will succeed
    TIMEOUT = "timeout"  # no answer in time: another try may succeed
