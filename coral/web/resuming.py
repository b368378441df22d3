"""Resumes a run from the page by starting `coral resume`, as the operator would. The supervisor that it starts outlives
this server."""

import json
import re
import subprocess
import sys
from typing import Any

from coral.errors import CoralError
from coral.web.reading import RunView

SECONDS = 120.0  # for the command to say that the run is supervised, or why not
LONGEST_MESSAGE = 20_000
# No other key: some name programs, and then whoever has the token could start them here.
_BUDGET = re.compile(r"budget\.[a-z_]+(\.[a-z_]+)?=[\w.+-]{1,40}", re.ASCII)


def resume(view: RunView, given: Any) -> dict[str, object]:
    """Resume the run. `given`: `budgets`, new ones such as `budget.hours=4 budget.money=20`; `text`, an instruction for
    all agents; `agreed`, whether the user agrees that it may cost much. CoralError if the command refuses."""
    given = given if isinstance(given, dict) else {}
    text, budgets = (str(given.get(name) or "").strip() for name in ("text", "budgets"))
    words = ["resume", "--run", str(view.layout.root), "--detach", "--json"]
    words += [f"--instruction={text[:LONGEST_MESSAGE]}"] if text else []
    words += ["--yes"] if given.get("agreed") is True else []
    return _started(view, [*words, *_overrides(budgets)])


def _overrides(budgets: str) -> list[str]:
    words = budgets.split()
    for word in words:
        if not _BUDGET.fullmatch(word):
            raise CoralError(
                f"cannot resume it with {word[:60]!r}", "budgets alone, as in budget.hours=4 budget.money=20"
            )
    return words


def _started(view: RunView, words: list[str]) -> dict[str, object]:
    argv = [sys.executable, "-P", "-m", "coral", *words]
    try:
        # A session of its own: Ctrl-C ends this server alone.
        done = subprocess.run(
            argv,
            cwd=view.layout.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise CoralError(f"cannot tell whether {view.name} goes on: it takes long", "see the page Fleet") from None
    if done.returncode:
        raise _refused(done.stderr.decode(errors="replace"))
    found = json.loads(done.stdout)
    return {"message": f"resumed: process {found['pid']} supervises it", "hint": ""}


def _refused(errors: str) -> CoralError:
    """Return the error that the command printed last: `coral: cannot ...`, and below it what to do."""
    message, _, hint = errors.rpartition("coral: ")[2].strip().partition("\n")
    return CoralError(message, " ".join(hint.split()))
