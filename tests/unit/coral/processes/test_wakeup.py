"""The sleep of the loop, and the threads that end it."""

import os

import pytest

from coral.processes.wakeup import Wakeup


def test_a_thread_may_wake_what_is_closed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    wakeup, write = Wakeup(), os.write

    def late(handle: int, data: bytes) -> int:
        wakeup.close()
        return write(handle, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", late)
        wakeup.wake()
    wakeup.wake()
