"""Which processes should be running as the fleet's state says: the supervisor calls these functions, and reads no phase
of an agent and no step of an attempt itself."""

from coral.fleet.agent_state import LIVE, Agent, Phase
from coral.fleet.policy import MAX_KILLS
from coral.fleet.run_state import OCCUPYING, AttemptStep, Fleet, Job, PendingAttempt

START_SECONDS = 30.0  # for so long a launch without output is taken to be starting


def live_agents(fleet: Fleet) -> list[Agent]:
    return [agent for agent in fleet.agents.values() if agent.phase in LIVE]


def is_starting(agent: Agent, clock: float) -> bool:
    """Return whether the first output of the agent's launch is still expected."""
    return agent.phase in LIVE and not agent.has_output and clock - agent.spawned_at < START_SECONDS


def agents_to_find(fleet: Fleet) -> list[Agent]:
    """Return the agents whose process a new supervisor looks for, among them those that could not be killed: after a
    reboot their processes are gone."""
    return [agent for agent in fleet.agents.values() if agent.phase in LIVE or agent.kills >= MAX_KILLS]


def grades_to_find(fleet: Fleet) -> list[PendingAttempt]:
    return [attempt for attempt in fleet.pending.values() if attempt.step in OCCUPYING]


def jobs_to_find(fleet: Fleet) -> list[Job]:
    return [job for job in fleet.jobs.values() if job.phase is not Phase.WAITING]


def settled(fleet: Fleet) -> list[int]:
    """Return the numbers of the attempts that have a verdict, and whose record may not be written yet."""
    return [number for number, attempt in fleet.pending.items() if attempt.step is AttemptStep.SETTLED]
