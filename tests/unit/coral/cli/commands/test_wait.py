"""What the result of an attempt is compared with."""

from pathlib import Path

from sample import attempt

from attempts.record import Attempt, Verdict
from attempts.store import Store
from coral.cli.commands.wait import compared_with


def test_the_reply_names_it_and_without_one_it_is_searched_for(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def publish(number: int, verdict: Verdict, **reply: int) -> Attempt:
        made = attempt(number, float(number), verdict=verdict, agent="agent-1")
        store.publish(made)
        store.reply("agent-1", made.submission, {"attempt": number, "published": True, **reply})
        return made

    publish(1, Verdict.IMPROVED)
    publish(2, Verdict.TIED)
    for last, reply, expected in ((3, {}, 1), (4, {"against": 2}, 2)):
        found = compared_with(store, publish(last, Verdict.TIED, **reply))
        assert found is not None
        assert found.number == expected
