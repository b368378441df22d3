"""The agent's commands, on real clones and a real attempts folder; the test answers as a supervisor would."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from clones import make_run
from real_runs import coral_interpreter, wait_until
from sample import attempt

from attempts.record import Attempt, Kind, Submission, Verdict
from attempts.store import Store
from coral.cli.run_data import submissions
from coral.supervisor.lock import hold_lock
from workspace import intake, knowledge, submit
from workspace.clone_overlay import link_shared
from workspace.git import Git
from workspace.layout import Layout

CORAL = (sys.executable, "-P", "-m", "coral")
DEADLINE = 120.0  # seconds: what takes longer has failed, on any machine


@dataclass
class Bench:
    """One run with two agents, and what a supervisor does to it."""

    layout: Layout
    seed: str
    supervision: ExitStack
    taken: list[Submission] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return Store(self.layout.attempts)

    def clone(self, agent: str = "agent-1") -> Path:
        return self.layout.clone(agent)

    def publish(self, number: int, submission: Submission, **fields: object) -> Attempt:
        given = {name: getattr(submission, name) for name in ("agent", "kind", "commit", "tree", "title")}
        given |= {"submission": submission.id, "parent": self.seed, "verdict": Verdict.OWN_BEST, "score": 2.5, **fields}
        made = attempt(number, **given)  # type: ignore[arg-type]
        self.store.publish(made)
        return made

    def waiting(self) -> Submission:
        """The submission in the inbox, once there is one."""
        agent, _, path = wait_until(self.store.inbox, DEADLINE, "a submission")[0]
        return self.store.read_submission(agent, path)

    def change(self, text: str = "2\n") -> None:
        """Something to submit."""
        (self.clone() / "a.txt").write_text(text)

    def settle(self, number: int, reply: Mapping[str, object] | None = None, **fields: object) -> threading.Thread:
        """In the background: take the next submission, publish it as `number` and reply."""

        def work() -> None:
            submission = self.waiting()
            self.taken.append(submission)
            self.store.reply(submission.agent, submission.id, {"attempt": number})
            self.store.clear(submission.agent, submission.id)
            self.publish(number, submission, **fields)
            said = {"attempt": number, "published": True, "heartbeats": [], "inline": [], **(reply or {})}
            self.store.reply(submission.agent, submission.id, said)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    layout = make_run(tmp_path_factory.mktemp("template"), {"a.txt": "1\n"}, "agent-1", "agent-2", exclude=[])
    seed, tree = Git(layout.hub).text("rev-parse", "refs/heads/main", "refs/heads/main^{tree}").split()
    Store(layout.attempts).publish(attempt(0, 1.5, commit=seed, tree=tree))
    return layout.root


@pytest.fixture
def bench(template: Path, tmp_path, monkeypatch) -> Iterator[Bench]:
    """Under supervision, as the lock says: who waits asks for that when its answer takes long, and on a slow machine it
    does."""
    layout = Layout(tmp_path / "run")
    shutil.copytree(template, layout.root, symlinks=True)
    seed = Store(layout.attempts).read(0).commit
    for name in ("CORAL_TOOL_SECONDS", "CORAL_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CORAL_LAUNCH", "number.1/agent-1/1")
    monkeypatch.chdir(layout.clone("agent-1"))
    with ExitStack() as supervision:
        supervision.enter_context(hold_lock(layout.lock))
        yield Bench(layout, seed, supervision)


@pytest.fixture
def graded(bench: Bench, coral):
    """`coral eval -m x` with these options, on a changed workspace, and its grade meanwhile: attempt `number`."""

    def run(
        *options: str, number: int = 1, reply: Mapping[str, object] | None = None, **fields: object
    ) -> tuple[int, str, str]:
        bench.change(f"attempt {number}\n")
        settling = bench.settle(number, reply, **fields)
        done = coral("eval", "-m", "x", *options)
        settling.join(DEADLINE)
        return done

    return run


def test_eval_submits_and_prints_the_result(bench: Bench, graded) -> None:
    fields = {"feedback": "two rows\x1b[31m", "metrics": {"rows": 2, "gap": 0.1 + 0.2}, "against": 0, "delta": 1.0}
    code, out, err = graded("-m", "a second row\nand why", **fields)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "#1: 2.5, own best - your best so far (+1 against the seed)"
    assert "gap: 0.3" in out
    assert "\x1b" not in out
    assert bench.store.read(1).title == "a second row"
    assert Git(bench.clone() / ".git").text("rev-parse", "HEAD") == bench.store.read(1).commit


def test_the_difference_is_to_what_the_verdict_compares_it_with(graded) -> None:
    _, out, _ = graded(score=3.0, against=1, delta=0.5)
    assert "(+0.5 against #1)" in out
    reply = {"attempt": 2, "published": True, "scale": {"gain": 2.0, "noise": 0.1, "seed": 1}}
    _, out, _ = graded(number=2, reply=reply, score=3.5, against=1, delta=0.5)
    assert "(+0.5 against the seed, 0.25 of the gain so far, 5 times the noise)" in out


def test_a_failed_attempt_is_a_result(graded) -> None:
    code, out, _ = graded(score=None, verdict=Verdict.FAILED, reason="a score must be finite, got nan")
    assert code == 0
    assert out.splitlines() == [
        "#1: no score, failed - the grader could not score it",
        "reason: a score must be finite, got nan",
    ]


def test_json_holds_the_whole_record(graded) -> None:
    code, out, _ = graded("--json")
    data = json.loads(out)
    assert (code, data["state"], data["attempt"], data["record"]["score"]) == (0, "graded", 1, 2.5)


def test_a_dead_end_is_shown_before_an_eval_is_spent_on_it(bench: Bench, graded) -> None:
    knowledge.create(bench.layout.shared)
    link_shared(bench.clone(), bench.layout.shared)
    for name, about in (("rows", ["row"]), ("sixes", ["a.txt", "attempt 1"]), ("sevens", ["a.txt", "attempt 7"])):
        front = {"kind": "dead-end", "title": f"No {name}", "about": about}
        knowledge.write_note(bench.layout.shared, name, front, "x")
    code, out, err = graded("-m", "a second row", "--json")
    assert code == 0
    assert json.loads(out)["attempt"] == 1  # a warning, never a refusal
    assert err.splitlines() == [
        "dead end (row): No rows; coral notes --read rows",
        "dead end (a.txt, attempt 1): No sixes; coral notes --read sixes",
    ]
    knowledge.write_note(bench.layout.shared, "better", {"supersedes": ["rows", "sixes"]}, "x")
    assert graded(number=2)[2] == ""


def test_of_a_commit_that_changes_very_much_only_the_files_are_compared(bench: Bench) -> None:
    for number in range(120):
        (bench.clone() / f"b{number}").write_text("word\n")
    made = submit.commit(bench.clone(), "agent-1", "many", lambda made: None)
    files, lines = submit.changes(bench.clone(), made)
    assert "b7" in files
    assert lines == ""
    (bench.clone() / "large").write_text("word\n" * 100_000)
    (bench.clone() / "b7").write_text("other\n")
    made = submit.commit(bench.clone(), "agent-1", "large", lambda made: None)
    assert submit.changes(bench.clone(), made) == (["b7", "large"], "-word\n+other")


def test_a_refused_submission_says_why(bench: Bench, coral) -> None:
    bench.change()

    def refuse() -> None:
        submission = bench.waiting()
        bench.store.reply("agent-1", submission.id, {"refused": "a link leaves the tree", "hint": "remove it"})

    refusing = threading.Thread(target=refuse, daemon=True)
    refusing.start()
    code, out, err = coral("eval", "-m", "x")
    refusing.join(DEADLINE)
    assert (code, out) == (1, "")
    assert err == "coral: cannot grade this submission: a link leaves the tree\n  remove it\n"


def test_an_unchanged_workspace_names_the_attempt(bench: Bench, coral) -> None:
    code, _, err = coral("eval", "-m", "x")
    assert code == 1
    assert "nothing changed since #0, which scored 1.5" in err
    assert "--again" in err
    assert bench.store.inbox() == []


def test_again_submits_the_same_once_more(bench: Bench, coral) -> None:
    assert coral("eval", "-m", "x", "--again", "--no-wait")[0] == 0
    submission = bench.waiting()
    assert (submission.kind, submission.commit) == (Kind.REAL, bench.seed)


def test_what_was_tried_with_tune_may_be_submitted_for_good(bench: Bench, coral, graded) -> None:
    told = graded("--tune")[1].splitlines()[0]
    assert told == "#1 (tune): 2.5, own best - better than your best, and no best itself: submit it without --tune"
    assert bench.store.read(1).kind is Kind.TUNE
    assert coral("eval", "-m", "x", "--tune")[0] == 1
    assert coral("eval", "-m", "x", "--no-wait")[0] == 0
    assert bench.waiting().kind is Kind.REAL


def test_a_pending_commit_is_not_submitted_twice(bench: Bench, coral) -> None:
    bench.change()
    code, out, _ = coral("eval", "-m", "x", "--no-wait")
    assert (code, out) == (0, "submitted; `coral wait` waits for its grade\n")
    assert coral("eval", "-m", "x", "--no-wait")[2].startswith(
        "coral: cannot submit: nothing changed since you submitted"
    )
    submission = bench.waiting()
    bench.store.reply("agent-1", submission.id, {"attempt": 7})
    bench.store.clear("agent-1", submission.id)
    intake.pin(bench.layout.hub, 7, intake.take_in(bench.layout.hub, bench.clone(), submission.commit, 7).commit)
    assert "submitted it as #7\n  its grade: coral wait 7" in coral("eval", "-m", "x")[2]
    assert len(list((bench.layout.attempts / "inbox" / "agent-1").iterdir())) == 0


def test_a_submission_says_how_long_its_agent_waits(bench: Bench, graded, monkeypatch) -> None:
    monkeypatch.setenv("CORAL_TOOL_SECONDS", "120")
    for number, (options, seconds) in enumerate([((), 120.0), (("--timeout", "7"), 7.0), (("--no-wait",), 0.0)], 1):
        graded(*options, number=number)
        assert bench.taken[-1].wait == seconds


def test_a_pending_submission_names_the_command_that_waits(bench: Bench, coral) -> None:
    bench.change()
    coral("eval", "-m", "x", "--no-wait")
    bench.store.reply("agent-1", bench.waiting().id, {"attempt": 3})
    assert coral("wait", "--timeout", "0") == (2, "#3 is not graded yet\n  coral wait 3\n", "")
    assert coral("wait", "#3", "--timeout", "0")[0] == 2
    assert json.loads(coral("wait", "3", "--timeout", "0", "--json")[1]) == {"attempt": 3, "state": "pending"}


def test_wait_refuses_what_cannot_be_waited_for(bench: Bench, coral) -> None:
    assert "submitted nothing yet" in coral("wait")[2]
    assert "cannot wait for #9: it is no attempt of yours" in coral("wait", "9")[2]
    assert coral("wait", "0")[1].startswith("#0: 1.5, the seed")


def test_inline_prompts_are_printed_and_acknowledged(bench: Bench, graded) -> None:
    code, out, _ = graded(reply={"inline": [{"id": "o-4", "name": "reflect", "text": "Look back.\x1b[2J"}]})
    assert code == 0
    assert out.endswith("\n## Heartbeat: reflect (id o-4)\n\nLook back.[2J\n")
    (request,) = bench.layout.requests_of("agent-1").glob("*.json")
    assert json.loads(request.read_text()) == {"type": "acknowledge", "messages": ["o-4"]}


def test_outside_a_workspace_every_agent_command_says_so(tmp_path, coral, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("eval", "-m", "x"), ("wait",), ("diff",), ("revert",), ("checkout", "1")):
        code, out, err = coral(*words)
        assert (code, out) == (1, "")
        assert "is not an agent's workspace" in err
        assert len(err.splitlines()) == 2


def test_agent_commands_work_in_a_folder_of_the_workspace(bench: Bench, coral, monkeypatch) -> None:
    (bench.clone() / "deep" / "er").mkdir(parents=True)
    (bench.clone() / "deep" / "x").write_text("new\n")
    monkeypatch.chdir(bench.clone() / "deep" / "er")
    assert "+new" in coral("diff")[1]
    assert coral("eval", "-m", "x", "--no-wait")[0] == 0


def test_json_of_diff_checkout_and_revert(bench: Bench, coral) -> None:
    assert json.loads(coral("diff", "--json")[1]) == {"diff": ""}
    bench.change("lost?\n")
    assert "+lost?" in json.loads(coral("diff", "--json")[1])["diff"]
    moved = json.loads(coral("checkout", "0", "--json")[1])
    assert (moved["attempt"], len(moved["commit"])) == (0, 40)
    kept = json.loads(coral("checkout", moved["saved"], "--json")[1])
    assert kept == {"commit": moved["saved"], "attempt": None, "saved": None}
    reverted = json.loads(coral("revert", "--json")[1])
    assert (reverted["attempt"], reverted["commit"], reverted["saved"]) == (0, moved["commit"], None)


def test_checkout_and_revert_say_where_the_workspace_is(bench: Bench, coral, graded) -> None:
    graded()
    bench.change("lost?\n")
    code, out, _ = coral("checkout", "0")
    assert (code, out.splitlines()[0]) == (0, "the workspace is at #0 (the seed): 1.5")
    assert (bench.clone() / "a.txt").read_text() == "1\n"
    coral("checkout", out.split()[-1])
    assert (bench.clone() / "a.txt").read_text() == "lost?\n"
    assert coral("checkout", "#1")[1] == "the workspace is at #1 by agent-1: 2.5\n"
    bench.change("3\n")
    assert coral("revert")[1].startswith("the workspace is at #1")
    assert coral("revert")[1].startswith("the workspace is at #0")
    assert "the last one is #1" in coral("checkout", "5")[2]


def test_checkout_lead_goes_to_the_highest_median_that_the_agent_may_see(bench: Bench, coral, graded) -> None:
    code, out, err = coral("checkout", "lead")
    assert (code, out, "cannot check out the lead: nothing is known of it yet" in err) == (1, "", True)
    graded()
    rows = [{"name": "agent-2", "best_number": 7}, {"name": "agent-1", "best_number": 1}]
    bench.layout.status.write_text(json.dumps({"lead": {"number": 0}, "agents": rows}))
    assert coral("checkout", "lead")[1].startswith("the workspace is at #0")
    bench.layout.shared_of("agent-1", share=False).mkdir(parents=True)
    assert coral("checkout", "lead")[1].startswith("the workspace is at #1")


def test_what_measured_an_attempt_again_is_no_other_place_for_the_workspace(bench: Bench, coral, graded) -> None:
    graded()
    attempt = bench.store.read(1)
    bench.store.publish(replace(attempt, number=2, order=2, kind=Kind.CONFIRM, of=1, submission=""))
    assert coral("checkout", "1")[1] == "the workspace is at #1 by agent-1: 2.5\n"
    assert json.loads(coral("checkout", "1", "--json")[1])["attempt"] == 1


@contextmanager
def ending(command: Sequence[str], **given: Any) -> Iterator[subprocess.Popen[Any]]:
    """A program that ends with its test, also where that fails."""
    with subprocess.Popen(command, **given) as child:
        try:
            yield child
        finally:
            child.kill()


def test_interrupts_leave_the_submission(bench: Bench) -> None:
    """SIGINT in the wait, and SIGINT in the wait for a heartbeat, as an agent's program sends it."""
    bench.change()
    with ending([*CORAL, "eval", "-m", "x"], cwd=bench.clone(), stderr=subprocess.PIPE) as waiting:
        submission = bench.waiting()
        bench.store.reply("agent-1", submission.id, {"attempt": 1})
        wait_until(lambda: Git(bench.clone() / ".git").text("rev-parse", "HEAD") == submission.commit)
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(DEADLINE) == 130
        assert b"the submission stays" in waiting.stderr.read()
    bench.store.clear("agent-1", submission.id)
    bench.publish(1, submission)
    bench.store.reply("agent-1", submission.id, {"attempt": 1, "published": True, "heartbeats": ["reflect"]})
    with ending([*CORAL, "wait"], cwd=bench.clone(), stdout=subprocess.PIPE, text=True) as staying:
        lines = iter(staying.stdout.readline, "")
        assert any(line.startswith("A heartbeat follows (reflect)") for line in lines)
        assert staying.poll() is None
        staying.send_signal(signal.SIGINT)
        assert staying.wait(DEADLINE) == 130


