"""Runs whose supervisors, graders and agents are killed, and the assertions that must hold of them.

The agents are shell scripts that keep records of their own: each prompt that they received, each submission. A launch
of an agent that began to run is called a life here: a launch may be killed before it runs. Agents never end by
themselves, so each life but the first follows an interrupt, and its prompt has a heartbeat; or it follows a kill, or an
end of the run that was resumed.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Collection, Iterator
from functools import reduce
from pathlib import Path
from random import Random

import pytest
from files import write_files
from real_runs import Run, heartbeats_in

from attempts.progress import Progress, advance_fleet, advance_own
from attempts.record import Attempt, Kind, Verdict
from coral.fleet.agent_state import PendingMessage
from coral.fleet.decide import decide
from coral.fleet.run_state import AttemptStep, Fleet
from coral.journal import decisions
from coral.journal.writer import QUIET_SECONDS
from workspace.git import Git
from workspace.layout import OPERATOR

AGENT = """\
state=$1 session=$2 me=${CORAL_AGENT#agent-} attempts=$CORAL_RUN/attempts
exec 9>>"$state/alive"
flock -n 9 || echo "two at once" >> "$state/wrong"
echo "$session" >> "$state/lives"
life=$(wc -l < "$state/lives")
rm -f .git/index.lock  # of a git that was killed in the life before
cat > "$state/part"
mv "$state/part" "$state/prompt-$life"
[ $me = "$DEAF" ] && [ $((life % 2)) = 1 ] && trap '' INT TERM
echo working
echo $life >> "$state/spoke"
while :; do
  id=0$(date +%s%N)
  echo $life $id >> "$state/tries"
  n=$(wc -l < "$state/tries")
  [ $((n % 5)) = 0 ] && n=1
  echo "$((n % 3 - 1)).$n$me" > x.txt
  git add x.txt
  tree=$(git write-tree)
  head=$(git rev-parse HEAD)
  commit=$(git commit-tree $tree -p $head -m "try $id")
  # Beside its place: from another folder of a sealed agent a move is a copy, which may be read before it is whole.
  inbox=$attempts/inbox/$CORAL_AGENT
  echo '{"id": "'$id'", "commit": "'$commit'", "tree": "'$tree'", "title": "'$n'", "kind": "real", "wait": 60,' \\
    '"submitted_at": "now"}' > "$inbox/.part"
  mv "$inbox/.part" "$inbox/$id.json"
  git update-ref HEAD $commit
  until grep -q '"published": true' "$attempts/replies/$CORAL_AGENT/$id.json" 2> /dev/null; do
    grep -q '"refused"' "$attempts/replies/$CORAL_AGENT/$id.json" 2> /dev/null && sleep 300
    sleep 0.02
  done
  sleep 300
done
"""
GRADE = """\
[ "$CORAL_KIND" = baseline ] || echo $CORAL_ATTEMPT >> "GRADED"
sleep 0.0$((CORAL_ATTEMPT % 5 * 2))
cat x.txt > "$CORAL_RESULT.part"
mv "$CORAL_RESULT.part" "$CORAL_RESULT"
"""
TASK = """\
task: {name: number, description: Make the number large.}
grader: {command: [/bin/sh, grade.sh], private: [grade.sh], slots: 2, noise: 0, writable: ["GRADED"]}
agents:
  count: 3
  runtime: command
  options:
    start: [/bin/sh, "{clone}/agent.sh", "{state}", "{session}"]
    resume: [/bin/sh, "{clone}/agent.sh", "{state}", "{session}"]
run: {interrupt_grace: 0.1, terminate_grace: 0.1, backoff: 0.05, poll_seconds: 0.5}
"""
SHOWN = 1500  # characters of what went wrong


def write_fragile_task(folder: Path, *, deaf: str = "", extra: str = "", slow: str = "0.0") -> Path:
    """Write the task; returns its folder. `deaf`: the number of the agent that ignores signals in every other life;
    `slow`: the seconds of a grade, without the last digit, which the number of the attempt gives."""
    seed = {"seed/x.txt": "0.5", "seed/agent.sh": f"DEAF='{deaf}'\n{AGENT}"}
    graded = _graded(folder)
    grade = GRADE.replace("GRADED", str(graded)).replace("0.0", slow)
    task = TASK.replace("GRADED", str(graded)) + extra
    written = write_files(folder, {**seed, "grade.sh": grade, "task.yaml": task})
    # Agents and graders with users of their own must not read the task, and may write what they were started for.
    written.chmod(0o700)
    graded.touch()
    graded.chmod(0o666)
    return written


def _graded(task: Path) -> Path:
    """Return the file in which each grader writes the number of its attempt: it is beside the task."""
    return task.with_name(f"{task.name}.graded")


class KilledRun(Run):
    """A run whose supervisors die. `places`: how often they died at each place, see `killed_supervisors`. `killed`: how
    often the test killed the processes of each agent or grade. `cut_short`: the lives of agents that it ended so;
    `stopped`: the last life of each agent before the run ended in order."""

    def __init__(self, task: Path, runs: Path, overrides: Collection[str] = ()) -> None:
        super().__init__(task, runs, tuple(overrides))
        self._graded = _graded(task)
        self.places: Counter[str] = Counter()
        self.killed: Counter[str] = Counter()
        self.cut_short: set[tuple[str, int]] = set()
        self.stopped: set[tuple[str, int]] = set()
        (runs / "tmp").mkdir()
        self._forking_process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("killed_supervisors.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(runs / "tmp"), "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def live(
        self,
        seconds: float,
        *,
        at: Collection[str] = (),
        nth: int = 0,
        early: bool = False,
        quiet: float = QUIET_SECONDS,
        overrides: Collection[str] = (),
    ) -> bool:
        """Supervise until the supervisor dies, after these seconds at the latest; see `killed_supervisors`. Return
        whether the run ended in order instead."""
        order = {"root": str(self.layout.root), "seconds": seconds, "at": list(at), "nth": nth, "early": early}
        order["quiet"] = quiet
        print(json.dumps({**order, "overrides": list(overrides)}), file=self._forking_process.stdin, flush=True)
        ended = json.loads(self._forking_process.stdout.readline())
        if ended["status"] == 0:
            self.stopped |= {(name, len(self.lives(name))) for name in self.names()}
            return True
        if ended["status"] != signal.SIGKILL:
            last = self.layout.log.read_text()[-SHOWN:]
            pytest.fail(f"a supervisor ended by itself, wait status {ended['status']}: ... {last}", pytrace=False)
        self.places[ended["place"] or "anywhere"] += 1
        return False

    def kill_one(self, chance: Random, agents_only: bool = False) -> None:
        """Kill all processes of one launch: of a grader if one runs and not `agents_only`, else of an agent."""
        found = sorted(who for who in self._launches() if who and not (agents_only and who.startswith("#")))
        if not found:
            return
        who = chance.choice([name for name in found if name.startswith("#")] or found)
        before = len(self.lives(who))
        while pids := self._launches().get(who):  # the sandbox that it was making is not ended with its maker
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.killed[who] += 1
        self.cut_short |= {(who, life) for life in range(before, len(self.lives(who)) + 1)}

    def _launches(self) -> dict[str, list[int]]:
        """Return the processes of each launch that runs, by the agent's name or the grade's key."""
        launches: dict[str, list[int]] = {}
        for pid in self.left():
            with contextlib.suppress(OSError):
                tag = re.search(rb"CORAL_LAUNCH=[^/\0]*/([^/\0]*)/", Path(f"/proc/{pid}/environ").read_bytes())
                launches.setdefault(tag[1].decode() if tag else "", []).append(pid)
        return launches

    def end(self) -> None:
        with self._forking_process:
            self._forking_process.kill()
        super().end()

    # The records of the agents and graders.

    def names(self) -> list[str]:
        return sorted(self.fleet().agents)

    def lives(self, agent: str) -> list[str]:
        """Return the session of each life of an agent."""
        path = self.layout.state(agent) / "lives"
        return path.read_text().split() if path.exists() else []

    def handed(self, agent: str) -> dict[int, str]:
        """Return the prompt of each life that received one."""
        found = self.layout.state(agent).glob("prompt-*")
        return dict(sorted((int(path.name.removeprefix("prompt-")), path.read_text()) for path in found))

    def spoke(self, agent: str) -> set[int]:
        """Return the lives that printed something, which acknowledges their prompt."""
        path = self.layout.state(agent) / "spoke"
        return set(map(int, path.read_text().split())) if path.exists() else set()

    def tries(self, agent: str) -> dict[int, list[str]]:
        """Return the ids of the submissions that each life began."""
        path, found = self.layout.state(agent) / "tries", dict[int, list[str]]()
        for line in path.read_text().splitlines() if path.exists() else ():
            life, id = line.split()
            found.setdefault(int(life), []).append(id)
        return found

    def graded(self) -> Counter[int]:
        """Return how often a grader was started for each attempt."""
        return Counter(map(int, self._graded.read_text().split()))


def ids_in(prompt: str) -> list[str]:
    return [id for _, id in heartbeats_in(prompt)]


# Assertions.


def replay(run: Run) -> tuple[dict[str, PendingMessage], set[str], Fleet]:
    """Decide the journal again, which must give the same actions and state; returns all messages that were ever owed,
    by id, the ids of those that were withdrawn, and the fleet at the end."""
    fleet, owed, withdrawn = Fleet(), dict[str, PendingMessage](), set[str]()
    for rules, decision in decisions(run.layout.journal):
        fleet, actions = decide(fleet, decision.events, decision.now, rules)
        assert actions == decision.actions
        owed |= {message.id: message for message in still_owed(fleet)}
        texts = [action.text for action in actions if getattr(action, "type", "") == "withdrawn"]
        withdrawn |= {id for text in texts for id in re.findall(r"\((h\d+)\)", text)}
    assert fleet == run.fleet()
    return owed, withdrawn, fleet


def still_owed(fleet: Fleet) -> Iterator[PendingMessage]:
    yield from fleet.run.unassigned_messages
    for agent in fleet.agents.values():
        yield from agent.pending_messages


@contextlib.contextmanager
def in_short(run: KilledRun) -> Iterator[None]:
    """Report a failed assertion in a few lines, its message first. CI shows only the beginning of a report, and in a
    traceback of these functions whole prompts come first."""
    try:
        yield
    except AssertionError as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.name}, line {where.lineno}: {where.line}"
        said = f"{str(error)[:SHOWN]}\nin {place}\nafter {run.places.total()} deaths"
        raise pytest.fail.Exception(said, pytrace=False) from None


def assert_nothing_is_lost_or_doubled(run: KilledRun) -> None:
    """Assert that the records of a run that is over, its journal and the records of its agents agree."""
    owed, withdrawn, fleet = replay(run)
    attempts = assert_attempts_are_whole(run, fleet)
    assert_handed_in_is_taken_up(run, fleet, attempts)
    assert_nothing_is_doubled(run, owed, withdrawn, fleet)
    assert_graded_once(run, attempts)


def assert_attempts_are_whole(run: KilledRun, fleet: Fleet, *, retries: bool = False) -> list[Attempt]:
    """Assert that each attempt has a number, a place in the order and a submission of its own, and that the fleet's
    progress follows from the attempts. `retries`: two attempts of an agent may have one commit, because an eval can
    fail although its submission was accepted, and makes the same commit if it is repeated within a second."""
    attempts = run.attempts()
    by_order = sorted(attempts, key=lambda attempt: attempt.order)
    under_way = {number for number, pending in fleet.pending.items() if pending.step is not AttemptStep.SETTLED}
    assert {attempt.number for attempt in attempts} == set(range(1, fleet.run.next_number)) - under_way
    assert [record.order for record in by_order] == list(range(1, len(attempts) + 1))
    submitted = [attempt for attempt in attempts if attempt.kind is not Kind.CONFIRM]
    assert len({attempt.submission for attempt in submitted}) == len(submitted)
    first: dict[str, Attempt] = {}
    for attempt in submitted:
        earlier = first.setdefault(attempt.commit, attempt)
        is_retry = retries and attempt.verdict is Verdict.TIED and attempt.agent == earlier.agent
        assert earlier is attempt or is_retry, attempt
    assert fleet.run.progress == reduce(advance_fleet, by_order, Progress())
    for name, agent in fleet.agents.items():
        assert agent.progress == reduce(
            advance_own, [record for record in by_order if record.agent == name], Progress()
        )
    return attempts


def assert_handed_in_is_taken_up(run: KilledRun, fleet: Fleet, attempts: Collection[Attempt]) -> None:
    """Assert that each submission of the agents' own records is an attempt, is being graded, waits or was refused; the
    last one of a life may be missing, because the life ended meanwhile."""
    known = {attempt.submission for attempt in attempts} | {pending.submission.id for pending in fleet.pending.values()}
    known -= {""}  # what the supervisor measures again
    for name in fleet.agents:
        replies = run.layout.attempts / "replies" / name
        inbox = {path.stem for path in (run.layout.attempts / "inbox" / name).glob("0*.json")}
        refused = {path.stem for path in replies.glob("0*.json") if "refused" in path.read_text()}
        assert refused.isdisjoint(known)
        for tries in run.tries(name).values():
            assert set(tries[:-1]) <= known | inbox | refused
    assert known <= {id for name in fleet.agents for tries in run.tries(name).values() for id in tries}


def assert_nothing_is_doubled(
    run: KilledRun, owed: dict[str, PendingMessage], withdrawn: set[str], fleet: Fleet
) -> None:
    """Assert by the agents' own records that each heartbeat reached them once, in one conversation, and that no agent
    was started without a reason. Two things excuse a repetition: the life was killed, or the run ended in order before
    the life printed anything. After such an end, all agents are started."""
    left = {message.id for message in still_owed(fleet)}
    reached: Counter[str] = Counter()
    for name in fleet.agents:
        assert not (run.layout.state(name) / "wrong").exists(), "two lives of an agent at once"
        assert len(set(run.lives(name))) <= 1, "more than one conversation"
        spoke = run.spoke(name)
        for life, prompt in run.handed(name).items():
            ids, who = ids_in(prompt), f"{name} in its life {life} of {len(run.lives(name))}"
            called = life == 1 or ids or (name, life - 1) in run.cut_short | run.stopped
            assert called, f"{who} was started for nothing:\n{prompt}"
            again = {id for id in ids if id in left or any(id in ids_in(prompt) for prompt in later(run, name, life))}
            unheard = (name, life) in run.stopped and life not in spoke
            assert not again or unheard or (name, life) in run.cut_short, f"handed over again: {again}, {who}"
            reached.update(set(ids) - again)
    assert set(reached.values()) <= {1}, "handed over twice"
    assert set(reached).isdisjoint(left)
    # What was withdrawn by the decision that it came of was never owed.
    assert set(owed) | withdrawn == set(reached) | withdrawn | left, "lost, or out of nothing"


def later(run: KilledRun, name: str, life: int) -> list[str]:
    """Return the prompts of an agent's lives after this one."""
    return [prompt for launch, prompt in run.handed(name).items() if launch > life]


def assert_graded_once(run: KilledRun, attempts: Collection[Attempt]) -> None:
    """Assert that each attempt has the score of its own commit, and that a grader was started for it once; not at all
    if an equal tree was graded before, and again after a kill or to verify the best."""
    graded, verified = run.graded(), Counter(line["attempt"] for line in run.events("verifying"))
    for attempt in attempts:
        assert attempt.score == float(Git(run.layout.hub).text("show", f"{attempt.commit}:x.txt")), attempt
        most = 1 + run.killed[f"#{attempt.number}"] + verified[attempt.number]
        assert graded[attempt.number] in ([0] if attempt.reason.startswith("the same tree") else range(1, most + 1)), (
            graded[attempt.number],
            most,
            attempt,
        )


def waiting(run: KilledRun) -> list[Path]:
    """Return the requests of the operator that are not answered yet."""
    return list(run.layout.requests_of(OPERATOR).glob("*.json"))


def assert_answered_once(run: KilledRun, asked: Collection[str]) -> None:
    """Assert that each request was answered, and that each alert among them was raised once."""
    assert not waiting(run), f"{len(waiting(run))} of {len(asked)} requests are not answered"
    answers = [json.loads(path.read_text()) for path in run.layout.replies_to(OPERATOR).glob("*.json")]
    assert len(answers) == len(asked), f"{len(answers)} answers to {len(asked)} requests"
    assert all(answer["ok"] for answer in answers), [answer for answer in answers if not answer["ok"]]
    told = Counter(event["text"] for event in run.events("alert"))
    wanted = Counter(item for item in asked if item.startswith("alert"))
    assert told == wanted, f"alerts too many: {dict(told - wanted)}, too few: {dict(wanted - told)}"
