"""The errors of a workspace. Each has a hint for the person or agent that can solve the problem."""

import re

# Parts of git's messages that an agent can choose: texts in quotes, and what git cites from an object.
_QUOTED = re.compile(r"'.*'", re.DOTALL)
_OWN_WORDS = re.compile(r"^(?:fatal|error): (?!object [0-9a-f]{40})(.*)$", re.MULTILINE)


class WorkspaceError(Exception):
    """The base of these errors. The message says "cannot X: Y"; `hint` says what to do about it, or is ""."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class GitError(WorkspaceError):
    """A command of the supervisor's git failed.

    `detail`: all of its standard error; `timed_out`: we killed it at its deadline; `killed`: somebody else killed it.
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
        """The lines of git's own error messages, without the parts that an agent can choose."""
        return _OWN_WORDS.findall(_QUOTED.sub("''", self.detail))


class ReaderError(GitError):
    """The second command of a pipe failed, and not because of the first."""


class SubmitError(WorkspaceError):
    """The agent's working tree cannot be submitted, or moved, as it is."""


class LockedError(SubmitError):
    """Another command has held this clone's lock for too long."""


class Unacceptable(WorkspaceError):  # noqa: N818 - a judgement on a candidate, not a failure of ours
    """A commit cannot be graded, and its author is at fault. The message says why."""
