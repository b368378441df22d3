"""What can go wrong with a workspace, each with a hint for the person who has to mend it."""

from __future__ import annotations

import re

# Whatever git cites may be an agent's to choose: what stands in quotes, and what it finds inside an object.
_QUOTED = re.compile(r"'.*'", re.DOTALL)
_OWN_WORDS = re.compile(r"^(?:fatal|error): (?!object [0-9a-f]{40})(.*)$", re.MULTILINE)


class WorkspaceError(Exception):
    """Says "cannot X: Y"; `hint` is what to do about it, or ""."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class GitError(WorkspaceError):
    """The supervisor's git could not do it.

    `detail` is all that git said; `timed_out`: we killed it at its deadline; `killed`: somebody else did.
    """

    def __init__(
        self, message: str, hint: str = "", *, detail: str = "", timed_out: bool = False, killed: bool = False
    ) -> None:
        super().__init__(message, hint)
        self.detail = detail
        self.timed_out = timed_out
        self.killed = killed

    @property
    def own_words(self) -> list[str]:
        """Why git failed, line by line, as far as nobody else can have put the words into its mouth."""
        return _OWN_WORDS.findall(_QUOTED.sub("''", self.detail))


class ReaderError(GitError):
    """The second command of a pipe failed of itself."""


class SubmitError(WorkspaceError):
    """The agent's working tree cannot be submitted, or moved, as it is."""


class LockedError(SubmitError):
    """Somebody else is at work in this clone, for too long."""


class Unacceptable(WorkspaceError):  # noqa: N818 - a judgement on a candidate, not a failure of ours
    """The candidate's fault: why its commit cannot be graded."""

    @property
    def reason(self) -> str:
        return str(self)