def test_heartbeats_of_an_earlier_launch_are_not_waited_for(bench: Bench, coral, monkeypatch) -> None:
    """There it was delivered: to stay for it would cost an agent that asks once more two minutes."""
    bench.change()
    coral("eval", "-m", "x", "--no-wait")
    submission = bench.waiting()
    bench.store.clear("agent-1", submission.id)
    bench.publish(1, submission)
    inline = [{"id": "h1", "name": "mine", "text": "Look again."}]
    said = {"attempt": 1, "published": True, "heartbeats": ["reflect"], "inline": inline, "launch": 3}
    bench.store.reply("agent-1", submission.id, said)
    for number in ("4", "31"):
        monkeypatch.setenv("CORAL_LAUNCH", f"number.1/agent-1/{number}")
        code, out, err = coral("wait")
        assert (code, err) == (0, "")
        assert out.startswith("#1: 2.5")
        assert "eartbeat" not in out
        told = json.loads(coral("wait", "--json")[1])
        assert (told["heartbeats"], told["inline"]) == ([], [])
    environment = {**os.environ, "CORAL_LAUNCH": "number.1/agent-1/3"}
    with ending([*CORAL, "wait"], cwd=bench.clone(), stdout=subprocess.PIPE, text=True, env=environment) as staying:
        assert any(line.startswith("A heartbeat follows") for line in iter(staying.stdout.readline, ""))
    (acknowledged,) = bench.layout.requests_of("agent-1").glob("*.json")
    # A person's terminal, a job, another agent: what follows interrupts somebody else, and is theirs.
    for launch in ("number.1/%2/1", "number.1/agent-2/4", "number.1/agent-1/\u0664", "x", ""):
        monkeypatch.setenv("CORAL_LAUNCH", launch)
        assert coral("wait") == (0, out, "")
    assert list(bench.layout.requests_of("agent-1").glob("*.json")) == [acknowledged]


