"""Real runs in hostile surroundings: agents that plant pipes and links, or print without end; read in bounds."""

import sys
from pathlib import Path

from real_runs import wait_until

from coral.cli import main
from workspace.layout import SHARED

PIPES = """
if [ -e again ]; then echo here; exec sleep 300; fi
echo x; touch again
logs=$CORAL_RUN/logs/$CORAL_AGENT
coral eval --no-wait -m one
rm -f $logs/beats.jsonl .git/info/exclude .git/info/coral .git/config .git/index $CORAL_RUN/status.json *.md .shared
for each in $logs/beats.jsonl $logs/0002.jsonl $logs/0002.prompt.md .git/info/exclude .git/info/coral .git/config \\
    .git/index $CORAL_RUN/status.json; do mkfifo $each; done
echo precious > $CORAL_RUN/precious
ln -s $CORAL_RUN/precious $logs/0002.err
rm $logs/0001.jsonl; mkfifo $logs/0001.jsonl
exec sleep 300
"""


def test_pipes_and_links_where_the_supervisor_reads_and_writes_hold_nobody_up(start):
    run = start(PIPES, overrides=("run.poll_seconds=0.2", "agents.stall=20", "grader.slots=2"))
    output = run.layout.output("agent-1", 2)
    wait_until(lambda: output.is_file() and "here" in output.read_text(), what="the next launch")
    assert run.ask({"type": "tell", "to": "agent-1", "text": "are you there"})["ok"] is True
    assert "reflect" in run.layout.prompt("agent-1", 2).read_text()
    clone = run.layout.clone("agent-1")
    assert (clone / SHARED).is_symlink()
    assert list(clone.glob("*.md"))
    assert (run.layout.root / "precious").read_text() == "precious\n"
    assert [attempt.number for attempt in run.attempts()] == [1]
    wait_until(run.layout.status.is_file, what="a status that is a file again")


# --- lines without end, NUL, what is no UTF-8, logs of a gigabyte ----------------------------------------------------


MEGABYTE = 1_000_000
LINE = 100 * MEGABYTE
GIGABYTE = 1 << 30
MOST = 250  # MB that a supervisor of one agent may ever have held; it starts with some eighty

# In its own output: a line of 100 MB, then garbage, then words; a gigabyte in each file that it can reach.
AGENT = f"""\
echo here
if [ -e again ]; then echo again; exec sleep 300; fi
touch again
head -c {LINE} /dev/zero
printf '\\n\\377\\376\\0garbage\\r\\033[31m\\n'
logs=$CORAL_RUN/logs/$CORAL_AGENT
truncate -s {GIGABYTE} $logs/0001.err $logs/beats.jsonl
echo 1 > x.txt
coral eval -m "one
two" > /dev/null
exec sleep 300
"""
GRADE = f"""\
import sys

def grade(workspace, kind):
    if kind != "baseline":
        for _ in range({LINE // MEGABYTE}):
            sys.stdout.buffer.write(b"\\xff\\0" * {MEGABYTE // 2})
            sys.stderr.write("x" * 1000)
    return float((workspace / "x.txt").read_text())
"""


def peak(pid: int) -> int:
    """The most memory that a process ever had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1000


def test_whatever_agents_and_graders_print_is_read_in_bounds(start, capsys) -> None:
    run = start(AGENT, grade=GRADE, overrides=("run.poll_seconds=0.5",))
    (attempt,) = run.wait_for_attempts(1)
    assert (attempt.score, attempt.title) == (1.0, "one")
    output = run.layout.output("agent-1", 2)
    wait_until(lambda: output.exists() and "again" in output.read_text(), what="its heartbeat")
    assert "reflect" in run.layout.prompt("agent-1", 2).read_text()
    if sys.platform == "linux":
        assert peak(run.supervisor.pid) < MOST
    # Those who look are no worse off.
    for words in (["status"], ["show", "1"], ["transcript", "agent-1"], ["log"]):
        assert main([*words, "--run", str(run.layout.root)]) == 0
        said = capsys.readouterr().out
        assert "\0" not in said
        assert "\x1b" not in said
