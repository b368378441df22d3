"""Many agents and many attempts under one supervisor: what is exact for a few is exact for all of them.

Agents are shell scripts, for hundreds of attempts are wanted in seconds: they make their commits in one go and hand
them in a few at a time, as `coral eval` would. Everything else is real: supervisor, git, graders, interrupts, prompts.
"""

from collections import Counter
from collections.abc import Iterator

import psutil
import pytest
from real_runs import Run, heartbeats_in, wait_until

from attempts.record import IMPROVED, Attempt
from coral.journal.replay import replay
from coral.supervisor import workers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # two cores may have more to do than this

# Makes EACH commits at its first launch; each launch hands in as many as it is told, and waits for its interrupt.
AGENT = """
echo up
todo=.git/todo
if [ ! -e $todo ]; then
  mkdir $todo.new
  k=${CORAL_AGENT#agent-} i=0 from=$(git rev-parse HEAD)
  while [ $i -lt EACH ]; do
    i=$((i + 1))
    case $i in 7 | 19) value=$((1000 * i + k)) ;; *) value=$((i - 100)) ;; esac
    printf 'commit refs/heads/work\\ncommitter a <a@b> 1700000000 +0000\\ndata 1\\nt\\n'
    if [ $i = 1 ]; then echo "from $from"; fi
    printf 'M 100644 inline x.txt\\ndata <<.\\n%s %s %s\\n.\\n' $value $k $i
  done | git -c fastimport.unpackLimit=1 fast-import --quiet
  i=0
  git log --reverse --format='%H %T' HEAD..refs/heads/work | while read -r commit tree; do
    i=$((i + 1)) id=$(printf '%020d' $i)
    printf '{"id": "%s", "agent": "%s", "commit": "%s", "tree": "%s", "title": "try %s", "kind": "real",
      "wait": WAIT, "submitted_at": ""}' $id $CORAL_AGENT $commit $tree $i >$todo.new/$id.json
  done
  mv $todo.new $todo
fi
for each in $(ls $todo | head -n BURST); do mv $todo/$each "$CORAL_RUN/attempts/inbox/$CORAL_AGENT/$each"; done
exec sleep 1000
"""
GRADER = "read -r value rest <x.txt; echo $value >$CORAL_RESULT"
HEARTBEATS = "heartbeats:\n  - {name: plateau, scope: fleet, stagnant: 30, prompt: Leave it.}\n"
AGENTS, EACH = 20, 20
COUNT = AGENTS * EACH


def agent(each: int, burst: int, wait: int) -> str:
    return AGENT.replace("EACH", f"{each}").replace("BURST", f"{burst}").replace("WAIT", f"{wait}")


def due(attempts: list[Attempt]) -> Counter[tuple[str, str]]:
    """How often each heartbeat fell due to each agent, from nothing but the records in their order."""
    found: Counter[tuple[str, str]] = Counter()
    stagnant: Counter[str] = Counter()
    best, plateau = 0.0, 0  # the seed's score is everybody's first best
    for count, attempt in enumerate(sorted(attempts, key=lambda attempt: attempt.order), 1):
        improved, leads = attempt.verdict in IMPROVED, attempt.score > best
        stagnant[attempt.agent] = 0 if improved else stagnant[attempt.agent] + 1
        best, plateau = max(best, attempt.score), 0 if leads else plateau + 1
        found[attempt.agent, "reflect"] += 1
        found[attempt.agent, "consolidate"] += count % 10 == 0
        found[attempt.agent, "redirect"] += stagnant[attempt.agent] % 5 == 0 and not improved
        found[attempt.agent, "plateau"] += plateau % 30 == 0 and not leads
    return +found


def delivered(run: Run) -> Iterator[tuple[str, str, str]]:
    """Who was handed which heartbeat under which id, as the prompts on disk have it."""
    for path in run.layout.root.glob("logs/*/*.prompt.md"):
        for name, id in heartbeats_in(path.read_text()):
            yield path.parent.name, name, id


def withdrawn(run: Run) -> Iterator[tuple[str, str, str]]:
    """What an improvement made pointless before it was on its way."""
    for event in run.events("withdrawn"):
        name, id = event["text"].partition(" is ")[0].removesuffix(")").split(" (")
        yield event["agent"], name, id


def everything_has_arrived(run: Run, count: int) -> bool:
    """Whether so many attempts were counted and nobody is owed anything for them: then nobody is interrupted again."""
    shown = run.status()
    return shown["attempts"] == count and not any(agent["pending"] for agent in shown["agents"])


def wait_for_everything(run: Run, count: int) -> None:
    wait_until(run.layout.status.exists, what="the first status")
    wait_until(lambda: everything_has_arrived(run, count), 300, f"attempt {count} and its heartbeats")


def assert_exact(run: Run, agents: int, each: int) -> None:
    """Each attempt has its place, each heartbeat that fell due arrived once, and the journal decides the same again."""
    attempts, numbers = run.attempts(), list(range(1, agents * each + 1))
    assert [attempt.number for attempt in attempts] == numbers
    assert sorted(attempt.order for attempt in attempts) == numbers
    assert Counter(attempt.agent for attempt in attempts) == {f"agent-{k}": each for k in range(1, agents + 1)}
    arrived = [*delivered(run), *withdrawn(run)]
    assert Counter((who, name) for who, name, _ in arrived) == due(attempts)
    ids = [id for _, _, id in arrived]
    assert len(ids) == len(set(ids)) == run.fleet().run.message_count
    again = replay(run.layout.journal)
    assert again.agrees
    assert again.same > 0


def test_of_hundreds_of_attempts_by_many_agents_every_heartbeat_arrives_once(start):
    overrides = (f"agents.count={AGENTS}", "grader.slots=4")
    run = start(agent(EACH, 4, 60), command=GRADER, extra=HEARTBEATS, overrides=overrides)
    wait_for_everything(run, COUNT)
    run.stop()
    assert_exact(run, AGENTS, EACH)


def test_a_large_fleet_needs_no_thread_for_each_agent_and_leaves_nothing(start):
    many = 60
    overrides = (f"agents.count={many}", "grader.slots=4")
    run = start(agent(1, 1, 60), command=GRADER, extra=HEARTBEATS, overrides=overrides)
    wait_for_everything(run, many)
    supervisor = psutil.Process(run.supervisor.pid)
    # What takes in and checks out, what watches two folders, and the loop: however many agents there are.
    assert supervisor.num_threads() <= workers.MAX_THREADS + 10 < many
    graders_and_git = 4 + 4
    assert many <= len(supervisor.children()) <= many + graders_and_git
    run.stop()
    assert_exact(run, many, 1)