FORBIDDEN = {"pydantic", "rich", "jinja2", "git", "asyncio", "watchdog", "ruamel", "sqlite3", "psutil", "markupsafe"}
AT_WORK = {
    "eval": ("eval", "-m", "x", "--no-wait"),
    "wait": ("wait", "0"),
    "diff": ("diff",),
    "revert": ("revert",),
    "checkout": ("checkout", "0"),
}


def _imported(bench: Bench, *words: str) -> set[str]:
    done = coral_interpreter(*words, cwd=bench.clone(), PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0, done.stderr
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


@pytest.mark.parametrize("command", AT_WORK)
def test_agent_commands_import_the_standard_library_alone(bench: Bench, command: str) -> None:
    bench.change()
    for words in (AT_WORK[command], (command, "--help")):
        imported = _imported(bench, *words)
        assert "argparse" in imported
        found = {name.partition(".")[0] for name in imported} & FORBIDDEN
        # Moved to another commit, the workspace is told by the number of its attempt, and that is asked of the index.
        assert found <= ({"sqlite3"} if words in (AT_WORK["revert"], AT_WORK["checkout"]) else set())


def test_eval_imports_only_what_a_submission_needs(bench: Bench) -> None:
    bench.change()
    late = {"typing", "shutil", "dataclasses", "inspect"}
    late |= {"attempts.record", "attempts.store", "coral.cli.commands.wait"}
    assert not _imported(bench, *AT_WORK["eval"]) & late


def test_the_help_of_eval_imports_next_to_nothing(bench: Bench) -> None:
    imported = _imported(bench, "eval", "--help")
    ours = {name for name in imported if name.startswith(("coral", "attempts", "workspace", "heartbeats"))}
    allowed = {"__main__", "cli", "cli.commands.eval", "cli.parser", "errors"}
    assert ours <= {"coral", *(f"coral.{name}" for name in allowed)}
    assert not imported & {"dataclasses", "subprocess", "json"}


def test_without_a_supervisor_the_submission_is_kept(bench: Bench, coral, monkeypatch) -> None:
    monkeypatch.setattr(submissions, "DOUBT", 0.0)
    bench.supervision.close()
    bench.change()
    code, out, _ = coral("eval", "-m", "x")
    assert code == 2
    assert (
        out == "nobody supervises this run: the submission is kept, and graded when the run is resumed\n  coral wait\n"
    )
    assert bench.waiting().title == "x"
    with hold_lock(bench.layout.lock):
        assert coral("wait", "--timeout", "0.02")[1] == "submitted, not taken in yet\n  coral wait\n"


def test_a_record_without_its_reply_is_a_result_too(bench: Bench, coral, monkeypatch) -> None:
    """The supervisor died between the two: the record is the truth."""
    monkeypatch.setattr(submissions, "FOLLOW_UP_SECONDS", 0.0)
    bench.change()
    coral("eval", "-m", "x", "--no-wait")
    submission = bench.waiting()
    bench.store.reply("agent-1", submission.id, {"attempt": 1})
    bench.publish(1, submission)
    code, out, _ = coral("wait")
    assert (code, out.splitlines()[0]) == (0, "#1: 2.5, own best - your best so far")
