"""Real runs in which an agent removes or replaces what it may write to, and what it may not: the run goes on."""

import shutil

import pytest
from real_runs import PATIENCE, context_of, wait_until

from coral.agent_setup.clone import restore_clone
from coral.cli.run_data import send_request


@pytest.mark.parametrize(
    "ruin",
    [
        "rm -rf .git",
        "rm .git/HEAD",
        "rm -rf .git/objects",
        "rm -rf .git; echo no repository > .git",
        'cd ..; rm -rf "$CORAL_AGENT"',
        'cd ..; rm -rf "$CORAL_AGENT"; mkfifo "$CORAL_AGENT"',
    ],
)
def test_an_agent_that_ruined_its_repository_goes_on_with_another_one(start, ruin):
    """With the state of its last attempt where it removed its files too."""
    script = """
if [ -e "$CORAL_RUN/second" ]; then cat x.txt >> "$CORAL_RUN/second"; echo 2 > x.txt; coral eval -m two; sleep 600; fi
if [ -e "$CORAL_RUN/first" ]; then touch "$CORAL_RUN/second"; RUIN; exit 1; fi
touch "$CORAL_RUN/first"; echo 1 > x.txt; coral eval -m one; sleep 600
""".replace("RUIN", ruin)
    run = start(script)
    wait_until(lambda: len(run.attempts()) == 2, what="the attempt after it")
    # The launch after the second attempt may have begun.
    assert (run.layout.root / "second").read_text().splitlines()[0] == "1"
    assert [attempt.score for attempt in run.attempts()][:2] == [1.0, 2.0]
    run.stop()
    told = [event["text"] for event in run.events("crashed")]
    assert any("its repository was removed or damaged; it is made again" in text for text in told)


@pytest.mark.parametrize("ruin", ["rm -rf {0}", "rm -rf {0}; echo > {0}", "rm -rf {0}/notes; echo > {0}/notes"])
def test_shared_knowledge_that_was_removed_is_begun_anew_at_the_next_launch(start, ruin):
    script = "if [ -e again ]; then ls .shared/notes && cat .shared/HEARTBEAT.md; sleep 600; fi; touch again; "
    run = start(
        script + ruin.format('"$CORAL_RUN/workspace/shared"') + "; echo 1 > x.txt; coral eval -m one; sleep 600\n"
    )
    wait_until(lambda: run.layout.output("agent-1", 2).exists())
    wait_until(lambda: "# Checklist" in run.layout.output("agent-1", 2).read_text(), what="the checklist")


def test_what_each_agent_was_asked_to_be_is_there_again_too_unless_its_agent_changed_it(start):
    layout = start(["hang"], overrides=("agents.count=2", "agents.role=Look around."), supervise=False).layout
    own, other = (layout.shared / "roles" / f"{name}.md" for name in ("agent-1", "agent-2"))
    own.write_text("I climb now.\n")
    other.unlink()
    (layout.shared / "notes").rmdir()
    restore_clone(context_of(layout), "agent-1")
    assert (layout.shared / "notes").is_dir()
    assert (own.read_text(), "Look around." in other.read_text()) == ("I climb now.\n", True)


@pytest.mark.parametrize("ruin", ["mkdir -p {0}/x", "mkfifo {0}", "ln -s nowhere {0}"])
def test_whatever_lies_in_the_place_of_a_view_makes_way(start, ruin):
    both = "; ".join(f"rm -f {name}; {ruin.format(name)}" for name in ("status.json", "logs/events.jsonl"))
    script = (
        f'if [ ! -e ruined ]; then touch ruined; (cd "$CORAL_RUN"; {both}); echo 1 > x.txt; coral eval -m one; fi; '
    )
    run = start(script + "sleep 600\n")
    wait_until(lambda: len(run.attempts()) == 1)
    wait_until(lambda: run.events("published"), what="the timeline")
    wait_until(lambda: run.status().get("attempts") == 1, what="the status")


@pytest.mark.parametrize("ruin", ["echo > {0}", "ln -s nowhere {0}"])
def test_whatever_lies_in_the_place_of_a_folder_makes_way(start, ruin):
    """Of another agent's and of those that all share: both agents hand in, and are answered."""
    folders = ("attempts/inbox/agent-2", "attempts/replies", "requests", "grades")
    ruins = "; ".join(f"rm -rf {folder}; {ruin.format(folder)}" for folder in folders)
    script = f"""
ruined="$CORAL_RUN/workspace/ruined"
if [ "$CORAL_AGENT" = agent-1 ] && [ ! -e $ruined ]; then (cd "$CORAL_RUN"; {ruins}); touch $ruined; fi
until [ -e $ruined ]; do sleep 0.1; done
n=$(($(cat x.txt) + 1)); echo $n > x.txt
coral eval -m "value $n"
sleep 600
"""
    run = start(script, overrides=("agents.count=2",))
    wait_until(
        lambda: {attempt.agent for attempt in run.attempts()} == {"agent-1", "agent-2"}, what="an attempt of each"
    )
    wait_until(lambda: len(run.attempts()) >= 4, what="what follows the heartbeats")
    asked = send_request.send(run.layout, "operator", {"type": "tell", "to": "agent-2", "text": "are you there"})
    answer = send_request.answer(run.layout, "operator", asked, PATIENCE)
    assert answer.data["ok"] is True
    run.stop()
    assert [event["text"] for event in run.events("alert") if "directory" in event["text"]] == []


def test_a_run_whose_folder_is_taken_away_ends_and_goes_on_where_it_is_put_back(start, tmp_path):
    """By then no `coral stop` finds it, and its agents would go on for ever."""
    run = start(
        "n=$(($(cat x.txt) + 1)); echo $n > x.txt; coral eval -m $n; sleep 600\n", overrides=("agents.count=2",)
    )
    run.wait_for_attempts(2)
    run.layout.root.rename(tmp_path / "elsewhere")
    assert run.supervisor.wait(PATIENCE) == 1
    shutil.rmtree(run.layout.root, ignore_errors=True)  # a last status, say
    (tmp_path / "elsewhere").rename(run.layout.root)
    assert run.left() == []
    assert "was removed or moved" in run.layout.log.read_text()
    before = len(run.attempts())
    run.supervise().wait_for_attempts(before + 2)


def test_a_run_whose_folders_were_replaced_by_links_goes_on_in_its_own(start, tmp_path):
    places = ("attempts", "heartbeats", "logs", "grades", "requests", "private/grading")
    elsewhere = tmp_path / "elsewhere"
    ruin = "".join(f"mv {place} {place}.moved; ln -s {elsewhere} {place}; " for place in places)
    script = f'if [ ! -e done ]; then touch done; (cd "$CORAL_RUN"; {ruin}); fi\n'
    script += "n=$(($(cat x.txt) + 1)); echo $n > x.txt; coral eval -m $n; sleep 600\n"
    elsewhere.mkdir()
    run = start(script, overrides=("run.poll_seconds=0.2",))
    run.wait_for_attempts(3)

    def restored() -> set[str]:
        """A check between two of its commands finds a folder that was deleted, not replaced."""
        told = [event["text"].split(",")[0] for event in run.events("alert")]
        return {place for place in places if any(text.startswith(f"the folder {place} was ") for text in told)}

    wait_until(lambda: restored() == set(places), what="an alert of each")
    assert [place for place in places if (run.layout.root / place).is_symlink()] == []
    run.stop()
    assert list(elsewhere.glob("*.json")) == []
    assert [attempt.score for attempt in run.attempts()][:3] == [1.0, 2.0, 3.0]
