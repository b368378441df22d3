"""Replaces a memory that contradicts the run by the newest one that agrees with it.

A run may have been restored from an older copy: then memory names attempts that are missing, or are others now.
"""

from dataclasses import replace
from pathlib import Path

from attempts.store import Missing, Store, StoreError
from coral.native.llm.conversation import LlmMemory
from coral.native.snapshots import Snapshots


def roll_back(snapshots: Snapshots[LlmMemory], attempts: Path) -> str:
    """Take the newest memory that agrees with the records in the folder `attempts`. Return what the agent has to be
    told; empty if nothing was wrong. If no memory agrees, the newest stays and forgets its attempts."""
    damaged = "Your newest memory could not be read; you go on from the one before it." if snapshots.damaged else ""
    problem = first = contradiction(snapshots.memory, attempts)
    newest = snapshots.memory
    while problem:
        if not snapshots.roll_back():
            snapshots.memory = replace(newest, attempts={})
            return f"Your memory contradicts the run: {first}. Trust the records, not what you remember of attempts."
        problem = contradiction(snapshots.memory, attempts)
    if not first:
        return damaged
    return f"Your memory contradicted the run: {first}. You go on from an earlier one that agrees."


def contradiction(memory: LlmMemory, attempts: Path) -> str:
    """Return where memory and the records disagree on the agent's own attempts; empty if they agree."""
    store = Store(attempts)
    for number, commit in memory.attempts.items():
        try:
            if store.read(int(number)).commit != commit:
                return f"#{number} is not the attempt that you made"
        except Missing:
            return f"#{number}, which you made, is not there"
        except (StoreError, OSError, ValueError):
            continue
    return ""
