"""The outer loop of an agent that nobody watches: it prompts the agent whenever a chain of steps has ended.

It tells the agent to go on with its next attempt: at once if something was done, else after a back-off. After
IDLE_CHAINS chains in which nothing was done the launch ends, and the supervisor decides what follows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from coral.native.llm.agent import ChainEnd, LlmAgent

IDLE_CHAINS = 5  # in a row, in which nothing was done
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
NEXT_WORDS = {
    ChainEnd.YIELDED: "Nobody watches this run, so nobody answers you. Go on with your next attempt: read what you "
    "need, change the workspace, and submit.",
    ChainEnd.CAPPED: "You have made {steps} steps in a row. Say by send_message in one sentence where you stand, then "
    "go on with your attempt, the shortest way to a submission.",
    ChainEnd.REFUSED: "There was no answer. Go on with your next attempt at the task.",
}


@dataclass(slots=True)
class OuterLoop:
    agent: LlmAgent
    sleep: Callable[[float], None] = time.sleep
    scale: float = 1.0  # of the back-off

    def run(self) -> str:
        """Run one chain of steps after the other; return why they ended. Raises ModelError if no model answers."""
        idle = 0
        self.agent.recover()
        while True:
            end = self.agent.chain()
            if end is ChainEnd.BUDGET:
                return "the limit of steps for one launch"
            idle = 0 if self.agent.worked else idle + 1
            if idle >= IDLE_CHAINS:
                return f"nothing was done in {idle} chains of steps"
            if idle:
                seconds = self.scale * min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (idle - 1))
                self.agent.bench.output.beat("waiting", f"I go on in {seconds:g} s")
                self.sleep(seconds)
            self.agent.prompt(NEXT_WORDS[end].format(steps=self.agent.bench.options.max_steps))
